"""How fast the matcher is, as subscriptions grow, beside asking every filter in turn.

    python bench/matching.py [--quick] [--json FILE] [--plot FILE.png]

Two workloads. `dense`: 5 attributes with whole numbers from 1 to 100, 2 to 5 conditions, events
with all 5; one subscription in fifteen wants each event. `sparse`: 100 attributes (30 texts out of
50, 70 numbers), 2 to 5 conditions, events with 5 to 20 attributes; one in three thousand wants it.
Each measurement is a process of its own. The scan opens each event once; at a million it is left
out.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import report
from tocsin.event.event import Event
from tocsin.event.filter import All, Filter, Operator, Predicate
from tocsin.event.filter_eval import passes, seen
from tocsin.event.value import Scalar
from tocsin.matching.matcher import Matcher

SIZES = (1_000, 10_000, 100_000, 1_000_000)
QUICK_SIZES = (1_000, 10_000)
SCAN_SIZE_MAX = 100_000
ENGINES = ("numba", "numpy", "scan")
WORKLOADS = ("dense", "sparse")

SEED = 20_090_706
EVENTS_MAX = 400
EVENTS_MIN = 5
EVENT_SECONDS_MAX = 2.5
REMOVED_MAX = 5_000
CHECKED_EVENTS = 3  # every engine must find the same subscribers for these
CHUNK = 1_000
WEIGHED_SIZE_MIN = 10_000  # fewer fit into pages that the warm-up left behind

COMPARISONS = (Operator.EQ, Operator.LT, Operator.LE, Operator.GT, Operator.GE)
TEXT_NAMES = tuple(f"text{number}" for number in range(30))
NUMBER_NAMES = tuple(f"number{number}" for number in range(70))

Draw = Callable[[random.Random], Filter]


def dense_filter(dice: random.Random) -> Filter:
    return All(
        tuple(
            Predicate(name, dice.choice(COMPARISONS), dice.randint(1, 100))
            for name in dice.sample("abcde", dice.randint(2, 5))
        )
    )


def sparse_filter(dice: random.Random) -> Filter:
    return All(
        tuple(
            Predicate(name, Operator.EQ, f"value{dice.randrange(50)}")
            if name in TEXT_NAMES
            else Predicate(name, dice.choice(COMPARISONS), dice.randint(1, 100))
            for name in dice.sample(TEXT_NAMES + NUMBER_NAMES, dice.randint(2, 5))
        )
    )


def dense_event(dice: random.Random) -> Event:
    return _event({name: dice.randint(1, 100) for name in "abcde"})


def sparse_event(dice: random.Random) -> Event:
    names = dice.sample(TEXT_NAMES + NUMBER_NAMES, dice.randint(5, 20))
    return _event(
        {
            name: f"value{dice.randrange(50)}" if name in TEXT_NAMES else dice.randint(1, 100)
            for name in names
        }
    )


def _event(attributes: dict[str, Scalar]) -> Event:
    return Event("1", "/bench", "measured", attributes=dict(attributes))


FILTERS: dict[str, Draw] = {"dense": dense_filter, "sparse": sparse_filter}
EVENTS = {"dense": dense_event, "sparse": sparse_event}


class Scan:
    """The definition: everybody is asked."""

    def __init__(self) -> None:
        self._filters: dict[int, Filter] = {}

    def add(self, key: int, filter: Filter) -> None:
        self._filters[key] = filter

    def remove(self, key: int) -> None:
        del self._filters[key]

    def match(self, event: Event) -> list[int]:
        opened = seen(event)
        return [key for key, filter in self._filters.items() if passes(filter, opened)]


def engine(name: str) -> Matcher | Scan:
    return Scan() if name == "scan" else Matcher(use_numba=name == "numba")


def chunks(workload: str, size: int) -> Iterator[list[tuple[int, Filter]]]:
    """The subscriptions, made in pieces so that only the engine's memory grows."""
    dice = random.Random(SEED)
    for start in range(0, size, CHUNK):
        keys = range(start, min(start + CHUNK, size))
        yield [(key, FILTERS[workload](dice)) for key in keys]


def measure(workload: str, size: int, engine_name: str) -> dict[str, object]:
    """One engine with one number of subscriptions, in this process."""
    warm = engine(engine_name)
    for key, filter in next(chunks(workload, CHUNK)):
        warm.add(key, filter)
    events = [EVENTS[workload](random.Random(SEED + number)) for number in range(EVENTS_MAX)]
    warm.match(events[0])
    del warm
    gc.collect()
    bytes_before = _resident_bytes()

    subject = engine(engine_name)
    insert_s = 0.0
    for chunk in chunks(workload, size):
        started = time.perf_counter()
        for key, filter in chunk:
            subject.add(key, filter)
        insert_s += time.perf_counter() - started
    del chunk
    gc.collect()
    bytes_grown = _resident_bytes() - bytes_before
    event_s, matched, checked = _time_events(subject, events)
    removed = random.Random(SEED).sample(range(size), min(REMOVED_MAX, size))
    started = time.perf_counter()
    for key in removed:
        subject.remove(key)
    remove_s = time.perf_counter() - started
    return {
        "workload": workload,
        "subscriptions": size,
        "engine": engine_name,
        "events_per_s": 1 / event_s,
        "matched_per_event": matched,
        "insert_us": insert_s / size * 1e6,
        "remove_us": remove_s / len(removed) * 1e6,
        "bytes_per_subscription": bytes_grown / size if size >= WEIGHED_SIZE_MIN else None,
        "checksum": checked,
    }


def _time_events(subject: Matcher | Scan, events: list[Event]) -> tuple[float, float, int]:
    """The median time of an event, the mean of its subscribers, and a sum to compare engines by."""
    checked = hash(tuple(tuple(subject.match(event)) for event in events[:CHECKED_EVENTS]))
    times: list[float] = []
    matched = 0
    for event in events:
        if len(times) >= EVENTS_MIN and sum(times) > EVENT_SECONDS_MAX:
            break
        started = time.perf_counter()
        keys = subject.match(event)
        times.append(time.perf_counter() - started)
        matched += len(keys)
    return statistics.median(times), matched / len(times), checked


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def measure_apart(workload: str, size: int, engine_name: str) -> dict[str, object]:
    """As `measure`, in a fresh process, so that memory is this engine's alone."""
    print(f"{workload}, {size:,} subscriptions, {engine_name} ...", file=sys.stderr, flush=True)
    command = [sys.executable, __file__, "--one", workload, str(size), engine_name]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, object] = json.loads(done.stdout)
    return result


def add_ratios(results: list[dict[str, object]]) -> None:
    """Beside each engine, how many times as fast as the scan of the same run it was."""
    scans = {(r["workload"], r["subscriptions"]): r for r in results if r["engine"] == "scan"}
    for result in results:
        scan = scans.get((result["workload"], result["subscriptions"]))
        result["times_scan"] = (
            _number(result["events_per_s"]) / _number(scan["events_per_s"]) if scan else None
        )


def check_agreement(results: list[dict[str, object]]) -> None:
    """A fast answer that is another answer is none."""
    checksums: dict[object, object] = {}
    for result in results:
        checksum = result.pop("checksum")
        place = result["workload"], result["subscriptions"]
        if checksums.setdefault(place, checksum) != checksum:
            sys.exit(f"{result['engine']} found other subscribers than {ENGINES[0]} at {place}")


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


def show(results: list[dict[str, object]]) -> None:
    headers = {
        "workload": "workload",
        "subscriptions": "subscriptions",
        "engine": "engine",
        "events_per_s": "events/s",
        "times_scan": "x scan",
        "matched_per_event": "matched",
        "insert_us": "insert us",
        "remove_us": "remove us",
        "bytes_per_subscription": "bytes/sub",
    }
    report.table(list(headers.values()), [[r[name] for name in headers] for r in results])


def plot(results: list[dict[str, object]], path: Path) -> None:
    """Events per second as subscriptions grow; both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    labels = {"numba": "index, numba", "numpy": "index, numpy", "scan": "ask every filter"}
    titles = {
        "dense": "dense: 1 in 15 subscriptions wants each event",
        "sparse": "sparse: 1 in 3,000 wants each event",
    }
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.6), sharey=True, layout="constrained")
    for panel, workload in zip(axes, WORKLOADS, strict=True):
        for name, marker, text_dy in zip(ENGINES, "os^", (6, -13, 6), strict=True):
            points = [r for r in results if (r["workload"], r["engine"]) == (workload, name)]
            sizes = [_number(r["subscriptions"]) for r in points]
            rates = [_number(r["events_per_s"]) for r in points]
            panel.loglog(sizes, rates, marker=marker, label=labels[name])
            for size, rate in zip(sizes, rates, strict=True):
                text = f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
                panel.annotate(
                    text,
                    (size, rate),
                    (0, text_dy),
                    textcoords="offset points",
                    ha="center",
                    size=8,
                )
        panel.set_title(titles[workload])
        panel.set_xlabel("subscriptions")
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.yaxis.set_major_formatter("{x:,.0f}")
        panel.grid(visible=True, which="major", alpha=0.3)
        panel.margins(x=0.12, y=0.12)
    axes[0].set_ylabel("events matched per second (one core)")
    axes[0].legend(loc="lower left")
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="up to 10,000 subscriptions")
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--plot", type=Path, help="draw the growth into this PNG")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        workload, size, engine_name = options.one
        print(json.dumps(measure(workload, int(size), engine_name)))
        return
    results = [
        measure_apart(workload, size, engine_name)
        for workload in WORKLOADS
        for size in (QUICK_SIZES if options.quick else SIZES)
        for engine_name in ENGINES
        if engine_name != "scan" or size <= SCAN_SIZE_MAX
    ]
    check_agreement(results)
    add_ratios(results)
    show(results)
    if options.json:
        report.write("matching", results, options.json)
    if options.plot:
        plot(results, options.plot)


if __name__ == "__main__":
    main()
