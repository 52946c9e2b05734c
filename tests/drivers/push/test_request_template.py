"""What the requests for one event share, and what they must not share."""

from __future__ import annotations

import time

from world import EVENT

from tocsin.broker.delivery.address import parse_address
from tocsin.drivers.push.request_template import (
    KEPT_BYTES_MAX,
    KEPT_MAX,
    RequestCache,
    request,
    request_template,
)
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Config, Kind, Subscription

SINK = parse_address("http://sink.example/hook")


def written(cache: RequestCache, stored: Stored, name: str = "a", mode: str = "binary") -> bytes:
    subscription = Subscription(id=name, kind=Kind.PUSH, config=Config(mode=mode))
    head, rest = request(request_template(SINK, subscription), [stored], cache, time.time)
    return head + rest


def test_subscribers_of_one_event_share_all_but_their_own_lines() -> None:
    cache, stored = RequestCache(), Stored(7, 0, EVENT)

    first, second = written(cache, stored, "a"), written(cache, stored, "b")

    assert b"tocsin-subscription: a\r\n" in first
    assert second == first.replace(b"tocsin-subscription: a", b"tocsin-subscription: b")


def test_the_modes_of_one_event_are_not_mixed_up() -> None:
    cache, stored = RequestCache(), Stored(7, 0, EVENT)

    for _ in range(2):
        assert b"ce-id: e-1\r\n" in written(cache, stored)
        assert b"ce-id" not in written(cache, stored, mode="structured")


def test_another_event_at_the_same_place_is_sent_as_itself() -> None:
    cache = RequestCache()
    written(cache, Stored(7, 0, EVENT))

    assert b"ce-id: other\r\n" in written(cache, Stored(7, 0, Event("other", "/s", "t")))


def test_what_is_kept_of_events_is_bounded_in_number() -> None:
    cache = RequestCache()

    for seq in range(KEPT_MAX + 50):
        written(cache, Stored(seq, 0, EVENT))

    assert list(cache.binary.by_seq) == list(range(50, KEPT_MAX + 50))


def test_what_is_kept_of_events_is_bounded_in_bytes() -> None:
    cache = RequestCache()
    large = Event("1", "/s", "t", datacontenttype="a/b", data=b"x" * 60_000)

    for seq in range(KEPT_BYTES_MAX // 60_000 + 50):
        for _ in range(2):  # the same place twice counts once
            written(cache, Stored(seq, 0, large))

    kept = [tail for _, tail in cache.binary.by_seq.values()]
    assert KEPT_BYTES_MAX - 130_000 < sum(map(len, kept)) <= KEPT_BYTES_MAX
