"""Rolling the log into an archive: each event once, wherever it is cut, however the disk fares."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivers.rolled_log import DAY_NS, NOON_NS, Log, crash_at
from small_disk import small_disk
from tocsin.archive.file_names import DELIVERIES
from tocsin.archive.sample_writer import SampleWriter
from tocsin.archive.verify import verify
from tocsin.drivers.archive import roller as rolling
from tocsin.drivers.archive.messages import Roll, Rolled, encode, read_answer
from tocsin.drivers.archive.roller import Roller
from tocsin.errors import DiskFull
from tocsin.errors.archive import ArchiveInUse, ArchiveOfAnotherLog
from tocsin.event.event import Event
from tocsin.event.stored import Batch, Stored
from tocsin.ontology import built_in


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    found = Log(tmp_path / "data")
    yield found
    found.store.close()


STEPS = st.lists(
    st.tuples(
        st.integers(0, 40),  # events that come before it
        st.sampled_from([-1, 0, 1]),  # the day they come on, against noon: the clock jumps
        st.booleans(),  # whether fresh files are old enough to be sealed
        st.one_of(st.none(), st.integers(0, 12)),  # where it ends, if it does not reach its end
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=15, deadline=None)
@given(steps=STEPS, file_events=st.integers(5, 50))
def test_any_cuts_of_rolling_and_sealing_give_each_event_once(
    steps: list[tuple[int, int, bool, int | None]],
    file_events: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    log = Log(tmp_path_factory.mktemp("cuts") / "data")
    try:
        with (
            mock.patch.object(rolling, "FRESH_EVENTS", file_events),
            mock.patch.object(rolling, "PAGE_EVENTS", 7),
        ):
            for count, day, is_old, step in steps:
                if count:
                    log.write(count, received_ns=NOON_NS + day * DAY_NS)
                now_s = time.time() + (7_200 if is_old else 0)
                with crash_at(step) if step is not None else contextlib.nullcontext():
                    log.roll(now_s=now_s)
                found = log.archived()
                assert found == log.written[: len(found)]
            while log.roll(now_s=time.time() + 7_200).through < log.store.last_seq:
                pass
        assert log.archived() == log.written
        assert verify(str(log.archive)).ok
    finally:
        log.store.close()


def test_what_waits_is_rolled_sealed_by_size_and_goes_on_where_it_was(log: Log) -> None:
    log.write(30)
    first = log.roll()
    log.write(20)
    second = log.roll(seal_bytes=1)
    again = log.roll()

    assert (first.through, first.files, first.fresh) == (30, 1, 1)
    assert (second.through, second.fresh) == (50, 0)
    assert (again.through, again.files) == (50, 2)
    assert log.archived() == log.written


def test_a_log_that_forgot_leaves_a_hole_and_not_a_lie(log: Log) -> None:
    log.write(30)
    log.roll()
    log.write(30)
    log.store.write(Batch(trim_to=45))

    rolled = log.roll()

    assert rolled.through == 60
    assert [each.seq for each in log.archived()] == [*range(1, 31), *range(46, 61)]
    report = verify(str(log.archive))
    assert "31 to 45 are missing" in report.findings[0].what


def test_an_archive_that_is_too_large_becomes_smaller_at_once(log: Log) -> None:
    for day in range(3):
        log.write(100, received_ns=NOON_NS + day * DAY_NS)
        log.roll()
    log.roll(seal_bytes=1)

    rolled = log.roll(retain_bytes=1)

    assert rolled.files == 1
    assert [each.seq for each in log.archived()] == list(range(201, 301))
    assert log.roll(retain_bytes=1).files == 1


def test_an_event_that_cannot_be_written_down_does_not_hold_up_the_others(log: Log) -> None:
    log.write(20)
    real = rolling.to_batch

    def refuses(events: list[Stored], teller: object) -> object:
        if any(each.seq in (7, 13) for each in events):
            raise ValueError("no")
        return real(events, teller)  # type: ignore[arg-type]

    with mock.patch.object(rolling, "to_batch", refuses):
        rolled = log.roll()

    assert (rolled.through, rolled.left_out) == (20, 2)
    assert [each.seq for each in log.archived()] == [n for n in range(1, 21) if n not in (7, 13)]
    assert verify(str(log.archive)).ok


def test_the_archive_of_another_log_is_not_mixed_with_this_one(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    old, young, longer = (Log(tmp_path / name, archive) for name in ("old", "young", "longer"))
    old.write(50)
    old.roll()
    young.write(10)
    longer.store.write(
        Batch(
            events=[
                Stored(seq, NOON_NS, Event(id=f"other{seq}", source="/t", type="t", topic="a"))
                for seq in range(1, 80)
            ]
        )
    )

    for other, words in (
        (young, "goes up to 50, the log to 10"),
        (longer, "differs from the log's"),
    ):
        with pytest.raises(ArchiveOfAnotherLog, match=words):
            other.roll()
        other.store.close()
    assert old.archived() == old.written
    old.store.close()


def test_two_do_not_fill_one_archive(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling, "LOCK_WAIT_S", 0.0)
    log.write(3)

    with Roller(log.options(), log.store.reader(), built_in()), pytest.raises(ArchiveInUse):
        log.roll()

    assert log.roll().through == 3


def test_room_is_left_for_the_log(log: Log) -> None:
    log.write(3)

    with pytest.raises(DiskFull, match="must stay free"):
        log.roll(free_bytes_min=1 << 60)

    assert log.archived() == []


def test_a_full_disk_leaves_nothing_half_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with small_disk(3) as disk:
        log = Log(tmp_path / "data", disk / "archive")
        log.write(20, size=10)
        log.roll()
        filled = disk / "filled"
        with contextlib.suppress(OSError), filled.open("wb") as file:
            while True:
                file.write(os.urandom(1 << 16))
        log.write(200, size=2_000)

        with pytest.raises(DiskFull):
            log.roll()

        assert log.archived() == log.written[:20]
        assert [p.name for p in disk.rglob(".*.parquet")] == []
        filled.unlink()
        log.roll()
        assert log.archived() == log.written
        log.store.close()


CUT_SHORT = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from tocsin.drivers.archive.messages import read_options
from tocsin.drivers.archive.roller import Roller
from tocsin.ontology import built_in
from tocsin.store.reader import Reader
options = read_options(sys.argv[1].encode())
with Roller(options, Reader.open(options.log), built_in()) as roller:
    roller.work(10**9, now_s=time.time())
"""


def test_a_limit_on_the_size_of_files_is_told_as_a_full_disk(log: Log) -> None:
    events = [
        Stored(n, NOON_NS, Event(id=f"r{n}", source="/t", type="t", topic="a", data=data))
        for n, data in enumerate((os.urandom(5_000) for _ in range(100)), start=1)
    ]
    log.store.write(Batch(events=events))

    ended = subprocess.run(
        [sys.executable, "-c", CUT_SHORT, encode(log.options()).decode()],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "DiskFull" in ended.stderr
    assert log.archived() == []
    assert log.roll().through == 100


@pytest.mark.parametrize("seed", range(3))
def test_the_filling_process_may_be_killed_at_any_moment(log: Log, seed: int) -> None:
    log.write(3_000)
    command = [sys.executable, "-m", "tocsin.drivers.archive.writer_main"]
    command.append(encode(log.options(seal_bytes=1)).decode())
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    child.stdin.write(encode(Roll(3_000)) + b"\n")
    child.stdin.flush()
    time.sleep(0.35 + seed * 0.15)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdin.close()
    assert child.stdout is not None
    child.stdout.close()

    found = log.archived() if log.archive.exists() else []
    log.roll()

    assert found == log.written[: len(found)]
    assert log.archived() == log.written
    assert verify(str(log.archive)).ok


def test_after_a_roll_samples_are_merged_and_if_not_the_roll_is_done_all_the_same(log: Log) -> None:
    log.write(5)
    for day in range(2):
        sampler = SampleWriter(str(log.archive))
        for at_us in (1, 2):
            row = {"at": (NOON_NS + day * DAY_NS) // 1_000 + at_us, "subscription": "s"}
            sampler.add(DELIVERIES, [row], now_s=0.0)
            sampler.write_all()
    first, second = sorted((log.archive / DELIVERIES).iterdir())
    (second / ".in-the-way.parquet").mkdir()

    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "tocsin.drivers.archive.writer_main",
            encode(log.options()).decode(),
        ],
        input=encode(Roll(5)) + b"\n",
        capture_output=True,
        check=False,
    )

    answer = read_answer(ended.stdout)
    assert isinstance(answer, Rolled), ended.stderr
    assert answer.through == 5
    assert "in-the-way" in str(answer.unsaved)
    assert len(list(first.glob("*-*-2.parquet"))) == 1
    assert len(log.archived()) == 5
