"""What the tracking library takes of a workflow: 10,000 activities of about 1 ms of work each.

    python bench/tracking.py [--quick] [--json FILE]

The same loop, each time in a process of its own: bare; writing two lines an activity to a file with
`logging`; and tracked, with a broker that nobody asks anything, one that is asked for every event,
one that is asked for every resource too, and none at all, so that everything goes to the spool.

`slower %` holds the fastest round of each against the fastest bare one; on a machine that does
other things it swings by more than what is to be measured. `share %` does not: within one run, the
processor time of the calls and of all other threads, to the last event that is sent or spooled,
over that of the work; it is the median of the rounds, `from` and `to` are the least and the most.
What it leaves out is what threads cost each other by waiting. `pause` is the longest that the loop
waited for one call, in the best round; who waits for a processor waits there, as `logging` does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import load  # noqa: F401  # with it, what the tests have is within reach
import report
from served import served
from tocsin.client.blackboard import HttpLink
from tocsin.client.tracking import Workflow

ACTIVITIES = 10_000
WORK_S = 0.001
TARGET_PERCENT = 5.0
EVENTS = ("Event", "Property")
NOBODY = "http://127.0.0.1:9"

BARE, LOGGED = "bare", "logging to a file"
UNASKED, EVERY_EVENT, EVERY_RESOURCE, AWAY = (
    "tracked, nobody asks",
    "tracked, every event",
    "tracked, events and resources",
    "tracked, broker away",
)
MODES = (BARE, LOGGED, UNASKED, EVERY_EVENT, EVERY_RESOURCE, AWAY)


def work(amount: int) -> int:
    total = 0
    for number in range(amount):
        total += number * number
    return total


def work_amount() -> int:
    """How much takes about a millisecond here."""
    least = float("inf")
    for _ in range(50):
        began = time.perf_counter()
        work(10_000)
        least = min(least, time.perf_counter() - began)
    return max(1, round(10_000 * WORK_S / least))


class Calls:
    """What was spent in calls, and the longest of them."""

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self.pause_s = 0.0

    def add(self, cpu_began: float, began: float) -> None:
        self.pause_s = max(self.pause_s, time.perf_counter() - began)
        self.cpu_s += time.thread_time() - cpu_began


def bare(amount: int, count: int, calls: Calls) -> None:
    for _ in range(count):
        work(amount)


def logged(amount: int, count: int, calls: Calls) -> None:
    logger = logging.getLogger("bench")
    logger.setLevel(logging.INFO)
    with tempfile.NamedTemporaryFile(suffix=".log") as file:
        handler = logging.FileHandler(file.name)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger.addHandler(handler)
        for number in range(count):
            cpu, began = time.thread_time(), time.perf_counter()
            logger.info("run %s activity %s of type %s begins", "r1", number, "work")
            calls.add(cpu, began)
            work(amount)
            cpu, began = time.thread_time(), time.perf_counter()
            logger.info("run %s activity %s of type %s ended", "r1", number, "work")
            calls.add(cpu, began)


def tracked(amount: int, count: int, calls: Calls, run: Workflow) -> None:
    for _ in range(count):
        cpu, began = time.thread_time(), time.perf_counter()
        with run.activity("work"):
            calls.add(cpu, began)
            work(amount)
            cpu, began = time.thread_time(), time.perf_counter()
        calls.add(cpu, began)


def one(mode: str, amount: int, count: int, broker: str, spool: str) -> dict[str, float]:
    """One run, in this process."""
    work(amount)
    calls = Calls()
    run: Workflow | None = None
    if "tracked" in mode:
        logging.disable()
        run = Workflow("bench", broker=broker, spool=Path(spool), heartbeat_s=0)
        time.sleep(0.5)  # the profile is known, or that nobody is there
        run.started()
    whole_cpu, main_cpu, began = time.process_time(), time.thread_time(), time.perf_counter()
    if run is not None:
        tracked(amount, count, calls, run)
    elif mode == LOGGED:
        logged(amount, count, calls)
    else:
        bare(amount, count, calls)
    took_s = time.perf_counter() - began
    work_cpu_s = time.thread_time() - main_cpu - calls.cpu_s
    closing = time.perf_counter()
    if run is not None:
        run.completed()
        run.close()
    other_cpu_s = time.process_time() - whole_cpu - work_cpu_s
    counts = run.outbox.counts if run is not None else None
    return {
        "loop_s": took_s,
        "pause_ms": calls.pause_s * 1e3,
        "share_percent": 100 * other_cpu_s / work_cpu_s,
        "call_us": calls.cpu_s / count * 1e6,
        "close_s": time.perf_counter() - closing,
        "sent": counts.sent if counts else 0,
        "spooled": counts.spooled if counts else 0,
        "dropped": counts.dropped if counts else 0,
    }


def check(mode: str, run: dict[str, float], count: int) -> None:
    """What a row is called is what happened: all of it went where it says."""
    # Each begins and ends; the run is created, started and completed. On a machine that is held up
    # an activity may last long enough for monitors of its own, which makes a few more.
    messages = 2 * count + 3
    sent, spooled, dropped = run["sent"], run["spooled"], run["dropped"]
    if mode in (EVERY_EVENT, EVERY_RESOURCE):
        is_right = sent >= messages and not spooled and not dropped
    elif mode == AWAY:
        is_right = spooled >= messages and not sent and not dropped
    else:
        is_right = not sent and not spooled and not dropped
    assert is_right, f"{mode}: {sent=}, {spooled=}, {dropped=} of {messages}"


def in_process_of_its_own(mode: str, amount: int, count: int, broker: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="tocsin-bench-") as spool:
        command = [sys.executable, __file__, "--one", mode, "--work", str(amount)]
        command += ["--count", str(count), "--broker", broker, "--spool", spool]
        told = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=os.environ)
    result: dict[str, float] = json.loads(told.stdout)
    return result


@contextlib.contextmanager
def curious(broker: str, concepts: tuple[str, ...]) -> Iterator[None]:
    """Somebody who asks for the concepts and takes what comes: a broker lets go of who does not."""
    over = threading.Event()
    with HttpLink(broker).subscribe(concepts) as subscription:
        subscription.take(0.5)

        def take() -> None:
            while not over.is_set():
                subscription.take(0.5)

        reader = threading.Thread(target=take)
        reader.start()
        try:
            yield
        finally:
            over.set()
            reader.join()


@contextlib.contextmanager
def brokers() -> Iterator[dict[str, str]]:
    """A broker for each mode that needs one, and somebody who asks."""
    with contextlib.ExitStack() as stack:
        addresses = {BARE: NOBODY, LOGGED: NOBODY, AWAY: NOBODY}
        for mode, asked in ((UNASKED, ()), (EVERY_EVENT, EVENTS), (EVERY_RESOURCE, ("Concept",))):
            running = stack.enter_context(served(env={"TOCSIN_MONITOR__ENABLED": "false"}))
            addresses[mode] = running.url
            if asked:
                stack.enter_context(curious(running.url, asked))
        yield addresses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=ACTIVITIES, help=argparse.SUPPRESS)
    parser.add_argument("--broker", default="", help=argparse.SUPPRESS)
    parser.add_argument("--spool", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        given = (arguments.work, arguments.count, arguments.broker, arguments.spool)
        print(json.dumps(one(arguments.one, *given)))
        return
    rounds = 3 if arguments.quick else 5
    count = 2_000 if arguments.quick else ACTIVITIES
    amount = work_amount()
    runs: dict[str, list[dict[str, float]]] = {mode: [] for mode in MODES}
    with brokers() as addresses:
        for _ in range(rounds):
            for mode in MODES:
                run = in_process_of_its_own(mode, amount, count, addresses[mode])
                check(mode, run, count)
                runs[mode].append(run)
    print_results(runs, arguments.json)


def print_results(runs: dict[str, list[dict[str, float]]], json_path: str | None) -> None:
    best = {mode: min(run["loop_s"] for run in each) for mode, each in runs.items()}
    slower = {mode: 100 * (loop_s / best[BARE] - 1) for mode, loop_s in best.items()}
    rows: list[list[object]] = []
    results: dict[str, object] = {}
    for mode, each in runs.items():
        shares = sorted(run["share_percent"] for run in each)
        pause_ms = min(run["pause_ms"] for run in each)
        call_us = statistics.median(run["call_us"] for run in each)
        share, target = statistics.median(shares), TARGET_PERCENT if "tracked" in mode else None
        row = [mode, best[mode], slower[mode], share, shares[0], shares[-1], target]
        rows.append([*row, call_us, pause_ms])
        results[mode] = {"slower_percent": slower[mode], "share_percent": share, "runs": each}
    report.table(
        ["", "loop s", "slower %", "share %", "from", "to", "target %", "calls us", "pause ms"],
        rows,
    )
    if json_path:
        report.write("tracking", results, json_path)


if __name__ == "__main__":
    main()
