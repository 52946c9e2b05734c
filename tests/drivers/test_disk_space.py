"""A disk that runs full: said in time, refused cleanly, started from, and over by itself."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from served import ROOT, Served
from small_disk import small_disk

MIB = 1 << 20
WAIT_S = 10.0

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs to mount a small file system")


def wait_for(done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + WAIT_S
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def fill(file: Path) -> None:
    """Until not a byte more fits."""
    with contextlib.suppress(OSError), file.open("ab", buffering=0) as filler:
        for size in (64 << 10, 4096, 1):
            with contextlib.suppress(OSError):
                while filler.write(b"x" * size) == size:
                    pass
    with pytest.raises(OSError) as refused:
        file.with_name("one-more").write_bytes(b"x")
    assert refused.value.errno == errno.ENOSPC
    file.with_name("one-more").unlink()


def publish(broker: Served) -> tuple[int, dict[str, object]]:
    event = {"specversion": "1.0", "id": str(time.time_ns()), "source": "/t", "type": "t"}
    return broker.call("POST", "/events", event, {"content-type": "application/cloudevents+json"})


def is_ready(broker: Served) -> bool:
    return broker.call("GET", "/readyz")[0] == 200


def stop(broker: Served) -> None:
    broker.process.kill()
    broker.process.wait()


def test_a_broker_killed_on_a_full_disk_starts_reads_and_takes_events_when_there_is_room() -> None:
    with small_disk(16) as place:
        filler = place / "filler"
        broker = Served(place / "data", env={"TOCSIN_LOG__FREE_BYTES_MIN": "1"})
        try:
            broker.publish(*({"id": str(number)} for number in range(20)))
            broker.kill()
            for file in (place / "data").glob("*-shm"):
                file.unlink()  # what shares its place with others may be lost to them
            fill(filler)

            broker.start()
            read = broker.call("GET", "/events?limit=100")[1]["events"]
            refusal = publish(broker)

            assert [event["id"] for event in read] == [str(number) for number in range(20)]
            assert (refusal[0], refusal[1]["code"]) == (507, "T403")
            assert wait_for(lambda: not is_ready(broker))
            _, health = broker.call("GET", "/readyz")
            assert any("room" in reason for reason in health["reasons"])
            assert broker.call("GET", "/livez")[0] == 200

            filler.unlink()
            assert wait_for(lambda: is_ready(broker))
            assert publish(broker)[0] == 202
            assert wait_for(lambda: broker.call("GET", "/runs")[0] == 200)
            broker.kill()
            broker.start()
            assert len(broker.call("GET", "/events?limit=100")[1]["events"]) == 21
        finally:
            stop(broker)


def test_below_the_low_space_mark_nothing_is_taken_and_everybody_is_told_until_it_is_back() -> None:
    with small_disk(40) as place:
        filler = place / "filler"
        broker = Served(place / "data", env={"TOCSIN_LOG__FREE_BYTES_MIN": str(8 * MIB)})
        try:
            assert publish(broker)[0] == 202
            assert is_ready(broker)
            filler.write_bytes(b"x" * (34 * MIB))

            assert wait_for(lambda: not is_ready(broker))
            _, health = broker.call("GET", "/readyz")
            refusals = [publish(broker) for _ in range(5)]
            found = doctor(broker)

            assert any("log.free_bytes_min" in reason for reason in health["reasons"])
            assert {status for status, _ in refusals} == {507}
            assert {answer["code"] for _, answer in refusals} == {"T403"}
            assert "MiB free" in found["ready"]
            assert "MiB free" in found["disk"]
            assert not is_ready(broker)
            free = metric(broker, "tocsin_disk_free_bytes")
            assert 0 < free < 8 * MIB
            assert metric(broker, "tocsin_ready") == 0

            filler.unlink()
            assert wait_for(lambda: is_ready(broker))
            assert publish(broker)[0] == 202
            assert metric(broker, "tocsin_disk_free_bytes") > 8 * MIB
        finally:
            stop(broker)


def test_a_full_disk_is_in_readyz_for_as_long_as_it_is_full() -> None:
    with small_disk(16) as place:
        filler = place / "filler"
        broker = Served(place / "data", env={"TOCSIN_LOG__FREE_BYTES_MIN": "1"})
        try:
            fill(filler)
            statuses = set()
            assert wait_for(lambda: statuses.add(publish(broker)[0]) or not is_ready(broker))
            for _ in range(10):
                statuses.add(publish(broker)[0])
                assert not is_ready(broker)
                time.sleep(0.1)
            assert 507 in statuses

            filler.unlink()

            assert wait_for(lambda: is_ready(broker))
            assert publish(broker)[0] == 202
        finally:
            stop(broker)


def doctor(broker: Served) -> dict[str, str]:
    """What is wrong, by subject."""
    command = [sys.executable, "-m", "tocsin", "doctor", "--json", "--broker", broker.url]
    out = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False).stdout
    findings = [json.loads(line) for line in out.splitlines()]
    return {found["subject"]: found["message"] for found in findings if found["level"] == "fail"}


def metric(broker: Served, name: str) -> float:
    import urllib.request

    with urllib.request.urlopen(f"{broker.url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))
