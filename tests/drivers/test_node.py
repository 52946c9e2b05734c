"""What the endpoints of a running node stand on: posts, ends, things kept, what is current."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from tocsin.access.session import internal
from tocsin.broker.effects import Ended
from tocsin.config import load
from tocsin.drivers.application import Application
from tocsin.drivers.logger import Logger
from tocsin.errors import ShuttingDown
from tocsin.event.event import Event
from tocsin.event.filter import EVERYTHING
from tocsin.event.stored import Append, StateChange
from tocsin.event.subscription import Kind, SoapTerms, Subscription
from tocsin.event.topic import TopicPattern
from tocsin.store.memory import SharedEvents, memory_store
from tocsin.store.store import Store

PATIENCE_S = 10.0
TEST = internal("test")


def run(directory: Path, script: Callable[[Application], Awaitable[None]]) -> None:
    """A node without listeners, from its start to its end."""

    async def main() -> None:
        settings, _ = load({"http.address": "127.0.0.1:0", "log.directory": str(directory)}, {})
        app = Application(settings, Store.open(directory), Logger())
        try:
            await asyncio.wait_for(script(app), PATIENCE_S)
        finally:
            await app.close()

    uvloop.run(main())


async def publish(app: Application, *topics: str) -> None:
    events = [Event(f"{app.node.now_ns()}-{i}", "/s", "t", topic=t) for i, t in enumerate(topics)]
    await app.port.publish(TEST, events)


def test_the_latest_event_is_found_before_and_after_a_restart(tmp_path: Path) -> None:
    async def ask(app: Application) -> None:
        latest = await app.latest.on(TopicPattern.parse("a/*"), app.node.read)
        assert latest is not None
        assert latest.event.topic == "a/y"
        assert await app.latest.on(TopicPattern.parse("never"), app.node.read) is None

    async def first(app: Application) -> None:
        await publish(app, "a/x", "a/y", "b")
        await ask(app)

    run(tmp_path, first)
    run(tmp_path, ask)


def test_what_is_kept_is_there_after_a_restart(tmp_path: Path) -> None:
    async def keep(app: Application) -> None:
        await app.port.keep(TEST, "a", b"one")

    async def look(app: Application) -> None:
        assert app.node.broker.kept("") == {"a": b"one"}

    run(tmp_path, keep)
    run(tmp_path, look)


def test_everybody_who_listens_hears_of_an_end_and_a_bad_listener_harms_nobody(
    tmp_path: Path,
) -> None:
    received: list[Ended] = []

    def fail(_: Ended) -> None:
        raise RuntimeError("a bug in an endpoint")

    async def end(app: Application) -> None:
        app.node.observers.ended.extend([fail, received.append])
        soap = SoapTerms(spec="wse04", end_to="http://127.0.0.1:9/")
        asked = Subscription(id="", kind=Kind.BOX, soap=soap)
        view = await app.port.subscribe(TEST, asked, EVERYTHING, None)
        await app.port.unsubscribe(TEST, view.subscription.id, view.subscription.kind)
        while not received:
            await asyncio.sleep(0.001)
        assert app.node.failure is None

    run(tmp_path, end)

    assert [ended.status for ended in received] == ["SourceCancelling"]


def test_a_letter_is_answered_while_the_node_runs_and_not_after(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    async def write(app: Application) -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        assert (await app.node.http_client.post(url, b"", {})).body == b"ok"
        app.node.http_client.close()
        with pytest.raises(ShuttingDown):
            await app.node.http_client.post(url, b"", {})
        server.close()

    run(tmp_path, write)


def test_what_another_broker_appended_is_current_here_too(tmp_path: Path) -> None:
    shared = SharedEvents(threading.RLock())
    store = memory_store(shared)
    other = memory_store(shared)
    other.open_window(duplicates_window=10, clock_jump_ns=10**18)

    async def main() -> None:
        settings, _ = load({"http.address": "127.0.0.1:0", "log.directory": str(tmp_path)}, {})
        app = Application(settings, store, Logger())
        try:
            publishing = asyncio.ensure_future(publish(app, "a/x"))
            while store.last_seq == 0:  # ours is in the log, and not yet handed on
                await asyncio.sleep(0)
            theirs = Event("1", "/other", "their.type", topic="a/y")
            other.commit(Append([[theirs]], time.time_ns(), 1, 1), StateChange())
            await asyncio.wait_for(publishing, PATIENCE_S)

            latest = await app.latest.on(TopicPattern.parse("a/*"), app.node.read)
            assert latest is not None
            assert (latest.seq, latest.event.topic) == (2, "a/y")
            assert app.port.head == 2
            assert app.types.has("their.type")
            assert app.node.failure is None
        finally:
            await app.close()

    uvloop.run(main())
