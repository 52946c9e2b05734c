"""How many webhooks one core serves: each event goes to 100 sinks, one request under way to each.

    python bench/fanout.py [--quick] [--json FILE]

Four senders post the same bytes of payload to the same cheap sink, in turns, each in a process of
its own: a bare uvloop protocol that writes one prepared request over and over, aiohttp's client,
our pusher driven by its callbacks, and the whole broker (published over HTTP, stored, matched,
pushed, cursors saved). Counted are POSTs per second of the sender's processor time, user and
system: that says what one core can do, whatever else the machine is doing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

import aiohttp
import httptools
import uvloop

import report
from tocsin.broker.delivery.address import parse_address
from tocsin.broker.delivery.outcome import Answered, Outcome
from tocsin.broker.delivery.trust import SinkRules
from tocsin.broker.effects import Push
from tocsin.config import load
from tocsin.drivers.push.pusher import Pusher, PushOptions
from tocsin.drivers.push.request_template import RequestCache, request, request_template
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Kind, Subscription

SINKS = 100
AT_A_TIME = 1_000
DATA_BYTES = 1_000
WARM_UP = 10  # requests to each sink before the clock starts
TARGET_AIOHTTP = 8.0
TARGET_BARE = 0.4


@dataclass(frozen=True)
class Sent:
    """What one run took of the sending process."""

    posts: int
    wall_s: float
    cpu_s: float

    def per_cpu_second(self) -> float:
        return self.posts / self.cpu_s


def stored(seq: int) -> Stored:
    data = json.dumps({"load": seq % 97, "note": "x" * (DATA_BYTES - 24)}).encode()
    return Stored(
        seq,
        0,
        Event(
            id=f"0194f3a2-{seq:012d}",
            source="urn:lab:host-7",
            type="org.example.sample",
            topic="weather/ohio/radar",
            time="2026-08-01T12:00:00Z",
            datacontenttype="application/json",
            data=data,
        ),
    )


# The sink: counts requests and answers 204. It reads no more of them than it must.


class CheapSink(asyncio.Protocol):
    count = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.waiting = b""

    def data_received(self, data: bytes) -> None:
        if self.waiting:
            data = self.waiting + data
        end = data.find(b"\r\n\r\n") + 4
        if end == 3:
            self.waiting = data
            return
        if data.startswith(b"GET"):
            answer = b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n%012d" % CheapSink.count
            self.transport.write(answer)  # type: ignore[attr-defined]
            return
        at = data.lower().find(b"content-length:", 0, end) + 15
        if len(data) < end + int(data[at : data.find(b"\r", at)]):
            self.waiting = data
            return
        self.waiting = b""
        CheapSink.count += 1
        self.transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")  # type: ignore[attr-defined]


def run_sink(ready: Pipe) -> None:
    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(CheapSink, "127.0.0.1", 0, backlog=1024)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(serve())


# The senders. Each runs in a process of its own and tells what it took.


class BareClient(asyncio.Protocol):
    """As little as a client can do: one prepared request, an answer parsed, the next one."""

    def __init__(self, message: bytes, count: int, finished: Callable[[], None]) -> None:
        self.message = message
        self.left = count
        self.finished = finished
        self.parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.transport.write(self.message)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_message_complete(self) -> None:
        self.left -= 1
        if self.left:
            self.transport.write(self.message)  # type: ignore[attr-defined]
        else:
            self.finished()


async def send_bare(port: int, each: int) -> None:
    sink = f"http://127.0.0.1:{port}/hook/1"
    await send_one(port, each, Subscription(id="s1", kind=Kind.PUSH, sink=sink), stored(1))


async def send_one(port: int, each: int, subscription: Subscription, event: Stored) -> None:
    """The same request to all sinks, over and over."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    left = SINKS
    head = request_template(parse_address(subscription.sink), subscription)
    message, _ = request(head, [event], RequestCache(), time.time)

    def finished() -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    for _ in range(SINKS):
        await loop.create_connection(lambda: BareClient(message, each, finished), "127.0.0.1", port)
    await done.wait()


async def send_aiohttp(port: int, each: int) -> None:
    event = stored(1).event
    headers = {
        "ce-specversion": "1.0",
        "ce-id": event.id,
        "ce-source": event.source,
        "ce-type": event.type,
        "ce-topic": event.topic,
        "ce-time": event.time or "",
        "content-type": "application/json",
    }

    async def sender(session: aiohttp.ClientSession, number: int) -> None:
        for _ in range(each):
            url = f"http://127.0.0.1:{port}/hook/{number}"
            async with session.post(url, data=event.data, headers=headers) as answer:
                assert answer.status == 204
                await answer.read()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(sender(session, number) for number in range(SINKS)))


async def send_pusher(port: int, each: int) -> None:
    loop = asyncio.get_running_loop()
    pusher = Pusher(loop, PushOptions(SinkRules(allow_private=True)), lambda *_, **__: None)
    sinks = [f"http://127.0.0.1:{port}/hook/{number}" for number in range(SINKS)]
    wanting = [
        Subscription(id=f"s{number}", kind=Kind.PUSH, sink=sink)
        for number, sink in enumerate(sinks)
    ]
    events = [stored(seq) for seq in range(each)]  # rendered by the first lane that comes to one
    sent = [0] * SINKS
    left = SINKS
    finished = asyncio.Event()

    def done(lane: int, outcome: Outcome) -> None:
        nonlocal left
        assert isinstance(outcome, Answered)
        sent[lane] += 1
        if sent[lane] < each:
            send(lane)
        else:
            left -= 1
            if not left:
                finished.set()

    def send(lane: int) -> None:
        pusher.send(Push(lane, sinks[lane], wanting[lane], [events[sent[lane]]], 30.0), done)

    for lane in range(SINKS):
        send(lane)
    await finished.wait()
    pusher.close()


Send = Callable[[int, int], Coroutine[None, None, None]]
SENDERS = {"bare": send_bare, "aiohttp": send_aiohttp, "pusher": send_pusher}


def run_sender(send: Send, port: int, each: int, result: Pipe) -> None:
    async def measured() -> Sent:
        await send(port, WARM_UP)
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        await send(port, each)
        return Sent(SINKS * each, time.perf_counter() - wall_s, time.process_time() - cpu_s)

    result.send(uvloop.run(measured()))


# The whole broker: a process that is told of nothing but HTTP.


def run_broker(directory: str, ready: Pipe, link: str = "off") -> None:
    from tocsin.drivers.serve import run

    flags = {
        "http.address": "127.0.0.1:0",
        "frames.address": "off",
        "soap_tcp.address": "off",
        "overlay.address": link,
        "log.directory": directory,
    }
    settings, _ = load(flags, {})
    run(settings, ready.send)


def post(url: str, body: object, media_type: str = "application/json") -> None:
    asked = urllib.request.Request(
        url, json.dumps(body).encode(), {"content-type": media_type}, method="POST"
    )
    with urllib.request.urlopen(asked, timeout=60) as answer:
        answer.read()


def publish(broker: str, first: int, count: int) -> None:
    events = [stored(seq).event for seq in range(first, first + count)]
    for start in range(0, count, 500):
        batch = [
            {
                "specversion": "1.0",
                "id": event.id,
                "source": event.source,
                "type": event.type,
                "topic": event.topic,
                "time": event.time,
                "data": json.loads(event.data or b"null"),
            }
            for event in events[start : start + 500]
        ]
        post(f"{broker}/events", batch, "application/cloudevents-batch+json")


def sink_count(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/count", timeout=60) as answer:
        return int(answer.read())


def wait_for(port: int, count: int, limit_s: float = 300.0) -> None:
    until = time.monotonic() + limit_s
    while sink_count(port) < count:
        assert time.monotonic() < until, "the deliveries did not arrive"
        time.sleep(0.02)


def cpu_of(pid: int) -> float:
    """User and system time of a process, all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_broker(port: int, each: int, link: str = "off") -> Sent:
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as directory:
        here, there = context.Pipe()
        process = context.Process(target=run_broker, args=(directory, there, link))
        process.start()
        there.close()  # so that a broker that cannot start is noticed
        try:
            broker = f"http://{here.recv()['http']}"
            for number in range(SINKS):
                sink = f"http://127.0.0.1:{port}/hook/{number}"
                post(f"{broker}/subscriptions", {"sink": sink})
            before = sink_count(port)
            publish(broker, 1, WARM_UP)
            wait_for(port, before + SINKS * WARM_UP)
            assert process.pid is not None
            wall_s, cpu_s = time.perf_counter(), cpu_of(process.pid)
            # As many at a time as wait in memory for a sink: what is measured is the fan-out, not
            # the reading back of a backlog.
            for done in range(0, each, AT_A_TIME):
                publish(broker, 1 + WARM_UP + done, min(AT_A_TIME, each - done))
                wait_for(port, before + SINKS * (WARM_UP + min(done + AT_A_TIME, each)))
            return Sent(SINKS * each, time.perf_counter() - wall_s, cpu_of(process.pid) - cpu_s)
        finally:
            process.terminate()
            process.join()


def measure(name: str, port: int, each: int) -> Sent:
    return (
        measure_broker(port, each)
        if name == "broker"
        else measure_sender(SENDERS[name], port, each)
    )


def measure_sender(send: Send, port: int, each: int) -> Sent:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=run_sender, args=(send, port, each, there))
    process.start()
    sent: Sent = here.recv()
    process.join()
    return sent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--json", type=Path, help="keep the figures in this file")
    parser.add_argument("--only", nargs="+", choices=[*SENDERS, "broker"], default=None)
    arguments = parser.parse_args()
    rounds, events = (1, 300) if arguments.quick else (5, 2_000)
    # aiohttp takes ten times as long, and is as steady with a fifth of the requests.
    each = {name: events // 5 if name == "aiohttp" else events for name in [*SENDERS, "broker"]}
    names = arguments.only or list(each)

    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    sink = context.Process(target=run_sink, args=(there,), daemon=True)
    sink.start()
    port = here.recv()
    results: dict[str, list[Sent]] = {name: [] for name in names}
    for number in range(rounds):
        for name in names:
            print(f"round {number + 1} of {rounds}: {name}", file=sys.stderr)
            results[name].append(measure(name, port, each[name]))
    sink.terminate()
    print_results(results, arguments.json)


def print_results(results: dict[str, list[Sent]], json_path: Path | None) -> None:
    """Ratios are taken within a round, where both met the same machine; then their median."""

    def ratio(name: str, other: str) -> float | None:
        if other not in results:
            return None
        pairs = zip(results[name], results[other], strict=True)
        return statistics.median(a.per_cpu_second() / b.per_cpu_second() for a, b in pairs)

    rows = [
        [
            name,
            statistics.median(run.per_cpu_second() for run in runs),
            statistics.median(run.posts / run.wall_s for run in runs),
            statistics.median(run.cpu_s / run.posts * 1e6 for run in runs),
            ratio(name, "aiohttp"),
            ratio(name, "bare"),
        ]
        for name, runs in results.items()
    ]
    report.table(["sender", "POST/cpu-s", "POST/s", "us/POST", "x aiohttp", "x bare"], rows)
    print(f"wanted of the broker: {TARGET_AIOHTTP} x aiohttp, {TARGET_BARE} x bare")
    if json_path is not None:
        figures = {
            "runs": {name: [asdict(run) for run in runs] for name, runs in results.items()},
            "broker_over_aiohttp": ratio("broker", "aiohttp") if "broker" in results else None,
            "broker_over_bare": ratio("broker", "bare") if "broker" in results else None,
        }
        report.write("fanout", figures, json_path)


if __name__ == "__main__":
    main()
