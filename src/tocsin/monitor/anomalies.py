"""Anomalies: what cannot be as it was reported. Each is shown; none changes what else is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tocsin.event.instant import NS_PER_S, iso8601_ns, rfc3339, seconds_between
from tocsin.monitor.durations import rough_duration_text
from tocsin.monitor.fold import Row, latest
from tocsin.monitor.states import (
    CLOCKS_APART_S_MAX,
    AttemptTimes,
    began_again,
    is_same_moment,
    is_zone_apart,
    run_started_ns,
    was_restarted,
)
from tocsin.wire.api.run_views import AnomalyInfo

CYCLE_SHOWN_MAX: Final = 8

END_BEFORE_START: Final = "end before start"
FROM_THE_FUTURE: Final = "from the future"
ZONE_SKEW: Final = "zone skew"
NO_ACTIVITY_ID: Final = "activity without id"
NO_TIME: Final = "unreadable time"
TWO_ENDS: Final = "ended in two ways"
AFTER_THE_END: Final = "activity after the end of the run"
BEFORE_THE_START: Final = "activity before the start of the run"
MORE_THAN_PLANNED: Final = "more than planned"
USED_AGAIN: Final = "run id used again"
CYCLE: Final = "cycle"
TOO_MUCH: Final = "too many values"

_OVER: Final = {
    "files": "files of the workflow",
    "inputs": "files that it reads",
    "outputs": "files that it makes",
    "parents": "activities that it waits for",
    "attempts": "attempts at one activity",
}


def of_attempt(row: Row, times: AttemptTimes, activity: str) -> list[AnomalyInfo]:
    """What is odd about one attempt."""
    found: list[AnomalyInfo] = []
    started_ns = row.get("started", iso8601_ns(latest(row, "told_start")))
    ended_ns = row.get("ended")
    if started_ns is not None and ended_ns is not None and _is_backwards(started_ns, ended_ns):
        found.append(_end_before_start(started_ns, ended_ns, activity))
        if is_zone_apart(seconds_between(ended_ns, started_ns)) and not times.is_skewed:
            found.append(_skew(ended_ns, started_ns, activity))
    if times.is_skewed:
        found.append(_skew(*_furthest(row), activity))
    if "ahead" in row:
        found.append(_ahead(row, activity))
    if len(row.get("ends", ())) > 1:
        detail = f"it was reported that it {' and that it '.join(row['ends'])}"
        found.append(AnomalyInfo(TWO_ENDS, detail, activity))
    found += _too_much(row, activity)
    return found


def of_run(row: Row, *, known: int, total: int | None) -> list[AnomalyInfo]:
    """What is odd about a run as a whole; `known` and `total` count its activities."""
    found: list[AnomalyInfo] = []
    started_ns, ended_ns = row.get("started"), row.get("ended")
    if started_ns is not None and ended_ns is not None and _is_backwards(started_ns, ended_ns):
        found.append(_end_before_start(started_ns, ended_ns, None))
    if "ahead" in row:
        found.append(_ahead(row, None))
    if "nameless_at" in row:
        detail = "an event of an activity did not say of which"
        found.append(AnomalyInfo(NO_ACTIVITY_ID, detail, seq=row["nameless_at"]))
    if "undated_at" in row:
        detail = "the time of an event was not valid, so that of its message was used"
        found.append(AnomalyInfo(NO_TIME, detail, seq=row["undated_at"]))
    if len(row.get("ends", ())) > 1:
        found.append(AnomalyInfo(TWO_ENDS, f"it was reported to be {' and '.join(row['ends'])}"))
    if began_again(row):
        detail = (
            f"it began at {rfc3339(row['started'])} and again at {rfc3339(row['started_last'])}; "
            "what both runs did is shown as one"
        )
        found.append(AnomalyInfo(USED_AGAIN, detail))
    if ended_ns is not None and not was_restarted(row):
        found += _beyond(AFTER_THE_END, ended_ns, row.get("active_last"))
    if started_ns is not None:
        found += _beyond(BEFORE_THE_START, row.get("active_first"), run_started_ns(row))
    if total is not None and known > total:
        are = "activity is" if known == 1 else "activities are"
        detail = f"{known:,} {are} known, and {total:,} were planned"
        found.append(AnomalyInfo(MORE_THAN_PLANNED, detail))
    found += _too_much(row, None)
    return found


def _is_backwards(started_ns: int, ended_ns: int) -> bool:
    """True if an end is before its start by more than two clocks may differ."""
    return ended_ns < started_ns and not is_same_moment(started_ns, ended_ns)


def _end_before_start(started_ns: int, ended_ns: int, activity: str | None) -> AnomalyInfo:
    detail = f"it ended at {rfc3339(ended_ns)} and began at {rfc3339(started_ns)}"
    return AnomalyInfo(END_BEFORE_START, detail, activity)


def _too_much(row: Row, activity: str | None) -> list[AnomalyInfo]:
    return [
        AnomalyInfo(TOO_MUCH, f"of its {_OVER.get(each, each)} only a part is kept", activity)
        for each in row.get("over", ())
    ]


def _beyond(kind: str, first_ns: int | None, second_ns: int | None) -> list[AnomalyInfo]:
    """The second is more than a little after the first, which it should not be."""
    if first_ns is None or second_ns is None:
        return []
    apart_s = seconds_between(first_ns, second_ns)
    if is_zone_apart(apart_s) and apart_s > 0:
        return [_skew(first_ns, second_ns, None)]
    if apart_s <= CLOCKS_APART_S_MAX:
        return []
    return [
        AnomalyInfo(
            kind, f"by {rough_duration_text(apart_s)} ({rfc3339(first_ns)}, {rfc3339(second_ns)})"
        )
    ]


def _skew(first_ns: int, second_ns: int, activity: str | None) -> AnomalyInfo:
    hours = round(abs(second_ns - first_ns) / NS_PER_S / 1_800) / 2
    detail = (
        f"two times that belong together are {hours:g} h apart ({rfc3339(first_ns)}, "
        f"{rfc3339(second_ns)}): one of them is in another time zone"
    )
    return AnomalyInfo(ZONE_SKEW, detail, activity)


def _furthest(row: Row) -> tuple[int, int]:
    """The two of an attempt's times that show the skew."""
    for first, last in (("started", "started_last"), ("ended_first", "ended")):
        if first in row and is_zone_apart(seconds_between(row[first], row[last])):
            return row[first], row[last]
    return row.get("started") or row.get("queued") or 0, row.get("ended") or 0


def _ahead(row: Row, activity: str | None) -> AnomalyInfo:
    detail = (
        f"a time was {rough_duration_text(row['ahead'] / NS_PER_S)} ahead of when it was received"
    )
    return AnomalyInfo(FROM_THE_FUTURE, detail, activity, seq=row.get("ahead_at"))


def find_cycle(parents: Mapping[str, Iterable[str]]) -> list[str]:
    """Activities that wait for each other in a circle, or none. Each edge is walked once."""
    done: set[str] = set()
    for start in parents:
        if start in done:
            continue
        path: dict[str, None] = {start: None}
        waiting = [iter(parents[start])]
        while waiting:
            parent = next(waiting[-1], None)
            if parent is None:
                waiting.pop()
                done.add(path.popitem()[0])
            elif parent in path:
                names = list(path)
                return names[names.index(parent) :]
            elif parent not in done and parent in parents:
                path[parent] = None
                waiting.append(iter(parents[parent]))
    return []


def of_cycle(cycle: list[str]) -> list[AnomalyInfo]:
    """The circle as an anomaly of its run."""
    if not cycle:
        return []
    names = [each[:80] for each in [*cycle[:CYCLE_SHOWN_MAX], cycle[0]]]
    return [AnomalyInfo(CYCLE, f"these wait for each other: {' <- '.join(names)}")]
