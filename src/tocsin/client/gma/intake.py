"""Intake: the loop's side of a consumer's subscription, which subscribes again when it must."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from tocsin.client.gma.call import Place
from tocsin.client.gma.inbox import Arrival, Inbox
from tocsin.client.gma.link import Link
from tocsin.client.gma.loop import LoopThread
from tocsin.client.gma.made import Made, read_filter
from tocsin.client.gma.wording import error_words
from tocsin.errors import BrokerRefused, TocsinError
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m

RECONNECT_S_MAX: Final = 300.0  # for a producer that was there once to come back
UNSUBSCRIBED: Final = "it was unsubscribed"
_LATER: Final = ("T207", "T208")  # a broker that is busy, or stops
HELD_S_MAX: Final = 1.0  # for others on the connection to wait for who takes no more

log = logging.getLogger("tocsin.gma")


class Intake:
    """Of the loop's thread alone, but for `inbox` and what can only be read."""

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
        self._first: asyncio.Future[None] | None = None
        self._place: Place | None = None
        self._held_timer: asyncio.TimerHandle | None = None
        self._filters_here = False
        self._lost_s: float | None = None
        self._was_agreed = False
        self._failure: TocsinError | None = None
        self.inbox = Inbox(lambda: thread.call(self._release))
        self.comes_back = False
        self.has_filter = self._wanted is not None
        self.why: str | None = None  # it is over
        self.detail: str | None = None
        self.error: str | None = None
        self.errors = 0
        self.reconnects = 0

    async def begin(self, link: Link) -> None:
        """Set out; returns when the producer has agreed, and raises if it has not."""
        self._link = link
        self._first = self._loop.create_future()
        link.start()
        try:
            await self._first
        except asyncio.CancelledError:
            if self.why is None:  # nobody waits for it any more
                await link.end(UNSUBSCRIBED)
            raise

    async def end(self) -> None:
        """Take leave."""
        if self._link is not None:
            await self._link.end(UNSUBSCRIBED)
        self.over(UNSUBSCRIBED)

    def asks(
        self, conversation: c.Conversation, *, is_plain: bool
    ) -> tuple[m.SubscribeRequest, c.Subscription]:
        filter = None if is_plain else self._filter
        options = m.Options(role=c.CONSUMER, after=self._after, context=True)
        return conversation.subscribe(
            self._parameters, filter=filter, options=options, peer_role=c.PRODUCER
        )

    def agreed(self, place: Place) -> None:
        said = place.subscription.agreed
        self._place = place
        self.detail = place.detail
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
            self.error = error_words(message.error, message.error_detail)
            log.warning("an error in place of an event: %s", self.error)
        if context is not None:
            if self._after is not None and context.seq <= self._after:
                return  # it came before the connection broke
            self._after = context.seq
        event = message.event
        if event is None or (self._filters_here and not Made(event).passes(self._wanted)):
            return
        place = self._place
        assert place is not None, "it has brought the event"
        seq = context.seq if context is not None else None
        if not self.inbox.put(Arrival(event, place.message_bytes, seq)):
            self._hold(place)

    def answered(self, reply: m.EventReply) -> None:
        raise AssertionError("a consumer sends no events that could be answered")

    def has_room(self) -> None:
        pass

    def lost(self, error: TocsinError) -> bool:
        self._release()
        self._place = None
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
        self._release()
        self.why = self.why or why
        self.inbox.end(self._failure)
        if self._first is not None and not self._first.done():
            if self._failure is None:
                self._first.cancel()
            else:
                self._first.set_exception(self._failure)

    def _hold(self, place: Place) -> None:
        place.hold()
        if self._held_timer is None:
            self._held_timer = self._loop.call_later(HELD_S_MAX, self._held_long)

    def _held_long(self) -> None:
        """Others on the connection have waited for this program's slowness: they need not."""
        self._held_timer = None
        if self._place is None or self._link is None or self.why is not None:
            return
        if self._place.is_alone:
            self._held_timer = self._loop.call_later(HELD_S_MAX, self._held_long)
        else:
            self._link.move()

    def _release(self) -> None:
        if self._held_timer is not None:
            self._held_timer.cancel()
            self._held_timer = None
        if self._place is not None:
            self._place.release()
