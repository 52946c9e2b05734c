"""A steady wall clock: starts at the wall's time and never jumps after that."""

from __future__ import annotations

import time


class SteadyClock:
    """Wall time at the start, plus what has really passed since.

    An operator or NTP may set the wall clock while we run. Leases and retries are about how much
    time passes, so a jump must neither end every subscription nor stop every retry. The sleep of
    a laptop counts as time passed, hence CLOCK_BOOTTIME.
    """

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - _since_boot_ns()

    def now_ns(self) -> int:
        return self._offset_ns + _since_boot_ns()


if hasattr(time, "CLOCK_BOOTTIME"):

    def _since_boot_ns() -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

else:  # not Linux

    def _since_boot_ns() -> int:
        return time.monotonic_ns()
