"""A real broker on a machine whose clock is a month past the last time in its log."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from served import ROOT, Served, folder
from tocsin.broker.state.state import CLOCK
from tocsin.event.event import Event
from tocsin.event.stored import Batch, Stored
from tocsin.event.subscription import Kind, Subscription, definition
from tocsin.store.reader import Reader
from tocsin.store.store import Store

S = 1_000_000_000
DAY = 86_400 * S
MONTH = 30 * DAY


def month_old(directory: Path) -> None:
    """What a broker left that had a box with a backlog, and a lease of seven days."""
    then = time.time_ns() - MONTH
    box = Subscription(id="box", kind=Kind.BOX, filters=msgspec.Raw(b"[]"), created_ns=then)
    lease = Subscription(
        id="leased",
        kind=Kind.PUSH,
        sink="http://127.0.0.1:9/",
        filters=msgspec.Raw(b"[]"),
        created_ns=then,
        expires_ns=then + 7 * DAY,
    )
    events = [
        Stored(n, then + n, Event(id=str(n), source="/t", type="t", topic="t")) for n in (1, 2, 3)
    ]
    store = Store.open(directory)
    store.write(
        Batch(
            events=events,
            subscriptions={each.id: definition(each) for each in (box, lease)},
            cursors={"box": 0, "leased": 0, "*": 0, CLOCK: then + DAY // 24},
        )
    )
    store.close()


@pytest.fixture
def directory() -> Iterator[Path]:
    with folder() as parent:
        month_old(parent / "data")
        yield parent / "data"


def doctor(*arguments: str) -> list[dict[str, str]]:
    done = subprocess.run(
        [sys.executable, "-m", "tocsin", "doctor", "--json", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def clock(action: str, broker: Served) -> str:
    command = [sys.executable, "-m", "tocsin", "clock", action, "--broker", broker.url]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout


def ids(broker: Served) -> set[str]:
    boxes = broker.call("GET", "/boxes")[1]["boxes"]
    pushes = broker.call("GET", "/subscriptions")[1]["subscriptions"]
    return {each["id"] for each in [*boxes, *pushes]}


def waiting(broker: Served) -> int:
    return len(broker.call("GET", "/boxes/box/messages?wait=5")[1]["events"])


def until_gone(broker: Served, name: str) -> set[str]:
    deadline = time.monotonic() + 10
    while name in (found := ids(broker)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def test_nothing_is_destroyed_until_an_operator_accepts_the_clock(directory: Path) -> None:
    stopped = [each for each in doctor("--data", str(directory)) if each["subject"] == "clock"]
    broker = Served(directory)
    try:
        found, backlog = ids(broker), waiting(broker)
        broker.publish({"topic": "t"})
        status, ready = broker.call("GET", "/readyz")
        figures = broker.call("GET", "/clock")[1]
        running = [each for each in doctor("--broker", broker.url) if each["subject"] == "ready"]

        said = clock("accept", broker)
        left = until_gone(broker, "leased")
        after = broker.call("GET", "/readyz")[1]
    finally:
        broker.stop()

    assert "days past the last time in the log" in stopped[0]["message"]
    assert "--accept-clock" in stopped[0]["remedy"]
    assert (found, backlog) == ({"box", "leased"}, 3)
    assert status == 200
    assert any("30.0 days past the last time" in each for each in ready["reasons"])
    assert figures["doubt"] == "ahead"
    assert figures["jump_s"] > 29 * 86_400
    assert "tocsin clock accept" in running[0]["message"]
    assert "tocsin clock accept" in broker.said()
    assert "accepted" in said
    assert left == {"box"}
    assert after == {"ok": True, "reasons": []}


def test_serve_accept_clock_takes_it_from_the_start(directory: Path) -> None:
    broker = Served(directory, "--accept-clock")
    try:
        left = until_gone(broker, "leased")
        ready = broker.call("GET", "/readyz")[1]
    finally:
        broker.stop()

    assert left == {"box"}
    assert ready == {"ok": True, "reasons": []}


def test_a_start_with_a_wrong_clock_leaves_the_last_sure_time_on_disk(directory: Path) -> None:
    broker = Served(directory)
    broker.publish({"topic": "t"})
    broker.stop()
    reader = Reader.open(directory)
    try:
        assert reader.cursors()[CLOCK] < time.time_ns() - 29 * DAY
    finally:
        reader.close()


def test_the_boxes_log_of_a_broker_in_doubt_is_in_doubt_too(directory: Path) -> None:
    """A log that is made while the clock is in doubt must not write that time down as sure."""
    from drivers.boxes.box_process import ask
    from tocsin.wire.msgbox import write as msgbox

    broker = Served(directory)
    try:
        ask(f"{broker.url}/axis2/services/MsgBoxService", msgbox.request(msgbox.CREATE, "x"))
    finally:
        broker.stop()
    reader = Reader.open(directory / "boxes")
    try:
        assert reader.cursors().get(CLOCK, 0) < time.time_ns() - 29 * DAY
    finally:
        reader.close()
