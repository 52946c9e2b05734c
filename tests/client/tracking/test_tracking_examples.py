"""The examples of tracking and of the blackboard run as their readers will run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tracked import eventually

from served import ROOT, Served
from tocsin.client.blackboard import HttpLink


def output(name: str, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_tracked_workflow_is_seen_by_a_subscriber(broker: Served, tmp_path: Path) -> None:
    link = HttpLink(broker.url)
    with link.subscribe(["WorkflowEvent", "ActivityEvent", "UserEvent", "Identity"]) as events:
        events.take(0.1)
        assert eventually(lambda: "UserMilestone" in link.profile().concepts)
        [run, _] = output(
            "tracked_workflow.py", TOCSIN_BROKER=broker.url, XDG_STATE_HOME=str(tmp_path)
        )
        seen: list[str] = []

        def is_over() -> bool:
            for _, message in events.take(0.2):
                if message.pairs.get("RunId") == run.removeprefix("run "):
                    seen.append(next(iter(message.pairs)))
            return "WorkflowCompleted" in seen

        assert eventually(is_over)

    assert seen.count("ActivitySucceeded") == 5
    assert seen.count("ActivityRetrying") == 1
    assert {"ActivityPlanned", "UserProgress", "UserMilestone"} <= set(seen)


def test_a_tracked_workflow_runs_just_as_well_without_a_broker(tmp_path: Path) -> None:
    said = output("tracked_workflow.py", TOCSIN_BROKER="127.0.0.1:9", XDG_STATE_HOME=str(tmp_path))

    assert "dropped=0" in said[1]
    assert len(list((tmp_path / "tocsin" / "spool").glob("*.spool"))) == 1


def test_a_blackboard_serves_what_is_no_workflow() -> None:
    assert output("blackboard_without_workflow.py") == [
        "dome {'obs:WindSpeed': '17.5', 'obs:Humidity': '41'}",
        "astronomer {'obs:Seeing': '0.8'}",
        "astronomer {'obs:Exposure': '300', 'obs:Seeing': '0.9'}",
    ]
