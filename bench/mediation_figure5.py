"""Paper 000, figure 5: the mean time from publishing to receipt over the number of consumers."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import re
import statistics
import sys
import time
import urllib.request
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import uvloop

import report
from mediation_load import SPECIFICATIONS, WARM_UP, broker, notify, soap, subscribe

PAPER_BYTES = 587


class TimedConsumer(asyncio.Protocol):
    """Says how long ago what it receives was published."""

    delays_ns: list[int] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.waiting = b""

    def data_received(self, data: bytes) -> None:
        data = self.waiting + data
        end = data.find(b"\r\n\r\n") + 4
        if end == 3:
            self.waiting = data
            return
        if data.startswith(b"GET"):
            delays, TimedConsumer.delays_ns = TimedConsumer.delays_ns, []
            body = json.dumps(delays).encode()
            answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
            self.transport.write(answer)  # type: ignore[attr-defined]
            return
        length = re.search(rb"content-length: (\d+)", data[:end], re.I)
        assert length is not None
        if len(data) < end + int(length[1]):
            self.waiting = data
            return
        self.waiting = b""
        published = re.search(rb"<t0>(\d+)</t0>", data)
        assert published is not None
        TimedConsumer.delays_ns.append(time.time_ns() - int(published[1]))
        self.transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")  # type: ignore[attr-defined]


def run_consumers(ready: Pipe) -> None:
    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(TimedConsumer, "127.0.0.1", 0, backlog=1024)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(serve())


def timed_message(number: int) -> bytes:
    start = f'<m xmlns="urn:x"><t0>{time.time_ns()}</t0><pad>'
    end = "</pad></m>"
    return notify(number, start + "x" * (PAPER_BYTES - len(start) - len(end)) + end)


def delays(port: int, count: int) -> list[int]:
    found: list[int] = []
    until = time.monotonic() + 60
    while len(found) < count:
        assert time.monotonic() < until, "the deliveries did not arrive"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
            found += json.loads(answer.read())
        time.sleep(0.002)
    return found


def figure5(counts: list[int], each: int) -> dict[str, dict[int, float]]:
    """Mean milliseconds from publishing to receipt, by specification and number of consumers."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    consumers = context.Process(target=run_consumers, args=(there,), daemon=True)
    consumers.start()
    port = here.recv()
    means: dict[str, dict[int, float]] = {name: {} for name in SPECIFICATIONS}
    for specification in SPECIFICATIONS:
        for count in counts:
            print(f"figure 5: {specification}, {count} consumers", file=sys.stderr)
            with broker() as (url, _):
                for number in range(count):
                    subscribe(url, specification, f"http://127.0.0.1:{port}/{number}")
                for number in range(WARM_UP):
                    soap(url, timed_message(number))
                    delays(port, count)
                took: list[int] = []
                for number in range(each):
                    soap(url, timed_message(WARM_UP + number))
                    took += delays(port, count)
            means[specification][count] = statistics.mean(took) / 1e6
    consumers.terminate()
    return means


def straightness(points: dict[int, float]) -> float:
    """How much of the growth a straight line explains (R squared)."""
    if len(points) < 3:
        return 1.0
    return statistics.correlation(list(points), list(points.values())) ** 2


def plot(means: dict[str, dict[int, float]], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(6, 4))
    titles = {"wse": "WS-Eventing", "wsn": "WS-Notification"}
    for name, points in means.items():
        axes.plot(list(points), list(points.values()), marker="o", label=titles[name])
    axes.set_xlabel("consumers")
    axes.set_ylabel("mean time from publish to receipt, ms")
    axes.set_title(f"Paper 000, figure 5: a message of {PAPER_BYTES} bytes")
    axes.set_xlim(0)
    axes.set_ylim(0)
    axes.legend()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def print_figure5(means: dict[str, dict[int, float]], path: Path | None) -> dict[str, object]:
    rows = [[count, *(means[name][count] for name in SPECIFICATIONS)] for count in means["wse"]]
    report.table(["consumers", "WS-Eventing, ms", "WS-Notification, ms"], rows)
    lines = {name: straightness(points) for name, points in means.items()}
    print("a straight line explains", {name: f"{value:.3f}" for name, value in lines.items()})
    if path is not None:
        plot(means, path)
    return {"means_ms": means, "straightness": lines}
