"""Scene: a workflow tells what it does, and is asked how long it takes and why it failed.

The workflow is a process of its own, and the broker is killed in its middle: it does not notice.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tocsin.cli.demo.stage import Stage
from tocsin.client.tracking import Workflow
from tocsin.client.tracking.spool import send_all
from tocsin.errors import SomeFailed

NAME = "demo-forecast"
MEMBERS = 6
PAST_RUNS = 4
MEMBER_S = 0.12
FAILS = "disk quota exceeded while writing member 5"

Run = dict[str, Any]


def play(stage: Stage) -> None:
    for number in range(PAST_RUNS):
        _forecast(stage.url, f"run-{number}", fails=False)
    stage.say(
        f"A forecast of {MEMBERS} members ran {PAST_RUNS} times. Once more, in its own process:\n"
        "the broker is killed in the middle, and a member fails. What could not be sent waits\n"
        "in a file, and `tocsin wf send` sends it."
    )
    estimate = _run_once_more(stage)
    runs: list[Run] = stage.ask("GET", f"/runs?workflow={NAME}")["runs"]
    rows: list[list[object]] = [
        [run["id"], run["state"], _done(run), f"{run['duration_s']:.1f} s"] for run in runs
    ]
    stage.table(["run", "state", "activities", "took"], rows)
    failures = stage.ask("GET", "/runs/run-last/failures?last=3")["failures"]
    stage.results["workflow"] = {"runs": rows, "estimate": estimate, "failures": len(failures)}
    _check(runs, estimate, failures)
    stage.say(
        f"Half-way it had {estimate['remaining_s']:.1f} s left "
        f"({estimate['low_s']:.1f} to {estimate['high_s']:.1f}); {estimate['reason']}\n"
        f"Why it failed: {failures[0]['type']}: {failures[0]['error']}\n"
        f"`tocsin wf show run-last --broker {stage.url}` has it all."
    )


def _run_once_more(stage: Stage) -> dict[str, Any]:
    """What was estimated in the middle; the broker is killed and started again after that."""
    with tempfile.TemporaryDirectory(prefix="tocsin-demo-spool-") as spool:
        command = [sys.executable, __file__, stage.url, spool]
        running = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        stage.until(lambda: _ended(stage) >= MEMBERS // 2, "half of the run")
        estimate: dict[str, Any] = stage.ask("GET", "/runs/run-last/estimate")
        stage.kill()
        time.sleep(2 * MEMBER_S)
        stage.start()
        running.wait()
        send_all(stage.url, Path(spool))
    stage.until(lambda: _state(stage) == "failed", "the end of the run")
    return estimate


def _ended(stage: Stage) -> int:
    run = stage.ask("GET", "/runs/run-last")
    return int(run["activities"]["succeeded"]) if "activities" in run else 0


def _state(stage: Stage) -> str:
    return str(stage.ask("GET", "/runs/run-last").get("state"))


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
