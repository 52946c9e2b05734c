"""What the tracking library takes of a workflow: 10,000 activities of about 1 ms of work each.

    python bench/tracking.py [--quick] [--json FILE]

The same loop, each time in a process of its own: bare; writing two lines an activity to a file with
`logging`; and tracked, with a broker that nobody asks anything, one that is asked for every event,
one that is asked for every resource too, and none at all, so that everything goes to the spool. The
rounds are interleaved and the least of each counts: what is above it is other work on the machine.
`CPU %` is what all threads of the process used more than the bare loop did, which on a busy machine
says more than the clock on the wall. `pause` is the longest that the loop waited for one call, to
be held against that of `logging`, since whoever waits for a processor waits there too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
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


def bare(amount: int, count: int) -> Iterator[float]:
    for _ in range(count):
        work(amount)
        yield 0.0


def logged(amount: int, count: int) -> Iterator[float]:
    logger = logging.getLogger("bench")
    logger.setLevel(logging.INFO)
    with tempfile.NamedTemporaryFile(suffix=".log") as file:
        handler = logging.FileHandler(file.name)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger.addHandler(handler)
        for number in range(count):
            began = time.perf_counter()
            logger.info("run %s activity %s of type %s begins", "r1", number, "work")
            middle = time.perf_counter()
            work(amount)
            again = time.perf_counter()
            logger.info("run %s activity %s of type %s ended", "r1", number, "work")
            yield max(middle - began, time.perf_counter() - again)


def tracked(amount: int, count: int, run: Workflow) -> Iterator[float]:
    for _ in range(count):
        began = time.perf_counter()
        with run.activity("work"):
            middle = time.perf_counter()
            work(amount)
            again = time.perf_counter()
        yield max(middle - began, time.perf_counter() - again)


def one(mode: str, amount: int, count: int, broker: str, spool: str) -> dict[str, float]:
    """One run, in this process: seconds for the loop, its longest pause, CPU seconds of all."""
    work(amount)
    run: Workflow | None = None
    loop: Callable[[], Iterator[float]]
    if mode == BARE:
        loop = lambda: bare(amount, count)  # noqa: E731
    elif mode == LOGGED:
        loop = lambda: logged(amount, count)  # noqa: E731
    else:
        logging.disable()
        run = Workflow("bench", broker=broker, spool=Path(spool))
        time.sleep(0.5)  # the profile is known, or that nobody is there
        run.started()
        loop = lambda: tracked(amount, count, run)  # noqa: E731
    cpu, began = time.process_time(), time.perf_counter()
    pause_s = max(loop())
    took_s = time.perf_counter() - began
    cpu_s = time.process_time() - cpu
    drained = time.perf_counter()
    sent = spooled = dropped = 0
    if run is not None:
        run.completed()
        run.close()
        counts = run.outbox.counts
        sent, spooled, dropped = counts.sent, counts.spooled, counts.dropped
    return {
        "loop_s": took_s,
        "pause_ms": pause_s * 1e3,
        "cpu_s": cpu_s,
        "close_s": time.perf_counter() - drained,
        "sent": sent,
        "spooled": spooled,
        "dropped": dropped,
    }


def in_process_of_its_own(mode: str, amount: int, count: int, broker: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="tocsin-bench-") as spool:
        command = [sys.executable, __file__, "--one", mode, "--work", str(amount)]
        command += ["--count", str(count), "--broker", broker, "--spool", spool]
        told = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=os.environ)
    result: dict[str, float] = json.loads(told.stdout)
    return result


@contextlib.contextmanager
def brokers() -> Iterator[dict[str, str]]:
    """A broker for each mode that needs one, and somebody who asks."""
    with contextlib.ExitStack() as stack:
        addresses = {BARE: NOBODY, LOGGED: NOBODY, AWAY: NOBODY}
        for mode, asked in ((UNASKED, ()), (EVERY_EVENT, EVENTS), (EVERY_RESOURCE, ("Concept",))):
            running = stack.enter_context(served(env={"TOCSIN_MONITOR__ENABLED": "false"}))
            addresses[mode] = running.url
            if asked:
                # A subscription that nobody reads: what the broker does for it is not our concern.
                subscription = HttpLink(running.url).subscribe(asked)
                subscription.take(0.5)
                stack.callback(subscription.close)
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
    amount = work_amount()
    runs: dict[str, list[dict[str, float]]] = {mode: [] for mode in MODES}
    with brokers() as addresses:
        for _ in range(rounds):
            for mode in MODES:
                count = 2_000 if arguments.quick else ACTIVITIES
                runs[mode].append(in_process_of_its_own(mode, amount, count, addresses[mode]))
    say(runs, arguments.json)


def say(runs: dict[str, list[dict[str, float]]], json_path: str | None) -> None:
    best = {mode: min(each, key=lambda run: run["loop_s"]) for mode, each in runs.items()}
    cpu = {mode: min(run["cpu_s"] for run in each) for mode, each in runs.items()}
    base = best[BARE]["loop_s"]
    slower = {mode: 100 * (run["loop_s"] / base - 1) for mode, run in best.items()}
    dearer = {mode: 100 * (cpu_s / cpu[BARE] - 1) for mode, cpu_s in cpu.items()}
    report.table(
        ["", "loop s", "slower %", "CPU %", "target %", "pause ms", "sent", "spooled", "dropped"],
        [
            [
                mode,
                run["loop_s"],
                slower[mode],
                dearer[mode],
                TARGET_PERCENT if "tracked" in mode else None,
                min(each["pause_ms"] for each in runs[mode]),
                int(run["sent"]),
                int(run["spooled"]),
                int(run["dropped"]),
            ]
            for mode, run in best.items()
        ],
    )
    if json_path:
        results = {
            mode: {**run, "slower_percent": slower[mode], "cpu_percent": dearer[mode]}
            for mode, run in best.items()
        }
        report.write("tracking", results, json_path)


if __name__ == "__main__":
    main()
