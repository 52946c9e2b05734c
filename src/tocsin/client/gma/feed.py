"""Feed: a subscription that the producer began, kept up, and what became of its events."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from contextlib import suppress
from threading import Condition
from typing import Final, Protocol

from tocsin.client.gma.connection import PeerConnection
from tocsin.client.gma.link import Link
from tocsin.client.gma.loop import LoopThread
from tocsin.client.gma.made import Failed, Made
from tocsin.client.gma.outbox import Kept, Outbox
from tocsin.errors import BrokerRefused, TocsinError
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m

ANSWER_S_MAX: Final = 60.0  # for an event that the consumer agreed to answer
CLOSE_S_MAX: Final = 2.0  # for what is left, when a feed is closed
# What a broker refuses for now and may take later: it is busy, it stops, or its disk is full.
_LATER: Final = ("[T207]", "[T208]", "[T403]", "[T404]")

CONNECTING: Final = "connecting"
OPEN: Final = "open"
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
    """Made by `Producer.push_to`. The numbers may be read, and the methods called, by any thread.

    `state` is connecting, open, refused (it is asked again) or ended (it is not); `error` says what
    went wrong last. `sent` counts events, not how often each was sent.
    """

    plays = c.PRODUCER

    def __init__(self, thread: LoopThread, parameters: m.Parameters) -> None:
        self._thread = thread
        self._parameters = parameters
        self._changed = Condition()
        self._outbox = Outbox()
        self._nonce = os.urandom(12).hex()
        self._source: Source | None = None
        self._link: Link | None = None
        self._task: asyncio.Task[None] | None = None
        self._connection: PeerConnection | None = None
        self._subscription: c.Subscription | None = None
        self._answers = False
        self.comes_back = False
        self._answer_timer: asyncio.TimerHandle | None = None
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
        """Wait until everything has arrived, or is sent where that is never told; False if not."""
        deadline = time.monotonic() + timeout_s
        with suppress(RuntimeError, TimeoutError):
            self._thread.ask(_nothing(), timeout_s)  # what was emitted before this has come in
        with self._changed:
            while not self._is_clear():
                left_s = deadline - time.monotonic()
                if left_s <= 0 or self.state == ENDED:
                    return False
                # Nobody tells when the last bytes have left, so look now and then.
                self._changed.wait(min(left_s, 0.05))
        return True

    def close(self) -> None:
        """Send what is left, if that is soon done, and end the subscription."""
        if self.state == OPEN:
            self.flush(CLOSE_S_MAX)
        with suppress(RuntimeError, TimeoutError):
            self._thread.ask(self.end(), CLOSE_S_MAX * 2)

    # In the loop's thread

    def begin(self, link: Link, source: Source) -> None:
        """Set out."""
        self._link, self._source = link, source
        self._task = self._thread.loop.create_task(link.run())
        source.start()

    async def end(self) -> None:
        """Take leave."""
        if self._link is not None:
            self._stop()
            await self._link.end("the producer ended the feed")
            self._become(ENDED, self.error)

    def deliver(self, made: Made) -> None:
        """An event was made that passes the filter."""
        before = self._outbox.dropped
        self._outbox.put(made.event, len(made.content))
        if not before and self._outbox.dropped:
            log.warning("the feed of %s has no more room and drops events", self._parameters.name)
        self._pump()

    def fail(self, failed: Failed) -> None:
        """None could be made."""
        self.error = f"{failed.error}: {failed.detail}"
        connection, subscription = self._connection, self._subscription
        if connection is not None and subscription is not None and not connection.is_clogged:
            assert subscription.peer_id is not None, "it is open"
            connection.send(
                m.EventMessage(subscription.peer_id, error=failed.error, error_detail=failed.detail)
            )

    def asks(self, conversation: c.Conversation, *, is_plain: bool) -> m.SubscribeRequest:
        options = None if is_plain else m.Options(role=c.PRODUCER, acknowledge=self._nonce)
        return conversation.subscribe(self._parameters, options=options, peer_role=c.CONSUMER)[0]

    def agreed(self, connection: PeerConnection, subscription: c.Subscription) -> None:
        self._connection, self._subscription = connection, subscription
        self._answers = bool(subscription.agreed and subscription.agreed.acknowledge)
        self.comes_back = self._answers
        if self.state == REFUSED and self._source is not None:
            self._source.start()
        self._become(OPEN, None)
        self._pump()

    def has_room(self) -> None:
        self._pump()

    def arrived(self, message: m.EventMessage) -> None:
        raise AssertionError("a conversation lets no event through to a producer")

    def answered(self, reply: m.EventReply) -> None:
        if reply.returned != m.SUCCESS and any(each in (reply.detail or "") for each in _LATER):
            self.error = reply.detail
            assert self._link is not None, "it was there for the event"
            self._link.drop(f"it cannot take events now: {reply.detail}")
            return
        if self._outbox.settle(reply.request_id):
            if reply.returned == m.SUCCESS:
                self.acknowledged += 1
            else:
                self._refused += 1
                self.error = reply.detail
                log.warning("an event of %s was refused: %s", self._parameters.name, reply.detail)
        self._watch(is_new=True)
        self._pump()

    def lost(self, error: TocsinError) -> bool:
        self._connection = self._subscription = None
        self._watch(is_new=True, is_off=True)
        self._outbox.rewind()
        if isinstance(error, BrokerRefused):
            if self.state != REFUSED and self._source is not None:
                self._source.stop()
            self._become(REFUSED, str(error))
        elif self.state != REFUSED:
            self._become(CONNECTING, str(error))
        return True

    def over(self, why: str) -> None:
        self._connection = self._subscription = None
        self._stop()
        self._become(ENDED, self.error if self.state == ENDED else why)

    def _stop(self) -> None:
        if self._source is not None:
            self._source.stop()
        self._watch(is_new=True, is_off=True)

    def _pump(self) -> None:
        connection, subscription = self._connection, self._subscription
        while (
            connection is not None
            and subscription is not None
            and connection.is_open
            and not connection.is_clogged
            and (kept := self._outbox.next()) is not None
        ):
            self._send(connection, subscription, kept)
        self._watch(is_new=False)
        with self._changed:
            self._changed.notify_all()

    def _send(self, connection: PeerConnection, subscription: c.Subscription, kept: Kept) -> None:
        number = kept.number if self._answers else None
        connection.send(connection.conversation.event(subscription, kept.event, number))
        at = int(kept.number[1:])
        if at > self._highest:
            self._highest = at
            self.sent += 1
        if number is None:
            self._outbox.settle(kept.number)

    def _watch(self, *, is_new: bool, is_off: bool = False) -> None:
        """Give the oldest event in flight its time to be answered."""
        if self._answer_timer is not None and (is_new or not self._outbox.in_flight):
            self._answer_timer.cancel()
            self._answer_timer = None
        if self._answer_timer is None and self._outbox.in_flight and not is_off:
            assert self._link is not None, "something was sent by it"
            why = f"it did not answer an event within {ANSWER_S_MAX:g} s"
            self._answer_timer = self._thread.loop.call_later(ANSWER_S_MAX, self._link.drop, why)

    def _become(self, state: str, error: str | None) -> None:
        with self._changed:
            self.state, self.error = state, error
            self._changed.notify_all()

    def _is_clear(self) -> bool:
        connection = self._connection
        return not len(self._outbox) and (
            self._answers or connection is None or connection.unread_bytes == 0
        )


async def _nothing() -> None:
    """Only to be waited for."""
