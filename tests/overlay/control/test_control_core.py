"""Control messages go to whom they are for, once, and no further than they may."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.control.control_network import DEFAULTS, Network, S, chain, tree
from tocsin.errors import BadControlMessage, ControlFull, ControlRateReached, NoSuchBroker
from tocsin.event.control_topic import NODES, RIGHTS, TOPICS
from tocsin.wire.link.messages import Control

STAR = [("hub", f"leaf{n}") for n in range(4)]


def test_a_message_for_one_broker_takes_the_one_way_there() -> None:
    network = tree([*STAR, ("leaf0", "far")])

    message = network.send("leaf3", "Entity/e", to="far")
    network.settle()

    assert network.got(message) == ["far"]
    assert set(network.crossed) == {("leaf3", "hub"), ("hub", "leaf0"), ("leaf0", "far")}


def test_a_message_for_this_very_broker_leaves_it_by_no_link() -> None:
    network = tree(STAR)

    message = network.send("hub", "Entity/e", to="hub")
    network.settle()

    assert network.got(message) == ["hub"]
    assert not network.crossed


def test_a_message_for_topic_discovery_nodes_goes_where_they_are_and_nowhere_else() -> None:
    network = tree([*STAR, ("leaf0", "far")])
    network.serve("far", "tdn1")
    network.serve("leaf1", "tdn2")
    network.settle()

    message = network.send("leaf3", TOPICS)
    named = network.send("leaf3", f"{NODES}/tdn1")
    nobody = network.send("leaf3", f"{NODES}/tdn3")
    network.settle()

    assert network.got(message) == ["far", "leaf1"]
    assert network.got(named) == ["far"]
    assert network.got(nobody) == []
    assert ("hub", "leaf2") not in network.crossed
    assert network.crossed["leaf3", "hub"] == 2


@pytest.mark.parametrize("ttl", range(1, 8))
def test_a_message_for_everybody_goes_as_many_links_as_it_may(ttl: int) -> None:
    network = chain(12)

    message = network.send("b0", TOPICS, to="*", ttl=ttl)
    network.settle()

    assert set(network.got(message)) == {f"b{n}" for n in range(ttl + 1)}


def test_what_is_said_of_rights_goes_to_every_broker_however_far() -> None:
    network = chain(30)

    message = network.send("b0", RIGHTS, to="*")
    network.settle()

    assert set(network.got(message)) == set(network.nodes)


@pytest.mark.parametrize(
    ("topic", "to", "ttl"),
    [
        ("Entity/e", "", 7),
        (RIGHTS, "", 7),
        (NODES, "*", 7),
        (TOPICS, "*", 8),
        ("Entity/e", "*", 255),
        ("Services/Discovery", "*", 7),
        ("lead/radar", "b1", 7),
        ("Entity/e/f", "b1", 7),
        ("Entity", "b1", 7),
        ("Entity/*", "b1", 7),
        (f"{TOPICS}/", "b1", 7),
        (f"{RIGHTS}/x", "b1", 7),
        ("Entity/" + "e" * 65, "b1", 7),
    ],
)
def test_what_may_not_be_sent_so_is_refused_here_and_from_a_neighbour(
    topic: str, to: str, ttl: int
) -> None:
    network = chain(2)

    with pytest.raises(BadControlMessage):
        network.send("b0", topic, to=to, ttl=ttl)
    network.inject("b0", "b1", Control("x", topic, "b0", to, ttl, 1, "test"))
    network.settle()

    assert [type(each) for each in network.nodes["b1"].problems] == [BadControlMessage]
    assert not network.nodes["b1"].delivered
    assert network.nodes["b1"].core.counts.dropped == {"invalid": 1}


def test_no_way_to_a_broker_is_said_to_who_sends() -> None:
    network = chain(3)
    network.unlink("b1", "b2")

    with pytest.raises(NoSuchBroker):
        network.send("b0", "Entity/e", to="b2")

    assert network.nodes["b0"].core.counts.dropped == {"no way": 1}


def test_a_message_whose_way_ends_in_between_is_dropped_and_counted() -> None:
    network = chain(3)
    network.send("b0", "Entity/e", to="b2")
    network.unlink("b1", "b2")
    network.settle()

    assert network.nodes["b1"].core.counts.dropped == {"no way": 1}


def test_a_neighbour_cannot_speak_for_a_broker_that_is_elsewhere() -> None:
    """The answers would go there."""
    network = tree(STAR)
    forged = Control("x", TOPICS, "leaf1", "*", 7, 1, "test")

    network.inject("leaf0", "hub", forged)
    network.inject("leaf0", "hub", msgspec.structs.replace(forged, origin="nobody"))
    network.inject("leaf0", "hub", msgspec.structs.replace(forged, origin="hub"))
    network.settle()

    assert not any(node.delivered for node in network.nodes.values())
    counts = network.nodes["hub"].core.counts
    assert (counts.dropped, counts.repeats) == ({"origin": 2}, 1)


def test_a_message_that_comes_again_is_taken_once_while_it_is_remembered() -> None:
    network = chain(2)
    message = Control("x", "Entity/e", "b0", "b1", 7, 1, "test")

    for passed_ns in (0, 0, DEFAULTS.remembered_ns - 1, 1):
        network.now_ns += passed_ns
        network.inject("b0", "b1", message)
        network.settle()

    assert len(network.nodes["b1"].delivered) == 2
    assert network.nodes["b1"].core.counts.repeats == 2


def test_what_is_remembered_is_bounded_and_nothing_is_taken_past_that() -> None:
    network = chain(2, replace(DEFAULTS, remembered_max=10))
    for number in range(15):
        network.inject("b0", "b1", Control(f"x{number}", "Entity/e", "b0", "b1", 7, 1, "test"))
    network.settle()
    core = network.nodes["b1"].core

    assert (core.remembered, len(network.nodes["b1"].delivered)) == (10, 10)
    assert {type(each) for each in network.nodes["b1"].problems} == {ControlFull}
    assert core.counts.dropped == {"memory": 5}

    network.now_ns += DEFAULTS.remembered_ns
    network.inject("b0", "b1", Control("y", "Entity/e", "b0", "b1", 7, 1, "test"))
    network.settle()

    assert (core.remembered, len(network.nodes["b1"].delivered)) == (1, 11)


def test_a_neighbour_that_sends_too_much_is_told_and_others_are_heard() -> None:
    network = tree(STAR, replace(DEFAULTS, neighbour_rate=10))
    for leaf in ("leaf0", "leaf1"):
        for number in range(100 if leaf == "leaf0" else 15):
            message = Control(f"x{number}", "Entity/e", leaf, "hub", 7, 1, "test")
            network.inject(leaf, "hub", message)
    network.settle()
    hub = network.nodes["hub"]

    assert sum(each.origin == "leaf0" for each in hub.delivered) == 20
    assert sum(each.origin == "leaf1" for each in hub.delivered) == 15
    assert {type(each) for each in hub.problems} == {ControlRateReached}
    assert hub.core.counts.dropped == {"rate": 80}

    network.now_ns += S
    for number in range(100, 200):
        message = Control(f"x{number}", "Entity/e", "leaf0", "hub", 7, 1, "test")
        network.inject("leaf0", "hub", message)
    network.settle()

    assert sum(each.origin == "leaf0" for each in hub.delivered) == 30


def test_all_neighbours_together_send_no_more_than_may_be() -> None:
    network = tree(STAR, replace(DEFAULTS, neighbour_rate=10, total_rate=15))
    for leaf in ("leaf0", "leaf1", "leaf2"):
        for number in range(100):
            message = Control(f"x{number}", "Entity/e", leaf, "hub", 7, 1, "test")
            network.inject(leaf, "hub", message)
    network.settle()

    assert len(network.nodes["hub"].delivered) == 30


def test_a_client_that_sends_too_much_is_refused_and_told_how_long() -> None:
    network = tree(STAR, replace(DEFAULTS, entity_rate=5))
    core = network.nodes["hub"].core
    for _ in range(10):
        core.check_rate("ann", network.now_ns)
    core.check_rate("bob", network.now_ns)

    with pytest.raises(ControlRateReached) as refused:
        core.check_rate("ann", network.now_ns)

    assert refused.value.retry_after_s == pytest.approx(0.2)
    core.check_rate("ann", network.now_ns + S // 5)


@st.composite
def networks(draw: st.DrawFn, extra_max: int = 0) -> tuple[Network, int]:
    """A random tree, with topic discovery nodes, and perhaps some links too many."""
    size = draw(st.integers(2, 10))
    network = Network(random=Random(draw(st.integers(0, 1_000))))
    network.add(*(f"b{n}" for n in range(size)))
    for n in range(1, size):
        network.link(f"b{n}", f"b{draw(st.integers(0, n - 1))}")
    extra = 0
    for _ in range(draw(st.integers(0, extra_max))):
        one, other = (f"b{draw(st.integers(0, size - 1))}" for _ in range(2))
        if one != other and other not in network.links[one]:
            network.link(one, other)
            extra += 1
    for n in range(size):
        if draw(st.booleans()):
            network.serve(f"b{n}", *(f"tdn{n}-{each}" for each in range(draw(st.integers(1, 2)))))
    return network, extra


@given(networks(), st.integers(0, 9), st.integers(1, 7))
def test_on_a_tree_everybody_who_is_meant_gets_a_message_and_nobody_else(
    drawn: tuple[Network, int], start: int, ttl: int
) -> None:
    network, _ = drawn
    origin = f"b{start % len(network.nodes)}"
    network.settle()
    serving = {name for name, node in network.nodes.items() if node.core.serving.own}

    to_nodes = network.send(origin, TOPICS)
    to_all = network.send(origin, TOPICS, to="*", ttl=ttl)
    ones = {name: network.send(origin, "Entity/e", to=name) for name in network.nodes}
    network.settle()

    assert network.got(to_nodes) == sorted(serving)
    near = sorted(name for name, hops in network.hops(origin).items() if hops <= ttl)
    assert network.got(to_all) == near
    for name, message in ones.items():
        assert network.got(message) == [name]
    for node in network.nodes.values():
        assert not node.problems
        assert not node.core.counts.dropped
        assert not node.core.counts.repeats


@given(networks(extra_max=4), st.integers(0, 9), st.integers(1, 7))
def test_with_cycles_nothing_loops_and_nobody_gets_a_message_twice(
    drawn: tuple[Network, int], start: int, ttl: int
) -> None:
    network, extra = drawn
    origin = f"b{start % len(network.nodes)}"
    network.settle()
    serving = {name for name, node in network.nodes.items() if node.core.serving.own}
    hops = network.hops(origin)

    to_nodes = network.send(origin, TOPICS)
    to_all = network.send(origin, TOPICS, to="*", ttl=ttl)
    ones = {name: network.send(origin, "Entity/e", to=name) for name in network.nodes}
    network.settle()

    got = network.got(to_nodes)
    assert len(got) == len(set(got))
    assert set(got) <= serving
    got = network.got(to_all)
    assert len(got) == len(set(got))
    assert {name for name in got if hops[name] > ttl} == set()
    for name, message in ones.items():
        assert network.got(message) in ([], [name])
    # A message crosses each link in each direction once at most.
    assert max(network.crossed.values(), default=0) <= 2 + len(ones)
    assert sum(network.crossed.values()) <= (2 + len(ones)) * 2 * (len(network.nodes) - 1 + extra)


@given(networks(extra_max=3), st.randoms(use_true_random=False))
def test_what_is_known_of_topic_discovery_nodes_is_what_there_is(
    drawn: tuple[Network, int], random: Random
) -> None:
    """After links have come and gone, and nodes too, in whatever order their messages arrive."""
    network, _ = drawn
    names = sorted(network.nodes)
    for _ in range(10):
        for _ in range(random.randrange(6)):
            network.step()
        one, other = random.sample(names, 2)
        change = random.random()
        if change < 0.3:
            network.serve(one, *random.choice([(), (f"new-{one}",), (f"other-{one}", "shared")]))
        elif other in network.links[one]:
            network.unlink(one, other)
        elif change < 0.6 and other not in network.side(one, ""):
            network.link(one, other)
    while (edge := one_of_a_cycle(network)) is not None:
        network.unlink(*edge)
    network.settle()

    own = {name: node.core.serving.own for name, node in network.nodes.items()}
    for name, known in network.tables().items():
        reached = network.side(name, "")
        assert known == {each: own[each] for each in reached if own[each]}


def one_of_a_cycle(network: Network) -> tuple[str, str] | None:
    for one, others in network.links.items():
        for other in others:
            if any(other in network.side(each, one) for each in others - {other}):
                return one, other
    return None


def test_nobody_is_told_of_topic_discovery_nodes_that_are_behind_it() -> None:
    network = tree(STAR)
    network.serve("leaf0", "tdn")
    network.settle()

    assert [*network.nodes["leaf1"].core.serving.brokers("tdn")]
    assert not network.nodes["leaf0"].core.serving._said["hub"]
