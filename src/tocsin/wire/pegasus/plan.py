"""The DAG of a run, published at once when all of its pieces have come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from tocsin.wire.pegasus.jobs import Run

TASKS_MAX: Final = 2_000  # of one message
PLAN_BYTES_MAX: Final = 256 << 10  # so that an event stays far below its own limit
COUNTS_MAX: Final = 1_000

_encode = msgspec.json.Encoder().encode


def plan_messages(run: Run, planned: str) -> Iterator[tuple[str, dict[str, str | None]]]:
    """What to call each message, and its pairs. The first also has how many jobs there are."""
    if not run.jobs:
        return
    counts = Counter(job.type or "job" for job in run.jobs.values())
    totals = {
        "PlannedActivities": str(len(run.jobs)),
        "PlannedCounts": _encode(dict(counts.most_common(COUNTS_MAX))).decode(),
    }
    for number, chunk in enumerate(_chunks(run), 1):
        pairs: dict[str, str | None] = {"ActivityPlanned": planned, "ActivityPlan": chunk}
        if number == 1:
            pairs.update(totals)
        yield f"ActivityPlan/{number}", pairs


def _chunks(run: Run) -> Iterator[str]:
    """The jobs as JSON arrays, none of them too long."""
    parts: list[bytes] = []
    size = 0
    for id, job in run.jobs.items():
        task: dict[str, Any] = {"id": id, "type": job.type, "parents": sorted(set(job.parents))}
        part = _encode(task)
        if len(part) > PLAN_BYTES_MAX:
            part = _encode(task | {"parents": []})
        if parts and (len(parts) == TASKS_MAX or size + len(part) > PLAN_BYTES_MAX):
            yield _joined(parts)
            parts, size = [], 0
        parts.append(part)
        size += len(part)
    yield _joined(parts)


def _joined(parts: list[bytes]) -> str:
    return f"[{b','.join(parts).decode()}]"
