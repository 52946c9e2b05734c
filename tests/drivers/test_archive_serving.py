"""A broker with its archive: filled beside it, through kills, and told of in its figures."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import time
import urllib.request
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from served import Served, served
from tocsin.archive.catalog import Catalog
from tocsin.archive.parquet_reader import read_range
from tocsin.archive.record import to_events
from tocsin.archive.verify import verify

SOON = {
    "TOCSIN_ARCHIVE__ROLL_S": "0.5",
    "TOCSIN_ARCHIVE__SAMPLE_S": "1",
    "TOCSIN_ARCHIVE__SEAL_AGE_S": "2",
    "TOCSIN_ARCHIVE__FREE_BYTES_MIN": "1000",
}
WAIT_S = 60.0


def figures(broker: Served) -> dict[str, float]:
    with urllib.request.urlopen(f"{broker.url}/metrics") as answer:
        text = answer.read().decode()
    return {
        name: float(value)
        for name, value in re.findall(r"^(tocsin_archive_\w+) (\S+)$", text, re.M)
    }


def wait_until_archived(broker: Served, through: int) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while Catalog(broker.directory / "archive").through() < through:
        assert time.monotonic() < deadline_s, broker.said()[-2_000:]
        time.sleep(0.1)


def archived(broker: Served) -> list[tuple[int, str]]:
    batches = read_range(str(broker.directory / "archive"), through=2**62)
    return [(each.seq, each.event.id) for batch in batches for each in to_events(batch)]


def filling_process(broker: Served) -> psutil.Process | None:
    children = psutil.Process(broker.pid).children()
    return children[0] if children else None


def test_a_broker_fills_its_archive_and_tells_of_it() -> None:
    with served(env=SOON) as broker:
        status, _ = broker.call("POST", "/subscriptions", {"sink": "http://127.0.0.1:9/nobody"})
        assert status == 201
        assert filling_process(broker) is None, "nothing to do, nobody to do it"
        broker.publish(
            *[{"id": f"e{n}", "topic": "a/b", "data": {"RunId": "r"}} for n in range(50)]
        )
        broker.call("GET", "/directory?kind=producer")
        wait_until_archived(broker, 50)
        reported = figures(broker)
        while not list((broker.directory / "archive").glob("date=*/*.parquet")):
            time.sleep(0.1)
        reported_of_health = broker.call("GET", "/readyz")
        child = filling_process(broker)
        assert broker.stop() == 0

        assert archived(broker) == [(n + 1, f"e{n}") for n in range(50)]
        assert reported["tocsin_archive_waiting"] == 0 or reported["tocsin_archive_through"] == 0
        assert reported["tocsin_archive_on"] == 1
        assert reported_of_health == (200, {"ok": True, "reasons": []})
        assert child is not None
        assert not child.is_running()
        archive = broker.directory / "archive"
        (delivery, *_) = rows(archive / "_deliveries")
        assert delivery["sink"] == "http://127.0.0.1:9/nobody"
        assert delivery["protocol"] == "cloudevents"
        (found,) = rows(archive / "_discoveries")
        assert (found["model"], found["request"], found["found"]) == (
            "directory",
            "kind=producer",
            1,
        )


def rows(folder: Path) -> list[dict[str, object]]:
    return [
        row
        for file in sorted(folder.rglob("*.parquet"))
        for row in pq.read_table(file, partitioning=None).to_pylist()
    ]


Numbered = list[tuple[int, str]]


def kill_now_and_then(rounds: int, seed: int) -> tuple[Numbered, Numbered, bool]:
    """Publish while the broker, or the process that fills its archive, is killed.

    Returns what was acknowledged, what is in the archive, and whether that is sound.
    """
    dice = random.Random(seed)
    with served(env={**SOON, "TOCSIN_ARCHIVE__ROLL_EVENTS": "1"}) as broker:
        expected: Numbered = []
        for number in range(rounds):
            until_s = time.monotonic() + dice.uniform(0.5, 2.5)
            while time.monotonic() < until_s:
                ids = [f"r{number}-{len(expected) + n}" for n in range(dice.randint(1, 300))]
                first = broker.publish(*[{"id": each, "topic": "t"} for each in ids])["first"]
                expected += [(first + n, each) for n, each in enumerate(ids)]
                time.sleep(0.02)
            child = filling_process(broker)
            if child is not None and dice.random() < 0.5:
                child.send_signal(signal.SIGKILL)
            else:
                broker.kill()
                broker.start()
        broker.stop()
        broker.start()
        broker.publish({"id": "last"})
        wait_until_archived(broker, len(expected) + 1)
        broker.stop()

        is_sound = verify(str(broker.directory / "archive")).ok
        return expected, archived(broker)[:-1], is_sound


def test_kills_of_the_broker_and_of_the_filling_process_lose_and_double_nothing() -> None:
    acknowledged, in_archive, is_sound = kill_now_and_then(rounds=4, seed=1)

    assert in_archive == acknowledged
    assert is_sound


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_many_kills_lose_and_double_nothing() -> None:
    for seed in range(5):
        acknowledged, in_archive, is_sound = kill_now_and_then(rounds=20, seed=seed)

        assert in_archive == acknowledged, seed
        assert is_sound, seed


def test_an_archive_of_another_log_is_left_alone_and_that_is_told() -> None:
    with served(env=SOON) as broker:
        broker.publish(*[{"id": f"old{n}"} for n in range(30)])
        wait_until_archived(broker, 30)
        broker.stop()
        for path in broker.directory.iterdir():
            if path.name != "archive":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        broker.start()
        broker.publish({"id": "new"})
        deadline_s = time.monotonic() + WAIT_S
        while figures(broker)["tocsin_archive_on"] == 1:
            assert time.monotonic() < deadline_s
            time.sleep(0.1)
        status, health = broker.call("GET", "/readyz")

        assert status == 200, "it serves all the same"
        assert "was written from another log" in health["reasons"][0]
        assert "T413" in broker.said()
        assert [each for _, each in archived(broker)] == [f"old{n}" for n in range(30)]


def test_an_archive_that_cannot_be_written_is_told_and_tried_again(tmp_path: Path) -> None:
    blocked = tmp_path / "archive"
    blocked.write_text("a file where a directory should be")
    with served(env={**SOON, "TOCSIN_ARCHIVE__DIRECTORY": str(blocked)}) as broker:
        broker.publish({"id": "e"})
        deadline_s = time.monotonic() + WAIT_S
        while not figures(broker)["tocsin_archive_failures_total"]:
            assert time.monotonic() < deadline_s
            time.sleep(0.1)
        _, health = broker.call("GET", "/readyz")

        assert "the archive cannot be written" in health["reasons"][0]
        assert broker.publish({"id": "f"})["accepted"] == 1
        assert os.path.isfile(blocked)
