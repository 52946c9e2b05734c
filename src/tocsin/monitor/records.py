"""Runs and activities as the monitor shows them: what provenance, estimates and people build on.

Times are RFC 3339 texts in UTC, to the millisecond, by the clock of whoever sent them. What nobody
reported is None, or empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from tocsin.wire.api.run_views import MessageInfo

RunState = Literal[
    "created", "running", "idle", "suspended", "completed", "failed", "aborted", "lost"
]
ActivityState = Literal[
    "planned",
    "queued",
    "held",
    "running",
    "retrying",
    "succeeded",
    "failed",
    "cancelled",
    "skipped",
    "cached",
    "lost",
]

RUN_STATES: Final[tuple[RunState, ...]] = get_args(RunState)
ACTIVITY_STATES: Final[tuple[ActivityState, ...]] = get_args(ActivityState)
ENDED_RUN: Final[frozenset[str]] = frozenset({"completed", "failed", "aborted"})
ENDED_ACTIVITY: Final[frozenset[str]] = frozenset(
    {"succeeded", "failed", "cancelled", "skipped", "cached"}
)
DONE_ACTIVITY: Final[frozenset[str]] = frozenset({"succeeded", "skipped", "cached"})


def done_count(counts: Mapping[str, int | None], run: str) -> int:
    """How many activities came to a good end, or need not be run, given the state of their run.

    Engines do not separate what was skipped because it was not needed from what was skipped because
    something before it failed. So once anything failed, what was skipped counts no more, unless
    the run completed all the same.
    """
    good = (counts.get("succeeded") or 0) + (counts.get("cached") or 0)
    is_hurt = run in ("failed", "aborted") or counts.get("failed") or counts.get("cancelled")
    if is_hurt and run != "completed":
        return good
    return good + (counts.get("skipped") or 0)


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Something about a run that cannot be as it was reported. Its state is shown all the same."""

    kind: str
    detail: str
    activity: str | None = None
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class ActivityCounts:
    """How many activities of a run are in each state, each counted once, by its latest attempt.

    `total` is how many there will be, if that was announced; `known` how many were seen.
    """

    total: int | None = None
    known: int = 0
    planned: int = 0
    queued: int = 0
    running: int = 0
    held: int = 0
    retrying: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0
    cached: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class WorkflowFile:
    """A file of the workflow's definition; the text is None if it was not sent."""

    path: str
    sha256: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One execution of a workflow."""

    id: str
    workflow: str = ""
    version: str = ""
    engine: str = ""
    user: str = ""
    host: str = ""
    state: RunState = "created"
    started: str | None = None
    ended: str | None = None
    duration_s: float | None = None
    last_event: str | None = None
    parent: str | None = None
    activities: ActivityCounts = ActivityCounts()
    progress: float | None = None
    anomalies: int = 0
    # What only one run's own page shows.
    engine_version: str = ""
    error: str | None = None
    trace: str | None = None
    working_directory: str | None = None
    command: str | None = None
    log: str | None = None
    exit_code: int | None = None
    resources: Mapping[str, float] = field(default_factory=dict)
    anomaly_list: tuple[Anomaly, ...] = ()
    alerts: tuple[Mapping[str, Any], ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[WorkflowFile, ...] = ()
    plan: Mapping[str, int] = field(default_factory=dict)
    """Announced activities by type."""
    types: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Activities by type and state; of a run with very many types, the first of them."""
    retried: int = 0
    """How many activities were tried again after a failure."""
    reused: Mapping[str, Any] | None = None
    """Of an id that was used for several runs: the id, which of them this is, of how many, and what
    the last one is called."""


@dataclass(frozen=True, slots=True)
class ActivityRecord:
    """One activity of a run as its latest attempt left it; `tries` are the attempts before."""

    id: str
    type: str = ""
    version: str = ""
    attempt: int = 1
    state: ActivityState = "planned"
    queued: str | None = None
    started: str | None = None
    ended: str | None = None
    duration_s: float | None = None
    """Never negative: None if the end is before the start."""
    host: str | None = None
    exit_code: int | None = None
    error: str | None = None
    trace: str | None = None
    log: str | None = None
    """The end of the log; `log_file` is where all of it is."""
    command: str | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    input_bytes: int | None = None
    output_bytes: int | None = None
    external_bytes: int | None = None
    resources: Mapping[str, float] = field(default_factory=dict)
    parents: tuple[str, ...] = ()
    attempts: int = 1
    log_file: str | None = None
    job: str | None = None
    """What the engine or the batch system calls it."""
    container: str | None = None
    run: str = ""
    tries: tuple[ActivityRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """An activity that failed, how often the same was seen before, and what came before it."""

    activity: ActivityRecord
    seen_before: int
    before: tuple[MessageInfo, ...]
    recovered: bool = False
    """A later try of the same activity came to a good end."""
