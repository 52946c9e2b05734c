"""A full disk is said and survived; a failing one stops the log at once."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from store_samples import CHILD_ENVIRONMENT, append, make_events, read_all

from tocsin.errors import DiskFailed, DiskFull
from tocsin.event.stored import Batch
from tocsin.store import store as store_module
from tocsin.store.store import Store
from tocsin.store.vfs import SimDisk

NAMES = (f"fault-{number}" for number in itertools.count())
MIB = 1 << 20


@pytest.fixture
def disk() -> Iterator[SimDisk]:
    simulated = SimDisk(next(NAMES))
    yield simulated
    simulated.unregister()


def fill(store: Store, data_bytes: int = 1000) -> None:
    while True:
        append(store, 10, data_bytes)


# Full


def test_a_full_disk_keeps_nothing_of_the_batch_and_all_that_was_before(disk: SimDisk) -> None:
    store = Store.open("data", vfs=disk.name)
    before = append(store, 20)
    disk.bytes_max = disk.size_bytes() + 10_000

    with pytest.raises(DiskFull):
        store.write(Batch(make_events(21, 200), cursors={"a": 20}, dead={"d": b""}))

    assert read_all(store.reader()) == before
    assert store.reader().cursors() == {}
    assert store.last_seq == 20


def test_when_there_is_room_again_writing_goes_on(disk: SimDisk) -> None:
    store = Store.open("data", vfs=disk.name)
    disk.bytes_max = 300_000
    with pytest.raises(DiskFull):
        fill(store)
    with pytest.raises(DiskFull):
        append(store, 1, 60_000)
    disk.bytes_max = None

    append(store, 3)
    kept = read_all(store.reader())
    store.close()
    disk.crash(None)
    again = Store.open("data", vfs=disk.name)

    assert [stored.seq for stored in kept] == list(range(1, store.last_seq + 1))
    assert read_all(again.reader()) == kept
    assert again.reader().check().ok


@pytest.mark.parametrize("room_bytes", range(0, 200_000, 9_000))
def test_running_full_while_moving_the_log_into_the_database_loses_nothing(
    disk: SimDisk, monkeypatch: pytest.MonkeyPatch, room_bytes: int
) -> None:
    store = Store.open("data", vfs=disk.name)
    append(store, 100, 1000)
    disk.bytes_max = disk.size_bytes() + room_bytes
    monkeypatch.setattr(store_module, "CHECKPOINT_PAGES", 1)

    with pytest.raises(DiskFull):
        fill(store)
    acknowledged = store.last_seq
    disk.bytes_max = None
    disk.crash(Random(room_bytes))
    again = Store.open("data", vfs=disk.name)

    # The refused batch may have reached the disk whole before the disk was full: then it is there
    # after a crash, as one that was never acknowledged may be; but never a part of it.
    assert again.last_seq in (acknowledged, acknowledged + 10)
    assert len(read_all(again.reader())) == again.last_seq
    assert again.reader().check().ok


def test_closing_on_a_full_disk_loses_nothing(disk: SimDisk) -> None:
    store = Store.open("data", vfs=disk.name)
    written = append(store, 100)
    disk.bytes_max = disk.size_bytes()

    store.close()
    disk.bytes_max = None
    again = Store.open("data", vfs=disk.name)

    assert read_all(again.reader()) == written


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mounted = tmp_path / "small"
    mounted.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={2 * MIB}", "tmpfs", str(mounted)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("this user may not mount a small disk")
    yield mounted
    subprocess.run(["umount", str(mounted)], check=True)


def test_a_real_full_disk_is_said_and_survived(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(MIB))
    store = Store.open(small_disk / "data")
    with pytest.raises(DiskFull):
        fill(store)
    with pytest.raises(DiskFull):
        append(store, 1, 100_000)
    full_at = store.last_seq
    ballast.unlink()

    append(store, 5)
    reader = store.reader()

    assert full_at > 100
    assert [stored.seq for stored in read_all(reader)] == list(range(1, full_at + 6))
    assert reader.check().ok
    reader.close()
    store.close()


# Failing


def test_a_failed_sync_is_told_and_never_tried_again(disk: SimDisk) -> None:
    store = Store.open("data", vfs=disk.name)
    append(store, 5)
    disk.sync_fails = True
    with pytest.raises(DiskFailed, match="SQLITE_IOERR_FSYNC"):
        append(store, 1)
    disk.sync_fails = False
    operations = disk.operations

    with pytest.raises(DiskFailed):
        append(store, 1)
    store.close()

    assert disk.operations == operations


def test_a_sync_that_fails_while_moving_the_log_into_the_database_is_not_passed_over(
    disk: SimDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open("data", vfs=disk.name)
    append(store, 5)
    monkeypatch.setattr(store_module, "CHECKPOINT_PAGES", 1)
    disk.sync_fails = True

    with pytest.raises(DiskFailed):
        store.write(Batch())


def test_after_a_failed_sync_and_a_power_cut_all_that_was_acknowledged_is_there(
    disk: SimDisk,
) -> None:
    for seed in range(20):
        store = Store.open("data", vfs=disk.name)
        append(store, 5)
        acknowledged = store.last_seq
        disk.sync_fails = True
        with pytest.raises(DiskFailed):
            append(store, 3)
        store.close()
        disk.sync_fails = False
        disk.crash(Random(seed))

        again = Store.open("data", vfs=disk.name)
        assert again.last_seq in (acknowledged, acknowledged + 3)
        assert len(read_all(again.reader())) == again.last_seq
        again.close()


def test_a_disk_that_failed_meanwhile_is_noticed_at_the_first_write(disk: SimDisk) -> None:
    Store.open("data", vfs=disk.name).close()
    disk.sync_fails = True

    store = Store.open("data", vfs=disk.name)  # nothing to write yet, so nothing to sync
    with pytest.raises(DiskFailed):
        append(store, 1)


WRITER = """
import sys
from store_samples import append
from tocsin.errors import DiskFailed
from tocsin.store.store import Store

store = Store.open(sys.argv[1])
try:
    for _ in range(50):
        append(store, 2)
        print(store.last_seq, flush=True)
except DiskFailed:
    print("failed", flush=True)
    try:
        append(store, 1)
    except DiskFailed:
        print("refused", flush=True)
store.close()
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace to make a sync fail")
@pytest.mark.parametrize("failing", [14, 20])
def test_a_real_failed_sync_stops_the_log_and_keeps_what_was_acknowledged(
    tmp_path: Path, failing: int
) -> None:
    trace = tmp_path / "trace"
    inject = f"inject=fdatasync,fsync:error=EIO:when={failing}"
    strace = ["strace", "-f", "-o", str(trace), "-e", "trace=fdatasync,fsync", "-e", inject]
    traced = subprocess.run(
        [*strace, sys.executable, "-c", WRITER, str(tmp_path / "data")],
        capture_output=True,
        text=True,
        timeout=60,
        env=CHILD_ENVIRONMENT,
    )
    if "Operation not permitted" in traced.stderr:
        pytest.skip("this user may not trace")
    *acknowledged, failed, refused = traced.stdout.split()

    assert (failed, refused) == ("failed", "refused"), traced.stderr
    *confirmed, last = [line for line in trace.read_text().splitlines() if "sync(" in line]
    assert "INJECTED" in last  # and nothing was synced after it
    assert all(line.endswith("= 0") for line in confirmed)
    store = Store.open(tmp_path / "data")
    reader = store.reader()
    assert store.last_seq >= int(acknowledged[-1])
    assert len(read_all(reader)) == store.last_seq
    reader.close()
    store.close()
