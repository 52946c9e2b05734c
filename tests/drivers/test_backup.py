"""Backups: made while the broker works, whole or not there, and restored to the event."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from served import ROOT, Served, folder
from tocsin.archive.file_names import format_range
from tocsin.drivers.storage.backup import MANIFEST_NAME, back_up, last_given, read_manifest, restore
from tocsin.errors import BadBackup, LogIncomplete
from tocsin.event.event import Event
from tocsin.event.stored import Batch, Stored
from tocsin.store.reader import Reader
from tocsin.store.store import Store


def ignore(count: int) -> None:
    pass


@pytest.fixture
def parent() -> Iterator[Path]:
    with folder() as place:
        yield place


def filled(data: Path, count: int) -> Path:
    """A data directory with so many events, and no broker."""
    with closing(Store.open(data)) as store:
        store.write(Batch(events=[stored(seq) for seq in range(1, count + 1)]))
    return data


def stored(seq: int) -> Stored:
    return Stored(seq, seq, Event(id=str(seq), source="/t", type="t", topic="t"))


def numbers(data: Path) -> list[int]:
    with closing(Reader.open(data)) as reader:
        first = reader.read(0, 10_000)
        return [each.seq for each in (*first.events, *reader.read(first.next, 10_000).events)]


def tocsin(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tocsin", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )


def test_a_backup_of_a_working_broker_is_one_moment_of_it_and_serves_again(parent: Path) -> None:
    broker = Served(parent / "data", env={"TOCSIN_ARCHIVE__ROLL_S": "1"})
    acknowledged: list[int] = []
    enough = threading.Event()

    def publish() -> None:
        while not enough.is_set():
            acknowledged.append(broker.publish({"topic": "lab/x", "data": {"n": 1}})["last"])

    try:
        _, box = broker.call("POST", "/boxes", {"filters": [{"topic": "lab/**"}]})
        publisher = threading.Thread(target=publish)
        publisher.start()
        while len(acknowledged) < 50:
            enough.wait(0.01)
        before = acknowledged[-1]
        made = tocsin("backup", parent / "copy", "--data", broker.directory, "--json")
        enough.set()
        publisher.join()
    finally:
        broker.kill()
    assert made.returncode == 0, made.stderr
    last = json.loads(made.stdout)["last"]
    assert before <= last <= acknowledged[-1]

    restored = tocsin("restore", parent / "copy", "--data", parent / "again", "--json")
    assert restored.returncode == 0, restored.stderr
    again = Served(parent / "again")
    try:
        _, log = again.call("GET", f"/events?after={last - 1}")
        _, pulled = again.call("GET", f"/boxes/{box['id']}/messages?max=50")
        following = again.publish({"topic": "lab/x"})["first"]
        ready = again.call("GET", "/readyz")[0]
    finally:
        again.kill()
    assert len(log["events"]) == 1
    assert len(pulled["events"]) == 50
    assert following == last + 1
    assert ready == 200


def test_what_is_in_a_backup_is_for_its_owner_and_can_be_told(parent: Path) -> None:
    data = filled(parent / "data", 5)
    (data / "ontology.ttl").write_text("# ours")
    (data / "archive" / "date=2026-01-01").mkdir(parents=True)
    for first, last in ((1, 5), (6, 9)):
        name = format_range(first, last)
        (data / "archive" / "date=2026-01-01" / name).write_bytes(b"events")

    made = back_up(data, data / "archive", parent / "copy", ignore)

    assert (made.first_seq, made.last_seq, made.corrupt) == (1, 5, [])
    assert [each.path for each in made.files] == [
        # The other file of the archive has events that the copied log has not.
        "archive/date=2026-01-01/00000000000000000001-00000000000000000005.parquet",
        "log.sqlite",
        "ontology.ttl",
    ]
    assert made == read_manifest(parent / "copy")
    files = [path for path in (parent / "copy").rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert not [path.name for path in parent.iterdir() if path.name.startswith(".")]


def test_a_damaged_or_unfinished_backup_restores_nothing(parent: Path) -> None:
    data = filled(parent / "data", 5)
    back_up(data, None, parent / "copy", ignore)
    log = parent / "copy" / "log.sqlite"
    whole = log.read_bytes()

    for damaged in (whole[:-1], whole[:9000] + b"?" + whole[9001:]):
        log.write_bytes(damaged)
        with pytest.raises(BadBackup, match=r"log\.sqlite: its checksum is wrong"):
            restore(parent / "copy", parent / "again", None, ignore)
    log.unlink()
    with pytest.raises(BadBackup, match="it is missing"):
        restore(parent / "copy", parent / "again", None, ignore)
    (parent / "copy" / MANIFEST_NAME).unlink()
    with pytest.raises(BadBackup, match="is not a backup"):
        restore(parent / "copy", parent / "again", None, ignore)

    assert sorted(path.name for path in parent.iterdir()) == ["copy", "data"]


def test_a_manifest_cannot_write_elsewhere(parent: Path) -> None:
    data = filled(parent / "data", 1)
    back_up(data, None, parent / "copy", ignore)
    manifest = parent / "copy" / MANIFEST_NAME
    manifest.write_text(manifest.read_text().replace('"log.sqlite"', '"../escaped"'))

    with pytest.raises(BadBackup, match="leads out of the backup"):
        restore(parent / "copy", parent / "again", None, ignore)


def test_nothing_is_written_over(parent: Path) -> None:
    data = filled(parent / "data", 1)
    back_up(data, None, parent / "copy", ignore)

    with pytest.raises(BadBackup, match="is not empty"):
        back_up(data, None, parent / "copy", ignore)
    with pytest.raises(BadBackup, match="is not empty"):
        restore(parent / "copy", data, None, ignore)
    with pytest.raises(BadBackup, match="is not a data directory"):
        back_up(parent / "nowhere", None, parent / "other", ignore)
    (parent / "empty").mkdir()
    restore(parent / "copy", parent / "empty", None, ignore)

    assert numbers(parent / "empty") == [1]


def test_a_log_that_lacks_events_is_not_backed_up_as_if_it_were_whole(parent: Path) -> None:
    data = filled(parent / "data", 5)
    for name in ("log.sqlite", "log.sqlite-wal"):
        (data / name).unlink(missing_ok=True)
    with closing(Store.open(data, accept_loss=True)):
        pass
    mark = (data / "log.sqlite-mark").read_bytes()
    filled(parent / "other", 1)
    for path in (parent / "other").glob("log.sqlite"):
        path.replace(data / path.name)
    (data / "log.sqlite-mark").write_bytes(mark)

    with pytest.raises(LogIncomplete):
        back_up(data, None, parent / "copy", ignore)
    assert not (parent / "copy").exists()


def test_numbers_that_were_given_after_the_backup_are_not_given_again(parent: Path) -> None:
    data = filled(parent / "data", 5)
    back_up(data, None, parent / "copy", ignore)
    with closing(Store.open(data)) as store:
        store.write(Batch(events=[stored(seq) for seq in range(6, 9)]))
    (data / "log.sqlite").write_bytes(b"gone")

    assert last_given(data) == 8
    done = tocsin("restore", parent / "copy", "--data", parent / "again", "--replaces", data)
    assert "gets number 9" in done.stderr
    with closing(Store.open(parent / "again")) as store:
        assert store.last_seq == 8
        store.write(Batch(events=[stored(9)]))
    assert numbers(parent / "again") == [1, 2, 3, 4, 5, 9]

    far = 10**12  # nobody walks over what is between
    restore(parent / "copy", parent / "far", far, ignore)
    with closing(Store.open(parent / "far")) as store:
        store.write(Batch(events=[stored(far)]))
        with closing(store.reader()) as reader:
            assert reader.check().ok
            assert reader.read(5, 10).next == far
    assert numbers(parent / "far")[-1] == far
    with pytest.raises(BadBackup, match="cannot come next"):
        restore(parent / "copy", parent / "less", 5, ignore)
