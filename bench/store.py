"""How fast the log takes and gives events, beside SQLite's bare loop on the same disk.

    python bench/store.py --rows 16000 --rounds 11 --json

The bare loop inserts ready-made records of the same size with executemany and one commit per batch,
`synchronous=FULL`; the encoding loop makes its records from events, as the store has to. They take
turns, so that they meet the same machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import apsw

import report
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


def loop(directory: Path, rows: int, records: Callable[[], list[bytes]]) -> Taken:
    """SQLite's own loop: a statement per row, a commit per batch, no checksum."""
    connection = apsw.Connection(str(directory / "bare.sqlite"))
    connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE t (seq INTEGER PRIMARY KEY, ns INTEGER, record BLOB)")
    insert = "INSERT INTO t VALUES (?, ?, ?)"

    def work() -> None:
        seq = 0
        while seq < rows:
            batch = [(number, RECEIVED_NS, record) for number, record in enumerate(records(), seq)]
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(insert, batch)
            connection.execute("COMMIT")
            seq += len(batch)

    taken = timed(rows, work)
    connection.close()
    return taken


def bare_loop(directory: Path, rows: int, batch_rows: int) -> Taken:
    """With records that were made before."""
    records = [encode_event(make_event(number)) for number in range(batch_rows)]
    return loop(directory, rows, lambda: records)


def encoding_loop(directory: Path, rows: int, batch_rows: int) -> Taken:
    """With records made from events in the loop, as the store has to."""
    events = [make_event(number) for number in range(batch_rows)]
    return loop(directory, rows, lambda: [encode_event(event) for event in events])


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
    runs = {"bare": bare_loop, "encoding": encoding_loop, "store": the_store}
    taken: dict[str, list[Taken]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            with tempfile.TemporaryDirectory(dir=place) as directory:
                taken[name].append(run(Path(directory), rows, batch_rows))
    results: dict[str, float] = {"batch": batch_rows}
    for name, times in taken.items():
        results[f"{name}_per_s"] = round(statistics.median(each.per_second() for each in times))
        cpu_us = statistics.median(each.cpu_us_per_row() for each in times)
        results[f"{name}_cpu_us"] = round(cpu_us, 2)
    for name in ("bare", "encoding"):
        pairs = zip(taken["store"], taken[name], strict=True)
        ratios = sorted(ours.per_second() / its.per_second() for ours, its in pairs)
        results[f"ratio_to_{name}"] = round(statistics.median(ratios), 3)
        results[f"ratio_to_{name}_min"] = round(ratios[0], 3)
        results[f"ratio_to_{name}_max"] = round(ratios[-1], 3)
    return results


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
    parser.add_argument("--quick", action="store_true", help="three rounds")
    parser.add_argument("--json", metavar="FILE", help="keep the figures there")
    options = parser.parse_args()
    rounds = 3 if options.quick else options.rounds
    results = measure(options.place, options.rows - options.rows % 64, rounds)
    if options.json:
        report.write("store", results, options.json)
    for name, figures in results.items():
        print(f"{name}: {figures}")


if __name__ == "__main__":
    main()
