"""States and durations, read off a folded row. Only here does a clock matter: it is an argument."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast
from zlib import crc32

from tocsin.event.instant import NS_PER_S, iso8601_ns, seconds_between
from tocsin.monitor.end_states import ENDED_RUN
from tocsin.monitor.fold import Row, latest
from tocsin.monitor.rules import ENDING
from tocsin.wire.api.run_views import ActivityState, RunState

HEARTBEATS_MISSED_MAX: Final = 3
HEARTBEAT_S_MAX: Final = 86_400.0
# Zones differ from each other by at least an hour, in steps of half of one, and by 26 at most.
ZONE_STEP_S: Final = 1_800
ZONE_STEPS: Final = range(2, 53)
ZONE_SLACK_S: Final = 60.0  # between two events that are about the same thing
DELAY_S_MAX: Final = 15.0  # from an event to the broker, where nothing holds it up
CLOCK_OFF_S_MIN: Final = 365 * 86_400.0  # nobody holds an event back so long: its clock is wrong
# An end so little before its start is the same moment, by two clocks: of a worker and a scheduler.
SAME_MOMENT_S_MAX: Final = 1.0
CLOCKS_APART_S_MAX: Final = 300.0  # as much as two clocks may differ without a word about it


@dataclass(frozen=True, slots=True)
class AttemptTimes:
    """When an attempt was queued, began and ended, by its own clock, and how long that was."""

    state: ActivityState
    queued_ns: int | None
    started_ns: int | None
    ended_ns: int | None
    duration_s: float | None
    is_skewed: bool


def attempt_times(row: Row) -> AttemptTimes:
    """What the row says of times. The duration is never negative: then it is None."""
    state = attempt_state(row)
    started_ns = row.get("started", iso8601_ns(latest(row, "told_start")))
    ended_ns = row.get("ended")
    if ended_ns is not None:
        ended_ns = ended_ns if latest(row, "told_end") is None else _reported_end(row, ended_ns)
    reported_s = latest(row, "told_duration_s")
    reported_s = float(reported_s) if reported_s is not None and reported_s >= 0 else None
    is_skewed = _is_skewed(row)
    if is_skewed and started_ns is not None and ended_ns is not None:
        started_ns, ended_ns = _same_clock(row, started_ns, ended_ns)
    elif ended_ns is not None and _first_end_ns(row, ended_ns) < _again_ns(row) <= ended_ns:
        started_ns = _again_ns(row)
    duration_s = _duration(started_ns, ended_ns)
    if reported_s is not None and ended_ns is not None:
        if duration_s is None:
            duration_s = reported_s
        elif is_zone_apart(duration_s - reported_s):
            duration_s, is_skewed = reported_s, True
    if duration_s is None and is_same_moment(started_ns, ended_ns):
        duration_s = 0.0
    return AttemptTimes(state, row.get("queued"), started_ns, ended_ns, duration_s, is_skewed)


def is_same_moment(started_ns: int | None, ended_ns: int | None) -> bool:
    """True if an end is before its start by no more than two clocks may differ."""
    if started_ns is None or ended_ns is None or ended_ns >= started_ns:
        return False
    return seconds_between(ended_ns, started_ns) <= SAME_MOMENT_S_MAX


def attempt_state(row: Row) -> ActivityState:
    cell = row.get("state")
    if cell is None:
        return "planned"
    phase, moment_ns, _, state = cell
    if state == "held" and row.get("queued_last", 0) > row.get("held_last", moment_ns):
        return "queued"  # it was let go
    if state == "succeeded" and phase == ENDING and latest(row, "exit_code"):
        return "failed"  # it only reported that it ended
    return cast(ActivityState, state)


def run_state(row: Row) -> RunState:
    """The state by the messages alone, whatever the time is."""
    cell = row.get("state")
    if cell is None:
        return "created"
    phase, moment_ns, _, state = cell
    if phase >= ENDING and was_restarted(row):
        return "running"
    if state == "idle" and row.get("active_last", 0) > row.get("idle_last", moment_ns):
        return "running"
    return cast(RunState, state)


def was_restarted(row: Row) -> bool:
    """True if it began once before its end, and once more after it."""
    started_ns, again_ns = row.get("started"), row.get("started_last")
    ended_ns = row.get("ended")
    if started_ns is None or again_ns is None or ended_ns is None:
        return False
    if is_zone_apart(seconds_between(started_ns, again_ns)):
        return False
    return bool(started_ns < ended_ns < again_ns)


def began_again(row: Row) -> bool:
    """True if it reported two starts that cannot be one: its id was used for two runs."""
    started_ns, again_ns = row.get("started"), row.get("started_last")
    if started_ns is None or again_ns is None:
        return False
    apart_s = seconds_between(started_ns, again_ns)
    if is_zone_apart(apart_s):
        return False
    return apart_s > CLOCKS_APART_S_MAX or started_ns < row.get("ended_first", again_ns) < again_ns


def run_started_ns(row: Row) -> int | None:
    """When it began: as it reported itself, or else as the first of its activities did."""
    started_ns: int | None = row.get("started", row.get("active_first"))
    return started_ns


def silence_ns_max(row: Row, silence_s: float) -> int:
    """How long a run may be silent before it counts as lost."""
    heartbeat_s = latest(row, "heartbeat_s")
    if heartbeat_s is not None and 0 < heartbeat_s <= HEARTBEAT_S_MAX:
        silence_s = HEARTBEATS_MISSED_MAX * heartbeat_s
    return int(silence_s * NS_PER_S)


def lost_at_ns(row: Row, silence_s: float) -> int | None:
    """When it counts as lost unless an event comes; None for those that may be silent."""
    state = run_state(row)
    if state in ENDED_RUN:
        return None
    if state == "suspended" and latest(row, "heartbeat_s") is None:
        return None  # it waits for a person, who may take days
    received_ns: int = row.get("last_received", 0)
    return received_ns + silence_ns_max(row, silence_s)


def in_run(state: str, run: str) -> ActivityState:
    """An activity's state, given that of its run: nothing runs in what has ended."""
    if run in ENDED_RUN:
        if state == "retrying":
            return "failed"  # there will be no other attempt
        if state in ("running", "held"):
            return "lost"
    if run == "lost" and state in ("running", "held", "retrying"):
        return "lost"
    return cast(ActivityState, state)


def counts_in_run(counts: Mapping[str, int], run: str) -> dict[str, int]:
    """How many activities are in each state, given the state of their run."""
    found: dict[str, int] = {}
    for state, count in counts.items():
        shown = in_run(state, run)
        found[shown] = found.get(shown, 0) + count
    return found


def is_zone_apart(seconds: float) -> bool:
    """True if two times differ as if one of them were in another zone."""
    apart_s = abs(seconds)
    steps = round(apart_s / ZONE_STEP_S)
    return steps in ZONE_STEPS and abs(apart_s - steps * ZONE_STEP_S) <= ZONE_SLACK_S


def _duration(started_ns: int | None, ended_ns: int | None) -> float | None:
    if started_ns is None or ended_ns is None or ended_ns < started_ns:
        return None
    return seconds_between(started_ns, ended_ns)


def _reported_end(row: Row, ended_ns: int) -> int:
    """The end in a trace, where it is by the same clock as the start in it."""
    reported_ns = iso8601_ns(latest(row, "told_end"))
    return ended_ns if reported_ns is None or "started" in row else reported_ns


def _is_skewed(row: Row) -> bool:
    """True if two starts, or two ends, of the one attempt are in different zones."""
    for first, last in (("started", "started_last"), ("ended_first", "ended")):
        if first in row and is_zone_apart(seconds_between(row[first], row[last])):
            return True
    return False


def _first_end_ns(row: Row, ended_ns: int) -> int:
    first_ns: int = row.get("ended_first", ended_ns)
    return first_ns


def _again_ns(row: Row) -> int:
    """When it began last. After an end that is another try under the same number, and the one that
    the last end belongs to."""
    again_ns: int = row.get("started_last", -1)
    return again_ns


def _same_clock(row: Row, started_ns: int, ended_ns: int) -> tuple[int, int]:
    """Of the reported starts and ends, the two that are nearest to each other."""
    starts = (started_ns, row.get("started_last", started_ns))
    ends = (row.get("ended_first", ended_ns), ended_ns)
    pairs = [(end - start, start, end) for start in starts for end in ends if end >= start]
    return min(pairs)[1:] if pairs else (started_ns, ended_ns)


WORDS_CHARS_MAX: Final = 300

# What differs between two occurrences of the same: numbers, addresses, ids, temporary paths.
_VARIES = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8,}|\d+|/[^\s'\":,]+", re.IGNORECASE)


def fault_of(row: Row, kind: str) -> int:
    """A number that is the same for failures of the same kind of activity for the same reason."""
    error = latest(row, "error") or latest(row, "trace") or latest(row, "log") or ""
    # A trace says at its end what happened, a message at its beginning.
    lines = [line for line in error.splitlines() if line.strip()] or [""]
    line = lines[0] if latest(row, "error") else lines[-1]
    words = _VARIES.sub("#", line[:WORDS_CHARS_MAX]).strip().lower()
    return crc32(f"{kind}\0{latest(row, 'exit_code')}\0{words}".encode(errors="replace"))
