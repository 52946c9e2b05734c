"""Part: a workflow reports its activities; how long it takes, and why it failed.

The workflow runs in its own process, and the broker is killed in its middle: it goes on.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tocsin.cli.demo.context import DemoContext
from tocsin.client.tracking import Workflow
from tocsin.client.tracking.spool import send_all
from tocsin.errors import SomeFailed

NAME = "demo-forecast"
MEMBERS = 6
PAST_RUNS = 4
MEMBER_S = 0.12
FAILS = "disk quota exceeded while writing member 5"

Run = dict[str, Any]


def run(demo: DemoContext) -> None:
    for number in range(PAST_RUNS):
        _forecast(demo.url, f"run-{number}", fails=False)
    demo.print(
        f"A forecast of {MEMBERS} members ran {PAST_RUNS} times. Once more, in its own process:\n"
        "the broker is killed in the middle, and a member fails. What could not be sent waits\n"
        "in a file, and `tocsin wf send` sends it."
    )
    estimate = _run_once_more(demo)
    runs: list[Run] = demo.request("GET", f"/runs?workflow={NAME}")["runs"]
    rows: list[list[object]] = [
        [run["id"], run["state"], _done(run), f"{run['duration_s']:.1f} s"] for run in runs
    ]
    demo.table(["run", "state", "activities", "took"], rows)
    failures = demo.request("GET", "/runs/run-last/failures?last=3")["failures"]
    demo.results["workflow"] = {"runs": rows, "estimate": estimate, "failures": len(failures)}
    _check(runs, estimate, failures)
    demo.print(
        f"Half-way it had {estimate['remaining_s']:.1f} s left "
        f"({estimate['low_s']:.1f} to {estimate['high_s']:.1f}); {estimate['reason']}\n"
        f"Why it failed: {failures[0]['type']}: {failures[0]['error']}\n"
        f"`tocsin wf show run-last --broker {demo.url}` has it all."
    )


def _run_once_more(demo: DemoContext) -> dict[str, Any]:
    """What was estimated in the middle; the broker is killed and started again after that."""
    with tempfile.TemporaryDirectory(prefix="tocsin-demo-spool-") as spool:
        command = [sys.executable, __file__, demo.url, spool]
        running = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        demo.until(lambda: _ended(demo) >= MEMBERS // 2, "half of the run")
        estimate: dict[str, Any] = demo.request("GET", "/runs/run-last/estimate")
        demo.kill()
        time.sleep(2 * MEMBER_S)
        demo.start()
        running.wait()
        send_all(demo.url, Path(spool))
    demo.until(lambda: _state(demo) == "failed", "the end of the run")
    return estimate


def _ended(demo: DemoContext) -> int:
    run = demo.request("GET", "/runs/run-last")
    return int(run["activities"]["succeeded"]) if "activities" in run else 0


def _state(demo: DemoContext) -> str:
    return str(demo.request("GET", "/runs/run-last").get("state"))


def _done(run: Run) -> str:
    counts = run["activities"]
    failed = f", {counts['failed']} failed" if counts["failed"] else ""
    return f"{counts['succeeded']} of {counts['total']}{failed}"


def _check(runs: list[Run], estimate: dict[str, Any], failures: list[dict[str, Any]]) -> None:
    states = [run["state"] for run in runs]
    good = [run["activities"]["succeeded"] for run in runs if run["state"] == "completed"]
    held = (
        states == ["failed"] + ["completed"] * PAST_RUNS
        and good == [MEMBERS + 1] * PAST_RUNS
        and [failure["error"] for failure in failures] == [f"OSError: {FAILS}"]
        and "remaining_s" in estimate
    )
    if not held:
        raise SomeFailed("the state of the runs is wrong", remedy="Please report this.")


def _forecast(broker: str, run_id: str, *, fails: bool, spool: Path | None = None) -> None:
    """The workflow itself: fetch, and one member after the other."""
    with Workflow(NAME, run_id=run_id, broker=broker, spool=spool) as run:
        run.plan(counts={"fetch": 1, "member": MEMBERS}, cores=1)
        with run.activity("fetch"):
            time.sleep(MEMBER_S / 2)
        for number in range(MEMBERS):
            with run.activity("member"):
                time.sleep(MEMBER_S)
                if fails and number == MEMBERS - 1:
                    raise OSError(FAILS)


def main() -> None:
    broker, spool = sys.argv[1:]
    try:
        _forecast(broker, "run-last", fails=True, spool=Path(spool))
    except OSError:
        sys.exit(1)


if __name__ == "__main__":
    main()
