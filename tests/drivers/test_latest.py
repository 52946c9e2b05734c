"""The last event on a topic is found in memory or a little back in the log, and searched once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loop_signals import LoopSignals
from tocsin.broker.recent import events as recent_module
from tocsin.broker.recent import latest as latest_module
from tocsin.broker.recent.events import Recent
from tocsin.broker.recent.latest import Latest
from tocsin.errors import Busy
from tocsin.event.event import Event
from tocsin.event.stored import Batch, Stored
from tocsin.event.topic import TopicPattern
from tocsin.store.reader import Reader
from tocsin.store.store import Store

TOPICS = ["", "a", "b", "a/x", "a/y", "c/d/e"]
PATTERNS = ["a", "b", "a/*", "**", "*", "a/**", "c/d/e", "never", "a/**/y"]


def stored(seq: int, topic: str, size: int = 0) -> Stored:
    return Stored(seq, seq, Event(str(seq), "/s", "t", topic=topic, data=b"x" * size))


def naive(log: list[Stored], pattern: TopicPattern) -> Stored | None:
    return next((s for s in reversed(log) if pattern.matches(s.event.topic)), None)


class World:
    """A log, its end in memory, and how often the log was asked."""

    def __init__(self, directory: Path) -> None:
        self.store = Store.open(directory)
        self.reader = self.store.reader()
        self.log: list[Stored] = []
        self.reads = 0
        self.restart()

    def restart(self) -> None:
        self.recent = Recent(self.store.last_seq)
        self.latest = Latest(LoopSignals(), self.recent)

    async def read(self, work: Callable[[Reader], Stored | None]) -> Stored | None:
        self.reads += 1
        await asyncio.sleep(0)
        return work(self.reader)

    def publish(self, *topics: str, size: int = 0) -> None:
        events = [stored(self.store.last_seq + 1 + i, t, size) for i, t in enumerate(topics)]
        self.store.write(Batch(events=events))
        self.recent.add(events, len(events) * (500 + size))
        self.log += events

    def ask(self, pattern: str) -> Stored | None:
        return asyncio.run(self.latest.on(TopicPattern.parse(pattern), self.read))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.reader.close()
    made.store.close()


def test_the_last_of_a_topic_is_known_without_the_log(world: World) -> None:
    world.publish("a", "b", "a", "c/d/e")

    found = world.ask("a")

    assert found is not None
    assert found.seq == 3
    assert world.reads == 0


def test_a_topic_that_nobody_used_has_none(world: World) -> None:
    assert world.ask("a") is None
    world.publish("b")
    assert world.ask("a") is None


def test_after_a_restart_the_log_is_searched_once(world: World) -> None:
    world.publish("a", *["b"] * 50)
    world.restart()

    found = world.ask("a")
    assert found == world.log[0]
    searched = world.reads
    assert world.ask("a") == found
    assert world.reads == searched + 1  # for the event itself
    assert world.ask("never") is None
    searched = world.reads
    assert world.ask("never") is None
    assert world.reads == searched


def test_what_comes_after_a_search_is_found(world: World) -> None:
    world.publish("a")
    world.restart()
    assert world.ask("a") == world.log[0]

    world.publish("a")

    assert world.ask("a") == world.log[1]


def test_the_look_back_ends_somewhere(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latest_module, "LOOK_BACK_EVENTS", 20)
    monkeypatch.setattr(latest_module, "PAGE_EVENTS", 7)
    world.publish("a", *["b"] * 19)
    world.restart()
    assert world.ask("a") == world.log[0]
    world.publish("b")
    world.restart()

    assert world.ask("a") is None
    assert world.reads <= 8


def test_a_trimmed_event_is_no_longer_current(world: World) -> None:
    world.publish("a", "b")
    world.restart()
    assert world.ask("a")

    world.store.write(Batch(trim_to=1))

    assert world.ask("a") is None


def test_damaged_records_are_passed_over(world: World) -> None:
    world.publish("a", "b", "a", "b")
    world.store._connection.execute("UPDATE events SET crc = crc + 1 WHERE seq IN (2, 3)")
    world.restart()

    assert world.ask("a") == world.log[0]
    assert world.ask("b") == world.log[3]


def test_memory_for_topics_is_bounded_by_count_and_by_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recent_module, "TOPICS_MAX", 100)
    many, large = Recent(), Recent()
    for seq in range(1, 20_000):
        many.add([stored(seq, f"t/{seq}")], 500)
    for seq in range(1, 200):
        large.add([stored(seq, f"t/{seq}", 300_000)], 300_000)

    for recent, topics_max in ((many, recent_module.EVENTS_MAX + 100), (large, 16 + 54)):
        assert len(recent._by_topic) <= topics_max
        assert recent.known_after > 0
        assert recent.latest(TopicPattern.parse("t/1")) is None
        assert recent.latest(TopicPattern.parse(f"t/{recent.known_after + 1}"))


def test_too_many_searches_at_once_are_refused(world: World) -> None:
    world.publish("b")
    world.restart()

    async def many() -> list[object]:
        asked = [
            world.latest.on(TopicPattern.parse(f"never/{number}"), world.read)
            for number in range(latest_module.WAITING_MAX + 5)
        ]
        return await asyncio.gather(*asked, return_exceptions=True)

    answers = asyncio.run(many())
    assert sum(isinstance(answer, Busy) for answer in answers) == 5
    assert sum(answer is None for answer in answers) == latest_module.WAITING_MAX


STEPS = st.lists(
    st.one_of(
        st.lists(st.sampled_from(TOPICS), min_size=1, max_size=6),
        st.sampled_from(PATTERNS),
        st.just(None),
    ),
    max_size=30,
)


@settings(deadline=None, max_examples=60)
@given(STEPS)
def test_it_is_what_a_look_at_the_whole_log_finds(
    tmp_path_factory: pytest.TempPathFactory, steps: list[list[str] | str | None]
) -> None:
    world = World(tmp_path_factory.mktemp("log"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recent_module, "EVENTS_MAX", 6)
        patch.setattr(recent_module, "TOPICS_MAX", 2)
        patch.setattr(latest_module, "PAGE_EVENTS", 3)
        patch.setattr(latest_module, "LOOKED_MAX", 2)
        for step in steps:
            if step is None:
                world.restart()
            elif isinstance(step, list):
                world.publish(*step)
            else:
                assert world.ask(step) == naive(world.log, TopicPattern.parse(step))
    world.reader.close()
    world.store.close()
