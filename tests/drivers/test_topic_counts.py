"""Counting events by topic: rates, limits, and the end of a log that was there before."""

from __future__ import annotations

import asyncio

import pytest

from loop_signals import LoopSignals
from tocsin.broker.log import Page
from tocsin.broker.recent import topic_counts
from tocsin.broker.recent.topic_counts import Rate, TopicCounts
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.store.reader import Reader

S = 1_000_000_000


def stored(seq: int, topic: str, at_ns: int = 0) -> Stored:
    return Stored(seq, at_ns, Event(id=str(seq), source="/t", type="t", topic=topic))


def test_a_steady_rate_is_measured_in_every_part_of_a_minute() -> None:
    rate = Rate()
    for second in range(600):
        rate.add(second * S, 5)
        if second >= 120:
            assert rate.per_s(second * S) == pytest.approx(5, rel=0.1)


def test_a_rate_falls_to_nothing_when_nothing_comes() -> None:
    rate = Rate()
    rate.add(0, 60)

    assert rate.per_s(0) == pytest.approx(1)
    assert 0 < rate.per_s(90 * S) < 1
    assert rate.per_s(121 * S) == 0


def test_past_its_limit_the_topics_silent_for_longest_are_forgotten_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topic_counts, "TOPICS_MAX", 10)
    monkeypatch.setattr(topic_counts, "FORGOTTEN_AT_ONCE", 2)
    counts = TopicCounts(LoopSignals(), 0)
    counts.add(stored(seq, f"t/{seq}") for seq in range(1, 11))
    counts.add([stored(11, "t/1"), stored(12, "t/new")])

    known = {each.topic for each in counts.topics()}
    assert known == {"t/1", "t/4", "t/5", "t/6", "t/7", "t/8", "t/9", "t/10", "t/new"}
    assert counts.forgotten == 2


def test_the_end_of_the_log_is_counted_once_and_it_is_said_from_where(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topic_counts, "LOOK_BACK_EVENTS", 3)
    log = [stored(seq, "a" if seq % 2 else "b") for seq in range(1, 11)]
    reads: list[int] = []

    async def read(work: object) -> Page:
        class Log(Reader):
            def __init__(self) -> None:
                pass

            def read(self, after: int, limit: int) -> Page:  # type: ignore[override]
                reads.append(after)
                found = log[after : after + limit]
                return Page(found, found[-1].seq if found else after, [])

        return work(Log())  # type: ignore[operator,no-any-return]

    async def look() -> TopicCounts:
        counts = TopicCounts(LoopSignals(), 10)
        counts.add([stored(11, "a")])
        log.append(stored(11, "a"))
        await asyncio.gather(counts.look_back(1, read), counts.look_back(1, read))
        return counts

    counts = asyncio.run(look())

    assert {each.topic: each.events for each in counts.topics()} == {"a": 2, "b": 2}
    assert counts.counted_from == 8
    assert reads == [7]
