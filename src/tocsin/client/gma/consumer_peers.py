"""Consumers that called a producer: what each subscribed to, asked for and lost."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from tocsin.client.gma.connection import IdSource
from tocsin.client.gma.encoded_event import EncodedEvent, Failed, read_filter, without_period
from tocsin.client.gma.listener import AcceptedPeer, PeerListener
from tocsin.client.gma.loop import LoopThread
from tocsin.client.gma.offers import (
    BUSY,
    MAKING_S_MAX,
    Demand,
    Offers,
    Outcome,
    emitted_filter,
    overdue,
)
from tocsin.errors import BadMessage, Busy, TocsinError
from tocsin.event.filter import Filter
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.write import event_message

BACKLOG_BYTES_MAX = 1 << 20


class Backlog:
    """Events that wait for one slow consumer, the oldest given up first; how many is
    counted for each of its subscriptions."""

    def __init__(self, bytes_max: int = BACKLOG_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._size = 0
        self._lost: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def size_bytes(self) -> int:
        return self._size

    def put(self, subscription_id: str, message: bytes) -> int:
        """Keep a message; how many were given up for it."""
        self._waiting.append((subscription_id, message))
        self._size += len(message)
        given_up = 0
        while self._size > self._bytes_max:
            whose, oldest = self._waiting.popleft()
            self._size -= len(oldest)
            self._lost[whose] += 1
            given_up += 1
        return given_up

    def take(self) -> bytes | None:
        """The oldest that is left."""
        if not self._waiting:
            return None
        _, message = self._waiting.popleft()
        self._size -= len(message)
        return message

    def take_lost(self) -> dict[str, int]:
        """How many each subscription has lost since this was last asked."""
        lost, self._lost = dict(self._lost), Counter()
        return lost

    def forget(self, subscription_id: str) -> None:
        """It has ended: what waits for it is no longer wanted."""
        self._waiting = deque(each for each in self._waiting if each[0] != subscription_id)
        self._size = sum(len(message) for _, message in self._waiting)
        self._lost.pop(subscription_id, None)


NOTHING_YET: Final = "no such event has happened yet"
SUBSCRIPTIONS_MAX: Final = 10_000  # of all peers


class _SubscriptionSender:
    """Takes the events of one subscription, which is called so by its consumer, and sends them."""

    def __init__(self, peer: ConsumerPeer, peer_id: str) -> None:
        self._peer = peer
        self._peer_id = peer_id

    def deliver(self, made: EncodedEvent) -> None:
        self._peer.send_event(self._peer_id, event_message(self._peer_id, made.content))

    def fail(self, failed: Failed) -> None:
        message = m.EventMessage(self._peer_id, error=failed.error, error_detail=failed.detail)
        self._peer.send_error(message)


class _Subscribed(NamedTuple):
    subscription: c.Subscription
    demand: Demand
    taker: _SubscriptionSender


class ConsumerPeer(AcceptedPeer):
    """A consumer that called. Of the loop's thread alone."""

    role = c.PRODUCER
    frame_bytes_max = 1 << 20  # of a request
    in_turns = True

    def __init__(self, peers: ConsumerPeers) -> None:
        super().__init__(peers)
        self._all = peers
        self._thread = peers.thread
        self._demands: dict[str, _Subscribed] = {}  # by the consumer's ids
        self._backlog = Backlog()

    @property
    def subscriptions(self) -> int:
        return len(self._demands)

    def send_close(self) -> None:
        self._stop()
        super().send_close()

    def closed(self, why: str) -> None:
        self._stop()
        super().closed(why)

    def _stop(self) -> None:
        for each in self._demands.values():
            each.demand.stop()
        self._demands.clear()

    def handle(self, received: c.Received) -> None:
        match received:
            case c.SubscribeAsked(request):
                self._answer_or_refuse(request, partial(self._subscribe, request))
            case c.RequestReceived(request):
                self._answer_or_refuse(request, partial(self._asked, request))
            case c.Ended(subscription):
                self._end(subscription)
            case _:
                raise AssertionError("a consumer is asked for no subscription and sends no events")

    def has_room(self) -> None:
        for peer_id, count in self._backlog.take_lost().items():
            if peer_id in self._demands:
                detail = f"{count} events were given up, because they were not read in time"
                self._demands[peer_id].taker.fail(Failed("Lost", detail))
        while not self.is_clogged and (message := self._backlog.take()) is not None:
            self.send_bytes(message)

    # Events

    def send_event(self, peer_id: str, message: bytes) -> None:
        """Send an event, or keep it until the consumer has read on."""
        if not self.is_clogged and not self._backlog:
            self.send_bytes(message)
            return
        given_up = self._backlog.put(peer_id, message)
        if given_up:
            self._all.lost(given_up)

    def send_error(self, message: m.EventMessage) -> None:
        """Send an error now, or not at all: who does not read needs no more to read."""
        if not self.is_clogged:
            self.send(message)

    # Requests

    def _answer_or_refuse(self, request: m.Request, answer: Callable[[], None]) -> None:
        try:
            answer()
        except TocsinError as error:
            self.send(self.conversation.refuse(request, str(error)))

    def _subscribe(self, request: m.SubscribeRequest) -> None:
        offer = self._all.offers.wanted(request.parameters)
        if not self._all.may_subscribe():
            raise Busy("the producer has no room for more subscriptions", remedy="Come back later.")
        taker = _SubscriptionSender(self, request.subscription_id)
        demand = Demand(self._thread, offer, request.parameters, request.filter, taker)
        agreed = None
        if request.filter is not None or request.options is not None:
            agreed = m.Options(role=c.PRODUCER, filtered=request.filter is not None)
        reply, subscription = self.conversation.accept(request, agreed=agreed)
        self._demands[request.subscription_id] = _Subscribed(subscription, demand, taker)
        self.send(reply)
        demand.start()

    def _end(self, subscription: c.Subscription) -> None:
        assert subscription.peer_id is not None, "the consumer named it when it asked"
        found = self._demands.pop(subscription.peer_id, None)
        if found is not None:
            found.demand.stop()
            self._backlog.forget(subscription.peer_id)

    def _asked(self, request: m.QueryRequest | m.EventNamesRequest) -> None:
        if isinstance(request, m.QueryRequest):
            self._query(request)
            return
        names = tuple(self._all.offers.names)
        if not names:  # a reply has one or more of them (section 4.5.2)
            raise BadMessage("there are no events", remedy=self._all.offers.listed())
        self._reply(request, m.EventNamesReply(request.request_id, names=names))

    def _query(self, request: m.QueryRequest) -> None:
        asked = without_period(request.parameters)
        offer = self._all.offers.wanted(asked)
        if offer.maker is None:
            emitted = emitted_filter(asked, request.filter)
            self._answer(request, emitted, offer.last)
            return
        wanted = read_filter(request.filter)
        timer = self._loop.call_later(
            MAKING_S_MAX, self._answer, request, wanted, overdue(MAKING_S_MAX)
        )

        def done(outcome: Outcome) -> None:
            self._thread.call(answer, outcome)

        def answer(outcome: Outcome) -> None:
            if self._loop.time() < timer.when():
                timer.cancel()
                self._answer(request, wanted, outcome)

        if not offer.maker.ask(asked.elements, done):
            timer.cancel()
            self._answer(request, wanted, BUSY)

    def _answer(self, request: m.QueryRequest, wanted: Filter | None, outcome: Outcome) -> None:
        if isinstance(outcome, Failed):
            detail = f"{outcome.error}: {outcome.detail}"
            self._reply(request, m.failure(m.QueryRequest, request.request_id, detail))
            return
        passing = [made for made in outcome if made.passes(wanted)]
        if passing:
            self._reply(request, m.QueryReply(request.request_id, event=passing[0].event))
            return
        detail = "there is no such event now that passes the filter" if outcome else NOTHING_YET
        self._reply(request, m.failure(m.QueryRequest, request.request_id, detail))

    def _reply(self, request: m.Request, reply: m.Reply) -> None:
        self.conversation.replied(request)
        self.send(reply)


class ConsumerPeers(PeerListener[ConsumerPeer]):
    """The listening side of a producer, with the limits that all its consumers share."""

    def __init__(self, thread: LoopThread, offers: Offers, ids: IdSource) -> None:
        super().__init__(thread, ids, lambda: ConsumerPeer(self))
        self.offers = offers
        self.dropped = 0

    def may_subscribe(self) -> bool:
        """True if there is room for one more."""
        return sum(peer.subscriptions for peer in self.peers) < SUBSCRIPTIONS_MAX

    def lost(self, count: int) -> None:
        """Events were given up because somebody reads too slowly."""
        self.dropped += count
