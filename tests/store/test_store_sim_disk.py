"""The simulated disk does what a disk does, and the worst that a disk may do."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from random import Random

import pytest
from store_samples import append, read_all

from tocsin.errors import TocsinError
from tocsin.store.store import Store
from tocsin.store.vfs import PowerCut, SimDisk

NAMES = (f"sim-{number}" for number in itertools.count())
FLAGS = [0x4 | 0x2 | 0x100, 0]  # create, read and write, a main database


@pytest.fixture
def disk() -> Iterator[SimDisk]:
    simulated = SimDisk(next(NAMES))
    yield simulated
    simulated.unregister()


def survivors(pending: bytes, seeds: int = 400) -> set[bytes]:
    """Everything that power cuts leave of one synced file with a write pending over it."""
    found = set()
    for seed in range(seeds):
        disk = SimDisk(next(NAMES))
        file = disk.xOpen("file", list(FLAGS))
        file.xWrite(bytes(len(pending)), 0)
        file.xSync(0)
        file.xWrite(pending, 0)
        disk.crash(Random(seed))
        found.add(disk.xOpen("file", list(FLAGS)).xRead(len(pending), 0))
        disk.unregister()
    return found


def test_what_was_written_is_read_back_at_once(disk: SimDisk) -> None:
    file = disk.xOpen("file", list(FLAGS))

    file.xWrite(b"abc", 2)

    assert file.xRead(5, 0) == b"\0\0abc"
    assert file.xFileSize() == 5


def test_a_power_cut_keeps_what_was_synced_and_may_take_all_else(disk: SimDisk) -> None:
    file = disk.xOpen("file", list(FLAGS))
    file.xWrite(b"synced", 0)
    file.xSync(0)
    file.xWrite(b"not", 0)
    file.xTruncate(1)

    disk.crash(None)

    assert disk.xOpen("file", list(FLAGS)).xRead(10, 0) == b"synced"


def test_a_pending_write_is_kept_dropped_or_torn() -> None:
    found = survivors(b"12345678")

    assert {b"12345678", bytes(8), b"1234\0\0\0\0", b"\0\0\0\0005678"} <= found
    assert all(set(left) <= set(b"\x0012345678") for left in found)


def test_large_writes_are_mostly_torn_between_sectors() -> None:
    torn = [left.count(b"x") for left in survivors(b"x" * 2048) if 0 < left.count(b"x") < 2048]

    assert any(length % 512 == 0 for length in torn)
    assert any(length % 512 for length in torn)


def test_a_deletion_may_be_undone_until_the_directory_is_synced(disk: SimDisk) -> None:
    file = disk.xOpen("file", list(FLAGS))
    file.xWrite(b"old", 0)
    file.xSync(0)

    disk.xDelete("file", False)
    assert not disk.xAccess("file", 0)
    disk.crash(None)
    assert disk.xAccess("file", 0)
    disk.xDelete("file", True)
    disk.crash(None)

    assert not disk.xAccess("file", 0)


def test_after_the_power_went_nothing_changes_until_it_is_back(disk: SimDisk) -> None:
    store = Store.open("data", vfs=disk.name)
    append(store, 1)
    disk.cut_at = disk.operations + 2
    with pytest.raises(PowerCut):
        append(store, 1)
    size_bytes = disk.size_bytes()

    with pytest.raises(TocsinError):
        append(store, 1)
    with pytest.raises(PowerCut):
        Store.open("other", vfs=disk.name)

    assert disk.size_bytes() == size_bytes


def test_a_store_from_before_the_cut_cannot_touch_the_disk(disk: SimDisk) -> None:
    before = Store.open("data", vfs=disk.name)
    append(before, 1)
    disk.crash(Random(1))
    after = Store.open("data", vfs=disk.name)

    with pytest.raises(PowerCut):
        append(before, 1)

    assert len(read_all(after.reader())) == 1


def test_the_same_seed_leaves_the_same_log() -> None:
    def run(seed: int) -> tuple[int, int]:
        disk = SimDisk(next(NAMES))
        store = Store.open("data", vfs=disk.name, synchronous="OFF")
        for _ in range(20):
            append(store, 3)
        disk.crash(Random(seed))
        operations = disk.operations
        try:
            last_seq = Store.open("data", vfs=disk.name).last_seq
        except TocsinError:
            last_seq = -1
        disk.unregister()
        return operations, last_seq

    assert [run(seed) for seed in range(10)] == [run(seed) for seed in range(10)]
