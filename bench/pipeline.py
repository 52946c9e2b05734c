"""The pipeline's tables from one archive: our Spark job beside DuckDB.

    python bench/pipeline.py --events 1M
    python bench/pipeline.py --events 10M 50M --json out/bench/pipeline.json

The same Parquet, two threads each, every table written as Parquet with zstd. An archive is made
once by `tocsin synth` and kept in out/pipeline. What an engine takes before it can begin is told
apart. Then the tables are compared with DuckDB's, which come from the raw events: if any value
differs, the exit code is 1, after everything is told. --no-check leaves that out. A ratio over its
target is marked, and is a measurement like others.
Our job also keeps what it folded, so that the next run need not read it again: that is in its time.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil

import pipeline_check
import report
from tocsin.tables.schemas import TABLES

HERE: Final = Path(__file__).parent
PLACE: Final = HERE.parent / "out" / "pipeline"
TOCSIN: Final = Path(sys.executable).with_name("tocsin")
SEED: Final = 7
START: Final = "2025-01-01"  # 50M events are a year, and none shall lie ahead
SAMPLE_S: Final = 0.2
MEMORY_MAX: Final = int(psutil.virtual_memory().total * 0.85)  # beyond it an engine has failed
ENGINES: Final = ("spark", "duckdb")
# How many times as long as DuckDB our job may take.
RATIO_MAX: Final = {"10M": 5.0, "50M": 4.0}
GROWTH_SIZES: Final = ("10M", "50M")  # at most five times as long

LIMITS: Final = (
    "Two threads each. Memory: DuckDB at most 16 GB, and spills beyond; "
    "Spark's heap is what `tocsin pipeline` takes by itself, and it spills."
)
# What our job keeps between runs, in the order in which it is made, before any table.
KEPT: Final = ("quarantine", "keys", "events", "notes", "attempts", "runs")


@dataclass(slots=True)
class Taken:
    """What an engine took for all tables. `start_s` is not in `wall_s`."""

    engine: str
    start_s: float = 0.0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_mib: float = 0.0
    failed: str = ""
    """Why it did not come to an end."""
    tables_s: dict[str, float] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)


class Watch:
    """Looks at a process and its children: processor time and memory of all of them."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._cpu_s: dict[int, float] = {}
        self.peak_bytes = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    @property
    def cpu_s(self) -> float:
        return sum(self._cpu_s.values())

    def _look(self) -> None:
        while not self._over.wait(SAMPLE_S):
            resident = 0
            try:
                family = [self._root, *self._root.children(recursive=True)]
            except psutil.Error:
                return
            for each in family:
                try:
                    times = each.cpu_times()
                    resident += each.memory_info().rss
                except psutil.Error:
                    continue
                self._cpu_s[each.pid] = times.user + times.system
            self.peak_bytes = max(self.peak_bytes, resident)
            if resident > MEMORY_MAX:
                self._kill(family)

    def _kill(self, family: list[psutil.Process]) -> None:
        """Before it takes the machine with it."""
        for each in family:
            with suppress(psutil.Error):
                each.kill()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()


def archive_of(events: str) -> Path:
    """An archive of so many events, made if it is not there."""
    directory = PLACE / f"archive-{events}"
    if not directory.exists():
        print(f"making an archive of {events} events", file=sys.stderr)
        unfinished = PLACE / f".archive-{events}"
        shutil.rmtree(unfinished, ignore_errors=True)
        command = [str(TOCSIN), "synth", "--events", events, "--seed", str(SEED), "--start", START]
        subprocess.run(
            [*command, "--out", str(unfinished), "--json"], check=True, stdout=subprocess.DEVNULL
        )
        unfinished.rename(directory)
    return directory


def warmed(archive: Path) -> None:
    """Read every file once, so that no engine pays for the disk."""
    for path in archive.rglob("*.parquet"):
        path.read_bytes()


def command_of(engine: str, archive: Path, tables: Path) -> list[str]:
    places = ["--archive", str(archive), "--tables", str(tables)]
    if engine == "spark":
        return [str(TOCSIN), "pipeline", "run", *places, "--master", "local[2]", "--json"]
    return [sys.executable, str(HERE / f"pipeline_{engine}.py"), *places]


def run(engine: str, archive: Path, tables: Path) -> Taken:
    """Let the engine make all tables, in a process of its own, into a directory of its own."""
    shutil.rmtree(tables, ignore_errors=True)
    taken = Taken(engine)
    began_s = time.time()
    process = subprocess.Popen(
        command_of(engine, archive, tables), stdout=subprocess.PIPE, text=True
    )
    watch = Watch(process.pid)
    assert process.stdout is not None
    lines = [json.loads(line) for line in process.stdout if line.startswith("{")]
    code = process.wait()
    all_s = time.time() - began_s
    watch.stop()
    taken.cpu_s, taken.peak_mib = watch.cpu_s, watch.peak_bytes / (1 << 20)
    if code:
        is_memory = watch.peak_bytes > MEMORY_MAX
        taken.failed = "out of memory" if is_memory else f"exit code {code}"
        return taken
    if engine == "spark":
        taken.start_s = lines[-1]["started_s"]
        taken.rows = lines[-1]["tables"]
        _read_files(tables, began_s + taken.start_s, taken)
    else:
        _read_steps(lines, began_s, taken)
    taken.wall_s = all_s - taken.start_s
    return taken


def _read_files(tables: Path, began_s: float, taken: Taken) -> None:
    """When each table was written is told by its files."""
    state = next((tables / "_state" / "partials").iterdir())
    places = {f"{name}, kept": state / name for name in KEPT}
    places |= {name: tables / name for name in TABLES if name not in ("events", "quarantine")}
    last_s = began_s
    written = {
        name: max((each.stat().st_mtime for each in place.glob("*.parquet")), default=began_s)
        for name, place in places.items()
    }
    for name, at_s in sorted(written.items(), key=lambda item: item[1]):
        taken.tables_s[name] = at_s - last_s
        last_s = at_s


def _read_steps(lines: list[dict[str, Any]], began_s: float, taken: Taken) -> None:
    last_s = began_s
    for line in lines:
        if line["what"] == "ready":
            taken.start_s = line["at"] - began_s
        elif line["what"] in TABLES:
            taken.tables_s[line["what"]] = line["at"] - last_s
            taken.rows[line["what"]] = line["rows"]
        last_s = line["at"]


def measure(events: str, engines: list[str], *, check: bool) -> dict[str, Any]:
    archive = archive_of(events)
    warmed(archive)
    places = {engine: PLACE / f"{engine}-{events}" for engine in engines}
    taken = [run(engine, archive, places[engine]) for engine in engines]
    show(events, taken)
    found: dict[str, Any] = {"events": events, "engines": [asdict(each) for each in taken]}
    by_engine = {each.engine: each.wall_s for each in taken if not each.failed}
    if by_engine.keys() >= {"spark", "duckdb"}:
        found["spark_over_duckdb"] = round(by_engine["spark"] / by_engine["duckdb"], 2)
        bound = RATIO_MAX.get(events)
        found["over_target"] = bound is not None and found["spark_over_duckdb"] > bound
        words = f" (at most {bound:g})" if bound else ""
        words += ": OVER THE TARGET" if found["over_target"] else ""
        print(f"\nSpark over DuckDB: {found['spark_over_duckdb']}{words}")
    if check and "duckdb" in by_engine:
        found["checks"] = [
            {"engine": engine, **_checked(places[engine], places["duckdb"], engine)}
            for engine in engines
            if engine != "duckdb" and engine in by_engine
        ]
    elif check:
        print("\nnothing was compared: there are no tables of DuckDB's")
    return found


def _checked(ours: Path, theirs: Path, engine: str) -> dict[str, Any]:
    print(f"\n{engine} beside DuckDB:")
    compared = pipeline_check.compare(ours, theirs)
    return {each.table: "ok" if each.is_same else asdict(each) for each in compared}


def differences(found: dict[str, Any]) -> list[str]:
    """What is not as DuckDB has it, by engine. Our job has no reason not to come to its end."""
    told = [
        f"{each['engine']} of {found['events']} events: all, it has none"
        for each in found["engines"]
        if each["engine"] == "spark" and each["failed"]
    ]
    for each in found.get("checks", ()):
        tables = [name for name in TABLES if each[name] != "ok"]
        if tables:
            told.append(f"{each['engine']} of {found['events']} events: {', '.join(tables)}")
    return told


def show(events: str, taken: list[Taken]) -> None:
    print(f"\n{events} events, seconds\n")
    headers = ("", *(each.engine for each in taken))
    names = dict.fromkeys(
        [*(name for each in taken for name in each.tables_s if name not in TABLES), *TABLES]
    )
    rows: list[tuple[object, ...]] = [
        ("start", *(each.start_s for each in taken)),
        *((name, *(each.tables_s.get(name) for each in taken)) for name in names),
        ("all tables", *(None if each.failed else each.wall_s for each in taken)),
        ("processor time", *(each.cpu_s for each in taken)),
        ("peak memory, MiB", *(each.peak_mib for each in taken)),
    ]
    report.table(headers, rows)
    for each in taken:
        if each.failed:
            print(f"{each.engine} did not come to an end: {each.failed}")


def growth(results: list[dict[str, Any]]) -> dict[str, float]:
    """How many times longer five times as much takes, by engine."""
    walls = {
        each["events"]: {
            engine["engine"]: engine["wall_s"] for engine in each["engines"] if not engine["failed"]
        }
        for each in results
    }
    small, large = GROWTH_SIZES
    if small not in walls or large not in walls:
        return {}
    return {
        engine: round(walls[large][engine] / walls[small][engine], 2)
        for engine in walls[large]
        if engine in walls[small]
    }


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--events", nargs="+", default=["1M", "10M", "50M"], metavar="N")
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES)
    parser.add_argument(
        "--check",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="compare the tables with DuckDB's",
    )
    parser.add_argument("--quick", action="store_true", help="1M events")
    parser.add_argument("--json", metavar="FILE", help="keep the figures there")
    arguments = parser.parse_args(words)
    sizes = ["1M"] if arguments.quick else arguments.events
    results = [measure(each, arguments.engines, check=arguments.check) for each in sizes]
    print(f"\n{LIMITS}")
    grown = growth(results)
    for engine, times in grown.items():
        print(f"{engine}: {times} times as long for {GROWTH_SIZES[1]} as for {GROWTH_SIZES[0]}")
    if arguments.json:
        report.write(
            "pipeline", {"sizes": results, "growth": grown, "limits": LIMITS}, arguments.json
        )
    differing = [told for each in results for told in differences(each)] if arguments.check else []
    for told in differing:
        print(f"DIFFERENT: {told}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
