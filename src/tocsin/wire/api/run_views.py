"""What is known of workflow runs, as the API answers it: what the monitor makes of events, and what
provenance and the pages for people are made from.

Times are RFC 3339 texts in UTC, to the millisecond, by the clock of whoever sent them. What nobody
reported is null, or empty.
"""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

import msgspec
from msgspec import field

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


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Every member is always there; what no message has is null, or empty."""


class AnomalyInfo(View, frozen=True):
    """Something that cannot be as the messages say. The state is shown all the same."""

    kind: str
    detail: str
    activity: str | None = None
    seq: int | None = None


class CountsInfo(View, frozen=True, kw_only=True):
    """Activities by state, each counted once, by its latest attempt. `total` is what was announced,
    `known` what messages named."""

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


class FileInfo(View, frozen=True):
    """A file of the workflow; `text` is null if it was too long."""

    path: str
    sha256: str
    text: str | None = None


class RunInfo(View, frozen=True, kw_only=True):
    """A run. `duration_s` of a run under way is how long so far."""

    id: str
    workflow: str = ""
    version: str = ""
    engine: str = ""
    engine_version: str = ""
    user: str = ""
    host: str = ""
    state: RunState = "created"
    started: str | None = None
    ended: str | None = None
    duration_s: float | None = None
    last_event: str | None = None
    parent: str | None = None
    activities: CountsInfo = CountsInfo()
    progress: float | None = None
    anomalies: int = 0


class ReusedInfo(View, frozen=True, kw_only=True):
    """An id that was used for several runs: this is the `number`-th of them, and `last` the id of
    the last one."""

    id: str
    number: int
    of: int
    last: str


class RunDetails(RunInfo, frozen=True, kw_only=True):
    """A run with all that is known of it. `plan` counts announced activities by type, `types`
    all activities by type and state, of the first types if there are very many.

    `retried` is how many activities were tried again after a failure; `reused` is null unless its
    id was used for other runs too.
    """

    error: str | None = None
    trace: str | None = None
    working_directory: str | None = None
    command: str | None = None
    log: str | None = None
    exit_code: int | None = None
    resources: dict[str, float] = field(default_factory=dict)
    anomaly_list: tuple[AnomalyInfo, ...] = ()
    alerts: tuple[dict[str, Any], ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)
    files: tuple[FileInfo, ...] = ()
    plan: dict[str, int] = field(default_factory=dict)
    types: dict[str, dict[str, int]] = field(default_factory=dict)
    retried: int = 0
    reused: ReusedInfo | None = None


class RunsPage(View, frozen=True, kw_only=True):
    """Some runs, the latest first. Pass `next` as `after` to go on; null is the end."""

    runs: list[RunInfo]
    next: str | None


class ActivityInfo(View, frozen=True, kw_only=True):
    """An activity as its latest attempt left it; `tries` are those before.

    `duration_s` is null if the end is before the start. `log` is the end of what is in `log_file`,
    and `job` what the engine or the batch system calls it.
    """

    id: str
    run: str = ""
    type: str = ""
    version: str = ""
    attempt: int = 1
    attempts: int = 1
    state: ActivityState = "planned"
    queued: str | None = None
    started: str | None = None
    ended: str | None = None
    duration_s: float | None = None
    host: str | None = None
    exit_code: int | None = None
    error: str | None = None
    trace: str | None = None
    log: str | None = None
    log_file: str | None = None
    command: str | None = None
    job: str | None = None
    container: str | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    input_bytes: int | None = None
    output_bytes: int | None = None
    external_bytes: int | None = None
    resources: dict[str, float] = field(default_factory=dict)
    parents: tuple[str, ...] = ()
    tries: tuple[ActivityInfo, ...] = ()


class ActivitiesPage(View, frozen=True, kw_only=True):
    """Some activities, by name. Pass `next` as `after` to go on; null is the end."""

    activities: list[ActivityInfo]
    next: str | None


class MessageInfo(View, frozen=True, kw_only=True):
    """A message of a run: when it happened, when it came, and what it says."""

    seq: int
    time: str | None
    received: str
    pairs: dict[str, str]


class MessageList(View, frozen=True, kw_only=True):
    events: list[MessageInfo]


class FailureInfo(ActivityInfo, frozen=True, kw_only=True):
    """An attempt that failed, how often the same was seen, and the last events before it.

    `recovered` is true if a later try of the same activity came to a good end.
    """

    recovered: bool
    seen_before: int
    before: list[MessageInfo]


class EndInfo(View, frozen=True, kw_only=True):
    """What the run itself says of its end."""

    id: str
    state: str
    error: str | None
    trace: str | None
    log: str | None
    exit_code: int | None
    before: list[MessageInfo]


class FailureList(View, frozen=True, kw_only=True):
    failures: list[FailureInfo]
    run: EndInfo


class HintInfo(View, frozen=True, kw_only=True):
    """Activities that follow each other and need not, and the time that would save."""

    first: str
    second: str
    saves_s: float
    why: str


class HintList(View, frozen=True, kw_only=True):
    """`reason` is why there is none, where that is so; else null."""

    hints: list[HintInfo]
    reason: str | None


class TypeInfo(View, frozen=True, kw_only=True):
    type: str
    workflow: str
    activities: int
    runs: int
    failed: int


class TypeList(View, frozen=True, kw_only=True):
    activities: list[TypeInfo]


class DifferenceInfo(View, frozen=True, kw_only=True):
    what: str
    a: Any
    b: Any


class ValuesInfo(View, frozen=True, kw_only=True):
    a: Any
    b: Any


class FileChangeInfo(View, frozen=True, kw_only=True):
    path: str
    change: str


class SideInfo(View, frozen=True, kw_only=True):
    """One run's activities of a type."""

    count: int
    failed: int
    mean_s: float | None
    longest_s: float | None
    total_s: float


class TypeCompared(View, frozen=True, kw_only=True):
    """A type in both runs; `ratio` is the mean of b against that of a."""

    type: str
    a: SideInfo | None
    b: SideInfo | None
    ratio: float | None


class FaultInfo(View, frozen=True, kw_only=True):
    activity: str
    type: str
    error: str | None
    exit_code: int | None


class Comparison(View, frozen=True, kw_only=True):
    """What differs between two runs."""

    a: str
    b: str
    differences: list[DifferenceInfo]
    parameters: dict[str, ValuesInfo]
    files: list[FileChangeInfo]
    activities: list[TypeCompared]
    new_failures: list[FaultInfo]
    gone_failures: list[FaultInfo]


class ChangeInfo(View, frozen=True, kw_only=True):
    """A recorded change of a workflow's definition."""

    seq: int
    time: str | None
    pairs: dict[str, str]


class RunChanges(View, frozen=True, kw_only=True):
    """What changed since the run of the same workflow before this one."""

    run: str
    workflow: str
    version: str | None
    previous_run: str | None
    previous_version: str | None
    changes: list[ChangeInfo]
    parameters: dict[str, ValuesInfo]
    files: list[FileChangeInfo]


class WorkflowChanges(View, frozen=True, kw_only=True):
    changes: list[ChangeInfo]


class VersionInfo(View, frozen=True, kw_only=True):
    """A recorded version; `changes` is how many led to it.

    `previous` is of the same workflow unless `previous_workflow` names another.
    """

    version: str
    previous: str | None
    previous_workflow: str | None
    time: str
    seq: int
    changes: int
    pairs: dict[str, str]


class VersionList(View, frozen=True, kw_only=True):
    """Some versions, the latest first. Pass `next` as `after` to go on; null is the end."""

    versions: list[VersionInfo]
    next: str | None
