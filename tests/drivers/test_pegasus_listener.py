"""The door for pegasus-monitord: what is written to it is on disk, and nobody is answered."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from engine_streams import fold, shared
from tocsin.config import Settings, load
from tocsin.drivers.listeners.own_address import OwnAddresses
from tocsin.drivers.logger import Logger
from tocsin.drivers.monitor.monitor import open_monitor
from tocsin.drivers.node import Node
from tocsin.drivers.pegasus.listener import ListenerLimits, PegasusListener, listen
from tocsin.errors import BadSetting
from tocsin.store.store import Store
from tocsin.wire.blackboard.messages import Message

PATIENCE_S = 30.0
BEGAN = 1_794_811_200

Script = Callable[[PegasusListener, Node], Awaitable[None]]


def settings_of(directory: Path) -> Settings:
    return load({"http.address": "127.0.0.1:0", "log.directory": str(directory)}, {})[0]


def run(directory: Path, script: Script, limits: ListenerLimits | None = None) -> str:
    """A node with this one door, from its start to its end. Returns what it noted."""
    said = io.StringIO()

    async def main() -> None:
        settings = settings_of(directory)
        node = Node(settings, Store.open(directory), Logger(stream=said), OwnAddresses(settings))
        server = await listen(node.port, settings, "127.0.0.1:0", limits)
        try:
            await asyncio.wait_for(script(server, node), PATIENCE_S)
        finally:
            await server.close()
            await node.close()

    uvloop.run(main())
    return said.getvalue()


async def send(server: PegasusListener, *parts: bytes, pause_s: float = 0) -> None:
    """Write, close, and wait until the door has closed, too: then all is on disk."""
    reader, writer = await asyncio.open_connection(server.host, server.port)
    for part in parts:
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(pause_s)
    writer.write_eof()
    assert await reader.read() == b""  # there is no answer in this protocol
    writer.close()


async def stored(node: Node) -> list[Message]:
    page = await node.read(lambda log: log.read(0, 10_000))
    return [
        Message(
            json.loads(each.event.data or b"{}"), each.event.id, each.event.source, each.event.time
        )
        for each in page.events
    ]


def event(kind: str, **fields: object) -> bytes:
    reported = {"event": f"stampede.{kind}", "xwf_id": "u-1", "ts": BEGAN, "restart_count": 0}
    return json.dumps(reported | fields).encode()


@pytest.mark.parametrize("form", ["lines", "no line breaks", "byte by byte"])
def test_a_recorded_stream_comes_to_its_end_however_it_is_written(
    tmp_path: Path, form: str
) -> None:
    text = shared("engines", "pegasus_monitord_sample_wf_held.jsonl").read_bytes()
    if form == "no line breaks":  # as monitord's own socket has it
        text = text.replace(b"\n", b"")
    size = 997 if form == "byte by byte" else 1 << 20

    async def script(server: PegasusListener, node: Node) -> None:
        await send(server, *(text[at : at + size] for at in range(0, len(text), size)))
        (run,) = fold(await stored(node)).values()
        assert run.state == "failed"
        assert run.counts == {"succeeded": 2, "failed": 1, "planned": 5}
        assert server.counts.records == 68
        assert (server.counts.bad, server.unknown) == (0, 0)

    assert run(tmp_path, script) == ""


def test_the_old_form_is_understood_and_a_repetition_stored_once(tmp_path: Path) -> None:
    text = shared("traces", "pegasus_stampede", "montage-1.0.bp").read_bytes()

    async def script(server: PegasusListener, node: Node) -> None:
        await send(server, text)
        once = len(await stored(node))
        await send(server, text)
        assert len(await stored(node)) == once
        (run,) = fold(await stored(node)).values()
        assert run.counts == {"succeeded": 39}

    run(tmp_path, script)


def test_the_monitor_shows_the_run_as_it_went(tmp_path: Path) -> None:
    text = shared("engines", "pegasus_monitord_process_wf_failure_TZSKEW8h.jsonl").read_bytes()

    async def script(server: PegasusListener, node: Node) -> None:
        monitor = open_monitor(node.port, settings_of(tmp_path))
        assert monitor is not None
        try:
            await send(server, text)
            run_id = (await stored(node))[0].pairs["RunId"]
            shown = await monitor.ask(lambda live, now_ns: live.runs.run(run_id, now_ns))
            job = await monitor.ask(
                lambda live, now_ns: live.runs.activity(run_id, "ls_ID0000001", now_ns)
            )
        finally:
            await monitor.close()
        assert (shown.workflow, shown.state, shown.engine) == ("process", "failed", "pegasus")
        counts = shown.activities
        assert (counts.total, counts.succeeded, counts.failed, counts.planned) == (5, 1, 1, 3)
        assert {each.kind for each in shown.anomaly_list} == {"zone skew"}
        assert (job.state, job.attempt, job.exit_code, job.type) == ("failed", 2, 2, "ls")
        assert job.duration_s == 1
        assert len(job.tries) == 1

    run(tmp_path, script)


def test_what_was_stored_is_there_after_the_broker_is_gone(tmp_path: Path) -> None:
    async def write(server: PegasusListener, node: Node) -> None:
        await send(server, event("xwf.start"), event("xwf.end", status=0))

    async def look(server: PegasusListener, node: Node) -> None:
        (run,) = fold(await stored(node)).values()
        assert run.state == "completed"

    run(tmp_path, write)
    run(tmp_path, look)


def test_a_bad_line_is_noted_and_skipped_and_the_connection_goes_on(tmp_path: Path) -> None:
    bad = [b"hello\n", b"{}\n", b'{"event": "stampede.xwf.end"}\n', b"\x16\x03\x01\xff\n"]

    async def script(server: PegasusListener, node: Node) -> None:
        await send(
            server, event("xwf.start"), *bad, event("job_inst.dreaming"), event("xwf.end", status=1)
        )
        (run,) = fold(await stored(node)).values()
        assert run.state == "failed"
        assert (server.counts.bad, server.unknown) == (4, 1)

    said = run(tmp_path, script)

    assert said.count("T213") == 4


@pytest.mark.parametrize(
    "field", [b'"n": ' + b"9" * 5_000, b'"n": 1e999', b'"n": 1, "n": 2'], ids=lambda f: f[:8]
)
def test_a_record_that_not_everybody_reads_alike_is_refused_and_counted(
    tmp_path: Path, field: bytes
) -> None:
    bad = event("xwf.end", status=1)[:-1] + b", " + field + b"}\n"

    async def script(server: PegasusListener, node: Node) -> None:
        await send(server, event("xwf.start"), bad)
        (run,) = fold(await stored(node)).values()
        assert run.state == "running"
        assert server.counts.bad == 1

    said = run(tmp_path, script)

    assert said.count("T213") == 1


def test_of_many_bad_lines_a_few_are_told_and_all_are_counted(tmp_path: Path) -> None:
    async def script(server: PegasusListener, node: Node) -> None:
        await send(server, event("xwf.start") + b"hello\n" * 1_000)
        assert server.counts.bad == 1_000

    said = run(tmp_path, script)

    assert said.count("T213") == 5
    assert "bad=1000" in said


POSTED = b"\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n\r\n"


@pytest.mark.parametrize(
    "first",
    [
        b"POST / HTTP/1.1" + POSTED,
        b"POST /" + b"a" * (1 << 20) + b" HTTP/1.1" + POSTED,
        b"hello\n",
        b"{}\n",
        b"POST /event=stampede.xwf.start HTTP/1.1" + POSTED,
    ],
    ids=["a request", "a request with a long line", "a word", "an empty object", "fields in it"],
)
def test_what_does_not_begin_with_a_record_is_hung_up_on(tmp_path: Path, first: bytes) -> None:
    """As a page of another site does, that has a browser post lines to this port."""

    async def script(server: PegasusListener, node: Node) -> None:
        with contextlib.suppress(ConnectionError):
            await send(server, first + event("xwf.start") + b"\n", pause_s=0.05)
        assert await stored(node) == []
        assert server.counts.bad == 1

    said = run(tmp_path, script)

    assert said.count("T212") == 1
    assert "the first data is not a Pegasus record" in said


def test_a_line_of_ten_megabytes_is_left_out_and_the_rest_is_read(tmp_path: Path) -> None:
    long = b'{"event": "stampede.xwf.end", "x": "' + b"x" * (10 << 20) + b'"}'

    async def script(server: PegasusListener, node: Node) -> None:
        await send(server, event("xwf.start"), long, event("xwf.end", status=0), b"y" * (10 << 20))
        (run,) = fold(await stored(node)).values()
        assert run.state == "completed"
        assert server.counts.bad == 2

    assert "too_long=2" in run(tmp_path, script)


def test_who_is_one_too_many_is_turned_away_and_may_come_later(tmp_path: Path) -> None:
    async def script(server: PegasusListener, node: Node) -> None:
        held = [await asyncio.open_connection(server.host, server.port) for _ in range(2)]
        for _, writer in held:
            writer.write(event("xwf.start"))
            await writer.drain()
        while server.counts.records < 2:
            await asyncio.sleep(0.01)
        reader, writer = await asyncio.open_connection(server.host, server.port)
        with contextlib.suppress(ConnectionResetError):  # or an end, as the system puts it
            assert await reader.read() == b""
        writer.close()
        assert server.refused == 1
        for reader, writer in held:
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()
        await send(server, event("xwf.end", status=0))
        assert len(fold(await stored(node))) == 1

    said = run(tmp_path, script, ListenerLimits(connections_max=2))

    assert said.count("as many connections as pegasus.connections_max") == 1


def test_who_says_nothing_for_too_long_is_hung_up_on(tmp_path: Path) -> None:
    async def script(server: PegasusListener, node: Node) -> None:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        assert await reader.read() == b""
        writer.close()
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(b'{"event": "stampede.')
        assert await reader.read() == b""
        writer.close()

    said = run(tmp_path, script, ListenerLimits(idle_s=0.05, record_deadline_s=0.05))

    assert said.count("was incomplete") == 1


def test_no_more_is_read_while_the_disk_is_behind(tmp_path: Path) -> None:
    async def script(server: PegasusListener, node: Node) -> None:
        publish, waiting = node.broker.publish, asyncio.Event()
        asked: list[int] = []

        def slow(events: list[object], token: object) -> None:
            """The disk takes what it is given only when it is let."""
            asked.append(len(events))
            node.loop.create_task(later(events, token))

        async def later(events: list[object], token: object) -> None:
            await waiting.wait()
            publish(events, token)  # type: ignore[arg-type]
            node.schedule_run()

        node.broker.publish = slow  # type: ignore[method-assign, assignment]
        _, writer = await asyncio.open_connection(server.host, server.port)
        line = event("job_inst.main.start", job_id="j", job_inst_id=1, reason="x" * 60_000)
        writer.transport.set_write_buffer_limits(high=0)
        written = 0
        try:
            while True:
                writer.write(line)
                await asyncio.wait_for(writer.drain(), 0.5)
                written += 1
        except TimeoutError:
            pass  # what the network holds is full, and nobody reads it
        while not asked:
            await asyncio.sleep(0.01)
        assert len(asked) == 1
        assert server.counts.records <= 2
        waiting.set()
        writer.write_eof()
        while server.counts.records < written:
            await asyncio.sleep(0.01)
        writer.close()

    run(tmp_path, script)


def test_the_door_closes_while_somebody_is_connected(tmp_path: Path) -> None:
    async def script(server: PegasusListener, node: Node) -> None:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(event("xwf.start"))
        while not await stored(node):
            await asyncio.sleep(0.01)
        await server.close()
        assert await reader.read() == b""
        writer.close()

    run(tmp_path, script)


def test_an_address_that_is_taken_is_told(tmp_path: Path) -> None:
    async def script(server: PegasusListener, node: Node) -> None:
        with pytest.raises(BadSetting, match="--pegasus"):
            await listen(node.port, settings_of(tmp_path), server.address)

    run(tmp_path, script)
