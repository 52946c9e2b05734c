"""WS-Management's pull mode: a subscription is a box, and WS-Enumeration fetches from it.

The context that an answer hands out names the last event in it, and pulling with that context
acknowledges up to there: an answer that is lost on the way is given again. Who always pulls with
the context of the SubscribeResponse takes, as from a box of a protocol without a token.
"""

from __future__ import annotations

from typing import Final

from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.errors import NoSuchBox, TocsinError
from tocsin.event.instant import NS_PER_S, xs_duration_ns
from tocsin.event.stored import Stored
from tocsin.event.subscription import Kind
from tocsin.services.mailbox.box_reader import BoxReader
from tocsin.services.soap.call import Handlers, Reply, Request
from tocsin.services.soap.delivery_receipt import DeliveryReceipt
from tocsin.wire.soap.addressing import header_text
from tocsin.wire.soap.mediation import payload_of
from tocsin.wire.soap.names import WSEN, WSMAN
from tocsin.wire.wse.faults import enumeration_fault, timed_out
from tocsin.wire.wse.messages import Pull, PullResponse
from tocsin.wire.wse.read import read_pull, read_release
from tocsin.wire.wse.write import RELEASE_RESPONSE_ACTION, action, bookmark, write

WAIT_NS_DEFAULT: Final = 30 * NS_PER_S
ELEMENTS_DEFAULT: Final = 1  # WS-Enumeration, section 3.2


class Enumeration:
    """Pull and Release."""

    def __init__(self, port: BrokerPort, redeliver_s: float) -> None:
        self._port = port
        self._reader = BoxReader(port, redeliver_s)
        self.handlers: Handlers = {(WSEN, "Pull"): self.pull, (WSEN, "Release"): self.release}

    async def pull(self, request: Request) -> Reply:
        asked = read_pull(request.envelope)
        box, _, given = asked.context.removeprefix("uuid:").partition(".")
        try:
            terms = self._port.view_box(request.session, box).subscription.soap
        except TocsinError as error:
            raise enumeration_fault(error) from None
        wait_ns, marked = _wait_ns(request, asked), terms is not None and terms.bookmarks
        try:
            if given:
                return await self._next(request.session, box, asked, wait_ns, given, marked=marked)
            return await self._take(request.session, box, asked, wait_ns, marked=marked)
        except NoSuchBox:
            # It was there when the wait began: what was waited for will not come any more.
            return _reply(PullResponse((), ended=True))
        except TocsinError as error:
            raise enumeration_fault(error) from None

    async def _next(
        self, session: Session, box: str, asked: Pull, wait_ns: int, ack: str, *, marked: bool
    ) -> Reply:
        """What follows the answer that handed out this context, which has arrived."""
        count = asked.elements_max or ELEMENTS_DEFAULT
        pulled = await self._port.pull(session, box, count, wait_ns, ack)
        if not pulled.events:
            raise timed_out()
        items, last = _fitting(pulled.events, asked.characters_max)
        return _reply(PullResponse(items, f"{box}.{last}"), last if marked else None)

    async def _take(
        self, session: Session, box: str, asked: Pull, wait_ns: int, *, marked: bool
    ) -> Reply:
        count = asked.elements_max or ELEMENTS_DEFAULT
        taken = await self._reader.take(session, box, count, wait_ns)
        if not taken.messages:
            taken.receipt.lost()
            raise timed_out()
        items, last = _fitting(taken.messages, asked.characters_max)
        if len(items) < len(taken.messages):
            taken.keep_back(len(items), 0)
        mark = last if marked else None
        return _reply(PullResponse(items, f"{box}.{last}"), mark, taken.receipt)

    async def release(self, request: Request) -> Reply:
        """Nobody will pull any more, so the subscription is over."""
        context = read_release(request.envelope).context
        box = context.removeprefix("uuid:").partition(".")[0]
        try:
            self._port.view_box(request.session, box)
            await self._port.unsubscribe(request.session, box, Kind.BOX, quietly=True)
        except TocsinError as error:
            raise enumeration_fault(error) from None
        return Reply(b"", RELEASE_RESPONSE_ACTION)


def _wait_ns(request: Request, asked: Pull) -> int:
    """As long as the puller says, in the message or for operations in general."""
    for text in (asked.time_max, header_text(request.envelope, WSMAN, "OperationTimeout")):
        length_ns = None if text is None else xs_duration_ns(text)
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


def _reply(
    message: PullResponse, marked: int | None = None, receipt: DeliveryReceipt | None = None
) -> Reply:
    """`marked`: the event that a bookmark in the answer names."""
    headers = b"" if marked is None else bookmark(marked)
    return Reply(write(message), action(message), headers=headers, receipt=receipt)
