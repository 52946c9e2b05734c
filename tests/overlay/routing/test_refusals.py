"""Links that are refused, and entries of a neighbour that are left out."""

from __future__ import annotations

import pytest

from overlay.routing.examples import (
    greeting,
    linked,
    star,
)
from overlay.routing.overlay_sim import S, identity
from tocsin.overlay.routing.effects import (
    CloseLink,
    Send,
)
from tocsin.overlay.routing.options import RoutingOptions
from tocsin.overlay.routing.router import Router
from tocsin.wire.link import messages as m


def test_a_link_that_closes_a_cycle_is_refused_with_the_way_that_is_there() -> None:
    overlay = star("AB", "BC")

    overlay.dial("A", "C")
    overlay.settle()

    assert overlay.up() == {("A", "B"), ("B", "C")}
    refusals = [each.error for each in overlay.nodes["A"].seen if isinstance(each, CloseLink)]
    assert {error.code for error in refusals if error} <= {"T803", "T809"}
    assert "C is reached through B already" in str(refusals[0]) or "would close a cycle" in str(
        refusals[0]
    )


def test_two_links_between_two_trees_made_at_once_leave_one() -> None:
    overlay = star("AB", "CD")

    overlay.dial("A", "C")
    overlay.dial("B", "D")
    overlay.run(30 * S)

    assert overlay.up() == {("A", "B"), ("A", "C"), ("B", "D")}, "the largest edge, C to D, is cut"


def test_two_connections_made_at_once_by_both_sides_leave_the_one_of_the_smaller_id() -> None:
    overlay = star("AB")
    overlay.add("C")

    overlay.dial("C", "B")
    overlay.dial("B", "C")
    overlay.settle()

    assert overlay.up() == {("A", "B"), ("B", "C")}
    assert [c.ends for c in overlay.nodes["C"].ends.values()] == [{"B": 3, "C": 2}]


@pytest.mark.parametrize(
    ("hello", "code"),
    [
        (m.Hello(m.PROTOCOL_VERSION, "A", "log-A", 1, "x"), "T804"),
        (m.Hello(m.PROTOCOL_VERSION + 1, "B", "log-B", 1, "x"), "T802"),
        (m.Hello(m.PROTOCOL_VERSION, "B", "log-B", 2, "x"), "T802"),
        (m.Hello(m.PROTOCOL_VERSION, "B", "log-B", 1, "x", behind={"C": "B", "A": "C"}), "T805"),
        (
            m.Hello(
                m.PROTOCOL_VERSION, "B", "l", 1, "x", behind={f"b{n}": "B" for n in range(10_000)}
            ),
            "T806",
        ),
    ],
)
def test_who_cannot_be_a_neighbour_is_told_why(hello: m.Hello, code: str) -> None:
    effects = greeting(Router(identity("A")), hello)

    refused = [each.message for each in effects if isinstance(each, Send)]
    assert [each.code for each in refused if isinstance(each, m.Refuse)] == [code]
    assert [each.error.code for each in effects if isinstance(each, CloseLink) and each.error] == [
        code
    ]


def test_a_message_out_of_turn_closes_the_link() -> None:
    router = Router(identity("A"))
    router.link_opened(1, 0, is_outgoing=False)

    effects = router.receive(1, m.Subscribe("B", "s", ""), 0)

    assert [each.error.code for each in effects if isinstance(each, CloseLink) and each.error] == [
        "T801"
    ]
    assert router.tables().subscriptions == ()


def test_an_entry_that_cannot_be_read_or_has_no_room_is_left_out_and_somebody_hears() -> None:
    router = linked(RoutingOptions(subscriptions_max=2))

    ignored = [
        type(effect.error).__name__
        for number, text in enumerate(["a >", "a > 1", "a > 2", "a > 3"])
        for effect in router.receive(1, m.Subscribe("B", f"s{number}", text), 0)
        if type(effect).__name__ == "EntryIgnored"
    ]

    assert ignored == ["BadFilter", "RoutingTableFull"]
    assert [row.id for row in router.tables().subscriptions] == ["s1", "s2"]


def test_a_neighbour_cannot_speak_for_a_broker_behind_another_or_for_this_one() -> None:
    router = linked()
    router.link_opened(2, 0, is_outgoing=False)
    router.receive(2, m.Hello(m.PROTOCOL_VERSION, "C", "log-C", 1, "x"), 0)
    for message in (m.Welcome(), m.Synced("advertisements"), m.Synced("subscriptions")):
        router.receive(2, message, 0)
    router.receive(2, m.Subscribe("C", "s", "a > 5"), 0)

    router.receive(1, m.Subscribe("C", "s", "nothing"), 0)
    router.receive(1, m.Subscribe("A", "mine", ""), 0)

    assert [(row.id, row.filter, row.last_hop) for row in router.tables().subscriptions] == [
        ("s", "a > 5", "C")
    ]


def test_brokers_that_are_away_count_towards_the_limit() -> None:
    router = linked(RoutingOptions(brokers_max=1))
    router.link_closed(1, 50)

    router.link_opened(2, 60, is_outgoing=False)
    effects = router.receive(2, m.Hello(m.PROTOCOL_VERSION, "C", "log-C", 1, "x"), 60)

    refused = [each.message for each in effects if isinstance(each, Send)]
    assert [each.code for each in refused if isinstance(each, m.Refuse)] == ["T806"]
