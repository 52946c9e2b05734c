"""The log waits for its archive, but not without end; and what is noted beside the events."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from tocsin.access.session import anonymous, internal
from tocsin.archive.file_names import DEADLETTERS, DELIVERIES, DISCOVERIES
from tocsin.broker.delivery.deadletter import Attempt, DeadLetter, record
from tocsin.config import load
from tocsin.drivers.application import Application
from tocsin.drivers.archive.archiver import SESSION, Archiver
from tocsin.drivers.archive.sampler import DeliverySampler, request_text
from tocsin.drivers.logger import Logger
from tocsin.drivers.node import Node
from tocsin.event.event import Event
from tocsin.event.filter_text import parse_filter
from tocsin.event.subscription import Kind, Subscription
from tocsin.services.directory.directory import Directory
from tocsin.store.store import Store
from tocsin.wire.directory.listing import Wanted

PATIENCE_S = 30.0


def run(directory: Path, script: Callable[[Application], Awaitable[None]], **flags: object) -> str:
    """A broker without listeners, from its start to its end. Returns what it noted."""
    said = io.StringIO()
    given = {"http.address": "127.0.0.1:0", "log.directory": str(directory)}
    given |= {name.replace("__", "."): value for name, value in flags.items()}

    async def main() -> None:
        settings, _ = load(given, {})
        app = Application(settings, Store.open(directory), Logger(stream=said))
        try:
            await asyncio.wait_for(script(app), PATIENCE_S)
        finally:
            await app.close()

    uvloop.run(main())
    return said.getvalue()


def archiver_of(app: Application) -> Archiver:
    dead_letters = app.node.observers.dead_letters
    return Archiver(app.port, app.settings, Directory(app.port), dead_letters)


async def publish(node: Node, count: int, size: int = 100) -> None:
    events = [
        Event(f"{node.now_ns()}-{n}", "/s", "t", topic="t", data=b"x" * size) for n in range(count)
    ]
    await node.port.publish(internal("test"), events)


def test_a_log_twice_as_large_as_it_may_be_waits_no_longer(tmp_path: Path) -> None:
    async def script(app: Application) -> None:
        node = app.node
        archiver = archiver_of(app)
        await publish(node, 50, size=1_000)
        await archiver._relieve()
        lost_while_small = archiver.lost
        await publish(node, 500, size=1_000)
        await archiver._relieve()
        reported_once = archiver.lost
        await archiver._relieve()
        node.broker.retention_checked(500, node.now_ns())
        node.schedule_run()
        while node.broker.first == 1:
            await asyncio.sleep(0.01)

        assert lost_while_small == 0
        assert 300 < reported_once < 400
        assert archiver.lost == reported_once
        assert node.broker.first == reported_once + 1
        await archiver.close()

    said = run(tmp_path / "data", script, log__retain_bytes=100_000)

    assert said.count("the log is over its limit") == 1


def test_a_broker_that_stops_while_its_archive_is_filled_does_not_wait_for_it(
    tmp_path: Path,
) -> None:
    async def script(app: Application) -> None:
        node = app.node
        archiver = archiver_of(app)
        await publish(node, 20_000)
        working = asyncio.ensure_future(archiver._roll(node.loop.time()))
        archiver._working = working
        working.add_done_callback(archiver._worked)
        await asyncio.sleep(0.2)
        begun_s = time.monotonic()
        await archiver.close()

        assert time.monotonic() - begun_s < 5
        assert working.done()

    run(tmp_path / "data", script)


def test_a_filling_process_that_cannot_be_killed_is_left_behind_and_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = list[int]()

    async def script(app: Application) -> None:
        node = app.node
        archiver = archiver_of(app)
        await publish(node, 10)
        working = asyncio.ensure_future(archiver._roll(node.loop.time()))
        archiver._working = working
        working.add_done_callback(archiver._worked)
        while archiver._process is None:
            await asyncio.sleep(0.01)
        process = archiver._process
        pids.append(process.pid)
        os.kill(process.pid, signal.SIGSTOP)  # as one that waits for a disk that hangs
        monkeypatch.setattr(process._process, "kill", lambda: None, raising=False)
        begun_s = time.monotonic()
        await archiver.close()
        took_s = time.monotonic() - begun_s
        os.kill(process.pid, signal.SIGKILL)
        await process._process.wait()

        assert took_s < 10

    said = run(tmp_path / "data", script)

    assert "the archive process does not stop" in said
    assert f"pid={pids[0]}" in said


def test_what_moved_is_noted_once_and_so_is_what_died_and_what_was_looked_for(
    tmp_path: Path,
) -> None:
    async def script(app: Application) -> None:
        node = app.node
        directory = Directory(node.port)
        sampler = DeliverySampler(node.port, SESSION, directory, node.observers.dead_letters)
        box = Subscription(id="", kind=Kind.BOX)
        wanted = parse_filter("topic t")
        await node.port.subscribe(internal("test"), box, wanted, None)
        await sampler.look()
        first = sampler.take()
        await publish(node, 3)
        await sampler.look()
        second = sampler.take()
        await sampler.look()
        third = sampler.take()
        letter = DeadLetter(
            id="d1",
            subscription="s1",
            sink="http://x/",
            seq=2,
            received_ns=1_000,
            given_up_ns=5_000_000,
            reason="refused",
            attempts=[Attempt(1, "answered 500", 500)],
            event=Event("e", "/s", "t", topic="a/b"),
        )
        for listener in node.observers.dead_letters:
            listener({"d1": record(letter), "gone": None})
        looked_for = Wanted(kind="producer", host="node1", filter=wanted)
        await directory.look_up(anonymous("http"), looked_for)
        fourth = sampler.take()

        assert [row["protocol"] for row in first[DELIVERIES]] == ["box"]
        assert [(row["waiting"], row["behind"]) for row in second[DELIVERIES]] == [(3, 3)]
        assert third == {}
        (dead,) = fourth[DEADLETTERS]
        assert (dead["at"], dead["seq"], dead["topic"], dead["status"]) == (5_000, 2, "a/b", 500)
        (found,) = fourth[DISCOVERIES]
        assert found["request"].startswith("kind=producer host=node1 filter=topic")
        assert found["found"] == 0
        assert not sampler

    run(tmp_path / "data", script)
    assert request_text(Wanted(local_name="load")) == "event=load"
