"""What provenance is made from: a run, its activities, and the versions of its workflow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from tocsin.wire.api.run_views import ActivityInfo, RunDetails

# Without a beginning it did not run, unless its state says that it did.
_RAN = frozenset({"running", "retrying", "succeeded", "failed", "lost"})
_DATE_TIME = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)", re.ASCII
)
_NEVER_RAN = frozenset({"skipped", "cached"})


@dataclass(frozen=True, slots=True)
class WorkflowVersion:
    """A version of a workflow as it was recorded, and the one that it was made from.

    `previous_workflow` is the workflow that it was forked from, if that has another name.
    """

    workflow: str
    version: str
    previous: str | None = None
    previous_workflow: str = ""
    saved: str | None = None


@dataclass(frozen=True, slots=True)
class RunView:
    """A run and all that is known of it.

    The activities are gone through some fifteen times and must not change meanwhile: hand over a
    tuple, unless they are cheap to make again. `exported` is the time of now, for the crate.
    """

    run: RunDetails
    activities: Sequence[ActivityInfo]
    versions: Sequence[WorkflowVersion] = ()
    exported: str | None = None


def attempts(activity: ActivityInfo) -> tuple[ActivityInfo, ...]:
    """Every attempt at it, the latest last."""
    return (*activity.tries, activity) if activity.tries else (activity,)


def ran(attempt: ActivityInfo) -> bool:
    """True if it took place. What was skipped, or taken from a cache, is written otherwise."""
    if attempt.state in _NEVER_RAN:
        return False
    return attempt.state in _RAN or attempt.started is not None


def ran_attempts(view: RunView) -> Iterator[tuple[ActivityInfo, ActivityInfo]]:
    """Each activity with each of its attempts that took place."""
    for activity in view.activities:
        for attempt in attempts(activity):
            if ran(attempt):
                yield activity, attempt


def moment(time: str | None) -> str | None:
    """The time as an xsd:dateTime, or None if it is none."""
    if time is None:
        return None
    try:
        read = datetime.fromisoformat(time)
    except ValueError:
        return None
    # Of the shapes that can be read, such as a bare date, all readers take one.
    return time if _DATE_TIME.fullmatch(time) else read.isoformat()


def interval(started: str | None, ended: str | None) -> tuple[str | None, str | None]:
    """Beginning and end; no end if it is before the beginning, which PROV does not allow."""
    begin, end = moment(started), moment(ended)
    if begin and end:
        first, last = datetime.fromisoformat(begin), datetime.fromisoformat(end)
        if (first.tzinfo is None) == (last.tzinfo is None) and last < first:
            return begin, None
    return begin, end
