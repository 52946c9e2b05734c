"""What an estimate is made from, and the estimate itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Planned:
    """A task as it is known before it runs; `external_bytes` is input that no task produces.

    `input_bytes` is all that it reads, where that is known. `numbers` are those that its command
    names, by name; whether they mean anything is found out from past runs (`amounts`).
    """

    type: str
    parents: tuple[int, ...] = ()
    external_bytes: int | None = None
    version: str = ""
    input_bytes: int | None = None
    numbers: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """A task that has ended well. Times are seconds since the run's start, None if unrecorded."""

    runtime_s: float
    started_s: float | None = None
    ended_s: float | None = None
    in_bytes: int | None = None
    out_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done, and on how much.

    `whole` is False while more tasks may come. `counts` are tasks announced per type where the
    tasks themselves are not known yet.
    """

    tasks: tuple[Planned, ...]
    machines: int = 1
    cores: int = 1
    version: str = ""
    whole: bool = True
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run that has ended. `settled_seq` is the event of the log that ended it, if known, and
    `last_received_ns` when its last event came."""

    plan: Plan
    makespan_s: float
    done: Mapping[int, Done]
    id: str = ""
    settled_seq: int = 0
    last_received_ns: int | None = None


@dataclass(frozen=True, slots=True)
class RunProgress:
    """All that is known of a run now. `running` maps a task to when it started."""

    plan: Plan
    elapsed_s: float
    done: Mapping[int, Done]
    running: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Estimate:
    """When the run will end. `low_s` and `high_s` hold the remaining time 80 times in 100.

    `past_attempts` of the pipeline's tables were used, those of `other_versions` for want of the
    activity's own.
    """

    total_s: float
    remaining_s: float
    low_s: float
    high_s: float
    method: str
    reason: str
    critical_path: tuple[int, ...]
    past_runs: int
    past_error: float | None
    past_attempts: int = 0
    other_versions: tuple[str, ...] = ()
