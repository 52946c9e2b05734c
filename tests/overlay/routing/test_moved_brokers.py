"""Brokers that are reached in another way than before: handovers, standby peers, subscriptions."""

from __future__ import annotations

import pytest

from overlay.routing.examples import (
    at,
    is_up,
    linked,
    moved_at,
    reading,
    star,
    wanted_at,
)
from overlay.routing.overlay_sim import S, fresh_like, identity
from tocsin.overlay.routing.effects import (
    NeighbourForgotten,
    Save,
    SubscriptionMoved,
)
from tocsin.overlay.routing.options import RoutingOptions
from tocsin.overlay.routing.router import Router
from tocsin.wire.link import messages as m


def test_a_place_in_the_log_goes_after_what_it_held_was_handed_over() -> None:
    overlay = star("AB", "AC")
    overlay.subscribe("B", "s", "a > 1")
    overlay.settle()
    overlay.cut("A", "B")
    overlay.settle()

    overlay.dial("B", "C")
    overlay.settle()

    kinds = [type(each) for each in overlay.nodes["A"].seen]
    assert moved_at(overlay, "A") == [("B", "B", "C")]
    assert kinds.index(SubscriptionMoved) < kinds.index(NeighbourForgotten)


@pytest.mark.parametrize("first", ["A", "B"])
def test_who_was_behind_a_neighbour_is_known_also_when_this_broker_starts_again(first: str) -> None:
    """C asks for less than B, which stands for it at A; what A keeps for B is owed to C too."""
    overlay = star("AB", "BC")
    overlay.subscribe("B", "wide", "")
    overlay.subscribe("C", "narrow", "a > 1")
    overlay.settle()
    for broker in (first, *"AB".replace(first, "")):
        overlay.crash(broker)
        overlay.settle()
    overlay.restart("A")

    overlay.dial("C", "A")
    overlay.settle()

    moved = [each for each in overlay.nodes["A"].seen if isinstance(each, SubscriptionMoved)]
    assert [(each.key, each.before, each.after) for each in moved] == [(("C", "narrow"), "B", "C")]


@pytest.mark.parametrize("is_away", [False, True])
def test_who_was_lost_behind_a_neighbour_is_handed_over_what_is_still_on_its_way_there(
    is_away: bool,
) -> None:
    """What comes to B from A from now on, B would not send back to A on its way to C."""
    overlay = star("AB", "BC")
    overlay.subscribe("B", "wide", "")
    overlay.subscribe("C", "narrow", "a > 1")
    overlay.settle()
    overlay.cut("B", "C")
    overlay.settle()
    if is_away:
        overlay.cut("A", "B")
        overlay.settle()

    overlay.dial("C", "A")
    overlay.settle()

    assert ("C", "B", "C") in moved_at(overlay, "A")


def test_of_brokers_that_are_away_no_more_are_known_than_may_be() -> None:
    router = Router(identity("A"), RoutingOptions(brokers_per_neighbour_max=1))
    router.link_opened(1, 0, is_outgoing=False)
    for message in (
        m.Hello(m.PROTOCOL_VERSION, "B", "log-B", 1, "x"),
        m.Welcome(),
        m.Synced("advertisements"),
        m.Synced("subscriptions"),
    ):
        router.receive(1, message, 0)
    saved: dict[str, bytes | None] = {}

    for number in range(10):
        effects = router.receive(1, m.Behind({f"C{number}": "B"}), 0)
        effects += router.receive(1, m.Behind({}, (f"C{number}",)), 0)
        saved |= {each.key: each.value for each in effects if isinstance(each, Save)}

    assert [row for row, value in saved.items() if value is not None] == ["b/B/C9"]


def test_what_was_behind_a_neighbour_is_dropped_with_it() -> None:
    overlay = star("AB", "BC")
    overlay.subscribe("B", "s", "")
    overlay.settle()
    overlay.crash("B")
    overlay.crash("C")
    overlay.settle()
    overlay.crash("A")
    overlay.restart("A")

    overlay.forget("A", "C")
    overlay.forget("A", "B")

    assert [row for row in overlay.nodes["A"].rows if row.startswith(("b/", "n/"))] == []


def test_who_was_behind_a_neighbour_is_not_forgotten_by_a_link_that_fails_half_way() -> None:
    overlay = star("AB", "BC")
    overlay.subscribe("B", "wide", "")
    overlay.subscribe("C", "narrow", "a > 1")
    overlay.settle()
    overlay.crash("B")
    overlay.settle()
    overlay.restart("B")

    overlay.dial("B", "A")
    while overlay.router("A").tables().neighbours[0].state != "connecting":
        overlay.step()
    overlay.crash("B")
    overlay.settle()
    overlay.dial("C", "A")
    overlay.settle()

    assert ("C", "B", "C") in moved_at(overlay, "A")


def test_a_broker_that_moved_is_reached_by_its_new_way() -> None:
    overlay = star("AB", "BC", "CD")
    overlay.subscribe("D", "s", "load > 5")
    overlay.settle()
    overlay.cut("C", "D")
    overlay.settle()

    overlay.dial("D", "A")
    overlay.settle()

    assert at(overlay, "C") == {"s": ("B", ())}
    assert at(overlay, "A") == {"s": ("D", ("B",))}
    moved = [each for each in overlay.nodes["C"].seen if type(each).__name__ == "SubscriptionMoved"]
    assert [(each.key, each.before, each.after) for each in moved] == [(("D", "s"), "D", "B")]
    assert "D" not in {each.broker for each in overlay.router("C").tables().neighbours}
    for broker in "ABCD":
        assert overlay.tables(broker) == fresh_like(overlay).tables(broker)


def test_the_brokers_behind_one_that_died_are_reached_through_their_standby() -> None:
    overlay = star("AB", "BC")
    overlay.subscribe("C", "s", "load > 5")
    overlay.subscribe("A", "t", "load > 7")
    overlay.settle()
    overlay.crash("B")
    overlay.settle()

    overlay.dial("C", "A")
    overlay.settle()

    assert overlay.way(reading(load=6), "A") == {"A": "", "C": "A"}
    assert overlay.way(reading(load=8), "C") == {"C": "", "A": "C"}


def test_back_to_the_first_peer_without_a_cycle() -> None:
    overlay = star("AB", "BC")
    overlay.crash("B")
    overlay.settle()
    overlay.dial("C", "A")
    overlay.settle()
    overlay.restart("B")
    overlay.dial("A", "B")
    overlay.settle()
    assert overlay.up() == {("A", "B"), ("A", "C")}

    overlay.dial("C", "B")
    overlay.settle()
    assert overlay.up() == {("A", "B"), ("A", "C")}, "the standby is in use"

    overlay.dial("C", "B", replacing="A")
    overlay.settle()
    assert overlay.up() == {("A", "B"), ("B", "C")}


def test_the_standby_is_not_left_for_a_peer_that_would_close_a_cycle() -> None:
    overlay = star("AB", "BC", "CD")
    overlay.add("E")
    overlay.dial("E", "A")
    overlay.settle()
    overlay.cut("B", "C")
    overlay.settle()
    overlay.dial("D", "E")
    overlay.settle()

    overlay.dial("E", "C", replacing="A")
    overlay.settle()

    assert overlay.up() == {("A", "B"), ("C", "D"), ("A", "E"), ("D", "E")}


def test_a_subscription_has_its_way_by_where_its_broker_is_while_two_neighbours_name_it() -> None:
    router = linked()
    router.link_opened(2, 0, is_outgoing=False)
    router.receive(2, m.Hello(m.PROTOCOL_VERSION, "C", "log-C", 1, "x"), 0)
    for message in (m.Welcome(), m.Synced("advertisements"), m.Synced("subscriptions")):
        router.receive(2, message, 0)
    router.receive(1, m.Behind({"D": "B"}), 0)
    router.receive(1, m.Subscribe("D", "s", "a > 5"), 0)
    router.receive(2, m.Subscribe("D", "s", "a > 5"), 0)

    before = router.tables().subscriptions[0].last_hop
    router.receive(1, m.Behind({}, ("D",)), 0)
    router.receive(2, m.Behind({"D": "C"}), 0)

    assert before == "B"
    assert router.tables().subscriptions[0].last_hop == "C"


@pytest.mark.parametrize(("wide", "narrow"), [("a > 1", "a > 5"), ("a > 1", "a > 1")])
@pytest.mark.parametrize("middle", ["B", "Z"])
def test_what_is_kept_for_a_broker_that_is_away_stands_for_nobody_elses_subscription(
    wide: str, narrow: str, middle: str
) -> None:
    overlay = star(f"A{middle}", f"{middle}C")
    overlay.subscribe(middle, "m", wide)
    overlay.subscribe("C", "c", narrow)
    overlay.settle()
    overlay.crash(middle)
    overlay.run(5 * S)

    overlay.dial("C", "A")
    overlay.settle()

    assert overlay.way(reading(a=7), "A") == {"A": "", "C": "A"}


@pytest.mark.parametrize("dead", ["A", "M", "Z"])
def test_a_standby_is_asked_for_events_also_if_a_dead_broker_stands_for_what_it_offers(
    dead: str,
) -> None:
    """The advertisements are alike, so that of the smallest id stands for the others."""
    overlay = star(f"B{dead}", f"C{dead}")
    overlay.subscribe("C", "s", "a > 5")
    overlay.settle()
    overlay.crash(dead)
    overlay.run(5 * S)

    overlay.dial("C", "B")
    overlay.settle()

    assert at(overlay, "B")["s"] == ("C", ())
    assert at(overlay, "C")["s"] == ("", ("B",))


@pytest.mark.parametrize("moves", ["A", "Z"])
@pytest.mark.parametrize("direct", [True, False])
def test_a_broker_that_changes_its_place_is_asked_at_once_for_what_others_want_there(
    moves: str, direct: bool
) -> None:
    """What it asked for itself, at the place before, stands for nobody who is sent its events."""
    overlay = star(f"{moves}B", "BC", "CD")
    overlay.subscribe(moves, "mine", "")
    overlay.subscribe("C", "theirs", "")
    overlay.subscribe("B", "narrow", "a > 5")
    overlay.settle()
    overlay.cut(moves, "B")
    overlay.settle()
    there = "C" if direct else "D"

    overlay.dial(moves, there)
    while not is_up(overlay, moves, there):
        overlay.step()

    assert wanted_at(overlay, moves, there, reading(a=6))
    assert wanted_at(overlay, moves, there, reading(a=1))
