"""The table: which concept moves which state where, which field it sets, how two values merge.

This is data, so that the live fold and any other engine can be made from the same rules. Read a
row of it as: "a message with this concept, about a run or an activity, sets this field to that".

Merges, each of them commutative, associative and idempotent, so that no order and no repetition
makes a difference:

    min, max   of numbers
    latest     the value of the message with the greatest (source time, place in the log)
    union      of texts, kept sorted; of too many, the shortest
    state      the state of the greatest (phase, source time, place in the log)

What a concept subsumes follows its nearest ancestor that has a row here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Entity = Literal["run", "activity"]
Merge = Literal["min", "max", "latest", "union", "state"]
# What of the message is the value: the pair itself as text, number, whole number or list; the time
# that an event's pair says; or a fact about the message.
Kind = Literal["text", "tail", "number", "whole", "list", "items", "time", "order", "received"]

ANY: Final = "*"  # every message about the entity

# Phases: a later one stands whatever the clocks say, so that an end is an end.
EXPECTED: Final = 0
IMPLIED: Final = 1
UNDER_WAY: Final = 2
ENDING: Final = 3  # an end of an unknown kind, or that another attempt follows
ENDED: Final = 4


@dataclass(frozen=True, slots=True)
class StateRule:
    """An event of this concept moves the entity to this state, unless a later phase stands."""

    entity: Entity
    concept: str
    state: str
    phase: int


@dataclass(frozen=True, slots=True)
class FieldRule:
    """A pair of this concept sets this field. `alone`: only in messages that name no activity."""

    entity: Entity
    concept: str
    field: str
    merge: Merge
    kind: Kind
    alone: bool = False


STATE_RULES: Final = (
    StateRule("run", "WorkflowCreated", "created", EXPECTED),
    StateRule("run", "ActivityExecuting", "running", IMPLIED),
    StateRule("run", "ActivityTerminalEvent", "running", IMPLIED),
    StateRule("run", "WorkflowHeartbeat", "running", IMPLIED),
    StateRule("run", "WorkflowStarted", "running", UNDER_WAY),
    StateRule("run", "WorkflowResumed", "running", UNDER_WAY),
    StateRule("run", "WorkflowLoaded", "running", UNDER_WAY),
    StateRule("run", "WorkflowIdle", "idle", UNDER_WAY),
    StateRule("run", "WorkflowUnloaded", "idle", UNDER_WAY),
    StateRule("run", "WorkflowSuspended", "suspended", UNDER_WAY),
    StateRule("run", "WorkflowTerminalEvent", "completed", ENDING),
    StateRule("run", "WorkflowCompleted", "completed", ENDED),
    StateRule("run", "WorkflowTerminated", "failed", ENDED),
    StateRule("run", "WorkflowAborted", "aborted", ENDED),
    StateRule("activity", "ActivityPlanned", "planned", EXPECTED),
    StateRule("activity", "ActivityInitialized", "queued", IMPLIED),
    StateRule("activity", "ActivityHeld", "held", UNDER_WAY),
    StateRule("activity", "ActivityExecuting", "running", UNDER_WAY),
    StateRule("activity", "ActivityRetrying", "retrying", ENDING),
    StateRule("activity", "ActivityTerminalEvent", "succeeded", ENDING),
    StateRule("activity", "ActivitySucceeded", "succeeded", ENDED),
    StateRule("activity", "ActivityFailed", "failed", ENDED),
    StateRule("activity", "ActivityCancelled", "cancelled", ENDED),
    StateRule("activity", "ActivitySkipped", "skipped", ENDED),
    StateRule("activity", "ActivityCached", "cached", ENDED),
)

_RUN_FIELDS: Final = (
    FieldRule("run", ANY, "last_event", "max", "order"),
    FieldRule("run", ANY, "first_received", "min", "received"),
    FieldRule("run", ANY, "last_received", "max", "received"),
    FieldRule("run", "WorkflowCreated", "created", "min", "time"),
    FieldRule("run", "WorkflowStarted", "started", "min", "time"),
    FieldRule("run", "WorkflowStarted", "started_last", "max", "time"),
    FieldRule("run", "WorkflowTerminalEvent", "ended_first", "min", "time"),
    FieldRule("run", "WorkflowTerminalEvent", "ended", "max", "time"),
    FieldRule("run", "ActivityExecuting", "active_first", "min", "time"),
    FieldRule("run", "WorkflowIdle", "idle_last", "max", "order"),
    FieldRule("run", "WorkflowUnloaded", "idle_last", "max", "order"),
    FieldRule("run", "ActivityExecuting", "active_last", "max", "order"),
    FieldRule("run", "ActivityTerminalEvent", "active_last", "max", "order"),
    FieldRule("run", "WorkflowName", "workflow", "latest", "text"),
    FieldRule("run", "WorkflowVersion", "version", "latest", "text"),
    FieldRule("run", "EngineName", "engine", "latest", "text"),
    FieldRule("run", "EngineVersion", "engine_version", "latest", "text"),
    FieldRule("run", "UserName", "user", "latest", "text"),
    FieldRule("run", "ParentRun", "parent", "latest", "text"),
    FieldRule("run", "Host", "host", "latest", "text", alone=True),
    FieldRule("run", "WorkingDirectory", "working_directory", "latest", "text", alone=True),
    FieldRule("run", "CommandLine", "command", "latest", "text", alone=True),
    FieldRule("run", "ErrorMessage", "error", "latest", "text", alone=True),
    FieldRule("run", "ErrorTrace", "trace", "latest", "tail", alone=True),
    FieldRule("run", "LogTail", "log", "latest", "tail", alone=True),
    FieldRule("run", "ExitCode", "exit_code", "latest", "whole", alone=True),
    FieldRule("run", "PlannedActivities", "planned_total", "latest", "whole"),
    # Every total that was ever reported: a plan that grew in past runs will grow again.
    FieldRule("run", "PlannedActivities", "planned_totals", "union", "list"),
    FieldRule("run", "PlannedCounts", "planned_counts", "latest", "text"),
    FieldRule("run", "PlannedCores", "planned_cores", "latest", "number"),
    FieldRule("run", "PlannedMachines", "planned_machines", "latest", "number"),
    FieldRule("run", "HeartbeatSeconds", "heartbeat_s", "latest", "number"),
    FieldRule("run", "Parameters", "parameters", "latest", "text", alone=True),
    FieldRule("run", "WorkflowFile", "files", "union", "items", alone=True),
    FieldRule("run", "ProgressFraction", "progress", "latest", "number", alone=True),
)

_ACTIVITY_FIELDS: Final = (
    FieldRule("activity", ANY, "last_event", "max", "order"),
    FieldRule("activity", ANY, "last_received", "max", "received"),
    FieldRule("activity", "ActivityInitialized", "queued", "min", "time"),
    FieldRule("activity", "ActivityInitialized", "queued_last", "max", "order"),
    FieldRule("activity", "ActivityHeld", "held_last", "max", "order"),
    FieldRule("activity", "ActivityExecuting", "started", "min", "time"),
    FieldRule("activity", "ActivityExecuting", "started_last", "max", "time"),
    FieldRule("activity", "ActivityExecuting", "started_heard", "min", "received"),
    FieldRule("activity", "ActivityTerminalEvent", "ended_first", "min", "time"),
    FieldRule("activity", "ActivityTerminalEvent", "ended", "max", "time"),
    FieldRule("activity", "ActivityRetrying", "ended_first", "min", "time"),
    FieldRule("activity", "ActivityRetrying", "ended", "max", "time"),
    # Reported within other messages: a trace that came without the events it sums up.
    FieldRule("activity", "StartTime", "told_start", "latest", "text"),
    FieldRule("activity", "EndTime", "told_end", "latest", "text"),
    FieldRule("activity", "Duration", "told_duration_s", "latest", "number"),
    FieldRule("activity", "ActivityType", "type", "latest", "text"),
    FieldRule("activity", "ActivityVersion", "version", "latest", "text"),
    FieldRule("activity", "EngineJobId", "job", "latest", "text"),
    FieldRule("activity", "Host", "host", "latest", "text"),
    FieldRule("activity", "Container", "container", "latest", "text"),
    FieldRule("activity", "ExitCode", "exit_code", "latest", "whole"),
    FieldRule("activity", "ErrorMessage", "error", "latest", "text"),
    FieldRule("activity", "ErrorTrace", "trace", "latest", "tail"),
    FieldRule("activity", "LogTail", "log", "latest", "tail"),
    FieldRule("activity", "LogFile", "log_file", "latest", "text"),
    FieldRule("activity", "CommandLine", "command", "latest", "text"),
    FieldRule("activity", "InputFile", "inputs", "union", "list"),
    FieldRule("activity", "OutputFile", "outputs", "union", "list"),
    FieldRule("activity", "ParentActivity", "parents", "union", "list"),
    FieldRule("activity", "InputBytes", "input_bytes", "latest", "whole"),
    FieldRule("activity", "OutputBytes", "output_bytes", "latest", "whole"),
    FieldRule("activity", "ExternalBytes", "external_bytes", "latest", "whole"),
)

# Totals so far and peaks only grow; the rest is what was read last.
GROWING: Final = (
    "CpuSeconds",
    "MemoryPeak",
    "MemoryVirtual",
    "IoReadBytes",
    "IoWriteBytes",
    "NetRxBytes",
    "NetTxBytes",
    "EnergyUsed",
    "CarbonEmitted",
    "GpuMemory",
    "Cost",
)
CURRENT: Final = (
    "CpuPercent",
    "CpuCores",
    "MemoryRss",
    "MemoryRequested",
    "DiskUsed",
    "DiskFree",
    "IoReadRate",
    "IoWriteRate",
    "NetLatency",
    "PowerDraw",
    "GpuPercent",
    "GpuPower",
)
# Of a run: the sum over what its activities used; of the others, the greatest of any.
SUMMED: Final = frozenset(
    {
        "CpuSeconds",
        "IoReadBytes",
        "IoWriteBytes",
        "NetRxBytes",
        "NetTxBytes",
        "EnergyUsed",
        "CarbonEmitted",
        "Cost",
    }
)
PEAKS: Final = frozenset({"MemoryPeak", "MemoryVirtual", "GpuMemory"})

RESOURCE: Final = "use."  # what the fields of resources begin with


def _resources(entity: Entity) -> tuple[FieldRule, ...]:
    alone = entity == "run"
    grown = (FieldRule(entity, c, RESOURCE + c, "max", "number", alone) for c in GROWING)
    read = (FieldRule(entity, c, RESOURCE + c, "latest", "number", alone) for c in CURRENT)
    # A sample of the memory in use is also a lower bound of its peak.
    peak = FieldRule(entity, "MemoryRss", f"{RESOURCE}MemoryPeak", "max", "number", alone)
    return (*grown, *read, peak)


FIELD_RULES: Final = (
    *_RUN_FIELDS,
    *_ACTIVITY_FIELDS,
    *_resources("run"),
    *_resources("activity"),
)

# The rest of a row: what the fold itself says of a message.
OWN_FIELDS: Final[dict[str, Merge]] = {
    "state": "state",
    "ends": "union",  # every way in which it was reported to have ended
    "ahead": "max",  # nanoseconds by which a time was ahead of when it was received
    "ahead_at": "min",  # the first message of that kind
    "nameless_at": "min",  # the first message about an activity without its id
    "undated_at": "min",  # the first event whose time could not be read
    "plan": "max",  # 1 if tasks were announced one by one
    "over": "union",  # fields with more values than are kept
    "numbers": "latest",  # of a planned task: those that its command names, by name
    "open": "max",  # 1 if more tasks may come when this one ends
}


def _merges() -> dict[str, Merge]:
    found: dict[str, Merge] = dict(OWN_FIELDS)
    for rule in FIELD_RULES:
        assert found.setdefault(rule.field, rule.merge) == rule.merge, rule
    return found


MERGES: Final = _merges()
"""How two values of a field become one; a field's name means the same in runs and activities."""

IDENTITY: Final = ("RunId", "ActivityId", "Attempt", "ActivityPlan")
WANTED: Final = tuple(
    sorted(
        {
            *IDENTITY,
            *(rule.concept for rule in STATE_RULES),
            *(rule.concept for rule in FIELD_RULES if rule.concept != ANY),
            *("ExecutionEvent", "EvolutionEvent", "PreviousVersion", "ChangeDetail"),
        }
    )
)
"""What a monitor subscribes to: every concept that the table or its readers know."""
