"""What the API answers about workflow runs, as types."""

from __future__ import annotations

from typing import Any

import msgspec


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """Every member is always there; what nobody told is null."""


class AnomalyShown(Shown, frozen=True, kw_only=True):
    """Something that cannot be as it was told."""

    kind: str
    detail: str
    activity: str | None
    seq: int | None


class CountsShown(Shown, frozen=True, kw_only=True):
    """Activities by state. `total` is what was announced, `known` what was heard of."""

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


class FileShown(Shown, frozen=True, kw_only=True):
    """A file of the workflow; `text` is null if it was too long."""

    path: str
    sha256: str
    text: str | None


class RunShown(Shown, frozen=True, kw_only=True):
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
    activities: CountsShown
    progress: float | None
    anomalies: int


class ReusedShown(Shown, frozen=True, kw_only=True):
    """An id that was used for several runs: this is the `number`-th of them, and `last` the id of
    the last one."""

    id: str
    number: int
    of: int
    last: str


class WholeRunShown(RunShown, frozen=True, kw_only=True):
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
    anomaly_list: list[AnomalyShown]
    alerts: list[dict[str, Any]]
    parameters: dict[str, Any]
    files: list[FileShown]
    plan: dict[str, int]
    types: dict[str, dict[str, int]]
    retried: int
    reused: ReusedShown | None


class RunsPage(Shown, frozen=True, kw_only=True):
    """Some runs, the latest first. Pass `next` as `after` to go on; null is the end."""

    runs: list[RunShown]
    next: str | None


class ActivityShown(Shown, frozen=True, kw_only=True):
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
    tries: list[ActivityShown]


class ActivitiesPage(Shown, frozen=True, kw_only=True):
    """Some activities, by name. Pass `next` as `after` to go on; null is the end."""

    activities: list[ActivityShown]
    next: str | None


class MessageShown(Shown, frozen=True, kw_only=True):
    """A message of a run: when it happened, when it came, and what it says."""

    seq: int
    time: str | None
    received: str
    pairs: dict[str, str]


class MessagesShown(Shown, frozen=True, kw_only=True):
    events: list[MessageShown]


class FailureShown(ActivityShown, frozen=True, kw_only=True):
    """An attempt that failed, how often the same was seen, and the last events before it.

    `recovered` is true if a later try of the same activity came to a good end.
    """

    recovered: bool
    seen_before: int
    before: list[MessageShown]


class EndShown(Shown, frozen=True, kw_only=True):
    """What the run itself says of its end."""

    id: str
    state: str
    error: str | None
    trace: str | None
    log: str | None
    exit_code: int | None
    before: list[MessageShown]


class FailuresShown(Shown, frozen=True, kw_only=True):
    failures: list[FailureShown]
    run: EndShown


class HintShown(Shown, frozen=True, kw_only=True):
    """Activities that follow each other and need not, and the time that would save."""

    first: str
    second: str
    saves_s: float
    why: str


class HintsShown(Shown, frozen=True, kw_only=True):
    """`reason` is why nothing can be said, where that is so; else null."""

    hints: list[HintShown]
    reason: str | None


class TypeShown(Shown, frozen=True, kw_only=True):
    type: str
    workflow: str
    activities: int
    runs: int
    failed: int


class TypesShown(Shown, frozen=True, kw_only=True):
    activities: list[TypeShown]


class DifferenceShown(Shown, frozen=True, kw_only=True):
    what: str
    a: Any
    b: Any


class ValuesShown(Shown, frozen=True, kw_only=True):
    a: Any
    b: Any


class FileChangeShown(Shown, frozen=True, kw_only=True):
    path: str
    change: str


class SideShown(Shown, frozen=True, kw_only=True):
    """One run's activities of a type."""

    count: int
    failed: int
    mean_s: float | None
    longest_s: float | None
    total_s: float


class TypeCompared(Shown, frozen=True, kw_only=True):
    """A type in both runs; `ratio` is the mean of b against that of a."""

    type: str
    a: SideShown | None
    b: SideShown | None
    ratio: float | None


class FaultShown(Shown, frozen=True, kw_only=True):
    activity: str
    type: str
    error: str | None
    exit_code: int | None


class Comparison(Shown, frozen=True, kw_only=True):
    """What differs between two runs."""

    a: str
    b: str
    differences: list[DifferenceShown]
    parameters: dict[str, ValuesShown]
    files: list[FileChangeShown]
    activities: list[TypeCompared]
    new_failures: list[FaultShown]
    gone_failures: list[FaultShown]


class ChangeShown(Shown, frozen=True, kw_only=True):
    """A recorded change of a workflow's definition."""

    seq: int
    time: str | None
    pairs: dict[str, str]


class ChangesShown(Shown, frozen=True, kw_only=True):
    """What changed since the run of the same workflow before this one."""

    run: str
    workflow: str
    version: str | None
    previous_run: str | None
    previous_version: str | None
    changes: list[ChangeShown]
    parameters: dict[str, ValuesShown]
    files: list[FileChangeShown]


class WorkflowChangesShown(Shown, frozen=True, kw_only=True):
    changes: list[ChangeShown]


class VersionShown(Shown, frozen=True, kw_only=True):
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


class VersionsShown(Shown, frozen=True, kw_only=True):
    """Some versions, the latest first. Pass `next` as `after` to go on; null is the end."""

    versions: list[VersionShown]
    next: str | None
