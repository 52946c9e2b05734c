"""`tocsin wf watch`: a run in progress, in place on a terminal, else a line for each change."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Protocol

from tocsin.cli.format import (
    ENDED,
    Clock,
    at,
    counted,
    duration_text,
    instant,
    left,
    percent,
    states,
)
from tocsin.cli.render import safe, say, show, show_json
from tocsin.cli.rest import Rest
from tocsin.cli.tables import field_lines, screen_height, screen_width, table_lines, truncate
from tocsin.cli.wf.run_queries import Run, activities, estimate_of, find_run, latest
from tocsin.cli.wf.runs import alert_text, head, paint_state
from tocsin.errors import BadSetting, CannotReachBroker, NothingArrived

PATIENCE_S = 300.0  # with a broker that is gone
RUNNING_SHOWN = 10
FAILED_SHOWN = 5
ALERTS_SHOWN = 5
FAILED = 1


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """A run as it is at one moment."""

    run: Run
    estimate: dict[str, Any] | None
    running: list[dict[str, Any]]
    failed: list[dict[str, Any]]

    @property
    def key(self) -> tuple[object, ...]:
        """What must differ for a change to be printed."""
        return self.run["state"], *(self.run.get("activities") or {}).values()

    @property
    def is_last(self) -> bool:
        return self.run["state"] in ENDED or self.run["state"] == "lost"


class View(Protocol):
    """A way to show looks."""

    def update(self, snapshot: RunSnapshot, now: datetime) -> None:
        """Show it, if it is new."""


def watch(rest: Rest, arguments: Namespace, clock: Clock) -> int:
    """Follow a run to its end; exit code 1 unless it completed."""
    deadline = None if arguments.timeout is None else time.monotonic() + arguments.timeout
    view = _view(arguments)
    run = _first(rest, arguments, deadline)
    for snapshot in _snapshots(rest, run, arguments.interval, deadline):
        view.update(snapshot, clock())
    if snapshot.run["state"] == "completed":
        return 0
    if snapshot.run["state"] == "lost":
        say("no event of the run for too long; if it continues, watch it again")
    elif (snapshot.run.get("activities") or {}).get("failed"):
        say(f"why: tocsin wf failures {snapshot.run['id']}")
    return FAILED


def _view(arguments: Namespace) -> View:
    if arguments.json:
        return JsonLines()
    if sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        return Screen()
    return Lines()


def _first(rest: Rest, arguments: Namespace, deadline: float | None) -> Run:
    """The run that was named, or the latest; one that is still to come is waited for."""
    if arguments.run is not None:
        if arguments.next:
            raise BadSetting(
                "a run and --next cannot be used together", remedy="Leave one of them out."
            )
        return find_run(rest, arguments.run)
    known = latest(rest)
    if known is None or arguments.next:
        known_text = "no runs yet" if known is None else f"the latest is {known['id']}"
        say(f"{known_text}; waiting for the next one, Ctrl-C stops")
        before = known and known["id"]
        while known is None or known["id"] == before:
            _pause(arguments.interval, deadline)
            known = latest(rest)
    return find_run(rest, str(known["id"]))


def _snapshots(
    rest: Rest, run: Run, interval_s: float, deadline: float | None
) -> Iterator[RunSnapshot]:
    """The run again and again, the last time when it has ended."""
    gone_since: float | None = None
    while True:
        try:
            snapshot = _snapshot(rest, run["id"])
            gone_since = None
        except CannotReachBroker as error:
            now = time.monotonic()
            if gone_since is None:
                gone_since = now
                say(f"{error.problem}; trying again")
            if now - gone_since > PATIENCE_S:
                raise
        else:
            yield snapshot
            if snapshot.is_last:
                return
        _pause(interval_s, deadline)


def _snapshot(rest: Rest, name: str) -> RunSnapshot:
    run = find_run(rest, name)
    count = run.get("activities") or {}
    going = run["state"] not in ENDED
    running = islice(activities(rest, run, state="running"), RUNNING_SHOWN)
    failed = islice(activities(rest, run, state="failed"), FAILED_SHOWN)
    return RunSnapshot(
        run=run,
        estimate=estimate_of(rest, run) if going else None,
        running=list(running) if count.get("running") else [],
        failed=list(failed) if count.get("failed") else [],
    )


def _pause(interval_s: float, deadline: float | None) -> None:
    if deadline is not None and time.monotonic() + interval_s > deadline:
        raise NothingArrived(
            "the time ran out before the run ended", remedy="Give more with --timeout."
        )
    time.sleep(interval_s)


class JsonLines:
    """For programs: the run with its estimate, each time it has changed."""

    def __init__(self) -> None:
        self._last: object = None

    def update(self, snapshot: RunSnapshot, now: datetime) -> None:
        if snapshot.key == self._last:
            return
        self._last = snapshot.key
        show_json({**snapshot.run, "estimate": snapshot.estimate})
        sys.stdout.flush()


class Lines:
    """For a log: a line for each change, and for each activity that failed or is slow."""

    def __init__(self) -> None:
        self._last: object = None
        self._printed: set[str] = set()

    def update(self, snapshot: RunSnapshot, now: datetime) -> None:
        notices = {f"failed {each['id']}": failed_text(each) for each in snapshot.failed}
        for each in snapshot.run.get("alerts") or ():
            notices[f"{each.get('kind')} {each.get('activity')}"] = alert_text(each)
        for key, text in notices.items():
            if key not in self._printed:
                self._printed.add(key)
                show(f"{now.astimezone():%H:%M:%S}  {text}")
        if snapshot.key != self._last:
            self._last = snapshot.key
            show(change_text(snapshot, now))
        sys.stdout.flush()


def change_text(snapshot: RunSnapshot, now: datetime) -> str:
    """The state of a run in one line."""
    parts = [f"{now.astimezone():%H:%M:%S}", f"{snapshot.run['state']:<9}"]
    if snapshot.run.get("progress") is not None:
        parts.append(f"{percent(snapshot.run['progress']):>4}")
    others = states(snapshot.run.get("activities") or {})
    parts.append(counted(snapshot.run) + (f"; {others}" if others else ""))
    if snapshot.estimate and snapshot.estimate.get("remaining_s") is not None:
        parts.append(f"left {left(snapshot.estimate)}")
    elif snapshot.is_last:
        parts.append(f"after {duration_text(snapshot.run.get('duration_s'))}")
    return "  ".join(parts)


def failed_text(activity: dict[str, Any]) -> str:
    """An activity that failed, in one line."""
    text = f"failed: {activity['id']}"
    if activity.get("exit_code") is not None:
        text += f", exit code {activity['exit_code']}"
    first = str(activity.get("error") or "").strip().partition("\n")[0]
    return text + (f": {first}" if first else "")


class Screen:
    """For a person: the same lines again and again, each time over the last ones."""

    def __init__(self) -> None:
        self._drawn = 0

    def update(self, snapshot: RunSnapshot, now: datetime) -> None:
        width = screen_width()
        lines = screen_lines(snapshot, now, width)[: max(1, screen_height() - 1)]
        # Up to where the last ones began, then everything below is cleared.
        back = f"\x1b[{self._drawn}F\x1b[J" if self._drawn else ""
        sys.stdout.write(back + "".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
        self._drawn = len(lines)


def screen_lines(snapshot: RunSnapshot, now: datetime, width: int) -> list[str]:
    """The screen of a running run; no line is longer than `width`."""
    lines = field_lines(head(snapshot.run, snapshot.estimate, now), width=width, paint=paint_state)
    if snapshot.running:
        rows = [
            (each.get("type"), each["id"], _so_far(each, now), each.get("host"))
            for each in snapshot.running
        ]
        lines += ["", *table_lines(("running now", "activity", "for", "on"), rows, width=width)]
        more = int(snapshot.run["activities"].get("running") or 0) - len(rows)
        lines += [f"and {more:,} more"] if more > 0 else []
    alerts = [alert_text(each) for each in snapshot.run.get("alerts") or ()]
    if alerts:
        lines += ["", *(truncate(safe(text), width) for text in alerts[:ALERTS_SHOWN])]
    if snapshot.failed:
        lines += ["", *(truncate(safe(failed_text(each)), width) for each in snapshot.failed)]
    return lines


def _so_far(activity: dict[str, Any], now: datetime) -> str:
    started = instant(activity.get("started"))
    if started is None:
        return "-"
    if started > now:  # by a clock that is ahead of ours
        return at(activity["started"], now)
    return duration_text((now - started).total_seconds())
