"""Alerts as messages: what is slower than usual, published once, for whoever subscribed to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import msgspec

from tocsin.event.instant import rfc3339, seconds_between

SOURCE: Final = "/tocsin/monitor"
"""Whose messages these are. They change no state, and no run looks alive because of them."""
OF_ACTIVITY: Final = "ActivityStraggling"
OF_RUN: Final = "WorkflowStraggling"
ID_CHARS_MAX: Final = 512


@dataclass(frozen=True, slots=True)
class Straggler:
    """An attempt that takes longer than usual; without an activity, a whole run that does."""

    run: str
    workflow: str
    activity: str
    type: str
    attempt: int
    took_s: float
    usual_s: float
    limit_s: float
    rate: float
    why: str

    @property
    def id(self) -> str:
        """The same for the same attempt, so that a repetition is known as one."""
        if not self.activity:
            return _fit(f"{self.run}/{OF_RUN}")
        return _fit(f"{self.run}/{self.activity}/{self.attempt}/{OF_ACTIVITY}")

    def pairs(self, now_ns: int) -> dict[str, str]:
        """What its message says."""
        found = {"RunId": self.run, "WorkflowName": self.workflow}
        if self.activity:
            found |= {"ActivityId": self.activity, "ActivityType": self.type}
            found |= {"Attempt": str(self.attempt), OF_ACTIVITY: rfc3339(now_ns)}
        else:
            found[OF_RUN] = rfc3339(now_ns)
        return {**found, "EventData": msgspec.json.encode(self._data()).decode()}

    def _data(self) -> Mapping[str, Any]:
        return {
            "took_s": round(self.took_s, 3),
            "usual_s": round(self.usual_s, 3),
            "limit_s": round(self.limit_s, 3),
            "false_alarm_rate": self.rate,
            "why": self.why,
        }


def under_way_s(started_ns: int | None, received_ns: int | None, now_ns: int) -> float | None:
    """How long something runs at least; None if that is unknown.

    From when it began by its own clock, or from when its event came, whichever is later: a
    clock in another zone makes nothing slow.
    """
    if started_ns is None:
        return None
    since_ns = started_ns if received_ns is None else max(started_ns, received_ns)
    return None if since_ns > now_ns else seconds_between(since_ns, now_ns)


def _fit(text: str) -> str:
    """Ids travel in headers, where not everything can stand that an engine may call a task."""
    if len(text) <= ID_CHARS_MAX and text.isprintable():
        return text
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
