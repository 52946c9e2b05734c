"""The time of a dynamic request between 24 broker processes over TCP, beside one central broker.

    python bench/discovery_tcp.py [--quick] [--json FILE]

20 brokers with clients under a path of 4 routers, as in the simulator, and the same 1,000 resources
at all of them and at one central broker. A client asks one request at a time over HTTP: each of the
central broker and of a broker of the overlay with `similarity` off (Normal), then all of them again
with it on (Similarity). All must find as many. Beside the times stand the milliseconds of the
processor that all brokers took for a request, and how many shared an earlier answer. Archive and
monitor are off.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import load  # noqa: F401  # makes tests/served.py known
import report
from served import Served, folder
from tocsin.sim.discovery.boxes import Bounds
from tocsin.sim.discovery.distribution import balanced, uniform_in_space
from tocsin.sim.discovery.figures import QUICK
from tocsin.sim.discovery.topology import path_topology
from tocsin.sim.discovery.workload import draw_matching, draw_pools

CENTRAL = "central"
LIGHT = {"TOCSIN_ARCHIVE__ENABLED": "false", "TOCSIN_MONITOR__ENABLED": "false"}
WAIT_S = 120.0
WARM = 20
NORMAL, SIMILARITY = "Normal", "Similarity"


@dataclass
class Broker:
    """A broker process, and one connection to it."""

    served: Served
    connection: http.client.HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        host, _, port = self.served.address.rpartition(":")
        self.connection = http.client.HTTPConnection(host, int(port), timeout=60)
        self.connection.connect()

    def call(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body)
        self.connection.request(method, path, data, {"content-type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        assert answer.status < 300, text
        return json.loads(text)


@contextlib.contextmanager
def overlay() -> Iterator[dict[str, Broker]]:
    """The brokers by name, once each knows of all others; and the central one."""
    topology = path_topology()
    with folder() as directory:
        started: dict[str, Served] = {}
        try:
            for name in (CENTRAL, *topology.routers, *topology.edges):
                peers = [one for one, other in topology.links if other == name]
                flags = [word for peer in peers for word in ("--peer", started[peer].link)]
                started[name] = Served(directory / name, *flags, env=LIGHT)
            brokers = {name: Broker(each) for name, each in started.items()}
            others = len(topology.brokers) - 1
            for name in topology.brokers:
                _until(brokers[name], "/overlay", lambda known: len(known["brokers"]) == others)
            yield brokers
        finally:
            for each in started.values():
                each.kill()


def _until(broker: Broker, path: str, holds: Any) -> None:
    until_s = time.monotonic() + WAIT_S
    while not holds(broker.call("GET", path)):
        assert time.monotonic() < until_s, f"{path}: {broker.served.said()[-2000:]}"
        time.sleep(0.1)


def conditions(bounds: Bounds) -> str:
    return ",".join(
        f"[{tag},<=,{high}]" if low < 0 else f"[{tag},>=,{low}]"
        for tag, (low, high) in bounds.items()
    )


def register(brokers: dict[str, Broker], resources: Sequence[Any]) -> None:
    edges = path_topology().edges
    for resource, place in zip(resources, balanced(len(resources), edges), strict=True):
        body = {
            "id": resource.name,
            "model": "dynamic",
            "advertisement": conditions(resource.advertised),
            "attributes": resource.values,
            "lease": None,
        }
        for name in (CENTRAL, place):
            brokers[name].call("POST", "/resources", body)


def rows_of(known: dict[str, Any]) -> int:
    """How many advertisements of resources a broker has."""
    rows: int = known["discovery"]["advertisements"]["rows"]
    return rows


@dataclass(frozen=True)
class Measured:
    """What one request found and took."""

    found: int
    shared: bool
    wall_ms: float
    cpu_ms: float


def ask(brokers: dict[str, Broker], name: str, bounds: Bounds) -> Measured:
    pids = [brokers[CENTRAL].served.pid]
    if name != CENTRAL:
        pids = [each.served.pid for key, each in brokers.items() if key != CENTRAL]
    body = {"request": conditions(bounds), "model": "dynamic"}
    before_s, begin = sum(map(busy_s, pids)), time.perf_counter()
    answer = brokers[name].call("POST", "/discoveries", body)
    wall_ms = 1e3 * (time.perf_counter() - begin)
    assert answer["incomplete"] is None, answer["incomplete"]
    cpu_ms = 1e3 * (sum(map(busy_s, pids)) - before_s)
    return Measured(len(answer["resources"]), answer["shared"], wall_ms, cpu_ms)


def switch(brokers: dict[str, Broker], *, similarity: bool) -> None:
    """The central broker never shares: it would only save itself a look-up."""
    for name, broker in brokers.items():
        wanted = similarity and name != CENTRAL
        broker.call("PATCH", "/overlay/options", {"similarity": wanted})


def busy_s(pid: int) -> float:
    """Processor time of a process's first thread, to the nanosecond: the loop runs there."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def measure(
    brokers: dict[str, Broker], resources: Sequence[Any], matches: int, count: int
) -> dict[str, Any]:
    dice = Random(f"tcp {matches}")
    requests = draw_matching(dice, resources, matches, count)
    places = uniform_in_space(count, path_topology().edges, dice)
    measured: dict[str, list[Measured]] = {CENTRAL: [], NORMAL: [], SIMILARITY: []}
    switch(brokers, similarity=False)
    for bounds, place in zip(requests, places, strict=True):
        measured[CENTRAL].append(ask(brokers, CENTRAL, bounds))
        measured[NORMAL].append(ask(brokers, place, bounds))
    switch(brokers, similarity=True)
    for bounds, place in zip(requests, places, strict=True):
        measured[SIMILARITY].append(ask(brokers, place, bounds))
    found = {way: [each.found for each in asked] for way, asked in measured.items()}
    assert found[CENTRAL] == found[NORMAL] == found[SIMILARITY]
    assert not any(each.shared for each in measured[NORMAL])
    row: dict[str, Any] = {"found": matches}
    for way, asked in measured.items():
        times = sorted(each.wall_ms for each in asked)
        row[f"{way}_p50_ms"] = times[len(times) // 2]
        row[f"{way}_p99_ms"] = times[len(times) * 99 // 100]
        row[f"{way}_cpu_ms"] = statistics.mean(each.cpu_ms for each in asked)
    row["shared"] = statistics.mean(each.shared for each in measured[SIMILARITY])
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    resources = draw_pools(Random(1), requests=QUICK.requests).resources
    with overlay() as brokers:
        print(f"{len(brokers)} brokers, registering", file=sys.stderr)
        register(brokers, resources)
        for name in path_topology().brokers:
            _until(brokers[name], "/overlay", lambda known: rows_of(known) == len(resources))
        measure(brokers, resources, 1, WARM)
        rows = []
        for matches in (1, 30, 300) if arguments.quick else (1, 10, 30, 100, 300):
            rows.append(measure(brokers, resources, matches, 30 if arguments.quick else 100))
            print(rows[-1], file=sys.stderr)
    report.table(list(rows[0]), [list(row.values()) for row in rows])
    if arguments.json:
        report.write("discovery_tcp", rows, arguments.json)


if __name__ == "__main__":
    main()
