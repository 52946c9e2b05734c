"""What the overlay costs a broker without neighbours: with `--link` and with `--link off`.

    python bench/alone.py [--quick] [--json FILE]

Fixed work, and what it takes of the broker's processor time: events from 64 connections as those
of `ingest.py`, and POSTs to 100 webhooks by `fanout.py`. Each round gives both brokers, and one
without the link a second time, the same work in turns that change; a ratio is formed within its
round, and the median is shown. By what the same broker differs from itself is in the last column:
less cannot be seen.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvloop

import fanout
import load
import report
from served import Served, served

Measured = dict[str, list[dict[str, float]]]
CONNECTIONS = 64
LINK = "127.0.0.1:0"
# The second one is the same broker again: what differs between the two is chance.
BROKERS = {"off": "off", "off again": "off", "on": LINK}


class Sender(load.Client):
    """So many requests, one under way at a time."""

    def __init__(self, requests: load.Requests, count: int, done: asyncio.Future[None]) -> None:
        super().__init__(requests, 1, [0])
        self._left = count
        self._done = done

    def data_received(self, data: bytes) -> None:
        self._left -= 1
        if self._left:
            super().data_received(data)
        else:
            assert data.startswith(b"HTTP/1.1 202"), data
            self._done.set_result(None)


def cpu_s(pid: int) -> float:
    """Processor time of all threads of a process, to the nanosecond."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((each / "schedstat").read_text().split()[0]) for each in threads) / 1e9


async def send(address: str, batch: int, posts: int, first: int) -> None:
    loop = asyncio.get_running_loop()
    host, _, port = address.rpartition(":")
    done = [loop.create_future() for _ in range(CONNECTIONS)]
    for number, each in enumerate(done):
        requests = load.Requests(batch, first + number * batch * posts)
        await loop.create_connection(
            lambda requests=requests, each=each: Sender(requests, posts, each), host, int(port)
        )
    await asyncio.gather(*done)


def ingest(broker: Served, batch: int, posts: int, first: int) -> float:
    """Events per CPU-second."""
    before_s = cpu_s(broker.pid)
    uvloop.run(send(broker.address, batch, posts, first))
    return CONNECTIONS * batch * posts / (cpu_s(broker.pid) - before_s)


def ingested(rounds: int, posts: Mapping[int, int]) -> Measured:
    measured: Measured = {f"events, {batch} a POST": [] for batch in posts}
    with contextlib.ExitStack() as stack:
        brokers = {
            name: stack.enter_context(served("--link", link)) for name, link in BROKERS.items()
        }
        first = 0
        for number in range(-1, rounds):  # the first to get warm
            for batch, count in posts.items():
                rates = {}
                for name in turns(number):
                    rates[name] = ingest(brokers[name], batch, count, first)
                first += CONNECTIONS * batch * count
                if number >= 0:
                    measured[f"events, {batch} a POST"].append(rates)
    return measured


def fanned_out(rounds: int, events: int) -> Measured:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    sink = context.Process(target=fanout.run_sink, args=(there,), daemon=True)
    sink.start()
    port = here.recv()
    found = [
        {
            name: fanout.measure_broker(port, events, BROKERS[name]).per_cpu_second()
            for name in turns(number)
        }
        for number in range(rounds)
    ]
    sink.terminate()
    return {"POSTs to 100 webhooks": found}


def turns(number: int) -> list[str]:
    """The brokers in the order of a round."""
    names = list(BROKERS)
    first = number % len(names)
    return names[first:] + names[:first]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.quick:
        measured = ingested(1, {1: 50, 64: 4}) | fanned_out(1, 300)
    else:
        measured = ingested(9, {1: 200, 64: 12}) | fanned_out(3, 1_000)

    def median(runs: list[dict[str, float]], of: str, over: str | None = None) -> float:
        return statistics.median(run[of] / (run[over] if over else 1.0) for run in runs)

    results: dict[str, Any] = {"rounds": measured, "on_over_off": {}, "off_over_off": {}}
    rows = []
    for work, runs in measured.items():
        ratios = median(runs, "on", "off"), median(runs, "off again", "off")
        results["on_over_off"][work], results["off_over_off"][work] = ratios
        rows.append([work, median(runs, "off"), median(runs, "on"), *ratios])
    results["on_over_off_all"] = statistics.median(
        run["on"] / run["off"] for runs in measured.values() for run in runs
    )
    report.table(["a CPU-second", "--link off", "--link on", "on / off", "off / off"], rows)
    if arguments.json:
        report.write("alone", results, arguments.json)


if __name__ == "__main__":
    main()
