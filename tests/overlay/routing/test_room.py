"""What one neighbour may have in the routing tables is a part of what all may."""

from __future__ import annotations

import time

import pytest

from tocsin.overlay.routing.effects import Effect, EntryIgnored, Send
from tocsin.overlay.routing.links import Identity
from tocsin.overlay.routing.options import RoutingOptions
from tocsin.overlay.routing.router import Router
from tocsin.wire.link import messages as m


def linked(**limits: int) -> Router:
    """A router with two neighbours, "flooder" by link 1 and "honest" by link 2."""
    router = Router(Identity("here", "log", m.DATA_FORMAT, "test/1"), RoutingOptions(**limits))
    for number, broker in enumerate(("flooder", "honest"), 1):
        router.link_opened(number, 0, is_outgoing=False)
        hello = m.Hello(m.PROTOCOL_VERSION, broker, f"log-{broker}", m.DATA_FORMAT, "test/1")
        for message in (hello, m.Welcome(), m.Synced("advertisements"), m.Synced("subscriptions")):
            router.receive(number, message, 0)
    return router


def flood(router: Router, count: int, text: str = "") -> list[Effect]:
    return [
        effect
        for number in range(count)
        for effect in router.receive(
            1, m.Subscribe("flooder", f"{number}", f"a > {number}{text}"), 0
        )
    ]


def rows(router: Router, broker: str) -> int:
    return next(each.subscriptions for each in router.tables().neighbours if each.broker == broker)


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"subscriptions_per_neighbour_max": 10}, ""),
        ({"entry_bytes_per_neighbour_max": 1_300}, " and text = '" + "x" * 100 + "'"),
    ],
)
def test_a_neighbour_with_its_share_gets_no_more_and_others_get_theirs(
    limits: dict[str, int], text: str
) -> None:
    router = linked(**limits)

    effects = flood(router, 100, text)
    router.receive(2, m.Subscribe("honest", "s", "a > 1"), 0)

    assert 5 <= rows(router, "flooder") <= 10
    assert rows(router, "honest") == 1
    ignored = [each for each in effects if isinstance(each, EntryIgnored)]
    assert len(ignored) == 100 - rows(router, "flooder")
    assert {(each.neighbour, each.error.code) for each in ignored} == {("flooder", "T806")}


def test_a_neighbour_is_told_of_the_first_the_second_the_fourth_entry_that_is_not_taken() -> None:
    router = linked(subscriptions_per_neighbour_max=10)

    effects = flood(router, 100)

    told = [e.message for e in effects if isinstance(e, Send) and isinstance(e.message, m.Ignored)]
    assert [(each.count, each.code) for each in told] == [
        (count, "T806") for count in (1, 2, 4, 8, 16, 32, 64)
    ]


def test_what_is_withdrawn_makes_room_and_what_is_known_may_be_said_again() -> None:
    router = linked(subscriptions_per_neighbour_max=10)
    flood(router, 10)

    again = flood(router, 10)
    router.receive(1, m.Unsubscribe("flooder", "3"), 0)
    another = router.receive(1, m.Subscribe("flooder", "new", "b > 1"), 0)

    assert not [each for each in [*again, *another] if isinstance(each, EntryIgnored)]
    assert rows(router, "flooder") == 10


def test_a_short_entry_cannot_become_a_long_one_past_the_limit_and_the_bytes_are_given_back() -> (
    None
):
    router = linked(entry_bytes_per_neighbour_max=1_000)
    long = "text = '" + "x" * 950 + "'"
    router.receive(1, m.Subscribe("flooder", "a", long), 0)
    router.receive(1, m.Subscribe("flooder", "b", "a > 1"), 0)

    refused = router.receive(1, m.Subscribe("flooder", "b", long), 0)
    router.receive(1, m.Unsubscribe("flooder", "a"), 0)
    taken = router.receive(1, m.Subscribe("flooder", "b", long), 0)

    assert [each.neighbour for each in refused if isinstance(each, EntryIgnored)] == ["flooder"]
    assert not [each for each in taken if isinstance(each, EntryIgnored)]
    assert rows(router, "flooder") == 1


def test_all_neighbours_together_have_a_limit_of_bytes() -> None:
    router = linked(entry_bytes_max=100)

    flood(router, 100)
    effects = router.receive(2, m.Subscribe("honest", "s", "text = '" + "x" * 90 + "'"), 0)

    assert [each.error.code for each in effects if isinstance(each, EntryIgnored)] == ["T806"]


def test_many_entries_that_cover_each_other_are_left_and_forgotten_in_time_that_is_linear() -> None:
    router = linked()
    flood(router, 3_000)
    router.receive(2, m.Subscribe("honest", "s", "a > 5"), 0)

    began_s = time.process_time()
    router.link_closed(1, 1)
    left = router.tables()
    router.forget("flooder", 2)
    taken_s = time.process_time() - began_s

    assert left.subscriptions_total == 3_001
    assert {row.covered_by for row in left.subscriptions} == {(), (("honest", "s"),)}
    assert router.tables().subscriptions_total == 1
    assert taken_s < 5, "some 0.2 s where each is looked at once, minutes if for all others"


def test_an_advertisement_that_comes_or_goes_changes_what_it_meets_and_nothing_else() -> None:
    router = linked()
    for topic in ("a", "b"):
        router.receive(2, m.Subscribe("honest", topic, f"topic {topic}/*"), 0)
    sent = [
        [
            (type(each.message).__name__, each.message.id)
            for each in router.receive(1, message, 0)
            if isinstance(each, Send) and isinstance(each.message, m.Subscribe | m.Unsubscribe)
        ]
        for message in (
            m.Advertise("flooder", "1", "topic a/x"),
            m.Advertise("flooder", "2", "topic a/y"),
            m.Unadvertise("flooder", "1"),
            m.Advertise("flooder", "2", "topic b/y"),
            m.Advertise("flooder", "3", ""),
            m.Unadvertise("flooder", "3"),
        )
    ]

    a, b, gone = ("Subscribe", "a"), ("Subscribe", "b"), ("Unsubscribe", "a")
    assert sent == [[a], [], [], [b, gone], [a], [gone]]
