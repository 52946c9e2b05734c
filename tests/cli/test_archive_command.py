"""`tocsin archive`: listed, verified, and published again into another broker."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from served import Served, served
from tocsin.archive.archive_writer import ArchiveWriter, SealLimits, segments
from tocsin.archive.catalog import Catalog
from tocsin.archive.facts import FactsReader
from tocsin.archive.record import to_batch
from tocsin.cli.archive.replay import Pace, Replay, ReplayFilter, read_moment_ns, read_speed
from tocsin.errors import BadSetting
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.value import Quantity
from tocsin.ontology import built_in

MORNING_NS = 1_790_000_000_000_000_000
DAY_NS = 86_400_000_000_000
COUNT = 700


def event(number: int) -> Event:
    kinds: list[dict[str, Any]] = [
        {"data": b'{"load5": %d,   "kept": "as it was"}' % number, "media": "application/json"},
        {"data": bytes([0, 255, number % 256]), "media": "application/octet-stream"},
        {"data": "<a>\u00fc</a>".encode(), "media": "text/xml"},
        {"data": None, "media": None},
    ]
    kind = kinds[number % 4]
    return Event(
        id=f"e{number}",
        source="/replayed",
        type="t.two" if number % 2 else "t.one",
        topic=f"lead/{number % 3}",
        time="2026-09-21T12:00:00.123456Z",
        subject="s",
        extensions={"run": number, "is": True},
        attributes={"speed": Quantity(1.5, "m/s")} if number % 4 == 3 else {},
        data=kind["data"],
        datacontenttype=kind["media"],
    )


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days, one sealed, one fresh."""
    directory = tmp_path_factory.mktemp("archived") / "archive"
    writer = ArchiveWriter(str(directory), SealLimits())
    writer.tidy()
    stored = [
        Stored(
            n, MORNING_NS + n * 10_000_000 + (DAY_NS if n > 400 else 0), event(n)
        )  # one every 10 ms
        for n in range(1, COUNT + 1)
    ]
    batch = to_batch(stored, FactsReader(built_in()))
    for segment in segments([batch.slice(0, 200), batch.slice(200)], 1, COUNT):
        writer.write_fresh(segment)
    writer.seal_due(time.time())
    return directory


@pytest.fixture(scope="module")
def target() -> Iterator[Served]:
    with served(env={"TOCSIN_ARCHIVE__ENABLED": "false"}) as broker:
        yield broker


def tocsin(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tocsin", "archive", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def stored_in(broker: Served, after: int) -> list[dict[str, Any]]:
    _, page = broker.call("GET", f"/events?after={after}&limit=1000")
    return list(page["events"])


def head(broker: Served) -> int:
    return int(broker.publish({"topic": "mark"})["last"])


def test_an_archive_is_listed_by_date_and_by_file(archive: Path) -> None:
    by_date = tocsin("ls", archive)
    by_file = tocsin("ls", archive.parent, "--files", "--json")
    nothing = tocsin("ls", archive.parent.parent)

    assert by_date.stdout.splitlines()[1].split()[:4] == ["2026-09-21", "1", "1", "400"]
    assert by_date.stdout.splitlines()[2].split()[:4] == ["fresh", "1", "401", "700"]
    assert "700 events in 2 files" in by_date.stderr
    pieces = [json.loads(line) for line in by_file.stdout.splitlines()]
    assert [(each["first"], each["is_fresh"]) for each in pieces] == [(1, False), (401, True)]
    assert nothing.returncode == 5
    assert "T412" in nothing.stderr


def test_an_archive_is_verified_and_damage_is_reported_with_what_to_do(
    archive: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", archive, copy], check=True)
    (sealed,) = copy.glob("date=*/*.parquet")
    sealed.write_bytes(sealed.read_bytes()[:5_000])
    sample = copy / "_deliveries" / "date=2026-09-21" / "1.parquet"
    sample.parent.mkdir(parents=True, exist_ok=True)
    sample.write_bytes(b"PAR1 and no more")

    whole = tocsin("verify", archive)
    broken = tocsin("verify", copy)
    reported = tocsin("verify", copy, "--json")

    assert whole.returncode == 0
    assert "700 events (1 to 700) in 2 files" in whole.stderr
    assert "all is well" in whole.stderr
    assert broken.returncode == 1
    assert str(sealed) in broken.stdout
    assert str(sample) in broken.stdout
    assert "Restore it from a backup" in broken.stdout
    assert reported.returncode == 1
    assert json.loads(reported.stdout)["events"] == 300


def test_what_is_replayed_is_what_was_published(archive: Path, target: Served) -> None:
    before = head(target)

    done = tocsin("replay", archive, "--speed", "max", "--broker", target.url, "--json")

    assert done.returncode == 0, done.stderr
    assert "this is the archive of" not in done.stderr
    assert json.loads(done.stdout) == {"published": COUNT, "failed": 0, "through": COUNT}
    from tocsin.store.reader import Reader

    reader = Reader.open(target.directory)
    kept = [each.event for each in reader.read(before, COUNT).events]
    reader.close()
    assert kept == [event(n) for n in range(1, COUNT + 1)]


def test_a_part_is_replayed_by_numbers_times_and_a_filter(archive: Path) -> None:
    with served(env={"TOCSIN_ARCHIVE__ENABLED": "false"}) as broker:
        to = ("--broker", broker.url, "--speed", "max")
        by_number = tocsin("replay", archive, *to, "--from-seq", 11, "--to-seq", 20)
        by_day = tocsin("replay", archive, *to, "--since", "2026-09-22", "--to-seq", 410)
        by_filter = tocsin(
            "replay", archive, *to, "--until", "2026-09-22", "--filter", "type = t.two and run < 9"
        )
        found = [each["id"] for each in stored_in(broker, 0)]

    assert [each.returncode for each in (by_number, by_day, by_filter)] == [0, 0, 0]
    assert found == [
        *(f"e{n}" for n in range(11, 21)),
        *(f"e{n}" for n in range(401, 411)),
        *(f"e{n}" for n in (1, 3, 5, 7)),
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--from-seq", 20, "--to-seq", 10), "--to-seq 10 is before --from-seq 20"),
        (("--since", "2099-01-01", "--until", "2000-01-01"), "is not before --until 2000-01-01"),
        (("--from-seq", -4), "--from-seq -4 is out of range"),
        (("--patience", "nan"), "--patience nan is out of range"),
    ],
)
def test_ranges_that_make_no_sense_are_refused(
    archive: Path, options: tuple[object, ...], words: str
) -> None:
    refused = tocsin("replay", archive, *options)

    assert refused.returncode == 2
    assert words in refused.stderr


def test_a_replay_does_not_begin_if_it_cannot_write_how_far_it_came(
    archive: Path, target: Served, tmp_path: Path
) -> None:
    before = head(target)

    refused = tocsin("replay", archive, "--broker", target.url, "--resume", tmp_path / "no" / "x")

    assert refused.returncode == 2
    assert "cannot be written: No such file or directory" in refused.stderr
    assert head(target) == before + 1  # which is the mark itself


def test_a_replay_goes_on_where_it_was_interrupted(archive: Path, tmp_path: Path) -> None:
    place = tmp_path / "place.json"
    with served(env={"TOCSIN_ARCHIVE__ENABLED": "false"}) as broker:
        to = (archive, "--broker", broker.url, "--resume", place)
        tocsin("replay", *to, "--speed", "max", "--to-seq", 300)
        first = json.loads(place.read_text())["through"]
        rest = tocsin("replay", *to, "--speed", "max", "--json")
        other = tocsin("replay", archive.parent, "--broker", broker.url, "--resume", place)
        place.write_text("{}")
        spoilt = tocsin("replay", *to)
        found = [each["id"] for each in stored_in(broker, 0)]

    assert first == 300
    assert json.loads(rest.stdout)["published"] == 400
    assert found == [f"e{n}" for n in range(1, COUNT + 1)]
    assert other.returncode == 0, "the same archive by way of its data directory"
    assert spoilt.returncode == 2
    assert "is not a valid resume file" in spoilt.stderr


def test_a_damaged_file_ends_a_replay_or_is_passed_over(archive: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", archive, copy], check=True)
    (sealed,) = copy.glob("date=*/*.parquet")
    sealed.write_bytes(b"PAR1")
    with served(env={"TOCSIN_ARCHIVE__ENABLED": "false"}) as broker:
        to = (copy, "--broker", broker.url, "--speed", "max")
        ended = tocsin("replay", *to)
        went_on = tocsin("replay", *to, "--keep-going")
        found = [each["id"] for each in stored_in(broker, 0)]
    nobody = tocsin("replay", archive, "--broker", broker.url, "--patience", 0)

    assert ended.returncode == 1
    assert "T410" in ended.stderr
    assert "--from-seq 1 goes on" in ended.stderr
    assert went_on.returncode == 7
    assert found == [f"e{n}" for n in range(401, COUNT + 1)]
    assert nobody.returncode == 3


def test_a_replay_ends_with_what_was_there_when_it_began(tmp_path: Path) -> None:
    writer = ArchiveWriter(str(tmp_path), SealLimits())
    writer.tidy()

    def add(first: int) -> None:
        stored = [Stored(n, MORNING_NS, event(n)) for n in range(first, first + 10)]
        batch = to_batch(stored, FactsReader(built_in()))
        for segment in segments([batch], first, first + 9):
            writer.write_fresh(segment)

    add(1)
    work = Replay(str(tmp_path), ReplayFilter(), keep_going=False)
    found = list[int]()
    for each in work.events():
        found.append(each.seq)
        if each.seq % 10 == 0 and each.seq < 100:
            add(each.seq + 1)

    assert found == list(range(1, 11))
    assert work.total == 10


def test_a_broker_that_gets_its_own_archive_again_is_named_and_gets_it_once() -> None:
    forgets = {"TOCSIN_LOG__DUPLICATES_WINDOW": "1", "TOCSIN_ARCHIVE__ROLL_S": "0.2"}
    with served(env={**forgets, "TOCSIN_ARCHIVE__FREE_BYTES_MIN": "1000"}) as broker:
        broker.publish(*[{"id": f"e{n}"} for n in range(20)])
        deadline_s = time.monotonic() + 60
        while Catalog(broker.directory / "archive").through() < 20:
            assert time.monotonic() < deadline_s
            time.sleep(0.1)
        to = ("--broker", broker.url, "--speed", "max")

        own = tocsin("replay", broker.directory, *to, "--json")

        assert own.returncode == 0, own.stderr
        assert "this is the archive of the broker at" in own.stderr
        assert json.loads(own.stdout) == {"published": 20, "failed": 0, "through": 20}


def test_events_come_as_far_apart_as_they_came_only_faster() -> None:
    now, slept = [100.0], list[float]()

    def sleep(duration_s: float) -> None:
        slept.append(duration_s)
        now[0] += duration_s

    pace = Pace(10.0, clock=lambda: now[0], sleep=sleep)
    for received_s in (5, 15, 15, 11, 25):
        pace.wait_for(received_s * 1_000_000_000)

    assert sum(slept) == pytest.approx(2.0)
    assert max(slept) <= 0.5
    assert Pace(None).wait_s(5) == 0.0
    assert read_speed("10x") == 10.0
    assert read_speed("max") is None
    for bad in ("", "fast", "0", "-1x", "10xx"):
        with pytest.raises(BadSetting):
            read_speed(bad)
    with pytest.raises(BadSetting, match="--since"):
        read_moment_ns("yesterday", "--since")
    assert (
        ReplayFilter(since_ns=read_moment_ns("2026-09-22", "--since")).since_ns
        == 1_790_035_200 * 10**9
    )
