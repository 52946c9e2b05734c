"""Reception: the listening side of a consumer, where producers bring their events (an archive)."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import OrderedDict
from typing import Final

from tocsin.client.gma.address import PeerAddress
from tocsin.client.gma.connection import PeerConnection
from tocsin.client.gma.inbox import Arrival, Inbox
from tocsin.client.gma.listening import CONNECTIONS_MAX, listen, say_goodbye
from tocsin.client.gma.loop import LoopThread
from tocsin.client.gma.numbering import Numbering
from tocsin.client.gma.unfinished import Unfinished
from tocsin.client.gma.wording import error_words
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m

FRAME_BYTES_MAX: Final = 4 << 20
IDLE_S_MAX: Final = 300.0  # for a connection without subscriptions
REMEMBERED_MAX: Final = 50_000  # numbers; a feed of ours has 256 at most on their way
_FULL: Final = "the program takes no more"

log = logging.getLogger("tocsin.gma")


class Remembered:
    """Which numbers came of late, so that what is sent again is not taken twice."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()

    def is_new(self, feed: str, number: str) -> bool:
        """True for a number that this feed did not use, as far as can be remembered."""
        if (feed, number) in self._seen:
            return False
        self._seen[feed, number] = None
        if len(self._seen) > REMEMBERED_MAX:
            self._seen.popitem(last=False)
        return True


class Visitor:
    """A producer that called. Of the loop's thread alone."""

    def __init__(self, reception: Reception) -> None:
        self._reception = reception
        self._loop = reception.thread.loop
        self._goodbyes = 0
        self._idle_timer: asyncio.TimerHandle | None = None
        self._heard_s = self._loop.time()
        self.gone = asyncio.Event()
        self.connection = PeerConnection(
            self,
            reception.numbering.conversation(c.CONSUMER),
            frame_bytes_max=FRAME_BYTES_MAX,
            accepted=True,
            unfinished=reception.unfinished,
        )

    def say_goodbye(self) -> None:
        """End all subscriptions; the connection is closed when the producer has replied."""
        conversation = self.connection.conversation
        for subscription in conversation.subscriptions:
            self.connection.send(conversation.unsubscribe(subscription))
            self._goodbyes += 1
        if not self._goodbyes:
            self.connection.close("the consumer closes")

    def opened(self) -> None:
        if self._reception.came(self):
            self._idle_timer = self._loop.call_later(IDLE_S_MAX, self._check_idle)
        else:
            self.connection.abort("there is no room")

    def has_room(self) -> None:
        pass

    def closed(self, why: str) -> None:
        log.debug("the producer %s is gone: %s", self.connection.peer, why)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._reception.left(self)
        self.gone.set()

    def happened(self, happening: c.Happening) -> None:
        self._heard_s = self._loop.time()
        match happening:
            case c.SubscribeAsked(request):
                self._subscribe(request)
            case c.EventArrived(subscription, message):
                self._arrived(subscription, message)
            case c.Ended(_, reply) | c.Refusal(reply):
                self.connection.send(reply)
            case c.Answered():
                self._goodbyes -= 1
                if self._goodbyes == 0:
                    self.connection.close("the consumer closes")
            case _:
                pass

    def _subscribe(self, request: m.SubscribeRequest) -> None:
        asked = request.options
        agreed = None
        if asked is not None:
            agreed = m.Options(role=c.CONSUMER, acknowledge=asked.acknowledge)
        reply, _ = self.connection.conversation.accept(request, agreed=agreed)
        self.connection.send(reply)

    def _arrived(self, subscription: c.Subscription, message: m.EventMessage) -> None:
        if message.error is not None:
            self._reception.failed(error_words(message.error, message.error_detail))
        number, event = message.request_id, message.event
        agreed, size = subscription.agreed, self.connection.message_bytes
        if number is None or agreed is None or agreed.acknowledge is None:
            if event is not None:
                self._reception.take(self, Arrival(event, size))
            return
        if event is not None and not self._reception.remembered.is_new(agreed.acknowledge, number):
            event = None  # it waits, or was taken, already; but this one wants its answer, too

        def taken() -> None:
            self._reception.thread.call(self.connection.send, m.EventReply(number))

        self._reception.take(self, Arrival(event, size, taken=taken))

    def _check_idle(self) -> None:
        quiet_s = self._loop.time() - self._heard_s
        busy = bool(self.connection.conversation.subscriptions)
        if not busy and quiet_s >= IDLE_S_MAX:
            self.connection.close("nothing was received for a long time")
            return
        left_s = IDLE_S_MAX if busy else IDLE_S_MAX - quiet_s
        self._idle_timer = self._loop.call_later(left_s, self._check_idle)


class Reception:
    """Of the loop's thread alone, but for `take_next`, `address`, `error` and `errors`."""

    def __init__(self, thread: LoopThread, numbering: Numbering) -> None:
        self.thread = thread
        self.numbering = numbering
        self.remembered = Remembered()
        self.unfinished = Unfinished()
        self.inbox = Inbox(lambda: thread.call(self._release))
        self.address: PeerAddress | None = None
        self.error: str | None = None
        self.errors = 0
        self._server: asyncio.Server | None = None
        self._visitors: set[Visitor] = set()
        self._held: set[Visitor] = set()

    async def open(self, address: PeerAddress, context: ssl.SSLContext | None) -> None:
        self._server, self.address = await listen(
            address, context, lambda: Visitor(self).connection
        )

    async def close(self) -> None:
        """Let no more in, and tell every producer that it is over."""
        if self._server is not None:
            self._server.close()
        await say_goodbye(self._visitors)
        self.inbox.end()

    def came(self, visitor: Visitor) -> bool:
        if len(self._visitors) >= CONNECTIONS_MAX:
            log.warning("turned a connection away: there are %d", CONNECTIONS_MAX)
            return False
        self._visitors.add(visitor)
        return True

    def left(self, visitor: Visitor) -> None:
        self._visitors.discard(visitor)
        self._held.discard(visitor)

    def take(self, visitor: Visitor, arrival: Arrival) -> None:
        if not self.inbox.put(arrival):
            self._held.add(visitor)
            visitor.connection.hold(_FULL)

    def failed(self, error: str) -> None:
        self.errors += 1
        self.error = error
        log.warning("an error in place of an event: %s", error)

    def _release(self) -> None:
        held, self._held = self._held, set()
        for visitor in held:
            visitor.connection.release(_FULL)
