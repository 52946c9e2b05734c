"""From folded rows to the records that people and other programs read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec.structs import asdict, replace

from tocsin.event.instant import rfc3339_or_none, seconds_between
from tocsin.event.json_reader import read_json
from tocsin.monitor.anomalies import of_cycle, of_run
from tocsin.monitor.end_states import ENDED_RUN, done_count
from tocsin.monitor.fold import Row, latest
from tocsin.monitor.rules import RESOURCE
from tocsin.monitor.states import (
    attempt_times,
    counts_in_run,
    in_run,
    lost_at_ns,
    run_started_ns,
    run_state,
)
from tocsin.wire.api.run_views import (
    ActivityInfo,
    AnomalyInfo,
    CountsInfo,
    FileInfo,
    ReusedInfo,
    RunDetails,
    RunInfo,
    RunState,
)

INHERITED: Final = (
    "type",
    "parents",
    "inputs",
    "outputs",
    "external_bytes",
    "version",
    "container",
    "open",
)

# Members of the records that are shown as they were last reported.
_OF_RUN: Final = ("workflow", "version", "engine", "engine_version", "user", "host")
_OF_BOTH: Final = ("error", "trace", "command", "log", "exit_code")
_OF_ACTIVITY: Final = (
    *(*_OF_BOTH, "host", "log_file", "job", "container"),
    *("input_bytes", "output_bytes", "external_bytes"),
)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the store knows of a run: its row, and sums over its activities."""

    id: str
    row: Row
    counts: Mapping[str, int] = field(default_factory=dict)
    used: Mapping[str, float] = field(default_factory=dict)
    odd: int = 0
    cycle: tuple[str, ...] = ()


def state_at(row: Row, now_ns: int, silence_s: float) -> RunState:
    """The state at this time: lost if no event came for too long."""
    lost_ns = lost_at_ns(row, silence_s)
    return "lost" if lost_ns is not None and now_ns > lost_ns else run_state(row)


def run_record(facts: RunFacts, now_ns: int, silence_s: float) -> RunInfo:
    """A run as lists show it."""
    row = facts.row
    state = state_at(row, now_ns, silence_s)
    started_ns = run_started_ns(row)
    ended_ns = row.get("ended") if state in ENDED_RUN else None
    by_state = counts_in_run(facts.counts, state)
    counts = _counts(row, by_state)
    anomalies = _own_anomalies(facts)
    return RunInfo(
        id=facts.id,
        **{name: latest(row, name) or "" for name in _OF_RUN},
        state=state,
        started=rfc3339_or_none(started_ns),
        ended=rfc3339_or_none(ended_ns),
        duration_s=_duration(row, state, started_ns, now_ns),
        last_event=rfc3339_or_none(row.get("last_event")),
        parent=latest(row, "parent"),
        activities=counts,
        progress=_progress(row, counts, done_count(by_state, state), state),
        anomalies=facts.odd + len(anomalies),
    )


def whole_run(
    record: RunInfo,
    facts: RunFacts,
    of_activities: Iterable[AnomalyInfo] = (),
    types: Mapping[str, Mapping[str, int]] | None = None,
    *,
    retried: int = 0,
    reused: ReusedInfo | None = None,
    alerts: Iterable[dict[str, Any]] = (),
) -> RunDetails:
    """The run with all that its own page shows."""
    row = facts.row
    return RunDetails(
        **asdict(record),
        **{name: latest(row, name) for name in (*_OF_BOTH, "working_directory")},
        resources={**facts.used, **resources(row)},
        anomaly_list=(*_own_anomalies(facts), *of_activities),
        alerts=tuple(alerts),
        parameters=read_object(latest(row, "parameters")),
        files=files_of(row),
        plan=planned_counts(row),
        types={name: counts_in_run(counts, record.state) for name, counts in (types or {}).items()},
        retried=retried,
        reused=reused,
    )


def inherited(attempts: Mapping[int, Row]) -> Row:
    """What is true of every attempt, by the latest of these that has it."""
    shared: Row = {}
    for number in sorted(attempts):
        shared |= {name: attempts[number][name] for name in INHERITED if name in attempts[number]}
    return shared


def activity_record(
    run: str, name: str, attempts: Mapping[int, Row], run_is: str, *, kind: str = ""
) -> ActivityInfo:
    """An activity as its latest attempt left it."""
    numbers = sorted(attempts)
    tries: list[ActivityInfo] = []
    for number in numbers:
        shared = inherited({each: attempts[each] for each in numbers if each <= number})
        tries.append(_attempt_record(run, name, number, {**shared, **attempts[number]}, kind))
    last = tries.pop()
    # An attempt that another one followed is over, whatever became of its last message.
    before = tuple(
        replace(each, state="retrying") if each.state in ("running", "queued", "held") else each
        for each in tries
    )
    return replace(
        last,
        state=in_run(last.state, run_is),
        attempts=max(numbers),
        tries=before,
    )


def _attempt_record(run: str, name: str, number: int, row: Row, kind: str) -> ActivityInfo:
    times = attempt_times(row)
    return ActivityInfo(
        id=name,
        run=run,
        type=kind or latest(row, "type") or "",
        version=latest(row, "version") or "",
        attempt=number,
        state=times.state,
        queued=rfc3339_or_none(times.queued_ns),
        started=rfc3339_or_none(times.started_ns),
        ended=rfc3339_or_none(times.ended_ns),
        duration_s=times.duration_s,
        **{name: latest(row, name) for name in _OF_ACTIVITY},
        inputs=tuple(row.get("inputs", ())),
        outputs=tuple(row.get("outputs", ())),
        parents=tuple(row.get("parents", ())),
        resources=resources(row),
    )


def resources(row: Row) -> dict[str, float]:
    """What was used, by concept."""
    return {
        name.removeprefix(RESOURCE): float(cell[2] if isinstance(cell, list) else cell)
        for name, cell in sorted(row.items())
        if name.startswith(RESOURCE)
    }


def planned_total(row: Row) -> int | None:
    """How many activities there will be, as far as that was announced."""
    total = latest(row, "planned_total")
    if total is not None and total >= 0:
        return int(total)
    counts = planned_counts(row)
    return sum(counts.values()) if counts else None


def planned_counts(row: Row) -> dict[str, int]:
    """How many activities of each type were announced."""
    found = read_object(latest(row, "planned_counts"))
    return {
        name: count
        for name, count in found.items()
        if type(count) is int and 0 <= count <= 1_000_000_000
    }


def files_of(row: Row) -> tuple[FileInfo, ...]:
    """The files of the workflow's definition, by path."""
    found: dict[str, FileInfo] = {}
    for text in row.get("files", ()):
        item = read_object(text)
        path, digest, content = item.get("path"), item.get("sha256"), item.get("text")
        if isinstance(path, str):
            found[path] = FileInfo(
                path=path,
                sha256=digest if isinstance(digest, str) else "",
                text=content if isinstance(content, str) else None,
            )
    return tuple(found.values())


def read_object(text: str | None) -> dict[str, Any]:
    """A JSON object; an empty one if it is none."""
    try:
        found = read_json((text or "{}").encode())
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _own_anomalies(facts: RunFacts) -> list[AnomalyInfo]:
    # An engine reports what it dropped from its plan as skipped, and counts no more.
    known = sum(count for state, count in facts.counts.items() if state != "skipped")
    found = of_run(facts.row, known=known, total=planned_total(facts.row))
    return found + of_cycle(list(facts.cycle))


def _counts(row: Row, counts: Mapping[str, int]) -> CountsInfo:
    known = sum(counts.values())
    total = planned_total(row)
    if total is None and "plan" in row:
        total = known
    return CountsInfo(total=total, known=known, **counts)


def _progress(row: Row, counts: CountsInfo, done: int, state: str) -> float | None:
    """What failed is not done, and what was not announced cannot be weighed.

    Who says that a run completed knows of what failed in it, but not of what never sent an event
    again.
    """
    if state == "completed" and not counts.lost:
        return 1.0
    if counts.total is None and state != "completed":
        reported = latest(row, "progress")
        return float(reported) if reported is not None and 0 <= reported <= 1 else None
    whole = max(counts.total or 0, counts.known)
    return round(done / whole, 4) if whole else None


def _duration(row: Row, state: str, started_ns: int | None, now_ns: int) -> float | None:
    """How long it took; of a run under way, how long so far; never negative."""
    if started_ns is None:
        return None
    if state in ENDED_RUN:
        end_ns = row.get("ended", started_ns)
    else:
        end_ns = row.get("last_event", started_ns) if state == "lost" else now_ns
    return seconds_between(started_ns, end_ns) if end_ns >= started_ns else None
