"""Routing between a few brokers: figure 1 of paper 001, covering, and neighbours that are away."""

from __future__ import annotations

from overlay.routing.examples import (
    abc,
    at,
    figure_1,
    star,
)
from overlay.routing.overlay_sim import S
from tocsin.event.event import Event


def test_a_subscription_follows_the_advertisement_and_nothing_else() -> None:
    overlay = figure_1()

    overlay.subscribe("B", "sub1", abc("15"))
    overlay.settle()

    assert at(overlay, "B") == {"sub1": ("", ("C",))}
    assert at(overlay, "C") == {"sub1": ("B", ("A",))}
    assert at(overlay, "A") == {"sub1": ("C", ())}
    assert at(overlay, "D") == {}


def test_an_event_goes_back_the_way_that_the_subscription_came() -> None:
    overlay = figure_1()
    overlay.subscribe("B", "sub1", abc("15"))
    overlay.settle()
    event = Event(id="1", source="/s", type="t", attributes={"kind": "abc", "a": 20})

    assert overlay.way(event, "A") == {"A": "", "C": "A", "B": "C"}


def test_a_covered_subscription_is_not_sent_on() -> None:
    overlay = figure_1()
    overlay.subscribe("B", "sub1", abc("15"))
    overlay.settle()

    overlay.subscribe("D", "sub3", abc("18"))
    overlay.settle()

    assert at(overlay, "C") == {"sub1": ("B", ("A",)), "sub3": ("D", ())}
    assert at(overlay, "A") == {"sub1": ("C", ())}


def test_it_is_sent_on_when_its_cover_goes() -> None:
    overlay = figure_1()
    overlay.subscribe("B", "sub1", abc("15"))
    overlay.subscribe("D", "sub3", abc("18"))
    overlay.settle()

    overlay.unsubscribe("B", "sub1")
    overlay.settle()

    assert at(overlay, "A") == {"sub3": ("C", ())}
    assert at(overlay, "B") == {}


def test_what_a_wider_one_covers_is_withdrawn_after_that_one_was_sent() -> None:
    overlay = figure_1()
    overlay.subscribe("B", "sub1", abc("15"))
    overlay.settle()

    overlay.subscribe("D", "all", "")
    overlay.settle()

    assert at(overlay, "A") == {"all": ("C", ())}
    assert at(overlay, "C") == {"all": ("D", ("A", "B")), "sub1": ("B", ())}


def test_a_filter_that_is_no_box_is_never_covered_and_goes_everywhere() -> None:
    overlay = figure_1()
    overlay.subscribe("D", "all", "")

    for number, text in enumerate(['sql "a > 5"', "not a = 5", 'xpath "/a"']):
        overlay.subscribe("B", f"s{number}", text)
    overlay.settle()

    for broker, last_hop in (("A", "C"), ("C", "B"), ("D", "C")):
        rows = at(overlay, broker)
        assert {rows[f"s{number}"][0] for number in range(3)} == {last_hop}


def test_of_equal_advertisements_one_is_enough_in_each_direction() -> None:
    overlay = star("AB", "BC", "CD")

    known = {b: [row.origin for row in overlay.router(b).tables().advertisements] for b in "ABCD"}

    assert known == {"A": ["A", "B"], "B": ["A", "B", "C"], "C": ["A", "C", "D"], "D": ["A", "D"]}


def test_where_a_subscription_holds_is_reported_once_a_link() -> None:
    overlay = star("AB", "BC", "CD", "CE")
    before = overlay.messages

    overlay.subscribe("A", "s", "load > 5")
    overlay.settle()

    assert overlay.messages - before == 4 + 4
    assert overlay.nodes["A"].began == {"s": {"B", "C", "D", "E"}}


def test_a_broker_that_does_not_answer_is_waited_for_until_the_next_tick() -> None:
    overlay = star("AB", "BC", "CD")
    overlay.subscribe("A", "s", "load > 5")
    while not overlay.nodes["C"].wanted:
        overlay.step()

    overlay.cut("C", "D")
    overlay.settle()
    assert overlay.nodes["A"].began == {}

    overlay.run(2 * S)
    assert overlay.nodes["A"].began == {"s": {"B", "C"}}


def test_a_subscription_says_when_it_began_at_each_broker_also_if_it_is_covered() -> None:
    overlay = star("AB", "BC", "CD")
    overlay.subscribe("A", "wide", "load > 5")
    overlay.settle()

    overlay.subscribe("A", "narrow", "load > 6")
    overlay.subscribe("B", "between", "load > 7")
    overlay.settle()

    assert overlay.nodes["A"].began == {"wide": {"B", "C", "D"}, "narrow": {"B", "C", "D"}}
    assert overlay.nodes["B"].began == {"between": {"A", "C", "D"}}


def test_a_neighbour_that_is_away_keeps_its_place_in_the_tables() -> None:
    overlay = star("AB", "BC")
    overlay.subscribe("C", "s", "load > 5")
    overlay.settle()
    before = at(overlay, "A")

    overlay.crash("C")
    overlay.settle()

    assert at(overlay, "A") == before == {"s": ("B", ())}
    assert overlay.router("B").wanted_by("C").keys() == {("C", "s")}


def test_it_is_kept_also_when_this_broker_starts_again() -> None:
    overlay = star("AB", "BC")
    overlay.subscribe("C", "s", "load > 5")
    overlay.settle()
    overlay.crash("C")
    overlay.crash("B")
    overlay.settle()

    overlay.restart("B")

    assert overlay.router("B").wanted_by("C").keys() == {("C", "s")}


def test_what_was_unsubscribed_meanwhile_is_gone_when_the_link_returns() -> None:
    overlay = star("AB", "BC")
    overlay.subscribe("C", "s", "load > 5")
    overlay.subscribe("C", "t", "load < 2")
    overlay.settle()
    overlay.cut("B", "C")
    overlay.settle()

    overlay.unsubscribe("C", "s")
    overlay.dial("C", "B")
    overlay.settle()

    assert at(overlay, "A") == {"t": ("B", ())}
