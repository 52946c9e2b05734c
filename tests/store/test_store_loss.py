"""A log that lacks what was acknowledged is refused, and never gives a number twice."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from store_samples import append, log_of, make_events

from tocsin.broker.snapshot import take_snapshot
from tocsin.errors import LogIncomplete
from tocsin.event.stored import Batch
from tocsin.store.reader import Reader
from tocsin.store.store import Store
from tocsin.store.vfs import SimDisk

NAMES = (f"loss-{number}" for number in itertools.count())
FRAME_BYTES = 8192 + 24


def wal_of(directory: Path) -> Path:
    return directory / "log.sqlite-wal"


def mark_of(directory: Path) -> Path:
    return directory / "log.sqlite-mark"


def killed(directory: Path) -> Path:
    """A copy of a log as a killed broker leaves it: ten events in the database, sixty in -wal."""
    run = directory / "run"
    store = Store.open(run)
    append(store, 10)
    store.close()
    store = Store.open(run)
    for _ in range(60):
        append(store, 1)
    store.write(Batch(subscriptions={"box": b"definition"}))
    left = directory / "left"
    shutil.copytree(run, left)
    store.close()
    return left


def flip(file: Path, offset: int) -> None:
    content = bytearray(file.read_bytes())
    content[offset] ^= 4
    file.write_bytes(bytes(content))


def test_what_a_kill_leaves_is_whole_and_starts(tmp_path: Path) -> None:
    store = Store.open(killed(tmp_path))

    assert store.last_seq == 70
    assert store.loss is None
    store.close()


@pytest.mark.parametrize("offset", [156, 32, 40, 8, FRAME_BYTES * 5 + 1000])
def test_a_flipped_bit_in_the_write_ahead_log_is_refused(tmp_path: Path, offset: int) -> None:
    directory = killed(tmp_path)
    flip(wal_of(directory), offset)
    before = {path.name: path.read_bytes() for path in directory.iterdir()}

    with pytest.raises(LogIncomplete, match="70") as refused:
        Store.open(directory)

    assert "--accept-loss" in refused.value.remedy
    for name in ("log.sqlite", "log.sqlite-wal", "log.sqlite-mark"):
        assert (directory / name).read_bytes() == before[name], f"{name} was left as it was"


def test_frames_all_over_the_write_ahead_log_are_watched_over(tmp_path: Path) -> None:
    directory = killed(tmp_path)
    whole = wal_of(directory).read_bytes()
    frames = len(whole) // FRAME_BYTES

    for frame in range(0, frames, 9):
        flip(wal_of(directory), 32 + frame * FRAME_BYTES + 700)
        with pytest.raises(LogIncomplete):
            Store.open(directory)
        wal_of(directory).write_bytes(whole)

    Store.open(directory).close()


@pytest.mark.parametrize("lost", ["log.sqlite-wal", "log.sqlite", "both"])
def test_a_deleted_file_is_refused(tmp_path: Path, lost: str) -> None:
    directory = killed(tmp_path)
    for file in (wal_of(directory), log_of(directory)):
        if lost in (file.name, "both"):
            file.unlink()

    with pytest.raises(LogIncomplete):
        Store.open(directory)
    with pytest.raises(LogIncomplete):
        Store.open(directory)  # the refusal made nothing new

    assert log_of(directory).exists() == (lost == "log.sqlite-wal")


def test_an_older_copy_of_the_database_is_refused(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "run")
    append(store, 10)
    store.close()
    shutil.copy(log_of(tmp_path / "run"), tmp_path / "older")
    store = Store.open(tmp_path / "run")
    append(store, 5)
    store.close()
    shutil.copy(tmp_path / "older", log_of(tmp_path / "run"))

    with pytest.raises(LogIncomplete, match="11 to 15"):
        Store.open(tmp_path / "run")


def test_a_lost_subscription_is_refused_though_no_event_is_missing(tmp_path: Path) -> None:
    directory = killed(tmp_path)
    frames = (wal_of(directory).stat().st_size - 32) // FRAME_BYTES
    flip(wal_of(directory), 32 + (frames - 1) * FRAME_BYTES + 100)

    with pytest.raises(LogIncomplete, match="no event"):
        Store.open(directory)


def test_after_an_accepted_loss_no_number_is_given_twice(tmp_path: Path) -> None:
    directory = killed(tmp_path)
    flip(wal_of(directory), 156)

    store = Store.open(directory, accept_loss=True)
    written = append(store, 3)
    reader = store.reader()
    page = reader.read(0, 1000)

    assert store.loss is not None
    assert [stored.seq for stored in written] == [71, 72, 73]
    assert [stored.seq for stored in page.events] == [*range(1, 11), 71, 72, 73]
    assert page.corrupt == []
    report = reader.check()
    assert report.ok
    assert report.lost == ((11, 70),)
    reader.close()
    store.close()
    again = Store.open(directory)
    assert (again.loss, again.last_seq) == (None, 73)
    again.close()


def test_an_accepted_loss_is_not_asked_about_again_after_a_kill(tmp_path: Path) -> None:
    directory = killed(tmp_path)
    wal_of(directory).unlink()
    store = Store.open(directory, accept_loss=True)
    append(store, 1)
    shutil.copytree(directory, tmp_path / "killed")
    store.close()

    again = Store.open(tmp_path / "killed")

    assert again.last_seq == 71
    again.close()


def test_a_new_log_after_a_lost_one_begins_beyond_it(tmp_path: Path) -> None:
    directory = killed(tmp_path)
    log_of(directory).unlink()

    store = Store.open(directory, accept_loss=True)

    assert (store.first_seq, store.last_seq) == (71, 70)
    assert append(store, 1)[0].seq == 71
    assert store.reader().check().ok
    store.close()


def test_time_and_repeats_are_known_across_a_gap_at_the_end(tmp_path: Path) -> None:
    directory = killed(tmp_path)
    wal_of(directory).unlink()
    store = Store.open(directory, accept_loss=True)

    known = take_snapshot(store.reader())

    assert known.last_received_ns == make_events(10, 1)[0].received_ns
    assert [seq for _, seq in store.reader().recent_keys(5)][-5:] == [6, 7, 8, 9, 10]
    store.close()


def test_reading_goes_on_behind_a_long_gap(tmp_path: Path) -> None:
    directory = killed(tmp_path)
    wal_of(directory).unlink()
    store = Store.open(directory, accept_loss=True)
    append(store, 1)
    reader = store.reader()

    after, seen = 0, []
    while after < store.last_seq:
        page = reader.read(after, 7)
        assert page.next > after
        after = page.next
        seen += [stored.seq for stored in page.events]

    assert seen == [*range(1, 11), 71]
    assert len(reader.recent_keys(100)) == 11
    assert len(reader.recent_keys(5)) >= 5, "a repeat of an event before the gap is known"
    reader.close()
    store.close()


def test_damage_is_seen_without_a_mark_and_numbers_go_on_well_beyond(tmp_path: Path) -> None:
    directory = killed(tmp_path)
    mark_of(directory).unlink()
    flip(wal_of(directory), 156)

    with pytest.raises(LogIncomplete, match="frame 1"):
        Store.open(directory)
    store = Store.open(directory, accept_loss=True)

    assert store.last_seq > 70
    store.close()


def test_a_mark_from_before_a_power_cut_may_lag_and_numbers_still_go_on_beyond(
    tmp_path: Path,
) -> None:
    directory = killed(tmp_path)
    older = tmp_path / "older"
    Store.open(older).close()
    shutil.copy(mark_of(older), mark_of(directory))
    flip(wal_of(directory), 156)

    store = Store.open(directory, accept_loss=True)

    assert store.last_seq > 70
    store.close()


def test_an_unreadable_mark_is_made_anew(tmp_path: Path) -> None:
    directory = killed(tmp_path)
    mark_of(directory).write_bytes(b"\xff" * mark_of(directory).stat().st_size)

    Store.open(directory).close()
    log_of(directory).unlink()

    with pytest.raises(LogIncomplete):
        Store.open(directory)


def test_a_log_without_a_mark_is_taken_as_it_is(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    append(store, 3)
    store.close()
    mark_of(tmp_path).unlink()

    again = Store.open(tmp_path)

    assert (again.last_seq, again.loss) == (3, None)
    again.close()


def test_a_refused_write_leaves_frames_that_are_no_damage(disk: SimDisk) -> None:
    store = Store.open("data", vfs=disk.name)
    append(store, 5)
    for room_bytes in (400_000, 200_000):
        disk.bytes_max = disk.size_bytes() + room_bytes
        with pytest.raises(Exception, match="no room"):
            store.write(Batch(make_events(store.last_seq + 1, 200, 5000)))
    disk.bytes_max = None
    append(store, 1)
    disk.crash(Random(1))

    again = Store.open("data", vfs=disk.name)

    assert (again.last_seq, again.loss) == (6, None)


def test_a_power_cut_with_less_than_full_syncing_is_said_and_started_from(disk: SimDisk) -> None:
    store = Store.open("data", vfs=disk.name, synchronous="NORMAL")
    for _ in range(30):
        append(store, 1)
    mark = "data/log.sqlite-mark"
    disk.sync_file(mark)
    disk.crash(None)

    again = Store.open("data", vfs=disk.name)

    assert again.loss is not None
    assert again.last_seq == 30
    assert append(again, 1)[0].seq == 31


def test_the_check_beside_no_broker_finds_the_same(tmp_path: Path) -> None:
    from tocsin.store.loss import loss_in

    directory = killed(tmp_path)
    assert loss_in(directory) is None
    wal_of(directory).unlink()

    found = loss_in(directory)

    assert found is not None
    assert (found.after, found.through) == (10, 70)
    with pytest.raises(LogIncomplete):
        Store.open(directory)


def test_a_reader_may_read_what_is_left(tmp_path: Path) -> None:
    directory = killed(tmp_path)
    wal_of(directory).unlink()

    reader = Reader.open(directory)

    assert reader.marks().last_seq == 10
    reader.close()


@pytest.fixture
def disk() -> Iterator[SimDisk]:
    simulated = SimDisk(next(NAMES))
    yield simulated
    simulated.unregister()
