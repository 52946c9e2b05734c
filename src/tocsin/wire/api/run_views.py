"""What the API answers about workflow runs, as types."""

from __future__ import annotations

from typing import Any

import msgspec


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Every member is always there; what no message has is null."""


class AnomalyInfo(View, frozen=True, kw_only=True):
    """Something that cannot be as the messages say."""

    kind: str
    detail: str
    activity: str | None
    seq: int | None


class CountsInfo(View, frozen=True, kw_only=True):
    """Activities by state. `total` is what was announced, `known` what messages named."""

    total: int | None
    known: int
    planned: int
    queued: int
    running: int
    held: int
    retrying: int
    succeeded: int
    failed: int
    cancelled: int
    skipped: int
    cached: int
    lost: int


class FileInfo(View, frozen=True, kw_only=True):
    """A file of the workflow; `text` is null if it was too long."""

    path: str
    sha256: str
    text: str | None


class RunInfo(View, frozen=True, kw_only=True):
    """A run. `duration_s` of a run under way is how long so far."""

    id: str
    workflow: str
    version: str
    engine: str
    engine_version: str
    user: str
    host: str
    state: str
    started: str | None
    ended: str | None
    duration_s: float | None
    last_event: str | None
    parent: str | None
    activities: CountsInfo
    progress: float | None
    anomalies: int


class ReusedInfo(View, frozen=True, kw_only=True):
    """An id that was used for several runs: this is the `number`-th of them, and `last` the id of
    the last one."""

    id: str
    number: int
    of: int
    last: str


class RunDetails(RunInfo, frozen=True, kw_only=True):
    """A run with all that is known of it. `types` counts activities by type and state.

    `retried` is how many activities were tried again after a failure; `reused` is null unless its
    id was used for other runs too.
    """

    error: str | None
    trace: str | None
    working_directory: str | None
    command: str | None
    log: str | None
    exit_code: int | None
    resources: dict[str, float]
    anomaly_list: list[AnomalyInfo]
    alerts: list[dict[str, Any]]
    parameters: dict[str, Any]
    files: list[FileInfo]
    plan: dict[str, int]
    types: dict[str, dict[str, int]]
    retried: int
    reused: ReusedInfo | None


class RunsPage(View, frozen=True, kw_only=True):
    """Some runs, the latest first. Pass `next` as `after` to go on; null is the end."""

    runs: list[RunInfo]
    next: str | None


class ActivityInfo(View, frozen=True, kw_only=True):
    """An activity as its latest attempt left it; `tries` are those before."""

    id: str
    run: str
    type: str
    version: str
    attempt: int
    attempts: int
    state: str
    queued: str | None
    started: str | None
    ended: str | None
    duration_s: float | None
    host: str | None
    exit_code: int | None
    error: str | None
    trace: str | None
    log: str | None
    log_file: str | None
    command: str | None
    job: str | None
    container: str | None
    inputs: list[str]
    outputs: list[str]
    input_bytes: int | None
    output_bytes: int | None
    external_bytes: int | None
    resources: dict[str, float]
    parents: list[str]
    tries: list[ActivityInfo]


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
