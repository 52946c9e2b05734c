"""Taking from boxes of protocols that know no acknowledgement.

What an answer handed out stays in the box until its receipt says that it arrived, and is back in
the box if it did not. Both are remembered in memory only: after a crash it comes again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tocsin.access.session import Session, internal
from tocsin.broker.effects import Token
from tocsin.broker.port import BrokerPort
from tocsin.errors import NoSuchBox
from tocsin.event.stored import Stored
from tocsin.services.soap.delivery_receipt import DeliveryReceipt

SWEEP_AT: Final = 1_000  # so many more parts than at the last sweep, and the gone are forgotten
# What a box holds is in the log, and not yet in memory, after a start or a long time without being
# asked: so long it may take to be found before the box is called empty.
CATCH_UP_NS: Final = 1_000_000_000
SWEEP: Final = internal("mailbox")


@dataclass(slots=True)
class _Extent:
    """How much of what was taken is in the answer: all, or only up to some message and a part of
    the next one."""

    through: int | None = None
    part: int = 0


@dataclass(frozen=True, slots=True)
class Taken:
    """What a box handed out, how much it dropped and withheld since the last answer, how much of
    the first message the asker has had already, and the receipt for the answer."""

    messages: list[Stored]
    dropped: int
    withheld: int | None
    part: int
    receipt: DeliveryReceipt
    extent: _Extent

    def keep_back(self, whole: int, part: int) -> None:
        """Of what was taken only the first `whole` messages are in the answer, and the first parts
        of the next, `part` in all: the rest is for the next time."""
        self.extent.through = self.messages[whole].seq - 1
        self.extent.part = part


class BoxReader:
    """Takes from the boxes of a broker."""

    def __init__(self, port: BrokerPort, redeliver_s: float) -> None:
        self._port = port
        self._redeliver_s = redeliver_s
        # Of a message with several parts: the message, and how many of its parts have arrived.
        self._parts: dict[str, tuple[int, int]] = {}
        self._sweep_at = SWEEP_AT

    async def take(self, session: Session, box_id: str, count_max: int, wait_ns: int = 0) -> Taken:
        """What waits in the box and is in no other answer, or comes within the wait."""
        if self._port.view_box(session, box_id).lagging:
            wait_ns = max(wait_ns, CATCH_UP_NS)
        pulled, token = await self._port.take(session, box_id, count_max, wait_ns)
        extent = _Extent()
        receipt = self._receipt(box_id, token, extent)
        seq, part = self._parts.get(box_id, (0, 0))
        is_begun = bool(pulled.events) and pulled.events[0].seq == seq
        begun = part if is_begun else 0
        return Taken(pulled.events, pulled.dropped, pulled.withheld, begun, receipt, extent)

    def _receipt(self, box_id: str, token: Token, extent: _Extent) -> DeliveryReceipt:
        port = self._port

        def arrived() -> None:
            port.release(token, extent.through)
            if extent.part and extent.through is not None:
                self._remember(box_id, (extent.through + 1, extent.part))

        def lost() -> None:
            port.give_back(token)

        return DeliveryReceipt(port.runtime, self._redeliver_s, arrived=arrived, lost=lost)

    def forget(self, box_id: str) -> None:
        self._parts.pop(box_id, None)

    def _remember(self, box_id: str, part: tuple[int, int]) -> None:
        self._parts[box_id] = part
        if len(self._parts) > self._sweep_at:
            self._parts = {each: kept for each, kept in self._parts.items() if self._is_there(each)}
            self._sweep_at = len(self._parts) + SWEEP_AT

    def _is_there(self, box_id: str) -> bool:
        try:
            self._port.view_box(SWEEP, box_id)
        except NoSuchBox:
            return False
        return True
