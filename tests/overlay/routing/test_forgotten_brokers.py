"""Brokers that are gone for good: who forgets them, when, and what if they return."""

from __future__ import annotations

import pytest

from overlay.routing.examples import (
    at,
    linked,
    rows_about,
    star,
)
from overlay.routing.overlay_sim import S
from tocsin.errors import BrokerStillThere, NoSuchBroker
from tocsin.overlay.routing.options import RoutingOptions
from tocsin.wire.link import messages as m


def test_a_forgotten_broker_is_gone_everywhere() -> None:
    overlay = star("AB", "BC", "CD")
    overlay.subscribe("D", "s", "load > 5")
    overlay.settle()
    overlay.crash("D")
    overlay.settle()

    overlay.forget("A", "D")
    overlay.settle()

    assert [at(overlay, broker) for broker in "ABC"] == [{}, {}, {}]
    assert "D" not in {each.broker for each in overlay.router("C").tables().neighbours}


def test_a_broker_that_asked_for_nothing_is_forgotten_by_all_wherever_somebody_says_so() -> None:
    """Nothing in the tables of A is D's: others stand for it."""
    overlay = star("AB", "BC", "CD")
    overlay.subscribe("A", "all", "")
    overlay.settle()
    overlay.crash("D")
    overlay.settle()

    overlay.forget("A", "D")
    overlay.settle()

    assert [rows_about(overlay, broker, "D") for broker in "ABC"] == [[], [], []]


def test_a_broker_that_returned_is_forgotten_anew_also_by_who_did_not_hear_of_its_return() -> None:
    overlay = star("AB", "BC", "CD")
    overlay.settle()
    overlay.crash("D")
    overlay.settle()
    overlay.forget("A", "D")
    overlay.settle()
    overlay.cut("B", "C")
    overlay.settle()
    overlay.restart("D")
    overlay.dial("D", "C")
    overlay.settle()
    overlay.crash("D")
    overlay.settle()
    overlay.dial("B", "C")
    overlay.run(5 * S)
    assert rows_about(overlay, "C", "D") != []

    overlay.forget("A", "D")
    overlay.settle()

    assert rows_about(overlay, "C", "D") == []


def test_a_clock_that_was_ahead_before_a_restart_keeps_nobody_from_being_forgotten() -> None:
    overlay = star("AB", "BC")
    overlay.settle()
    overlay.now_ns += 365 * 24 * 3_600 * S
    overlay.crash("C")
    overlay.settle()
    overlay.crash("B")
    overlay.settle()
    overlay.now_ns -= 365 * 24 * 3_600 * S
    overlay.restart("B")
    overlay.dial("A", "B")
    overlay.settle()

    overlay.forget("A", "C")
    overlay.settle()

    assert rows_about(overlay, "B", "C") == []


def test_a_forgotten_broker_that_returns_is_known_again() -> None:
    overlay = star("AB", "BC")
    overlay.subscribe("C", "s", "load > 5")
    overlay.settle()
    overlay.crash("C")
    overlay.settle()
    overlay.forget("A", "C")
    overlay.settle()

    overlay.restart("C")
    overlay.dial("C", "B")
    overlay.settle()

    assert at(overlay, "A") == {"s": ("B", ())}
    assert overlay.router("A").tables().forgotten == ()


def test_who_was_away_when_a_broker_was_forgotten_hears_of_it_later() -> None:
    overlay = star("AB", "BC", "CD")
    overlay.subscribe("D", "s", "load > 5")
    overlay.settle()
    overlay.crash("D")
    overlay.crash("C")
    overlay.settle()
    overlay.forget("A", "D")
    overlay.settle()

    overlay.restart("C")
    overlay.dial("C", "B")
    overlay.settle()

    assert [at(overlay, broker) for broker in "ABC"] == [{}, {}, {}]


def test_a_neighbour_is_forgotten_after_the_time_that_was_set() -> None:
    overlay = star("AB")
    overlay.add("C", RoutingOptions(forget_after_ns=100 * S))
    overlay.dial("C", "B")
    overlay.subscribe("B", "s", "load > 5")
    overlay.settle()
    overlay.crash("B")
    overlay.settle()

    overlay.run(90 * S)
    kept = at(overlay, "C")
    overlay.run(20 * S)

    assert kept == {"s": ("B", ())}
    assert at(overlay, "C") == {}


def test_only_a_broker_that_is_gone_can_be_forgotten() -> None:
    overlay = star("AB", "BC")

    with pytest.raises(BrokerStillThere):
        overlay.forget("A", "C")
    with pytest.raises(BrokerStillThere):
        overlay.forget("A", "A")
    with pytest.raises(NoSuchBroker):
        overlay.forget("A", "Z")


def test_an_old_word_that_a_broker_is_gone_is_not_believed_of_one_that_was_seen_since() -> None:
    router = linked()
    router.link_closed(1, 50)
    router.link_opened(2, 60, is_outgoing=False)
    router.receive(2, m.Hello(m.PROTOCOL_VERSION, "C", "log-C", 1, "x"), 60)
    for message in (m.Welcome(), m.Synced("advertisements"), m.Synced("subscriptions")):
        router.receive(2, message, 60)

    router.receive(2, m.Forget("B", 70 - 40), 70)
    before = [each.broker for each in router.tables().neighbours]
    router.receive(2, m.Forget("B", 70 - 55), 70)

    assert before == ["B", "C"]
    assert [each.broker for each in router.tables().neighbours] == ["C"]
