"""Which states end a run or an activity, and which are counted as done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
