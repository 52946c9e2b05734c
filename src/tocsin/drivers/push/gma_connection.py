"""GmaConnection: one connection to a consumer of performance events, of which we are the producer.

For each name of events that comes up we offer the consumer a subscription (paper 002, section 4.3),
and send them under the id that it gives. If it agreed to acknowledge, an event counts as delivered
with its answer. The paper's own protocol has no acknowledgement.

When no more is to be sent, each name that is open gets its UnsubscribeRequest, and the connection
is closed when the consumer has answered them all: had we closed it before, its answers would meet
a closed socket, and the reset that comes back could take from it what it had not read yet.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final, Protocol

from tocsin.drivers.push.connection import Owner
from tocsin.drivers.push.gma_offers import EventBatch, Offer, Offers, Outgoing
from tocsin.drivers.push.unacknowledged import UnacknowledgedConnection, printable
from tocsin.errors import TocsinError
from tocsin.wire.framing import FrameSplitter, framed
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.peer import receive, reply_to
from tocsin.wire.gma.write import event_message, write

ANSWER_BYTES_MAX: Final = 64 << 10  # a consumer's messages are short
UNANSWERED_MAX: Final = 256  # events; fewer than a conversation waits for
REPLIES_UNREAD_MAX: Final = 100
LAST_REPLIES_UNREAD_MAX: Final = 1_000  # to a consumer that ends things when we do
GOODBYE_S: Final = 2.0  # for the consumer's last answers, and for what we wrote to leave
GOODBYES_MAX: Final = 1_000  # that wait for an answer; past it connections end without one
_ONLY_BRINGS = "this connection only brings events; send requests to the broker's own address"


class Sender(Owner, Protocol):
    """Who has a batch under way on a connection."""

    @property
    def batch(self) -> EventBatch: ...

    def refused(self, reason: str) -> None:
        """The consumer does not take it. The connection is ready for the next."""

    def closed_idle(self, reason: str) -> None:
        """The connection ended while nothing was under way, and not in good order."""


class GmaConnection(UnacknowledgedConnection):
    """Batches in turn."""

    _owner: Sender

    __slots__ = (
        "_closing",
        "_conversation",
        "_feed",
        "_offers",
        "_paused",
        "_received_any",
        "_refusal",
        "_replies",
        "_splitter",
        "_todo",
        "_unanswered",
        "_used",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, owner: Sender) -> None:
        super().__init__(loop, owner)
        self._splitter = FrameSplitter(ANSWER_BYTES_MAX)
        self._conversation = c.Conversation(frozenset({c.PRODUCER}))
        self._offers = Offers(self._conversation)
        self._feed = ""
        self._todo: deque[Outgoing] = deque()
        self._used: dict[str, bool] = {}  # own ids of the subscriptions, and if they acknowledge
        self._unanswered: set[str] = set()
        self._refusal: str | None = None
        self._received_any = False  # anything, since this one is under way
        self._paused = False
        self._replies = 0  # since the consumer last read all that we wrote
        self._closing: set[Any] | None = None  # all that wait for the last answers, with us

    def send(self, _head: bytes, _rest: bytes) -> None:
        """Begin with the owner's batch. Only when the one before is done."""
        assert not self.busy
        assert not self.closed
        self.busy = True
        self._received_any = False
        batch = self._owner.batch
        self._feed = batch.feed
        self._todo = deque(batch.events)
        self._go_on()

    @property
    def is_used(self) -> bool:
        return self.busy or not self._offers.is_empty

    def leave(self, feed: str) -> None:
        """End what is open under this name. A batch of it is not reported."""
        if self.busy and feed == self._feed:
            self._done()
        for goodbye in self._offers.end(feed):
            self._send(goodbye)

    def part(self, closing: set[Any]) -> None:
        """End all that is open, and close, in good order or soon; it is in `closing` till then.
        A batch that was under way is not reported."""
        if self.closed:
            return
        self._done()
        self.closed = True
        for goodbye in self._offers.end_all():
            self._send(goodbye)
        if len(closing) < GOODBYES_MAX:
            closing.add(self)
            self._closing = closing
            self._replies = 0
            self._timer = self._loop.call_later(GOODBYE_S, self.abort)
            self._close_if_answered()
        else:
            self.abort()
        self._owner.lost()

    def abort(self) -> None:
        """Close at once, without a word to anybody."""
        self._transport.abort()

    def give_up_waiting(self) -> None:
        """The time is over."""
        if self._unanswered:
            self._fail("the consumer did not acknowledge the event in time")
        elif self._todo and not self._paused:
            self._fail(f"the consumer did not answer the offer of {self._todo[0].name} in time")
        else:
            self._fail("the consumer did not take the event in time")

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        # No marks between full and empty: `resume_writing` then means that all is written. TLS
        # pauses as soon as the mark is reached, so that with 0 it would at every write.
        self._transport.set_write_buffer_limits(high=1, low=0)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._replies = 0
        self._go_on()

    def data_received(self, data: bytes) -> None:
        self._received_any = True
        try:
            for frame in self._splitter.split(data):
                if self.closed and self._closing is None:
                    return
                self._receive(frame)
            if self._splitter.refusal is not None and not self.closed:
                raise self._splitter.refusal
        except TocsinError as error:
            error.__traceback__ = None  # the splitter keeps the error, which would have us by this
            self._fail(f"what the consumer sent cannot be understood: {printable(error.problem)}")
        if self._closing is not None:
            self._close_if_answered()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed:
            # Most likely it hung up between two events, and did not see this one.
            reason = self._refusal or "the consumer closed the connection in the middle of an event"
            self._lost(reason, stale=self._sent > 0 and not self._received_any)
        if self._closing is not None:
            self._closing.discard(self)
            self._stop_timer()
        del self._transport, self._owner  # each may have us: that would be a cycle

    # What we say

    def _send(self, message: m.Message) -> None:
        self._transport.write(framed(write(message)))

    def _reply(self, reply: m.Message) -> None:
        """Say what the consumer asked for; not for ever to one who does not listen."""
        self._replies += self._paused
        unread_max = REPLIES_UNREAD_MAX if self._closing is None else LAST_REPLIES_UNREAD_MAX
        if self._replies > unread_max:
            self._fail("the consumer does not read the answers to its requests")
        else:
            self._send(reply)

    def _go_on(self) -> None:
        if not self.busy or self._timer is not None:
            return
        try:
            while self._todo and not self._paused and len(self._unanswered) < UNANSWERED_MAX:
                offer = (self._feed, self._todo[0].name)
                subscription = self._offers.find(offer)
                if subscription is None:
                    self._make(offer)
                    return
                self._send_event(subscription, self._todo[0])
                self._todo.popleft()
        except TocsinError as error:
            self._refuse_soon(error.problem)
            return
        self._settle()

    def _make(self, offer: Offer) -> None:
        if self._offers.is_asked(offer):
            return
        if self._offers.is_unwanted(offer, self._loop.time()):
            self._refuse_soon(f"the consumer ended the subscription to {offer[1]}")
            return
        for message in self._offers.make(offer):
            self._send(message)

    def _send_event(self, subscription: c.Subscription, event: Outgoing) -> None:
        agreed = subscription.agreed
        is_answered = agreed is not None and agreed.acknowledge is not None
        number = event.number if is_answered else None
        # The element is written already, and shared with every other consumer of the event.
        message = self._conversation.event(subscription, None, number)
        frame = event_message(message.subscription_id, event.content, request_id=number)
        self._transport.write(framed(frame))
        self._used[subscription.own_id] = is_answered
        if number is not None:
            self._unanswered.add(number)

    # What we receive

    def _receive(self, frame: bytes) -> None:
        received = receive(self._conversation, frame)
        reply = reply_to(received)
        if reply is not None:
            self._reply(reply)
        if self._closing is not None:
            return  # only the answers to our goodbyes count
        match received:
            case c.Subscribed(subscription=subscription):
                self._offers.accepted(subscription)
                self._go_on()
            case c.Refused(subscription=subscription, detail=detail):
                feed, name = self._offers.answered(subscription)
                if self._todo and (feed, name) == (self._feed, self._todo[0].name):
                    self._refuse(f"the consumer refused {name}: {printable(detail)}")
            case c.Answered(reply=m.EventReply() as answer):
                self._acknowledged(answer)
            case c.Ended(subscription=subscription):
                self._over(subscription)
            case c.SubscribeAsked(request=request) | c.RequestReceived(request=request):
                self._reply(self._conversation.refuse(request, _ONLY_BRINGS))

    def _acknowledged(self, reply: m.EventReply) -> None:
        self._unanswered.discard(reply.request_id)
        if reply.returned != m.SUCCESS and self._refusal is None:
            self._refusal = f"the consumer refused the event: {printable(reply.detail)}"
            self._todo.clear()
        self._go_on()

    def _over(self, subscription: c.Subscription) -> None:
        """The consumer wants no more of these."""
        offer = self._offers.over(subscription, self._loop.time())
        if self.busy and subscription.own_id in self._used:
            self._refuse(self._refusal or f"the consumer ended the subscription to {offer[1]}")

    # Delivered or not

    def _is_written(self) -> bool:
        return not (self._todo or self._paused or self._unanswered or self._refusal)

    def _settle(self) -> None:
        """Say what became of it, as soon as that is known."""
        if not self.busy or self._todo or self._unanswered or self._timer is not None:
            return
        if self._refusal is not None:
            self._refuse(self._refusal)
        elif all(self._used.values()):
            self._taken()
        elif not self._paused:
            self._drained()

    def _refuse_soon(self, reason: str) -> None:
        """Whoever sends is called later, never while it is sending."""
        self._timer = self._loop.call_soon(self._refuse, reason)

    def _refuse(self, reason: str) -> None:
        if self.busy:
            self._done()
            self._owner.refused(reason)

    def _done(self) -> None:
        super()._done()
        self._todo.clear()
        for number in self._unanswered:
            self._conversation.give_up(number)
        self._unanswered.clear()
        self._used.clear()
        self._refusal = None

    def _close_if_answered(self) -> None:
        if self._conversation.is_settled:
            self._transport.close()

    def _fail(self, reason: str) -> None:
        if self._closing is not None:
            self.abort()
        elif self.busy:
            super()._fail(reason)
        else:
            self._end()
            self._owner.closed_idle(reason)
