"""Damage: one bit of a file on disk is another than was written.

A broker that starts on it must notice and say so, or find everything as it was: no event with other
bytes, and nothing missing that is not named. What it found is then thrown away, as an operator does
who restores a copy, and the run goes on with the files as they were; or, where nothing but an event
is hit, the broker runs on with the damage, as one does whose operator has no copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from tocsin.broker.snapshot import Snapshot, take_snapshot
from tocsin.errors import TocsinError
from tocsin.event.stored import Stored
from tocsin.sim.faults.disk import FaultyDisk
from tocsin.sim.world import Violation, World
from tocsin.store.store import Store

EVENTS_MAX = 100_000
DEAD_LETTERS_MAX = 10_000
AIMED_BYTES = 30  # of the data: an event is in one piece so far


@dataclass(frozen=True, slots=True)
class _Contents:
    """All that a broker can read."""

    snapshot: Snapshot
    dead_letters: dict[str, bytes]
    events: dict[int, Stored]
    corrupt: list[int]  # what it says that it cannot read
    is_misshapen: bool  # as a file of SQLite


def flip_a_bit(
    world: World, random: Random, disk: FaultyDisk, *, may_stay_in: str | None
) -> list[int]:
    """Open the log with a bit flipped and compare. Then put everything back; or leave it so, if a
    broker can run on with that. Returns the events that are unreadable from now on."""
    if may_stay_in is not None:
        Store.open(may_stay_in, vfs=disk.name).close()  # what was written ahead goes to the log
        disk.kill()
    files = disk.copy()
    path = random.choice(sorted(files))
    directory = path.rpartition("/")[0]
    intact = _read(disk, directory)
    disk.restore(files)
    size = disk.file_bytes(path)
    aimed = _aimed(random, disk, files, intact) if directory == may_stay_in else None
    if size:
        path, bit = aimed or (path, random.randrange(size * 8))
        disk.flip_bit(path, bit)
        what = f"bit {bit} of {path}"
        damaged = disk.copy()
        try:
            found = _read(disk, directory)
            _compare(world, what, intact, found)
            if directory == may_stay_in and _is_bearable(intact, found):
                disk.restore(damaged)
                world.trace(f"the broker runs on without the events {found.corrupt}")
                world.seen["damage: the broker runs on with it"] += 1
                return found.corrupt
        except TocsinError as error:
            world.trace(f"{what} flipped: {error.code}")
            world.seen["damage: the start is refused"] += 1
    disk.restore(files)
    return []


def _aimed(
    random: Random, disk: FaultyDisk, files: Iterable[str], intact: _Contents
) -> tuple[str, int] | None:
    """A bit of an event in the log, where bits at random seldom are. None if it is only in the
    write-ahead log, which ends at a bit that is wrong."""
    if not intact.events:
        return None
    data = random.choice(list(intact.events.values())).event.data or b""
    for path in sorted(files):
        place = disk.place_of(path, data) if data and not path.endswith("-wal") else -1
        if place >= 0:
            return path, (place + random.randrange(min(len(data), AIMED_BYTES))) * 8
    return None


def _is_bearable(intact: _Contents, found: _Contents) -> bool:
    """True if some events are unreadable, and neither the state nor the pages of the file are
    another: SQLite may stop at a damaged page at any later write, and then rightly does."""
    is_same = found.snapshot == intact.snapshot and not intact.corrupt
    return bool(found.corrupt) and is_same and not found.is_misshapen


def _read(disk: FaultyDisk, directory: str) -> _Contents:
    store = Store.open(directory, vfs=disk.name)
    try:
        reader = store.reader()
        page = reader.read(store.first_seq - 1, EVENTS_MAX)
        return _Contents(
            snapshot=take_snapshot(reader),
            dead_letters=dict(reader.dead_letters(limit=DEAD_LETTERS_MAX).letters),
            events={stored.seq: stored for stored in page.events},
            corrupt=page.corrupt,
            is_misshapen=bool(page.corrupt) and bool(reader.check().damage),
        )
    finally:
        disk.kill()  # what it would write when it is closed is not wanted


def _compare(world: World, what: str, intact: _Contents, found: _Contents) -> None:
    world.trace(f"{what} flipped: {len(found.corrupt)} events cannot be read")
    for seq, stored in intact.events.items():
        if seq in found.corrupt:
            continue
        if seq not in found.events:
            raise Violation(f"{what} flipped: event {seq} is missing and nothing says so")
        if (other := found.events[seq]).event != stored.event or (
            other.received_ns != stored.received_ns
        ):
            raise Violation(f"{what} flipped: event {seq} is read with other bytes")
    if found.events.keys() - intact.events.keys():
        raise Violation(f"{what} flipped: there are events that nobody wrote")
    last_is_known = intact.snapshot.last_seq not in found.corrupt
    if last_is_known and found.snapshot != intact.snapshot:
        raise Violation(f"{what} flipped: the state is another, and nothing says so")
    if found.dead_letters != intact.dead_letters:
        raise Violation(f"{what} flipped: the dead letters are others, and nothing says so")
    outcome = "events are named as unreadable" if found.corrupt else "it hits nothing in use"
    world.seen[f"damage: {outcome}"] += 1
