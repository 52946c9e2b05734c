"""Figures 9, 10 and 11 of paper 004: the blackboard's own algorithms, ours beside the paper's.

    python bench/figures_004.py [--quick] [--json FILE] [--plot FILE.png]

Figures 9 and 10: the time of one more subscription and of one less, with profiles of 5, 50 and 100
concepts of which a third is shared. The paper's algorithm is its figures 6 and 7 word for word, in
Python, with the collection of subscribers a set as in the figures, or a list as in its text. Ours
is the lookup index alone, and the whole core of the broker up to the commit, without the disk.
Then the same with up to 100,000 subscriptions. Figure 11: a message of up to 10,000 pairs (1 MB)
cut up for 10 subscribers with 1,000 concepts each; and through a running broker, on disk, until
the last of 10 streams has its part.
"""

from __future__ import annotations

import argparse
import gc
import http.client
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import load  # noqa: F401  # makes tests/served.py known
import report
from paper_004 import ENGINES, BrokerCore, PaperBlackboard
from served import Served, served
from tocsin.matching.lookup_index import LookupIndex

SEED = 20_090_706
PROFILE_SIZES = (5, 50, 100)
SUBSCRIPTIONS = 1_000
BINS = 20  # points of a curve; each is the median of the operations in it
GROWN_TO = (1_000, 10_000, 100_000)
GROWN_PROFILE = 5
SAMPLES = 200
PAPER_SAMPLES = 5  # it takes its time with many subscriptions
SHARED = 1 / 3

PAIRS = (10, 100, 1_000, 2_000, 4_000, 6_000, 8_000, 10_000)
VALUE = "x" * 100
SUBSCRIBERS = 10
CONCEPTS_EACH = 1_000
REPEATS = 10  # as in the paper


def profiles(size: int, number: int) -> list[tuple[str, frozenset[str]]]:
    """So many subscribers, each with `size` concepts, a third of them drawn from a common pool."""
    dice = random.Random(SEED)
    fresh = count()
    made = []
    for subscriber in range(number):
        concepts: set[str] = set()
        while len(concepts) < size:
            shared = dice.random() < SHARED
            concepts.add(f"S{dice.randrange(3 * size)}" if shared else f"C{next(fresh)}")
        made.append((f"http://host{subscriber}/sink", frozenset(concepts)))
    return made


def timed(operation: Callable[[], object]) -> float:
    started = time.perf_counter()
    operation()
    return time.perf_counter() - started


def growth(engine: str, size: int) -> dict[str, object]:
    """Figures 9 and 10: the time of each subscription, then of each end, as they grow in number."""
    board = ENGINES[engine]()
    listed = profiles(size, SUBSCRIPTIONS)
    gc.collect()
    gc.disable()
    came = [timed(lambda s=each: board.subscribe(*s)) for each in listed]  # type: ignore[misc]
    went = [timed(lambda s=each: board.unsubscribe(s[0])) for each in listed]  # type: ignore[misc]
    gc.enable()
    went.reverse()  # by how many there were
    return {
        "engine": engine,
        "concepts": size,
        "subscribe_us": _binned(came),
        "unsubscribe_us": _binned(went),
    }


def _binned(times_s: list[float]) -> list[float]:
    width = len(times_s) // BINS
    return [
        statistics.median(times_s[start : start + width]) * 1e6
        for start in range(0, width * BINS, width)
    ]


def many(engine: str, number: int) -> dict[str, object]:
    """One more and one less where there are very many."""
    board = ENGINES[engine]()
    listed = profiles(GROWN_PROFILE, number + SAMPLES)
    if isinstance(board, PaperBlackboard):
        board.fill(listed[:number])
    else:
        if isinstance(board, BrokerCore):
            board.looks = False
        for each in listed[:number]:
            board.subscribe(*each)
        if isinstance(board, BrokerCore):
            board.looks = True
    samples = PAPER_SAMPLES if isinstance(board, PaperBlackboard) else SAMPLES
    extra = listed[number : number + samples]
    gc.collect()
    gc.disable()
    came = [timed(lambda s=each: board.subscribe(*s)) for each in extra]  # type: ignore[misc]
    went = [timed(lambda s=each: board.unsubscribe(s[0])) for each in extra]  # type: ignore[misc]
    gc.enable()
    return {
        "engine": engine,
        "subscriptions": number,
        "subscribe_us": statistics.median(came) * 1e6,
        "unsubscribe_us": statistics.median(went) * 1e6,
    }


def split_times() -> list[dict[str, object]]:
    """Figure 11 alone: one message cut up for 10 subscribers that have nothing in common."""
    ours: LookupIndex[str] = LookupIndex()
    paper = PaperBlackboard(set)
    for subscriber in range(SUBSCRIBERS):
        profile = frozenset(_concepts(subscriber))
        ours.subscribe(f"http://host{subscriber}", profile)
        paper.subscribe(f"http://host{subscriber}", profile)
    results: list[dict[str, object]] = []
    for pairs in PAIRS:
        message = _message(pairs)
        assert ours.split(message) == paper.split(message)
        results.append(
            {
                "pairs": pairs,
                "ours_ms": _mean_ms(lambda m=message: ours.split(m)),  # type: ignore[misc]
                "paper_ms": _mean_ms(lambda m=message: paper.split(m)),  # type: ignore[misc]
            }
        )
    return results


def _concepts(subscriber: int) -> list[str]:
    first = subscriber * CONCEPTS_EACH
    return [f"lab:C{number}" for number in range(first, first + CONCEPTS_EACH)]


def _message(pairs: int) -> dict[str, str]:
    """Pairs for all subscribers alike, so that each has a part in a short message too."""
    whole = [
        name for names in zip(*map(_concepts, range(SUBSCRIBERS)), strict=True) for name in names
    ]
    return dict.fromkeys(whole[:pairs], VALUE)


def _mean_ms(operation: Callable[[], object]) -> float:
    operation()
    return statistics.mean(timed(operation) for _ in range(REPEATS)) * 1e3


class Stream(threading.Thread):
    """One subscriber: reads its stream and says when each message was whole."""

    def __init__(self, broker: Served, concepts: list[str], arrived: threading.Semaphore) -> None:
        super().__init__(daemon=True)
        host, _, port = broker.address.rpartition(":")
        self._connection = http.client.HTTPConnection(host, int(port), timeout=60)
        self._connection.request("GET", f"/blackboard/stream?concepts={','.join(concepts)}")
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200, self._answer.read()
        self._arrived = arrived

    def run(self) -> None:
        try:
            for line in iter(self._answer.readline, b""):
                if line.startswith(b"data: "):
                    self._arrived.release()
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            return  # the broker of this measurement is gone


def broker_times(quick: bool) -> list[dict[str, object]]:
    """Figure 11 through a broker: posted, on disk, cut up, and with the last of 10 streams."""
    with tempfile.TemporaryDirectory() as directory:
        ontology = Path(directory) / "lab.ttl"
        ontology.write_text(_turtle())
        config = Path(directory) / "tocsin.toml"
        config.write_text(
            f"[blackboard]\nontology = [{json.dumps(str(ontology))}]\n"
            "[events]\nevent_bytes_max = 4194304\n"
        )
        with served("--config", str(config)) as broker:
            arrived = threading.Semaphore(0)
            for subscriber in range(SUBSCRIBERS):
                Stream(broker, _concepts(subscriber), arrived).start()
            return [_through(broker, pairs, arrived) for pairs in (PAIRS[::3] if quick else PAIRS)]


def _turtle() -> str:
    classes = "".join(f"lab:C{n} a owl:Class .\n" for n in range(SUBSCRIBERS * CONCEPTS_EACH))
    return (
        "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
        f"@prefix lab: <http://lab.example/#> .\n{classes}"
    )


def _through(broker: Served, pairs: int, arrived: threading.Semaphore) -> dict[str, object]:
    host, _, port = broker.address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    body = json.dumps({"pairs": _message(pairs)}).encode()
    acknowledged: list[float] = []
    delivered: list[float] = []
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        connection.request(
            "POST", "/blackboard/messages", body, {"content-type": "application/json"}
        )
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 202, text
        acknowledged.append(time.perf_counter() - started)
        for _ in range(SUBSCRIBERS):
            assert arrived.acquire(timeout=60)
        delivered.append(time.perf_counter() - started)
    connection.close()
    return {
        "pairs": pairs,
        "bytes": len(body),
        "acknowledged_ms": statistics.mean(acknowledged[1:]) * 1e3,
        "delivered_ms": statistics.mean(delivered[1:]) * 1e3,
    }


def _points(result: dict[str, object], name: str) -> list[float]:
    points = result[name]
    assert isinstance(points, list)
    return points


def show(results: dict[str, list[dict[str, object]]]) -> None:
    print("Figures 9 and 10: us for one subscription, with few and with 1,000 others\n")
    report.table(
        ["engine", "concepts", "subscribe", "at 1,000", "unsubscribe", "at 1,000"],
        [
            [
                r["engine"],
                r["concepts"],
                *(
                    _points(r, name)[place]
                    for name in ("subscribe_us", "unsubscribe_us")
                    for place in (0, -1)
                ),
            ]
            for r in results["growth"]
        ],
    )
    print(f"\nMany more, {GROWN_PROFILE} concepts each: us for one\n")
    report.table(
        ["engine", "subscriptions", "subscribe", "unsubscribe"],
        [list(r.values()) for r in results["many"]],
    )
    print("\nFigure 11: ms for one message to 10 subscribers of 1,000 concepts each\n")
    through = {r["pairs"]: r for r in results["broker"]}
    report.table(
        ["pairs", "split", "the paper's", "acknowledged", "delivered to all"],
        [
            [
                *r.values(),
                *(
                    through.get(r["pairs"], {}).get(name)
                    for name in ("acknowledged_ms", "delivered_ms")
                ),
            ]
            for r in results["split"]
        ],
    )


def plot(results: dict[str, list[dict[str, object]]], path: Path) -> None:
    """The paper's three figures, and the one that it has not: very many subscriptions."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 2, figsize=(11, 8), layout="constrained")
    styles = {"paper (sets)": ":", "paper (lists)": "--", "index": "-", "broker": "-."}
    colours = dict(zip(PROFILE_SIZES, ("#2a7f62", "#31688e", "#b5483a"), strict=True))
    width = SUBSCRIPTIONS // BINS
    numbers = [width * (place + 0.5) for place in range(BINS)]
    titles = ("Figure 9: one more subscription", "Figure 10: one subscription less")
    for panel, name, title in zip(axes[0], ("subscribe_us", "unsubscribe_us"), titles, strict=True):
        for r in results["growth"]:
            size, engine = r["concepts"], str(r["engine"])
            assert isinstance(size, int)
            label = engine if size == PROFILE_SIZES[0] else None
            panel.semilogy(
                numbers, _points(r, name), styles[engine], color=colours[size], label=label
            )
        panel.set(title=title, xlabel="subscriptions", ylabel="us")
        panel.legend(fontsize=8, title="green 5, blue 50, red 100 concepts", title_fontsize=8)
    panel = axes[1][0]
    for engine, style in styles.items():
        rows = [r for r in results["many"] if r["engine"] == engine]
        panel.loglog(
            [r["subscriptions"] for r in rows],
            [r["subscribe_us"] for r in rows],
            style,
            marker="o",
            label=engine,
        )
    panel.set(title="One more of very many", xlabel="subscriptions", ylabel="us")
    panel.legend(fontsize=8)
    panel = axes[1][1]
    for rows, name, label in (
        (results["split"], "ours_ms", "split, ours"),
        (results["split"], "paper_ms", "split, figure 8"),
        (results["broker"], "acknowledged_ms", "through the broker: on disk"),
        (results["broker"], "delivered_ms", "... with the last of 10 streams"),
    ):
        panel.plot([r["pairs"] for r in rows], [r[name] for r in rows], marker="o", label=label)
    panel.set(title="Figure 11: one message", xlabel="pairs of 100 bytes", ylabel="ms")
    panel.legend(fontsize=8)
    for panel in axes.flat:
        panel.grid(visible=True, alpha=0.3)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="up to 10,000, and 50 concepts")
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--plot", type=Path, help="draw the figures into this PNG")
    options = parser.parse_args()
    sizes = GROWN_TO[:-1] if options.quick else GROWN_TO
    profile_sizes = PROFILE_SIZES[:-1] if options.quick else PROFILE_SIZES
    results: dict[str, list[dict[str, object]]] = {"growth": [], "many": []}
    for engine in ENGINES:
        print(f"{engine} ...", file=sys.stderr, flush=True)
        results["growth"] += [growth(engine, size) for size in profile_sizes]
        results["many"] += [many(engine, number) for number in sizes]
    results["split"] = split_times()
    results["broker"] = broker_times(options.quick)
    show(results)
    if options.json:
        report.write("figures_004", results, options.json)
    if options.plot:
        plot(results, options.plot)


if __name__ == "__main__":
    main()
