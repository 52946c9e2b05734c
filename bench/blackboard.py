"""The blackboard's shape: 3 publishers, 3 stream subscribers, 100-byte payloads, own processes.

    python bench/blackboard.py [--quick] [--json FILE]

Paper 004 had 1,600 messages a second. Published means acknowledged; every subscriber gets every
event, and the slowest of the three is what counts as delivered.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import uvloop

import load
import report
from served import served

PAPER_MESSAGES_S = 1_600
TIMES_THE_PAPER = 30
PARTIES = 3
EVENT_BYTES = 330  # a structured event whose payload is 100 bytes

SHAPES = (
    ("durable, 64 in flight", "FULL", 64, 1),
    ("durable, one in flight", "FULL", 1, 1),
    ("not durable (NORMAL), 64 in flight", "NORMAL", 64, 1),
    ("not durable (NORMAL), one in flight", "NORMAL", 1, 1),
)


class Reader(asyncio.Protocol):
    """Counts the events of one stream by the empty line behind each."""

    def __init__(self) -> None:
        self.count = 0
        self._last = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(b"GET /events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")  # type: ignore[attr-defined]

    def connection_lost(self, exc: Exception | None) -> None:
        os._exit(1)

    def data_received(self, data: bytes) -> None:
        self.count += (self._last + data).count(b"\ndata: ")
        self._last = data[-6:]


async def _follow(address: str, seconds: float) -> float:
    host, _, port = address.rpartition(":")
    reader = Reader()
    await asyncio.get_running_loop().create_connection(lambda: reader, host, int(port))
    print("ready", flush=True)
    while not reader.count:
        await asyncio.sleep(0.01)
    await asyncio.sleep(min(0.5, seconds / 4))
    start, before = time.perf_counter(), reader.count
    await asyncio.sleep(seconds)
    return (reader.count - before) / (time.perf_counter() - start)


def follow(address: str, seconds: float) -> None:
    print(uvloop.run(_follow(address, seconds)), flush=True)
    os._exit(0)


def measure(synchronous: str, batch: int, under_way: int, seconds: float) -> tuple[float, float]:
    """Published and delivered events a second."""
    with served(env={"TOCSIN_LOG__SYNCHRONOUS": synchronous}) as broker:
        readers = [
            subprocess.Popen(
                [sys.executable, __file__, "--follow", broker.address, str(seconds)],
                stdout=subprocess.PIPE,
            )
            for _ in range(PARTIES)
        ]
        for reader in readers:
            assert reader.stdout is not None
            reader.stdout.readline()
        publishers = [
            load.start_load(
                broker.address,
                connections=1,
                batch=batch,
                under_way=under_way,
                seconds=seconds + 1.0,
                size=EVENT_BYTES,
            )
            for _ in range(PARTIES)
        ]
        delivered = min(float(reader.communicate(timeout=120)[0]) for reader in readers)
        published = sum(load.rate_of(publisher) for publisher in publishers)
    return published, delivered


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--follow", nargs=2, metavar=("ADDRESS", "SECONDS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.follow:
        follow(arguments.follow[0], float(arguments.follow[1]))
    seconds, rounds = (2.0, 1) if arguments.quick else (5.0, 3)
    results = []
    for name, synchronous, batch, under_way in SHAPES:
        print(name, file=sys.stderr)
        runs = [measure(synchronous, batch, under_way, seconds) for _ in range(rounds)]
        published = statistics.median(run[0] for run in runs)
        delivered = statistics.median(run[1] for run in runs)
        results.append(
            {
                "shape": name,
                "published_s": published,
                "delivered_s_each": delivered,
                "times_the_paper": published / PAPER_MESSAGES_S,
            }
        )
    report.table(
        ["shape", "published/s", "delivered/s to each", "times the paper", "target"],
        [
            [
                r["shape"],
                r["published_s"],
                r["delivered_s_each"],
                r["times_the_paper"],
                float(TIMES_THE_PAPER) if n == 0 else None,
            ]
            for n, r in enumerate(results)
        ],
    )
    if arguments.json:
        report.write("blackboard", results, Path(arguments.json))


if __name__ == "__main__":
    main()
