"""What the overlay costs a broker without neighbours: with `--link` and with `--link off`.

    python bench/alone.py [--quick] [--json FILE]

Ingest is the load of `ingest.py`, fan-out that of `fanout.py` to 100 webhooks. Counted are events
and POSTs per second of the broker's processor time. Each round measures both brokers and the one
without a second time, in turns that change; a ratio is formed within its round, and the median is
shown. By what the same broker differs from itself is in the last column: less cannot be seen.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
from collections.abc import Callable
from typing import Any

import fanout
import load
import report
from served import served

LINK = "127.0.0.1:0"
# The second one is the same broker again: what differs between the two is chance.
BROKERS = {"off": "off", "off again": "off", "on": LINK}


def ingest(link: str, batch: int, seconds: float) -> float:
    """Events per CPU-second."""
    with served("--link", link) as broker:
        running = load.start_load(broker.address, batch=batch, seconds=seconds)
        _, per_cpu_s = load.rate_and_cost(broker.pid, running, seconds)
    return per_cpu_s


def measure(rounds: int, seconds: float, events: int) -> dict[str, list[dict[str, float]]]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    sink = context.Process(target=fanout.run_sink, args=(there,), daemon=True)
    sink.start()
    port = here.recv()
    works: dict[str, Callable[[str], float]] = {
        "events, one a POST": lambda link: ingest(link, 1, seconds),
        "events, 64 a POST": lambda link: ingest(link, 64, seconds),
        "POSTs to 100 webhooks": lambda link: fanout.measure_broker(
            port, events, link
        ).per_cpu_second(),
    }
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in works}
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        names = list(BROKERS) if number % 2 else list(reversed(BROKERS))
        for work, rate in works.items():
            measured[work].append({name: rate(BROKERS[name]) for name in names})
    sink.terminate()
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    measured = measure(*((1, 1.5, 300) if arguments.quick else (3, 3.0, 1_000)))

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
