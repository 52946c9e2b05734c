"""Which kinds of events there are: those published since the start, and those the log ends with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from loop_signals import LoopSignals
from tocsin.broker.log import Page
from tocsin.broker.recent import pages as pages_module
from tocsin.broker.recent import types as seen_types
from tocsin.broker.recent.events import Recent
from tocsin.broker.recent.types import TYPES_MAX, SeenTypes
from tocsin.event.event import Event
from tocsin.event.stored import Batch, Stored
from tocsin.store.reader import Reader
from tocsin.store.store import Store
from tocsin.wire.gma.names import EVENTS, EventName

XML = "application/xml"


def stored(seq: int, type: str, data: bytes | None = None) -> Stored:
    kind = None if data is None else XML
    return Stored(seq, 1, Event(f"{seq}", "/t", type, datacontenttype=kind, data=data))


def locals_of(names: tuple[EventName, ...]) -> set[str]:
    return {name.local for name in names}


def test_each_kind_is_known_once_and_under_its_own_name() -> None:
    seen = SeenTypes(LoopSignals(), 0, Recent())

    seen.add([stored(1, f"{EVENTS}/UptimeCPULoad"), stored(2, "com.example.order")])
    seen.add([stored(3, "urn:lab:Temperature"), stored(4, "com.example.order")])

    assert seen.names() == (
        EventName("Temperature", "urn:lab:"),
        EventName("UptimeCPULoad"),
        EventName("com.example.order", "urn:tocsin:type"),
    )


def test_what_the_payload_is_called_decides_where_a_type_could_be_cut_in_two_ways() -> None:
    seen = SeenTypes(LoopSignals(), 0, Recent())

    seen.add([stored(1, "urn:lab/Temperature", b'<Temperature xmlns="urn:lab"/>')])
    seen.add([stored(2, "urn:lab/Pressure", b"<broken")])

    assert EventName("Temperature", "urn:lab") in seen.names()
    assert locals_of(seen.names()) == {"Temperature", "Pressure"}


def test_of_too_many_kinds_those_that_came_first_are_forgotten() -> None:
    seen = SeenTypes(LoopSignals(), 0, Recent())

    seen.add(stored(seq, f"t{seq}") for seq in range(TYPES_MAX + 2))

    names = locals_of(seen.names())
    assert len(names) == TYPES_MAX
    assert names.isdisjoint({"t0", "t1"})


class Log:
    """A log on disk, and how often it was read."""

    def __init__(self, directory: Path, events: list[Stored]) -> None:
        self.store = Store.open(directory)
        self.store.write(Batch(events=events))
        self.reader = self.store.reader()
        self.reads = 0

    async def read(self, work: Callable[[Reader], Page]) -> Page:
        self.reads += 1
        await asyncio.sleep(0.01)
        return work(self.reader)

    def close(self) -> None:
        self.reader.close()
        self.store.close()


def test_after_a_start_the_end_of_the_log_is_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen_types, "LOOK_BACK_EVENTS", 20)
    monkeypatch.setattr(pages_module, "PAGE_EVENTS", 7)
    log = Log(tmp_path, [stored(seq, f"t{seq}") for seq in range(1, 51)])
    seen = SeenTypes(LoopSignals(), 50, Recent())

    async def ask() -> tuple[EventName, ...]:
        await seen.look_back(log.read)
        return seen.names()

    async def ask_together() -> list[tuple[EventName, ...]]:
        return list(await asyncio.gather(ask(), ask(), ask()))

    answers = asyncio.run(ask_together())

    # Whoever asks while another looks gets all of it, too.
    assert list(map(locals_of, answers)) == [{f"t{seq}" for seq in range(31, 51)}] * 3
    reads = log.reads
    assert asyncio.run(ask()) == answers[0]
    assert log.reads == reads
    log.close()


def test_a_look_back_that_failed_is_made_again(tmp_path: Path) -> None:
    log = Log(tmp_path, [stored(1, "t1")])
    seen = SeenTypes(LoopSignals(), 1, Recent())

    async def fail(_: Callable[[Reader], Page]) -> Page:
        raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        asyncio.run(seen.look_back(fail))
    asyncio.run(seen.look_back(log.read))

    assert locals_of(seen.names()) == {"t1"}
    log.close()
