"""Taking from boxes of protocols that know no acknowledgement: to ask again is to have received.

What an answer handed out stays in the box until the next question, so that it comes again if the
broker fails in between. Which answer was the last is remembered in memory only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tocsin.broker.effects import Pulled
from tocsin.errors import NoSuchBox
from tocsin.event.stored import Stored

if TYPE_CHECKING:
    from tocsin.drivers.node import Node

SWEEP_AT: Final = (
    1_000  # so many more remembered than at the last sweep, and the gone are forgotten
)
# What a box holds is in the log, and not yet in memory, after a start or a long time without being
# asked: so long it may take to be found before the box is called empty.
CATCH_UP_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Taken:
    """What a box handed out, how much it gave up since it was last asked, and how much of the
    first message the asker has had already."""

    messages: list[Stored]
    dropped: int
    part: int = 0


@dataclass(frozen=True, slots=True)
class _Hand:
    """The last answer: what releases it, how much it was, and what was dropped up to then."""

    next: str | None = None
    count: int = 0
    dropped: int = 0
    part: int = 0
    part_of: int = 0


class Taking:
    """Remembers what each box of a node last handed out."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._hands: dict[str, _Hand] = {}
        self._sweep_at = SWEEP_AT

    async def take(self, box_id: str, count_max: int, wait_ns: int = 0) -> Taken:
        """What waits in the box, or comes within the wait. Releases what the last answer held."""
        node = self._node
        broker = node.broker
        last = self._hands.get(box_id, _Hand())
        view = broker.view_box(box_id)
        before = view.dropped
        if view.lagging:
            wait_ns = max(wait_ns, CATCH_UP_NS)
        pulled: Pulled = await node.ask(
            lambda token, now_ns: broker.pull(box_id, count_max, wait_ns, last.next, token, now_ns)
        )
        after = broker.view_box(box_id).dropped
        # The oldest are given up first: those had been handed out, and nobody misses them.
        missed = max(0, before - last.dropped - last.count) + (after - before)
        messages = pulled.events
        part = last.part if messages and messages[0].seq == last.part_of else 0
        self._remember(box_id, _Hand(pulled.next, len(messages), after, part, last.part_of))
        return Taken(messages, missed, part)

    def keep_back(self, box_id: str, taken: Taken, whole: int, part: int) -> None:
        """Of what was taken only the first `whole` messages were handed on, and `part` of the
        next: the rest is for the next time."""
        last = self._hands[box_id]
        place = taken.messages[whole].seq
        self._hands[box_id] = _Hand(str(place - 1), whole, last.dropped, part, place)

    def forget(self, box_id: str) -> None:
        self._hands.pop(box_id, None)

    def _remember(self, box_id: str, hand: _Hand) -> None:
        self._hands[box_id] = hand
        if len(self._hands) > self._sweep_at:
            self._hands = {each: held for each, held in self._hands.items() if self._is_there(each)}
            self._sweep_at = len(self._hands) + SWEEP_AT

    def _is_there(self, box_id: str) -> bool:
        try:
            self._node.broker.view_box(box_id)
        except NoSuchBox:
            return False
        return True
