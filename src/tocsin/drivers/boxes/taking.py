"""Taking from boxes of protocols that know no acknowledgement.

What an answer handed out stays in the box until its receipt says that it arrived, and is back in
the box if it did not. Both are remembered in memory only: after a crash it comes again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tocsin.broker.effects import Pulled, Token
from tocsin.drivers.boxes.receipt import Receipt
from tocsin.errors import NoSuchBox
from tocsin.event.stored import Stored

if TYPE_CHECKING:
    from tocsin.drivers.node import Node

SWEEP_AT: Final = 1_000  # so many more parts than at the last sweep, and the gone are forgotten
# What a box holds is in the log, and not yet in memory, after a start or a long time without being
# asked: so long it may take to be found before the box is called empty.
CATCH_UP_NS: Final = 1_000_000_000


@dataclass(slots=True)
class _Extent:
    """How much of what was taken is in the answer: all, or only up to some message and a part of
    the next one."""

    through: int | None = None
    part: int = 0


@dataclass(frozen=True, slots=True)
class Taken:
    """What a box handed out, how much it gave up since it last said so, how much of the first
    message the asker has had already, and the receipt for the answer."""

    messages: list[Stored]
    dropped: int
    part: int
    receipt: Receipt
    extent: _Extent

    def keep_back(self, whole: int, part: int) -> None:
        """Of what was taken only the first `whole` messages are in the answer, and the first parts
        of the next, `part` in all: the rest is for the next time."""
        self.extent.through = self.messages[whole].seq - 1
        self.extent.part = part


class Taking:
    """Takes from the boxes of a node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        # Of a message with several parts: the message, and how many of its parts have arrived.
        self._parts: dict[str, tuple[int, int]] = {}
        self._sweep_at = SWEEP_AT

    async def take(self, box_id: str, count_max: int, wait_ns: int = 0) -> Taken:
        """What waits in the box and is in no other answer, or comes within the wait."""
        node = self._node
        boxes = node.broker.boxes
        tokens: list[Token] = []
        if node.broker.view_box(box_id).lagging:
            wait_ns = max(wait_ns, CATCH_UP_NS)

        def call(token: Token, now_ns: int) -> None:
            tokens.append(token)
            boxes.take(box_id, count_max, wait_ns, token, now_ns)

        pulled: Pulled = await node.ask(call)
        extent = _Extent()
        receipt = self._receipt(box_id, tokens[0], extent)
        seq, part = self._parts.get(box_id, (0, 0))
        is_begun = bool(pulled.events) and pulled.events[0].seq == seq
        return Taken(pulled.events, pulled.dropped, part if is_begun else 0, receipt, extent)

    def _receipt(self, box_id: str, token: Token, extent: _Extent) -> Receipt:
        node = self._node

        def arrived() -> None:
            node.broker.boxes.release(token, extent.through)
            if extent.part and extent.through is not None:
                self._remember(box_id, (extent.through + 1, extent.part))
            node.kick()

        def lost() -> None:
            node.broker.boxes.give_back(token)
            node.kick()

        redeliver_s = node.settings.boxes.redeliver_s
        return Receipt(node.loop, redeliver_s, arrived=arrived, lost=lost)

    def forget(self, box_id: str) -> None:
        self._parts.pop(box_id, None)

    def _remember(self, box_id: str, part: tuple[int, int]) -> None:
        self._parts[box_id] = part
        if len(self._parts) > self._sweep_at:
            self._parts = {each: kept for each, kept in self._parts.items() if self._is_there(each)}
            self._sweep_at = len(self._parts) + SWEEP_AT

    def _is_there(self, box_id: str) -> bool:
        try:
            self._node.broker.view_box(box_id)
        except NoSuchBox:
            return False
        return True
