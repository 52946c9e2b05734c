"""How fast the log takes and gives events, beside SQLite's bare loop on the same disk.

    python bench/store.py --rows 16000 --rounds 11 --json

The bare loop inserts rows of the same size that need no encoding and no checksum, with executemany
and one commit per batch, `synchronous=FULL`. Both take turns, so that they meet the same machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import apsw

from tocsin.event.event import Event
from tocsin.event.stored import Batch, Stored
from tocsin.store.record import encode_event
from tocsin.store.store import Store
from tocsin.store.vfs import SimDisk

RECEIVED_NS = 1_700_000_000_000_000_000
DATA_BYTES = 500  # with its attributes, about 600 bytes for an event


@dataclass(frozen=True)
class Taken:
    """How long some rows took: by the clock, and of this process's processor time."""

    rows: int
    wall_s: float
    cpu_s: float

    def per_second(self) -> float:
        return self.rows / self.wall_s

    def cpu_us_per_row(self) -> float:
        return self.cpu_s / self.rows * 1e6


def timed(rows: int, work: Callable[[], None]) -> Taken:
    wall_s, cpu_s = time.perf_counter(), time.thread_time()
    work()
    return Taken(rows, time.perf_counter() - wall_s, time.thread_time() - cpu_s)


def make_event(number: int) -> Event:
    return Event(
        f"0194f3a2-{number:012d}",
        "urn:lab:host-7",
        "org.example.sample",
        topic="weather/ohio/radar",
        datacontenttype="application/octet-stream",
        data=bytes(number % 256 for _ in range(DATA_BYTES)),
    )


def bare_loop(directory: Path, rows: int, batch_rows: int) -> Taken:
    connection = apsw.Connection(str(directory / "bare.sqlite"))
    connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE t (seq INTEGER PRIMARY KEY, ns INTEGER, record BLOB)")
    record = encode_event(make_event(1))
    insert = "INSERT INTO t VALUES (?, ?, ?)"

    def work() -> None:
        for start in range(0, rows, batch_rows):
            connection.execute("BEGIN IMMEDIATE")
            numbers = range(start + 1, start + batch_rows + 1)
            connection.executemany(insert, [(seq, RECEIVED_NS, record) for seq in numbers])
            connection.execute("COMMIT")

    taken = timed(rows, work)
    connection.close()
    return taken


def the_store(directory: Path, rows: int, batch_rows: int) -> Taken:
    store = Store.open(directory)
    events = [make_event(number) for number in range(batch_rows)]

    def work() -> None:
        for start in range(0, rows, batch_rows):
            stored = [Stored(start + at, RECEIVED_NS, event) for at, event in enumerate(events, 1)]
            store.write(Batch(stored))

    taken = timed(rows, work)
    store.close()
    return taken


def reading(directory: Path, page_rows: int = 500) -> Taken:
    store = Store.open(directory)
    reader = store.reader()

    def work() -> None:
        after = 0
        while after < store.last_seq:
            after = reader.read(after, page_rows).next

    taken = timed(store.last_seq, work)
    reader.close()
    store.close()
    return taken


def simulated_commits(commits: int = 300) -> Taken:
    disk = SimDisk("bench")
    store = Store.open("bench", vfs=disk.name)
    event = make_event(1)

    def work() -> None:
        for _ in range(commits):
            next_seq = store.last_seq + 1
            store.write(Batch([Stored(next_seq, 1, event)], cursors={"a": next_seq}))

    taken = timed(commits, work)
    store.close()
    disk.unregister()
    return taken


class BusyMain:
    """Keeps the interpreter's lock contended, as an event loop under load does."""

    def __enter__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._spin)
        self._thread.start()

    def _spin(self) -> None:
        while not self._stop.is_set():
            sum(range(200))

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def compare(place: Path, rows: int, rounds: int, batch_rows: int) -> dict[str, float]:
    bare: list[Taken] = []
    ours: list[Taken] = []
    for _ in range(rounds):
        for run, results in ((bare_loop, bare), (the_store, ours)):
            with tempfile.TemporaryDirectory(dir=place) as directory:
                results.append(run(Path(directory), rows, batch_rows))
    ratios = [our.per_second() / its.per_second() for our, its in zip(ours, bare, strict=True)]
    return {
        "batch": batch_rows,
        "bare_per_s": round(statistics.median(taken.per_second() for taken in bare)),
        "store_per_s": round(statistics.median(taken.per_second() for taken in ours)),
        "ratio": round(statistics.median(ratios), 3),
        "ratio_min": round(min(ratios), 3),
        "ratio_max": round(max(ratios), 3),
        "bare_cpu_us": round(statistics.median(taken.cpu_us_per_row() for taken in bare), 2),
        "store_cpu_us": round(statistics.median(taken.cpu_us_per_row() for taken in ours), 2),
    }


def measure(place: Path, rows: int, rounds: int) -> dict[str, object]:
    results: dict[str, object] = {
        "write": [compare(place, rows, rounds, 64), compare(place, rows // 20, rounds, 1)]
    }
    with BusyMain():
        results["write_beside_a_busy_thread"] = compare(place, rows // 4, max(rounds // 2, 1), 64)
    with tempfile.TemporaryDirectory(dir=place) as directory:
        the_store(Path(directory), rows, 64)
        results["read_per_s"] = round(reading(Path(directory)).per_second())
    results["simulated_commit_ms"] = round(simulated_commits().wall_s / 300 * 1e3, 3)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=16_000)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--place", type=Path, default=Path(os.curdir), help="the disk to measure")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = measure(options.place, options.rows - options.rows % 64, options.rounds)
    if options.json:
        json.dump(results, sys.stdout, indent=2)
        print()
        return
    for name, figures in results.items():
        print(f"{name}: {figures}")


if __name__ == "__main__":
    main()
