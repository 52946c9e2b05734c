"""Durable ingest, beside the machine's limit and beside a server that stores nothing.

    python bench/ingest.py [--quick] [--json FILE]

The limit is a bare loop that commits the same bytes to SQLite, synchronous=FULL, in batches of 64.
Each round measures everything once; a ratio is formed within its round, and the median is shown.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import apsw

import load
import report
from served import served

BATCH = 64


def bare_loop(seconds: float) -> float:
    """Rows a second that this disk takes, 64 a commit, with nothing around it."""
    before, after = load.template()
    with tempfile.TemporaryDirectory(prefix="tocsin-bench-") as directory:
        connection = apsw.Connection(str(Path(directory) / "bare.db"))
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE log (seq INTEGER PRIMARY KEY, body BLOB)")
        rows = 0
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            batch = [
                (rows + n, b"%b%012d%b" % (before, rows + n, after)) for n in range(1, BATCH + 1)
            ]
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO log VALUES (?, ?)", batch)
            connection.execute("COMMIT")
            rows += BATCH
        rate = rows / (time.perf_counter() - start)
        connection.close()
    return rate


def one_round(seconds: float) -> dict[str, float]:
    measured = {"limit": bare_loop(seconds)}
    with served() as broker:
        for name, batch in (("single", 1), ("batched", BATCH)):
            running = load.start_load(broker.address, batch=batch, seconds=seconds)
            rate, per_cpu = load.rate_and_cost(broker.pid, running, seconds)
            measured[name] = rate
            measured[f"{name}_per_cpu_s"] = per_cpu
    with load.starlette_peer() as (address, pid):
        running = load.start_load(address, seconds=seconds)
        rate, per_cpu = load.rate_and_cost(pid, running, seconds)
        measured["starlette"] = rate
        measured["starlette_per_cpu_s"] = per_cpu
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    rounds = []
    for number in range(1 if arguments.quick else 3):
        print(f"round {number + 1}", file=sys.stderr)
        rounds.append(one_round(2.0 if arguments.quick else 5.0))

    def median(of: str, over: str | None = None) -> float:
        return statistics.median(r[of] / (r[over] if over else 1.0) for r in rounds)

    results = {
        "limit_events_s": median("limit"),
        "batched_events_s": median("batched"),
        "batched_over_limit": median("batched", "limit"),
        "single_events_s": median("single"),
        "single_over_limit": median("single", "limit"),
        "single_posts_per_cpu_s": median("single_per_cpu_s"),
        "starlette_posts_per_cpu_s": median("starlette_per_cpu_s"),
        "single_over_starlette_per_cpu_s": median("single_per_cpu_s", "starlette_per_cpu_s"),
        "rounds": rounds,
    }
    report.table(
        ["what", "events/s", "ratio", "target"],
        [
            ["limit: bare SQLite loop, FULL, 64 a commit", results["limit_events_s"], 1.0, None],
            [
                "64 publishers, 64 events a POST",
                results["batched_events_s"],
                results["batched_over_limit"],
                0.5,
            ],
            [
                "64 publishers, one event a POST",
                results["single_events_s"],
                results["single_over_limit"],
                None,
            ],
        ],
    )
    print()
    report.table(
        ["single-event POSTs per CPU-second", "POSTs", "ratio", "target"],
        [
            [
                "uvicorn + Starlette, 202, stores nothing",
                results["starlette_posts_per_cpu_s"],
                1.0,
                None,
            ],
            [
                "tocsin, on disk",
                results["single_posts_per_cpu_s"],
                results["single_over_starlette_per_cpu_s"],
                1.5,
            ],
        ],
    )
    if arguments.json:
        report.write("ingest", results, arguments.json)


if __name__ == "__main__":
    main()
