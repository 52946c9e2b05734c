"""The machine's clock, read every few seconds for the brokers of this process."""

from __future__ import annotations

import time
from typing import Final

from tocsin.access.session import Session, internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.status import ClockStatus

READ_S: Final = 2.0

_SERVICE: Final = internal("clock")


class ClockWatch:
    """Shows a broker, and that of its message boxes, what the clock says, and who accepted it."""

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
