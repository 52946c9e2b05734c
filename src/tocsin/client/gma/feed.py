"""Feed: a subscription that the producer began, kept up, and what became of its events."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from threading import Condition
from typing import Final, NamedTuple, Protocol

from tocsin.client.gma.encoded_event import EncodedEvent, Failed
from tocsin.client.gma.loop import LoopThread
from tocsin.client.gma.outgoing_connection import RemoteSubscription
from tocsin.client.gma.peer_errors import one_line
from tocsin.client.gma.resubscriber import Resubscriber
from tocsin.client.gma.schedule import pause_s
from tocsin.errors import BrokerRefused, TocsinError
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m

QUEUED_EVENTS_MAX = 10_000
QUEUED_BYTES_MAX = 16 << 20
IN_FLIGHT_MAX = 256  # sent, and not answered; a conversation keeps track of 1,000


class QueuedEvent(NamedTuple):
    """An event under its number, the so-manieth of its feed; its element as it is sent."""

    number: str
    at: int
    content: bytes


class Outbox:
    """Events not yet known to have arrived, oldest first, each with a number that it keeps however
    often it is sent. One that is put in goes out by `settle`, or is `dropped` for want of room."""

    def __init__(
        self,
        events_max: int = QUEUED_EVENTS_MAX,
        bytes_max: int = QUEUED_BYTES_MAX,
        in_flight_max: int = IN_FLIGHT_MAX,
        new_number: Callable[[], str] | None = None,
    ) -> None:
        numbers = count(1)
        self._new_number = new_number or (lambda: f"e{next(numbers)}")
        self._events_max = events_max
        self._bytes_max = bytes_max
        self._in_flight_max = in_flight_max
        self._unsent: OrderedDict[str, QueuedEvent] = OrderedDict()
        self._in_flight: OrderedDict[str, QueuedEvent] = OrderedDict()
        self._size = 0
        self._count = 0
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._unsent) + len(self._in_flight)

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    def put(self, content: bytes) -> None:
        """Keep an event; the oldest go if there is no room."""
        self._count += 1
        queued = QueuedEvent(self._new_number(), self._count, content)
        self._unsent[queued.number] = queued
        self._size += len(content)
        while len(self) > self._events_max or (self._size > self._bytes_max and len(self) > 1):
            _, oldest = (self._in_flight or self._unsent).popitem(last=False)
            self._size -= len(oldest.content)
            self.dropped += 1

    def next(self) -> QueuedEvent | None:
        """What to send now, which is then in flight; None if enough is."""
        if not self._unsent or len(self._in_flight) >= self._in_flight_max:
            return None
        number, queued = self._unsent.popitem(last=False)
        self._in_flight[number] = queued
        return queued

    def settle(self, number: str) -> bool:
        """It has arrived, or will never; False if it is not in flight."""
        queued = self._in_flight.pop(number, None)
        if queued is None:
            return False
        self._size -= len(queued.content)
        return True

    def rewind(self) -> None:
        """The connection is gone: what is in flight is to be sent again, before the rest."""
        for number, queued in reversed(self._in_flight.items()):
            self._unsent[number] = queued
            self._unsent.move_to_end(number, last=False)
        self._in_flight.clear()


ANSWER_S_MAX: Final = 60.0  # for an event that the consumer agreed to answer
CLOSE_S_MAX: Final = 2.0  # for what is left, when a feed is closed
# What a broker refuses for now and may take later: it is busy, it stops, or its disk is full.
_LATER: Final = ("T207", "T208", "T403", "T404")

CONNECTING: Final = "connecting"
OPEN: Final = "open"
BUSY: Final = "busy"
REFUSED: Final = "refused"
ENDED: Final = "ended"

log = logging.getLogger("tocsin.gma")


class Source(Protocol):
    """Where the events of a feed come from."""

    def start(self) -> None:
        """Begin to make them."""

    def stop(self) -> None:
        """No more."""


class Feed:
    """Created by `Producer.push_to`. Any thread may read the numbers and call the methods.

    `state` is connecting, open, busy (the consumer takes no events now), refused (it is asked
    again, and nothing is made until it agrees) or ended (it is not); `error` says what went wrong
    last. `sent` counts events, not how often each was sent.
    """

    def __init__(
        self,
        thread: LoopThread,
        parameters: m.Parameters,
        outbox: Outbox,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._thread = thread
        self._parameters = parameters
        self._outbox = outbox
        self._chance = chance
        self._changed = Condition()
        self._nonce = os.urandom(12).hex()
        self._source: Source | None = None
        self._resubscriber: Resubscriber | None = None
        self._remote: RemoteSubscription | None = None
        self._answers = False
        self.retries_after_end = False
        self.has_filter = False  # it is applied here
        self._answer_timer: asyncio.TimerHandle | None = None
        self._busy_timer: asyncio.TimerHandle | None = None
        self._busy_count = 0  # how often it was busy, one time after the other
        self._highest = 0
        self.state = CONNECTING
        self.error: str | None = None
        self.sent = 0
        self.acknowledged = 0
        self._refused = 0

    @property
    def dropped(self) -> int:
        """Events that never arrive: given up for want of room, or refused by the consumer."""
        return self._outbox.dropped + self._refused

    @property
    def waiting(self) -> int:
        """Events that are not yet known to have arrived."""
        return len(self._outbox)

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Wait until everything arrived, or is sent if nothing is acknowledged; False if not."""
        deadline = time.monotonic() + timeout_s
        with suppress(RuntimeError, TimeoutError):
            self._thread.ask(_no_op(), timeout_s)  # what was emitted before this has come in
        with self._changed:
            while not self._is_flushed():
                left_s = deadline - time.monotonic()
                if left_s <= 0 or self.state == ENDED:
                    return False
                # There is no callback when the last bytes have left, so look now and then.
                self._changed.wait(min(left_s, 0.05))
        return True

    def close(self) -> None:
        """Send what is left, if that is soon done, and end the subscription."""
        self._thread.call(self.stop_source)
        if self.state == OPEN:
            self.flush(CLOSE_S_MAX)
        with suppress(RuntimeError, TimeoutError):
            self._thread.ask(self.end(), CLOSE_S_MAX * 2)

    # In the loop's thread

    def begin(self, resubscriber: Resubscriber, source: Source) -> None:
        """Start the subscription and the source."""
        self._resubscriber, self._source = resubscriber, source
        resubscriber.start()
        source.start()

    def stop_source(self) -> None:
        """What there is, is all there will be."""
        if self._source is not None:
            self._source.stop()

    async def end(self) -> None:
        """End the subscription."""
        if self._resubscriber is not None:
            self._stop()
            await self._resubscriber.end("the producer ended the feed")
            self._set_state(ENDED, self.error)

    def deliver(self, made: EncodedEvent) -> None:
        """An event was made that passes the filter."""
        before = self._outbox.dropped
        self._outbox.put(made.content)
        if not before and self._outbox.dropped:
            log.warning("the feed of %s has no more room and drops events", self._parameters.name)
        self._pump()

    def fail(self, failed: Failed) -> None:
        """None could be made."""
        self.error = f"{failed.error}: {failed.detail}"
        if self._remote is not None:
            self._remote.send_error(failed.error, failed.detail)

    def subscribe_request(
        self, conversation: c.Conversation, *, is_plain: bool
    ) -> tuple[m.SubscribeRequest, c.Subscription]:
        options = m.Options(role=c.PRODUCER, acknowledge=self._nonce)
        return conversation.subscribe(self._parameters, options=options, peer_role=c.CONSUMER)

    def agreed(self, remote: RemoteSubscription) -> None:
        self._remote = remote
        agreed = remote.subscription.agreed
        self._answers = bool(agreed and agreed.acknowledge)
        self.retries_after_end = self._answers
        if self.state == REFUSED and self._source is not None:
            self._source.start()
        self._set_state(OPEN, None)
        self._pump()

    def has_room(self) -> None:
        self._pump()

    def event_received(self, message: m.EventMessage) -> None:
        raise AssertionError("a conversation lets no event through to a producer")

    def reply_received(self, reply: m.EventReply) -> None:
        is_success = reply.returned == m.SUCCESS
        detail = one_line(reply.detail or "")
        if not is_success and any(f"[{code}]" in detail for code in _LATER):
            self._back_off(detail)
        elif self._outbox.settle(reply.request_id):
            if is_success:
                self.acknowledged += 1
                self._busy_count = 0
            else:
                self._refused += 1
                self.error = detail or "it does not say why"
                log.warning("an event of %s was refused: %s", self._parameters.name, self.error)
        self._watch(is_new=True)
        self._pump()

    def disconnected(self, error: TocsinError) -> bool:
        self._remote = None
        self._watch(is_new=True, is_off=True)
        self._outbox.rewind()
        if isinstance(error, BrokerRefused) and error.broker_code not in _LATER:
            if self.state != REFUSED and self._source is not None:
                self._source.stop()
            self._set_state(REFUSED, str(error))
        elif self.state != REFUSED:
            self._set_state(CONNECTING, str(error))
        return True

    def subscription_ended(self, why: str) -> None:
        self._remote = None
        self._stop()
        self._set_state(ENDED, self.error if self.state == ENDED else why)

    def _stop(self) -> None:
        self.stop_source()
        self._watch(is_new=True, is_off=True)

    def _back_off(self, why: str) -> None:
        """The consumer takes nothing now: what it was sent is sent again, after a pause."""
        if self._busy_timer is None:
            self._busy_count += 1
            wait_s = pause_s(self._busy_count, self._chance())
            self._busy_timer = self._thread.loop.call_later(wait_s, self._try_again)
            self._set_state(BUSY, why)

    def _try_again(self) -> None:
        self._busy_timer = None
        remote = self._remote
        if remote is None or self.state != BUSY:
            return
        if remote.flights:
            # Not before all of them are answered, so that they go out in their order again.
            self._busy_timer = self._thread.loop.call_later(pause_s(0, 1.0), self._try_again)
            return
        self._outbox.rewind()
        self._set_state(OPEN, None)
        self._pump()

    def _pump(self) -> None:
        remote = self._remote
        while (
            remote is not None
            and self.state == OPEN
            and remote.may_send
            and (queued := self._outbox.next()) is not None
        ):
            self._send(remote, queued)
        self._watch(is_new=False)
        with self._changed:
            self._changed.notify_all()

    def _send(self, remote: RemoteSubscription, queued: QueuedEvent) -> None:
        remote.send_event(queued.content, queued.number if self._answers else None)
        if queued.at > self._highest:
            self._highest = queued.at
            self.sent += 1
        if not self._answers:
            self._outbox.settle(queued.number)

    def _watch(self, *, is_new: bool, is_off: bool = False) -> None:
        """Give the oldest event in flight its time to be answered."""
        remote = self._remote
        is_idle = is_off or remote is None or not remote.flights
        if self._answer_timer is not None and (is_new or is_idle):
            self._answer_timer.cancel()
            self._answer_timer = None
        if self._answer_timer is None and remote is not None and not is_idle:
            why = f"it did not answer an event within {ANSWER_S_MAX:g} s"
            self._answer_timer = self._thread.loop.call_later(ANSWER_S_MAX, remote.drop, why)

    def _set_state(self, state: str, error: str | None) -> None:
        if state != BUSY and self._busy_timer is not None:
            self._busy_timer.cancel()
            self._busy_timer = None
        with self._changed:
            self.state, self.error = state, error
            self._changed.notify_all()

    def _is_flushed(self) -> bool:
        remote = self._remote
        return not len(self._outbox) and (
            self._answers or remote is None or remote.unread_bytes == 0
        )


async def _no_op() -> None:
    """Only to be waited for."""
