"""Entries that are withdrawn: bit by bit if they cover many, and not while there is a cycle."""

from __future__ import annotations

import time

from overlay.routing.one_router import S, broker_a, hello, link, sent_to
from tocsin.overlay.routing.router import Router
from tocsin.wire.link import messages as m


def covering_many(count: int) -> Router:
    """B offers everything; C asks for everything, and for `count` narrow things besides."""
    router = broker_a()
    link(router, 1, "B")
    link(router, 2, "C")
    router.receive(1, m.Advertise("B", "all", ""), 1)
    router.receive(2, m.Subscribe("C", "all", ""), 1)
    for number in range(count):
        router.receive(2, m.Subscribe("C", f"s{number:05}", f"a > {number} and b = {number}"), 1)
    return router


def test_a_subscription_that_covers_very_many_is_withdrawn_bit_by_bit_and_last() -> None:
    router = covering_many(3_500)

    turns = [sent_to(router.receive(2, m.Unsubscribe("C", "all"), 2), 1)]
    while router.has_more:
        turns.append(sent_to(router.go_on(2), 1))

    assert [len(turn) for turn in turns] == [0, 1_000, 1_000, 1_000, 501]
    assert turns[-1][-1] == m.Unsubscribe("C", "all")
    said = [each for turn in turns for each in turn if isinstance(each, m.Subscribe)]
    assert len({each.id for each in said}) == 3_500
    assert list(router.wanted_by("C")) == [("C", f"s{number:05}") for number in range(3_500)]


def test_what_is_asked_for_again_while_it_is_withdrawn_stands_for_others_again() -> None:
    router = covering_many(2_500)
    router.receive(2, m.Unsubscribe("C", "all"), 2)
    router.go_on(2)

    effects = router.receive(2, m.Subscribe("C", "all", ""), 3)

    assert not router.has_more
    assert [each for each in sent_to(effects, 1) if isinstance(each, m.Subscribe)] == []
    sent = router._state.link_of["B"].sent_subscriptions
    assert set(sent) == {("C", "all")}


def test_a_neighbour_that_links_meanwhile_is_told_of_all_that_was_covered() -> None:
    router = covering_many(2_500)
    router.receive(2, m.Unsubscribe("C", "all"), 2)

    router.link_closed(1, 3)
    effects = router.link_opened(4, 3, is_outgoing=False)
    for message in (hello("B"), m.Welcome(), m.Advertise("B", "all", "")):
        effects += router.receive(4, message, 3)
    effects += router.receive(4, m.Synced("advertisements"), 3)

    said = {each.id for each in sent_to(effects, 4) if isinstance(each, m.Subscribe)}
    assert said == {f"s{number:05}" for number in range(2_500)}


def test_a_neighbour_that_names_and_unnames_a_broker_does_not_have_all_entries_looked_at() -> None:
    router = covering_many(5_000)
    began_s = time.process_time()

    for _ in range(500):
        router.receive(2, m.Behind({"x": "C"}), 2)
        router.receive(2, m.Behind({}, ("x",)), 2)

    assert time.process_time() - began_s < 1.0, "some 0.1 s; 3 s if all are looked at each time"


def in_a_cycle() -> Router:
    """An entry came from B and was sent to C; x is behind both of them."""
    router = broker_a()
    link(router, 1, "B")
    link(router, 2, "C", {"x": "C"})
    router.receive(2, m.Advertise("C", "0", ""), 2)
    sent = sent_to(router.receive(1, m.Subscribe("B", "s", "a > 1"), 2), 2)
    assert sent == [m.Subscribe("B", "s", "a > 1")]
    router.receive(1, m.Behind({"x": "B"}), 2)
    return router


def test_while_there_is_a_cycle_nothing_is_withdrawn() -> None:
    router = in_a_cycle()

    effects = router.receive(1, m.Unsubscribe("B", "s"), 2)

    assert sent_to(effects, 2) == []
    assert m.Unsubscribe("B", "s") in sent_to(router.receive(1, m.Behind({}, ("x",)), 3), 2)


def test_what_comes_back_while_there_is_a_cycle_is_sent_again_to_be_answered() -> None:
    router = in_a_cycle()
    router.receive(1, m.Unsubscribe("B", "s"), 2)

    effects = router.receive(1, m.Subscribe("B", "s", "a > 1"), 2)

    assert sent_to(effects, 2) == [m.Subscribe("B", "s", "a > 1")]
    assert m.Unsubscribe("B", "s") not in sent_to(router.receive(1, m.Behind({}, ("x",)), 3), 2)


def test_of_a_cycle_that_is_never_cut_what_has_gone_is_withdrawn_all_the_same() -> None:
    """A neighbour may invent one."""
    router = in_a_cycle()
    router.receive(1, m.Behind({"x": "y"}), 2)  # nobody knows where y is, so there is no edge
    router.receive(1, m.Unsubscribe("B", "s"), 2)
    said = [(second, sent_to(router.tick(second * S), 2)) for second in range(1, 50)]

    assert [at for at, sent in said if m.Unsubscribe("B", "s") in sent] == [31]
