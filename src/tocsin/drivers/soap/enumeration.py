"""WS-Management's pull mode: a subscription is a box, and WS-Enumeration fetches from it.

The context that an answer hands out names the last event in it, and pulling with that context
acknowledges up to there: an answer that is lost on the way is given again. Who always pulls with
the context of the SubscribeResponse acknowledges what it was given last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tocsin.broker.effects import Pulled
from tocsin.drivers.soap.request import Handlers, Reply, Request
from tocsin.errors import NoSuchBox, TocsinError
from tocsin.event.stored import Stored
from tocsin.wire.soap.addressing import header_text
from tocsin.wire.soap.mediation import payload_of
from tocsin.wire.soap.names import WSEN, WSMAN
from tocsin.wire.soap.times import NS_PER_S, duration_ns
from tocsin.wire.wse.faults import enumeration_fault, timed_out
from tocsin.wire.wse.messages import Pull, PullResponse
from tocsin.wire.wse.read import read_pull, read_release
from tocsin.wire.wse.write import RELEASE_RESPONSE_ACTION, action, write

if TYPE_CHECKING:
    from tocsin.drivers.node import Node

WAIT_NS_DEFAULT: Final = 30 * NS_PER_S
ELEMENTS_DEFAULT: Final = 1  # WS-Enumeration, section 3.2
HANDED_OUT_MAX: Final = 10_000  # contexts remembered for those who never change theirs


class Enumeration:
    """Pull and Release."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._handed_out: dict[str, str] = {}  # the box, and the last event given from it
        self.handlers: Handlers = {(WSEN, "Pull"): self.pull, (WSEN, "Release"): self.release}

    async def pull(self, request: Request) -> Reply:
        asked = read_pull(request.envelope, request.element)
        box, _, given = asked.context.removeprefix("uuid:").partition(".")
        ack = given or self._handed_out.get(box)
        node = self._node
        try:
            node.broker.view_box(box)
        except TocsinError as error:
            raise enumeration_fault(error) from None
        try:
            pulled: Pulled = await node.ask(
                lambda token, now_ns: node.broker.pull(
                    box,
                    asked.elements_max or ELEMENTS_DEFAULT,
                    _wait_ns(request, asked),
                    ack,
                    token,
                    now_ns,
                )
            )
        except NoSuchBox:
            # It was there when the wait began: what was waited for will not come any more.
            return _reply(PullResponse((), ended=True))
        except TocsinError as error:
            raise enumeration_fault(error) from None
        if not pulled.events:
            raise timed_out()
        items, last = _fitting(pulled.events, asked.characters_max)
        self._remember(box, str(last))
        return _reply(PullResponse(items, f"{box}.{last}"))

    def _remember(self, box: str, last: str) -> None:
        self._handed_out.pop(box, None)
        self._handed_out[box] = last
        if len(self._handed_out) > HANDED_OUT_MAX:
            del self._handed_out[next(iter(self._handed_out))]

    async def release(self, request: Request) -> Reply:
        """Nobody will pull any more, so the subscription is over."""
        context = read_release(request.envelope, request.element).context
        box = context.removeprefix("uuid:").partition(".")[0]
        node = self._node
        try:
            node.broker.view_box(box)
            await node.ask(
                lambda token, now_ns: node.broker.unsubscribe(box, token, now_ns, quietly=True)
            )
        except TocsinError as error:
            raise enumeration_fault(error) from None
        self._handed_out.pop(box, None)
        return Reply(b"", RELEASE_RESPONSE_ACTION)


def _wait_ns(request: Request, asked: Pull) -> int:
    """As long as the puller says, in the message or for operations in general."""
    for text in (asked.time_max, header_text(request.envelope, WSMAN, "OperationTimeout")):
        length_ns = None if text is None else duration_ns(text)
        if length_ns is not None:
            return max(0, length_ns)
    return WAIT_NS_DEFAULT


def _fitting(events: list[Stored], characters_max: int | None) -> tuple[tuple[bytes, ...], int]:
    """As many items as fit, and the number of the last. One there is always: a box whose oldest
    event is too long for its reader would never give anything again."""
    items: list[bytes] = []
    size = 0
    for stored in events:
        item = payload_of(stored.event)
        size += len(item.decode())
        if items and characters_max is not None and size > characters_max:
            break
        items.append(item)
    return tuple(items), events[len(items) - 1].seq


def _reply(message: PullResponse) -> Reply:
    return Reply(write(message), action(message))
