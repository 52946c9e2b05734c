"""A broker whose files were damaged while it was down does not start as if nothing had happened."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from served import ROOT, Served, folder
from tocsin.event.stored import Batch
from tocsin.store.store import Store


@pytest.fixture
def broker() -> Iterator[Served]:
    with folder() as parent:
        running = Served(parent / "data")
        yield running
        if running.process.poll() is None:
            running.process.kill()
        running.process.wait()


def doctor(directory: Path) -> list[dict[str, Any]]:
    """Every line of the doctor's about that directory; no broker is asked."""
    command = [sys.executable, "-m", "tocsin", "doctor", "--json", "--data", str(directory)]
    command += ["--broker", "http://127.0.0.1:9"]
    out = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False).stdout
    return [json.loads(line) for line in out.splitlines()]


def about(findings: list[dict[str, Any]], subject: str) -> list[dict[str, Any]]:
    return [finding for finding in findings if finding["subject"] == subject]


def start(directory: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tocsin", "serve", "--data", str(directory)]
    command += ["--http", "127.0.0.1:0", "--frames", "off", "--soap-tcp", "off"]
    command += ["--link", "off", *flags]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=30, check=False
    )


def flip(file: Path, offset: int) -> None:
    content = bytearray(file.read_bytes())
    content[offset] ^= 4
    file.write_bytes(bytes(content))


def test_a_flipped_bit_in_the_write_ahead_log_is_said_accepted_and_never_renumbered(
    broker: Served,
) -> None:
    broker.publish(*({"id": str(number)} for number in range(60)))
    assert broker.call("POST", "/boxes", {})[0] == 201
    broker.kill()
    assert about(doctor(broker.directory), "log")[0]["level"] == "ok"
    flip(broker.directory / "log.sqlite-wal", 156)

    refused = start(broker.directory)
    found = about(doctor(broker.directory), "log")

    assert refused.returncode != 0
    assert "T406" in refused.stderr
    assert "events 1 to 60 are missing" in refused.stderr
    assert "--accept-loss" in refused.stderr
    assert [finding["level"] for finding in found] == ["fail"]
    assert "events 1 to 60 are missing" in found[0]["message"]

    broker.flags = ("--accept-loss",)
    broker.start()
    accepted = broker.publish({"id": "after"})

    assert accepted["first"] == 61
    assert "events 1 to 60 are missing" in broker.said()
    assert broker.stop() == 0
    broker.flags = ()
    broker.start()
    assert broker.publish({"id": "later"})["first"] == 62
    broker.stop()
    levels = {f["level"]: f["message"] for f in about(doctor(broker.directory), "log")}
    assert "intact" in levels["ok"]
    assert "events 1 to 60 were lost" in levels["warn"]


def test_a_deleted_log_is_refused_and_the_boxes_log_is_watched_over_too(broker: Served) -> None:
    broker.publish({})
    broker.stop()
    log, boxes = broker.directory / "log.sqlite", broker.directory / "boxes"
    Store.open(boxes).close()
    kept = log.read_bytes()
    log.unlink()

    assert "T406" in start(broker.directory).stderr
    assert about(doctor(broker.directory), "log")[0]["level"] == "fail"

    log.write_bytes(kept)
    store = Store.open(boxes)
    store.write(Batch(service_state={"k": b"v"}))
    store.close()
    (boxes / "log.sqlite").unlink()
    refused = start(broker.directory)

    assert "T406" in refused.stderr
    assert "boxes" in refused.stderr
    assert about(doctor(broker.directory), "boxes' log")[0]["level"] == "fail"


def test_a_second_broker_is_refused_though_the_lock_file_was_deleted(broker: Served) -> None:
    (broker.directory / "lock").unlink()

    second = start(broker.directory)

    assert "T401" in second.stderr
    assert f"process {broker.pid} " in second.stderr
    broker.publish({})
    assert broker.stop() == 0


def test_what_a_broker_makes_is_for_its_owner_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    os.chmod(data, 0o755)
    broker = Served(data)
    try:
        broker.publish({})
        wide = {
            path.name: oct(mode)
            for path in data.iterdir()
            if path.is_file() and (mode := stat.S_IMODE(path.stat().st_mode)) & 0o077
        }
        assert wide == {}
    finally:
        broker.stop()
    assert about(doctor(data), "permissions") == []
    (data / "log.sqlite").chmod(0o644)

    found = about(doctor(data), "permissions")

    assert found[0]["level"] == "warn"
    assert "log.sqlite (0644)" in found[0]["message"]
