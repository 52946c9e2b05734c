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
    instant,
    lasting,
    left,
    percent,
    states,
)
from tocsin.cli.render import safe, say, show, show_json
from tocsin.cli.rest import Rest
from tocsin.cli.wf.run_queries import Run, activities, estimate_of, find_run, latest
from tocsin.cli.wf.runs import alert_text, head, paint_state
from tocsin.cli.wf.tables import cut, described, lines_of_table, screen_height, screen_width
from tocsin.errors import BadSetting, CannotReachBroker, NothingArrived

PATIENCE_S = 300.0  # with a broker that is gone
RUNNING_SHOWN = 10
FAILED_SHOWN = 5
ALERTS_SHOWN = 5
FAILED = 1


@dataclass(frozen=True, slots=True)
class Look:
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

    def update(self, look: Look, now: datetime) -> None:
        """Show it, if it is new."""


def watch(rest: Rest, arguments: Namespace, clock: Clock) -> int:
    """Follow a run to its end; exit code 1 unless it completed."""
    deadline = None if arguments.timeout is None else time.monotonic() + arguments.timeout
    view = _view(arguments)
    run = _first(rest, arguments, deadline)
    for look in _looks(rest, run, arguments.interval, deadline):
        view.update(look, clock())
    if look.run["state"] == "completed":
        return 0
    if look.run["state"] == "lost":
        say("no event of the run for too long; if it continues, watch it again")
    elif (look.run.get("activities") or {}).get("failed"):
        say(f"why: tocsin wf failures {look.run['id']}")
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


def _looks(rest: Rest, run: Run, interval_s: float, deadline: float | None) -> Iterator[Look]:
    """The run again and again, the last time when it has ended."""
    gone_since: float | None = None
    while True:
        try:
            look = _look(rest, run["id"])
            gone_since = None
        except CannotReachBroker as error:
            now = time.monotonic()
            if gone_since is None:
                gone_since = now
                say(f"{error.problem}; trying again")
            if now - gone_since > PATIENCE_S:
                raise
        else:
            yield look
            if look.is_last:
                return
        _pause(interval_s, deadline)


def _look(rest: Rest, name: str) -> Look:
    run = find_run(rest, name)
    count = run.get("activities") or {}
    going = run["state"] not in ENDED
    running = islice(activities(rest, run, state="running"), RUNNING_SHOWN)
    failed = islice(activities(rest, run, state="failed"), FAILED_SHOWN)
    return Look(
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

    def update(self, look: Look, now: datetime) -> None:
        if look.key == self._last:
            return
        self._last = look.key
        show_json({**look.run, "estimate": look.estimate})
        sys.stdout.flush()


class Lines:
    """For a log: a line for each change, and for each activity that failed or is slow."""

    def __init__(self) -> None:
        self._last: object = None
        self._printed: set[str] = set()

    def update(self, look: Look, now: datetime) -> None:
        notices = {f"failed {each['id']}": failed_text(each) for each in look.failed}
        for each in look.run.get("alerts") or ():
            notices[f"{each.get('kind')} {each.get('activity')}"] = alert_text(each)
        for key, text in notices.items():
            if key not in self._printed:
                self._printed.add(key)
                show(f"{now.astimezone():%H:%M:%S}  {text}")
        if look.key != self._last:
            self._last = look.key
            show(change_text(look, now))
        sys.stdout.flush()


def change_text(look: Look, now: datetime) -> str:
    """The state of a run in one line."""
    parts = [f"{now.astimezone():%H:%M:%S}", f"{look.run['state']:<9}"]
    if look.run.get("progress") is not None:
        parts.append(f"{percent(look.run['progress']):>4}")
    others = states(look.run.get("activities") or {})
    parts.append(counted(look.run) + (f"; {others}" if others else ""))
    if look.estimate and look.estimate.get("remaining_s") is not None:
        parts.append(f"left {left(look.estimate)}")
    elif look.is_last:
        parts.append(f"after {lasting(look.run.get('duration_s'))}")
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

    def update(self, look: Look, now: datetime) -> None:
        width = screen_width()
        lines = screen_lines(look, now, width)[: max(1, screen_height() - 1)]
        # Up to where the last ones began, then everything below is cleared.
        back = f"\x1b[{self._drawn}F\x1b[J" if self._drawn else ""
        sys.stdout.write(back + "".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
        self._drawn = len(lines)


def screen_lines(look: Look, now: datetime, width: int) -> list[str]:
    """The screen of a running run; no line is longer than `width`."""
    lines = described(head(look.run, look.estimate, now), width=width, paint=paint_state)
    if look.running:
        rows = [
            (each.get("type"), each["id"], _so_far(each, now), each.get("host"))
            for each in look.running
        ]
        lines += ["", *lines_of_table(("running now", "activity", "for", "on"), rows, width=width)]
        more = int(look.run["activities"].get("running") or 0) - len(rows)
        lines += [f"and {more:,} more"] if more > 0 else []
    alerts = [alert_text(each) for each in look.run.get("alerts") or ()]
    if alerts:
        lines += ["", *(cut(safe(text), width) for text in alerts[:ALERTS_SHOWN])]
    if look.failed:
        lines += ["", *(cut(safe(failed_text(each)), width) for each in look.failed)]
    return lines


def _so_far(activity: dict[str, Any], now: datetime) -> str:
    started = instant(activity.get("started"))
    if started is None:
        return "-"
    if started > now:  # by a clock that is ahead of ours
        return at(activity["started"], now)
    return lasting((now - started).total_seconds())
