"""RepeatedLog: what peers do wrong again and again is logged, and does not fill the log.

Of each reason the first, the second, the fourth, ... time has a line, with how many times it was,
and there is one every ten minutes while it goes on. Anybody may come from many hosts and by many
names: past a limit all others are counted together.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Literal

from tocsin.broker.runtime import Runtime

AGAIN_S: Final = 600.0  # a reason that has not come for so long is counted from one again
REASONS_MAX: Final = 100  # in that time


@dataclass(slots=True)
class _Times:
    count: int = 0
    noted_s: float = 0.0
    last_s: float = 0.0


class RepeatedLog:
    """See the module."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._times: dict[Hashable, _Times] = {}  # the one that came last is at the end
        self._others = _Times()  # of all reasons past the limit

    def warn(self, message: str, *, peer: str, **fields: object) -> None:
        """About a peer at HOST:PORT: each message and host is a reason."""
        self.note("warning", message, (peer.rpartition(":")[0],), peer=peer, **fields)

    def note(
        self,
        level: Literal["info", "warning", "error"],
        message: str,
        reason: tuple[str, ...],
        **fields: object,
    ) -> None:
        """The message belongs to the reason; what is in the fields may differ each time."""
        now_s = self._runtime.elapsed_s()
        times = self._times_of((message, *reason), now_s)
        if now_s - times.last_s >= AGAIN_S:
            times.count = 0
        times.count += 1
        times.last_s = now_s
        if times.count.bit_count() == 1 or now_s - times.noted_s >= AGAIN_S:
            times.noted_s = now_s
            more = {"times": times.count} if times.count > 1 else {}
            self._runtime.note(level, message, **fields, **more)

    def _times_of(self, reason: Hashable, now_s: float) -> _Times:
        while self._times:
            oldest = next(iter(self._times))
            if now_s - self._times[oldest].last_s < AGAIN_S:
                break
            del self._times[oldest]
        times = self._times.pop(reason, None)
        if times is None:
            if len(self._times) >= REASONS_MAX:
                return self._others
            times = _Times()
        self._times[reason] = times
        return times
