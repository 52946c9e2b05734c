"""The time of a broker, which never jumps, and the machine's clock, which is read beside it."""

from __future__ import annotations

import time
from typing import Final

from tocsin.access.session import Session, internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.status import ClockStatus

READ_S: Final = 2.0  # between looks at the machine's clock

_SERVICE: Final = internal("clock")


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


class ClockWatch:
    """Reads the machine's clock every few seconds.

    Shows a broker, and that of its message boxes, what the clock says, and who accepted it.
    """

    def __init__(self, port: BrokerPort) -> None:
        self._ports = [port]
        self._timer = port.runtime.call_later(READ_S, self._read)

    def add(self, port: BrokerPort) -> None:
        """Another log of the same process."""
        self._ports.append(port)

    def close(self) -> None:
        self._timer.cancel()

    def _read(self) -> None:
        self._timer = self._ports[0].runtime.call_later(READ_S, self._read)
        self.look()

    def look(self) -> None:
        """Read it now."""
        for port in self._ports:
            port.own(_SERVICE).show_clock(time.time_ns())

    async def accept(self, session: Session) -> ClockStatus:
        """An operator says that it is right. Returns how the broker judges it then."""
        judged = [await port.accept_clock(session, time.time_ns()) for port in self._ports]
        return judged[0]

    def complaints(self) -> list[str]:
        """What is wrong with the clock; of several logs the first that says so."""
        found = (port.clock_complaint for port in self._ports)
        return [words for words in found if words][:1]
