"""The blackboard end to end: 3 publishers, 3 subscribers, 100-byte payloads, own processes.

    python bench/blackboard.py [--quick] [--json FILE]

Paper 004, section 5.3, had 1,600 messages a second. Published means acknowledged; every subscriber
gets every message, and the slowest of the three is what counts as delivered. Messages go in by
POST /blackboard/messages and out by /blackboard/stream with the pairs that were asked for: one pair
of 100 bytes as in the paper, or a message about a run, which the monitor folds besides; `events` is
the same with CloudEvents and /events/stream.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import uvloop

import load
import report
from served import served

PAPER_MESSAGES_S = 1_600
TIMES_THE_PAPER = 30
PARTIES = 3
PAYLOAD_BYTES = 100
EVENT_BYTES = 330  # a structured event whose payload is 100 bytes
NOW = "2026-11-16T07:00:00.000Z"
PAIRS = {
    "messages": {"EventData": "x" * PAYLOAD_BYTES},
    "runs": {"RunId": "bench", "UserEvent": NOW, "EventData": "x" * PAYLOAD_BYTES},
}
STREAMS = {
    **{door: f"/blackboard/stream?concepts={','.join(pairs)}" for door, pairs in PAIRS.items()},
    "events": "/events/stream",
}


class Shape(NamedTuple):
    """One way to run it; `in_flight` messages wait for their answer, `batch` in each request."""

    name: str
    door: str
    synchronous: str
    batch: int
    under_way: int


SHAPES = (
    Shape("messages, durable, 64 in flight", "messages", "FULL", 64, 1),
    Shape("messages, durable, one in flight", "messages", "FULL", 1, 1),
    Shape("messages, not durable (NORMAL), 64 in flight", "messages", "NORMAL", 64, 1),
    Shape("about runs, durable, 64 in flight", "runs", "FULL", 64, 1),
    Shape("events, durable, 64 in flight", "events", "FULL", 64, 1),
    Shape("events, durable, one in flight", "events", "FULL", 1, 1),
    Shape("events, not durable (NORMAL), 64 in flight", "events", "NORMAL", 64, 1),
    Shape("events, not durable (NORMAL), one in flight", "events", "NORMAL", 1, 1),
)


class MessageRequests:
    """POSTs of so many blackboard messages each, with ids that go on from `first`."""

    def __init__(self, pairs: dict[str, str], batch: int, first: int, source: str) -> None:
        self.batch = batch
        self._next = first
        message = {"id": "@", "source": source, "time": NOW, "pairs": pairs}
        text = json.dumps(message, separators=(",", ":")).encode()
        self._before, self._after = text.split(b"@")
        one = len(text) - 1 + load.ID_DIGITS
        length = one if batch == 1 else batch * (one + 1) + 1
        self._head = (
            b"POST /blackboard/messages HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % length
        )

    def make(self) -> bytes:
        first = self._next
        self._next += self.batch
        messages = b",".join(
            b"%b%012d%b" % (self._before, number, self._after)
            for number in range(first, first + self.batch)
        )
        return self._head + (messages if self.batch == 1 else b"[%b]" % messages)


class Reader(asyncio.Protocol):
    """Counts the events of one stream by the line that begins each."""

    def __init__(self, target: str) -> None:
        self.count = 0
        self._target = target.encode()
        self._last = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n" % self._target)  # type: ignore[attr-defined]

    def connection_lost(self, exc: Exception | None) -> None:
        os._exit(1)

    def data_received(self, data: bytes) -> None:
        if not self.count and data.startswith(b"HTTP/1.1 4"):
            raise SystemExit(data.decode())
        self.count += (self._last + data).count(b"\ndata: ")
        self._last = data[-6:]


async def _follow(address: str, door: str, seconds: float) -> float:
    host, _, port = address.rpartition(":")
    reader = Reader(STREAMS[door])
    await asyncio.get_running_loop().create_connection(lambda: reader, host, int(port))
    print("ready", flush=True)
    while not reader.count:
        await asyncio.sleep(0.01)
    await asyncio.sleep(min(0.5, seconds / 4))
    start, before = time.perf_counter(), reader.count
    await asyncio.sleep(seconds)
    return (reader.count - before) / (time.perf_counter() - start)


async def _publish(address: str, door: str, batch: int, under_way: int, seconds: float) -> float:
    host, _, port = address.rpartition(":")
    counts = [0]
    first, source = time.time_ns() // 1_000 % 10**9, f"/bench/{os.getpid()}"
    requests = MessageRequests(PAIRS[door], batch, first, source)
    await asyncio.get_running_loop().create_connection(
        lambda: load.Client(requests, under_way, counts),  # type: ignore[arg-type]
        host,
        int(port),
    )
    await asyncio.sleep(min(0.5, seconds / 4))
    start, before = time.perf_counter(), counts[0]
    await asyncio.sleep(seconds)
    return (counts[0] - before) / (time.perf_counter() - start)


def start_publisher(address: str, shape: Shape, seconds: float) -> subprocess.Popen[bytes]:
    """A publisher in a process of its own, that prints its rate at the end."""
    if shape.door == "events":
        return load.start_load(
            address,
            connections=1,
            batch=shape.batch,
            under_way=shape.under_way,
            seconds=seconds,
            size=EVENT_BYTES,
        )
    return _start("--publish", address, shape.door, shape.batch, shape.under_way, seconds)


def _start(*words: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, __file__, *map(str, words)], stdout=subprocess.PIPE)


def measure(shape: Shape, seconds: float) -> tuple[float, float, float]:
    """Published and delivered a second, and the CPU time of the broker for each, in us."""
    with served(env={"TOCSIN_LOG__SYNCHRONOUS": shape.synchronous}) as broker:
        readers = [_start("--follow", broker.address, shape.door, seconds) for _ in range(PARTIES)]
        for reader in readers:
            assert reader.stdout is not None
            reader.stdout.readline()
        cpu_before = load.cpu_s(broker.pid)
        publishers = [start_publisher(broker.address, shape, seconds + 1.0) for _ in range(PARTIES)]
        delivered = min(float(reader.communicate(timeout=120)[0]) for reader in readers)
        published = sum(load.rate_of(publisher) for publisher in publishers)
        cpu_s = load.cpu_s(broker.pid) - cpu_before
        stored = broker.publish({})["last"]  # the log counts, from 1
    return published, delivered, cpu_s / stored * 1e6


def _alone(arguments: argparse.Namespace) -> None:
    """Be one of the parties of a measurement: print its rate and end."""
    if arguments.follow:
        address, door, seconds = arguments.follow
        rate = uvloop.run(_follow(address, door, float(seconds)))
    else:
        address, door, batch, under_way, seconds = arguments.publish
        rate = uvloop.run(_publish(address, door, int(batch), int(under_way), float(seconds)))
    print(rate, flush=True)
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", metavar="WORD", default="", help="shapes whose name has it")
    parser.add_argument("--follow", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--publish", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.follow or arguments.publish:
        _alone(arguments)
    seconds, rounds = (2.0, 1) if arguments.quick else (5.0, 3)
    results = []
    for shape in SHAPES:
        if arguments.only not in shape.name:
            continue
        print(shape.name, file=sys.stderr)
        runs = [measure(shape, seconds) for _ in range(rounds)]
        published = statistics.median(run[0] for run in runs)
        results.append(
            {
                "shape": shape.name,
                "published_s": published,
                "delivered_s_each": statistics.median(run[1] for run in runs),
                "broker_cpu_us": statistics.median(run[2] for run in runs),
                "times_the_paper": published / PAPER_MESSAGES_S,
            }
        )
    report.table(
        ["shape", "published/s", "delivered/s to each", "broker CPU us", "x paper", "target"],
        [
            [*r.values(), float(TIMES_THE_PAPER) if r["shape"] == SHAPES[0].name else None]
            for r in results
        ],
    )
    if arguments.json:
        report.write("blackboard", results, Path(arguments.json))


if __name__ == "__main__":
    main()
