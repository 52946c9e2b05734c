"""Which topics there are: from the memory of recent events, from the log, from announcements."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from loop_signals import LoopSignals
from tocsin.broker.log import Page
from tocsin.broker.recent import pages as pages_module
from tocsin.broker.recent import topics as seen_topics
from tocsin.broker.recent.events import EVENTS_MAX, TOPICS_MAX, Recent
from tocsin.broker.recent.topics import SeenTopics
from tocsin.event.event import Event
from tocsin.event.stored import Batch, Stored
from tocsin.store.reader import Reader
from tocsin.store.store import Store
from tocsin.wire.soap.topics import TopicName
from tocsin.wire.wstopics.tree import NODES_MAX, UNNAMED


def stored(seq: int, topic: str, **extensions: str) -> Stored:
    return Stored(seq, 1, Event(f"{seq}", "/t", "t", topic=topic, extensions={**extensions}))


def names(seen: SeenTopics) -> set[str]:
    return {"/".join(name for _, name in path) for path in seen.tree().topics()}


def test_topics_are_known_as_soon_as_somebody_asks() -> None:
    recent = Recent()
    seen = SeenTopics(LoopSignals(), recent)
    recent.add([stored(1, "a/b"), stored(2, ""), stored(3, "no name!")], 30)
    assert names(seen) == {"a/b"}

    recent.add([stored(4, "c", topicns="urn:c")], 10)

    assert names(seen) == {"a/b", "c"}
    assert seen.tree().namespaces == ["urn:c", UNNAMED]


def test_a_topic_that_is_looked_at_in_time_is_never_forgotten() -> None:
    recent = Recent()
    seen = SeenTopics(LoopSignals(), recent)
    published = 2 * TOPICS_MAX
    assert published < NODES_MAX

    for seq in range(1, published + 1):
        recent.add([stored(seq, f"t{seq}")], 10)
        if seq % (EVENTS_MAX // 4) == 0:
            seen.tree()

    assert len(names(seen)) == published


def test_more_topics_than_there_is_room_for_are_left_out() -> None:
    seen = SeenTopics(LoopSignals(), Recent())

    for number in range(NODES_MAX + 5):
        seen.announce(TopicName(f"t{number}"))

    assert len(seen.tree()) == NODES_MAX
    assert seen.tree().is_full


def test_the_end_of_the_log_is_looked_at_page_by_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen_topics, "LOOK_BACK_EVENTS", 20)
    monkeypatch.setattr(pages_module, "PAGE_EVENTS", 7)
    store = Store.open(tmp_path)
    store.write(Batch(events=[stored(seq, f"t{seq}") for seq in range(1, 31)]))
    reader = store.reader()
    pages: list[int] = []

    async def read(work: Callable[[Reader], Page]) -> Page:
        pages.append(len((page := work(reader)).events))
        return page

    seen = SeenTopics(LoopSignals(), Recent(store.last_seq))
    asyncio.run(seen.look_back(store.last_seq, read))
    reader.close()
    store.close()

    assert pages == [7, 7, 6]
    assert names(seen) == {f"t{seq}" for seq in range(11, 31)}
