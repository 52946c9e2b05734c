"""Subscription: the events that a consumer asked for, one after the other, while wanted."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, Self

from tocsin.client.gma.encoded_event import EncodedEvent, read_filter
from tocsin.client.gma.inbox import Arrival, Inbox
from tocsin.client.gma.loop import LoopThread
from tocsin.client.gma.outgoing_connection import RemoteSubscription
from tocsin.client.gma.peer_errors import error_text
from tocsin.client.gma.resubscriber import Resubscriber
from tocsin.errors import BrokerRefused, TocsinError
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.messages import PerformanceEvent

UNSUBSCRIBE_S_MAX: Final = 5.0


class Subscription:
    """Iterate over it, or `take`. If the connection breaks it subscribes again, and where the
    producer keeps a log (a Tocsin broker) goes on where it was.

    An error that the producer sends in place of an event does not end it: `errors` counts them,
    `error` is the last. `seq` is the place in the log of the last event taken, if there is a log.
    """

    def __init__(self, thread: LoopThread, receiver: SubscriptionReceiver, owner: object) -> None:
        self._thread = thread
        self._receiver = receiver
        self._owner = owner  # which must not be closed for being forgotten while this is in use
        self._is_unsubscribed = False
        self.seq: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.unsubscribe()

    def __iter__(self) -> Iterator[PerformanceEvent]:
        return self

    def __next__(self) -> PerformanceEvent:
        event = self.take(None)
        if event is None:
            raise StopIteration
        return event

    def take(self, timeout_s: float | None = None) -> PerformanceEvent | None:
        """The next event; None if none came in time, or it has ended.

        Raises what ended it, if the producer could not be reached any more or refused to go on.
        """
        arrival = self._receiver.inbox.take(timeout_s)
        if arrival is None:
            return None
        self.seq = arrival.seq if arrival.seq is not None else self.seq
        return arrival.event

    @property
    def ended(self) -> str | None:
        """Why no more comes, once everything that came was taken, or it was unsubscribed."""
        is_empty = self._is_unsubscribed or self._receiver.inbox.is_over
        return self._receiver.why if is_empty else None

    @property
    def detail(self) -> str | None:
        """The detail in the reply of the producer, if there is one."""
        return self._receiver.detail

    @property
    def error(self) -> str | None:
        """The last error that the producer sent in place of an event."""
        return self._receiver.error

    @property
    def errors(self) -> int:
        """How often it did."""
        return self._receiver.errors

    @property
    def reconnects(self) -> int:
        """How often the connection was made again, or that was tried."""
        return self._receiver.reconnects

    def unsubscribe(self) -> None:
        """End it; what has come can still be taken."""
        self._is_unsubscribed = True
        with suppress(RuntimeError, TimeoutError):
            self._thread.ask(self._receiver.end(), UNSUBSCRIBE_S_MAX)


RECONNECT_S_MAX: Final = 300.0  # for a producer that was there once to come back
UNSUBSCRIBED: Final = "it was unsubscribed"
_LATER: Final = ("T207", "T208")  # a broker that is busy, or stops
HELD_S_MAX: Final = 1.0  # for others on the connection to wait for who takes no more

log = logging.getLogger("tocsin.gma")


class SubscriptionReceiver:
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
        self._resubscriber: Resubscriber | None = None
        self._first: asyncio.Future[None] | None = None
        self._remote: RemoteSubscription | None = None
        self._held_timer: asyncio.TimerHandle | None = None
        self._filters_here = False
        self._lost_s: float | None = None
        self._was_agreed = False
        self._failure: TocsinError | None = None
        self.inbox = Inbox(lambda: thread.call(self._release))
        self.retries_after_end = False
        self.has_filter = self._wanted is not None
        self.why: str | None = None  # it is over
        self.detail: str | None = None
        self.error: str | None = None
        self.errors = 0
        self.reconnects = 0

    async def begin(self, resubscriber: Resubscriber) -> None:
        """Set out; returns when the producer has agreed, and raises if it has not."""
        self._resubscriber = resubscriber
        self._first = self._loop.create_future()
        resubscriber.start()
        try:
            await self._first
        except asyncio.CancelledError:
            if self.why is None:  # nobody waits for it any more
                await resubscriber.end(UNSUBSCRIBED)
            raise

    async def end(self) -> None:
        """Take leave."""
        if self._resubscriber is not None:
            await self._resubscriber.end(UNSUBSCRIBED)
        self.subscription_ended(UNSUBSCRIBED)

    def subscribe_request(
        self, conversation: c.Conversation, *, is_plain: bool
    ) -> tuple[m.SubscribeRequest, c.Subscription]:
        filter = None if is_plain else self._filter
        options = m.Options(role=c.CONSUMER, after=self._after, context=True)
        return conversation.subscribe(
            self._parameters, filter=filter, options=options, peer_role=c.PRODUCER
        )

    def agreed(self, remote: RemoteSubscription) -> None:
        agreed = remote.subscription.agreed
        self._remote = remote
        self.detail = remote.detail
        self._was_agreed = True
        self._lost_s = None
        self._filters_here = self._wanted is not None and not (agreed and agreed.filtered)
        self.retries_after_end = bool(agreed and agreed.context)
        if self._after is None and agreed is not None:
            self._after = agreed.after
        if self._first is not None and not self._first.done():
            self._first.set_result(None)

    def event_received(self, message: m.EventMessage) -> None:
        context = message.context
        if message.error is not None:
            self.errors += 1
            self.error = error_text(message.error, message.error_detail)
            log.warning("an error in place of an event: %s", self.error)
        if context is not None:
            if self._after is not None and context.seq <= self._after:
                return  # it came before the connection broke
            self._after = context.seq
        event = message.event
        if event is None or (self._filters_here and not EncodedEvent(event).passes(self._wanted)):
            return
        remote = self._remote
        assert remote is not None, "it has brought the event"
        seq = context.seq if context is not None else None
        if not self.inbox.put(Arrival(event, remote.message_bytes, seq)):
            self._hold(remote)

    def reply_received(self, reply: m.EventReply) -> None:
        raise AssertionError("a consumer sends no events that could be answered")

    def has_room(self) -> None:
        pass

    def disconnected(self, error: TocsinError) -> bool:
        self._release()
        self._remote = None
        now_s = self._clock()
        if self._lost_s is None:
            self._lost_s = now_s
        is_final = isinstance(error, BrokerRefused) and error.broker_code not in _LATER
        if not self._was_agreed or is_final or now_s - self._lost_s > RECONNECT_S_MAX:
            self._failure = error
            return False
        self.reconnects += 1
        return True

    def subscription_ended(self, why: str) -> None:
        self._release()
        self.why = self.why or why
        self.inbox.end(self._failure)
        if self._first is not None and not self._first.done():
            if self._failure is None:
                self._first.cancel()
            else:
                self._first.set_exception(self._failure)

    def _hold(self, remote: RemoteSubscription) -> None:
        remote.hold()
        if self._held_timer is None:
            self._held_timer = self._loop.call_later(HELD_S_MAX, self._hold_expired)

    def _hold_expired(self) -> None:
        """Others on the connection have waited for this program's slowness: they need not."""
        self._held_timer = None
        if self._remote is None or self._resubscriber is None or self.why is not None:
            return
        if self._remote.is_alone:
            self._held_timer = self._loop.call_later(HELD_S_MAX, self._hold_expired)
        else:
            self._resubscriber.move()

    def _release(self) -> None:
        if self._held_timer is not None:
            self._held_timer.cancel()
            self._held_timer = None
        if self._remote is not None:
            self._remote.release()
