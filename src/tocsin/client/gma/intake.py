"""Intake: the loop's side of a consumer's subscription, which subscribes again when it must."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from tocsin.client.gma.connection import PeerConnection
from tocsin.client.gma.inbox import Arrival, Inbox
from tocsin.client.gma.link import Link
from tocsin.client.gma.loop import LoopThread
from tocsin.client.gma.made import Made, read_filter
from tocsin.errors import BrokerRefused, TocsinError
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m

RECONNECT_S_MAX: Final = 300.0  # for a producer that was there once to come back
UNSUBSCRIBED: Final = "it was unsubscribed"
_LATER: Final = ("T207", "T208")  # a broker that is busy, or stops
_FULL: Final = "the program takes no more"

log = logging.getLogger("tocsin.gma")


class Intake:
    """Of the loop's thread alone, but for `inbox` and what can only be read."""

    plays = c.CONSUMER

    def __init__(
        self,
        thread: LoopThread,
        parameters: m.Parameters,
        filter: str | None,
        after: int | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._parameters = parameters
        self._filter = filter
        self._wanted = read_filter(filter)
        self._after = after
        self._clock = clock
        self._loop = thread.loop
        self._link: Link | None = None
        self._task: asyncio.Task[None] | None = None
        self._first: asyncio.Future[None] | None = None
        self._connection: PeerConnection | None = None
        self._filters_here = False
        self._lost_s: float | None = None
        self._was_agreed = False
        self._failure: TocsinError | None = None
        self.inbox = Inbox(lambda: thread.call(self._release))
        self.comes_back = False
        self.why: str | None = None  # it is over
        self.error: str | None = None
        self.errors = 0
        self.reconnects = 0

    async def begin(self, link: Link) -> None:
        """Set out; returns when the producer has agreed, and raises if it has not."""
        self._link = link
        self._first = self._loop.create_future()
        self._task = self._loop.create_task(link.run())
        await self._first

    async def end(self) -> None:
        """Take leave."""
        if self._link is not None:
            await self._link.end(UNSUBSCRIBED)
        self.over(UNSUBSCRIBED)

    def asks(self, conversation: c.Conversation, *, is_plain: bool) -> m.SubscribeRequest:
        if is_plain:
            return conversation.subscribe(self._parameters, peer_role=c.PRODUCER)[0]
        options = m.Options(role=c.CONSUMER, after=self._after, context=True)
        return conversation.subscribe(
            self._parameters, filter=self._filter, options=options, peer_role=c.PRODUCER
        )[0]

    def agreed(self, connection: PeerConnection, subscription: c.Subscription) -> None:
        said = subscription.agreed
        self._connection = connection
        self._was_agreed = True
        self._lost_s = None
        self._filters_here = self._wanted is not None and not (said and said.filtered)
        self.comes_back = bool(said and said.context)
        if self._after is None and said is not None:
            self._after = said.after
        if self._first is not None and not self._first.done():
            self._first.set_result(None)

    def arrived(self, message: m.EventMessage) -> None:
        context = message.context
        if message.error is not None:
            self.errors += 1
            self.error = f"{message.error}: {message.error_detail or ''}".rstrip(": ")
            log.warning("an error in place of an event: %s", self.error)
        if context is not None:
            if self._after is not None and context.seq <= self._after:
                return  # it came before the connection broke
            self._after = context.seq
        event = message.event
        if event is None or (self._filters_here and not Made(event).passes(self._wanted)):
            return
        connection = self._connection
        assert connection is not None, "it has brought the event"
        seq = context.seq if context is not None else None
        if not self.inbox.put(Arrival(event, connection.message_bytes, seq)):
            connection.hold(_FULL)

    def answered(self, reply: m.EventReply) -> None:
        raise AssertionError("a consumer sends no events that could be answered")

    def has_room(self) -> None:
        pass

    def lost(self, error: TocsinError) -> bool:
        self._connection = None
        now_s = self._clock()
        if self._lost_s is None:
            self._lost_s = now_s
        is_final = isinstance(error, BrokerRefused) and error.broker_code not in _LATER
        if not self._was_agreed or is_final or now_s - self._lost_s > RECONNECT_S_MAX:
            self._failure = error
            return False
        self.reconnects += 1
        return True

    def over(self, why: str) -> None:
        self.why = self.why or why
        self.inbox.end(self._failure)
        if self._first is not None and not self._first.done():
            if self._failure is None:
                self._first.cancel()
            else:
                self._first.set_exception(self._failure)

    def _release(self) -> None:
        if self._connection is not None:
            self._connection.release(_FULL)
