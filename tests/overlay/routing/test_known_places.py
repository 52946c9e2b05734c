"""Who has on disk where a broker is: until then a wider subscription does not stand for its own."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from overlay.routing.one_router import broker_a, hello, link
from overlay.routing.overlay_sim import Overlay, S
from tocsin.event.filter import EVERYTHING
from tocsin.overlay.routing.effects import Effect, Save, Send, SubscriptionMoved
from tocsin.overlay.routing.router import Router
from tocsin.wire.link import messages as m


def asked(router: Router) -> list[Effect]:
    """A client wants everything, which holds at B. Then C comes, and wants less."""
    link(router, 1, "B", {"D": "B"})
    router.receive(1, m.Advertise("B", "all", ""), 1)
    router.local_subscribe("wide", EVERYTHING, 1)
    router.receive(1, m.Reached("A", "wide", ("B", "D")), 1)
    effects = link(router, 2, "C")
    return effects + router.receive(2, m.Subscribe("C", "narrow", "a > 5"), 2)


def messages(effects: Iterable[Effect], number: int) -> list[m.Message]:
    return [e.message for e in effects if isinstance(e, Send) and e.link == number]


def holds_at(effects: Iterable[Effect]) -> set[str]:
    """Where the narrow subscription holds, as C is told."""
    said = (each for each in messages(effects, 2) if isinstance(each, m.Reached))
    return {broker for each in said if each.id == "narrow" for broker in each.brokers}


def test_a_covered_subscription_holds_only_where_the_place_of_its_broker_is_known() -> None:
    """B may have died before it heard of C. If C turned up at B, it would be handed over nothing of
    what B kept meanwhile for the wider subscription."""
    router = broker_a()
    before = asked(router)

    effects = router.receive(1, m.PlacesKept(("A", "C"), ("B",)), 3)
    router.tick(4)
    later = router.receive(1, m.PlacesKept(("C",), ("D",)), 5)

    assert holds_at(before) == {"A"}
    assert holds_at(effects) == {"B"}
    assert holds_at(later) == {"D"}


def test_a_subscription_holds_by_way_of_a_wider_one_of_its_own_broker_at_once() -> None:
    router = broker_a()
    link(router, 1, "B")
    router.receive(1, m.Advertise("B", "all", ""), 1)
    link(router, 2, "C")
    router.receive(2, m.Subscribe("C", "wide", "a > 1"), 2)
    router.receive(1, m.Reached("C", "wide", ("B",)), 3)

    effects = router.receive(2, m.Subscribe("C", "narrow", "a > 5"), 4)

    assert holds_at(effects) == {"A", "B"}


def test_places_that_were_not_told_and_brokers_that_are_elsewhere_do_not_count() -> None:
    router = broker_a()
    asked(router)

    effects = router.receive(1, m.PlacesKept(("nobody",), ("B",)), 3)
    effects += router.receive(1, m.PlacesKept(("C",), ("C", "nobody")), 3)
    effects += router.receive(2, m.PlacesKept(("C", "A"), ("B", "D")), 3)

    assert holds_at([*effects, *router.tick(4)]) == set()


def test_a_place_that_is_told_anew_has_to_be_kept_anew() -> None:
    router = broker_a()
    asked(router)
    router.receive(1, m.PlacesKept(("A", "C"), ("B", "D")), 3)
    router.receive(2, m.Behind({"E": "C"}), 4)
    router.receive(1, m.PlacesKept(("E",), ("B", "D")), 5)
    router.receive(2, m.Behind({}, ("E",)), 6)
    router.tick(7)

    router.receive(2, m.Behind({"E": "C"}), 8)
    effects = router.receive(2, m.Subscribe("E", "narrow", "a > 7"), 9)

    assert holds_at(effects) == {"A"}


def test_what_is_behind_a_neighbour_is_saved_before_it_hears_so() -> None:
    router = broker_a()
    link(router, 1, "B", {"D": "B"})

    effects = router.receive(1, m.Behind({"E": "D"}), 1)

    saved = effects.index(Save("b/B/E", b""))
    assert saved < effects.index(Send(1, m.PlacesKept(("E",), ("A",))))


def test_a_neighbour_that_comes_hears_who_knows_it_already() -> None:
    """It was behind this broker by another way, as they know."""
    router = broker_a()
    asked(router)
    router.receive(2, m.Behind({"E": "C"}), 3)
    router.receive(1, m.PlacesKept(("A", "C", "E"), ("B", "D")), 4)

    link(router, 3, "F")
    router.receive(3, m.Behind({"E": "F"}), 5)
    effects = router.tick(6)

    assert m.PlacesKept(("E",), ("A", "B", "D")) in messages(effects, 3)


def test_who_comes_hears_of_all_at_once_and_of_those_that_do_not_answer_with_the_next_tick() -> (
    None
):
    overlay = Overlay(1)
    for broker in "ABCDE":
        overlay.add(broker)
    for one, other in ("AB", "BC", "CD"):
        overlay.dial(one, other)
        overlay.settle()
    overlay.subscribe("B", "wide", "")
    overlay.settle()

    overlay.dial("E", "B")
    overlay.settle()
    overlay.subscribe("E", "narrow", "load > 5")
    overlay.run(3 * S)

    assert overlay.nodes["E"].began == {"narrow": {"A", "B", "C", "D"}}


def test_what_becomes_covered_is_withdrawn_after_the_place_of_its_broker_is_told() -> None:
    """Else there is a while in which the neighbour knows nothing of that broker."""
    router = broker_a()
    link(router, 1, "B")
    router.receive(1, m.Advertise("B", "all", ""), 1)
    router.link_opened(2, 2, is_outgoing=False)
    for message in (hello("C"), m.Welcome(), m.Synced("advertisements")):
        router.receive(2, message, 2)
    router.receive(2, m.Subscribe("C", "narrow", "a > 5"), 2)

    before = messages(router.local_subscribe("wide", EVERYTHING, 3), 1)
    effects = router.receive(2, m.Synced("subscriptions"), 4) + router.tick(5)

    assert [type(each) for each in before] == [m.Subscribe]
    after = [each for each in messages(effects, 1) if isinstance(each, m.Behind | m.Unsubscribe)]
    assert after == [m.Behind({"C": "A"}), m.Unsubscribe("C", "narrow")]


def test_what_waits_for_a_place_to_be_told_goes_if_that_broker_leaves_before() -> None:
    router = broker_a()
    link(router, 1, "B")
    router.receive(1, m.Advertise("B", "all", ""), 1)
    router.link_opened(2, 2, is_outgoing=False)
    for message in (hello("C"), m.Welcome(), m.Synced("advertisements")):
        router.receive(2, message, 2)
    router.receive(2, m.Subscribe("C", "narrow", "a > 5"), 2)

    router.receive(2, m.Unsubscribe("C", "narrow"), 3)
    effects = router.link_closed(2, 4) + router.tick(5)

    assert m.Unsubscribe("C", "narrow") in messages(effects, 1)
    assert router._state.untold == {}


@pytest.mark.parametrize("seed", range(5))
def test_who_holds_a_subscription_hands_over_to_its_broker_wherever_that_turns_up(
    seed: int,
) -> None:
    """A and B lose each other at any time while C comes to B. Then C comes to A."""
    overlay = Overlay(seed)
    for broker in "ABC":
        overlay.add(broker)
    overlay.dial("A", "B")
    overlay.settle()
    overlay.subscribe("B", "wide", "")
    overlay.subscribe("C", "narrow", "load > 5")
    overlay.settle()
    overlay.dial("C", "B")
    for _ in range(overlay.random.randrange(12)):
        overlay.step()

    overlay.crash("A")
    overlay.settle()
    began = overlay.nodes["C"].began.get("narrow", set())
    overlay.crash("C")
    overlay.settle()
    overlay.restart("A")
    overlay.restart("C")
    overlay.dial("C", "A")
    overlay.settle()

    moved = [each for each in overlay.nodes["A"].seen if isinstance(each, SubscriptionMoved)]
    assert "A" not in began or any(each.key[0] == "C" for each in moved)
