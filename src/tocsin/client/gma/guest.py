"""Guest: a consumer that called a producer, and what it subscribed to, asked for and lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, Protocol

from tocsin.client.gma.backlog import Backlog
from tocsin.client.gma.connection import PeerConnection
from tocsin.client.gma.demand import BUSY, MAKING_S_MAX, Demand, emitted_filter, overdue
from tocsin.client.gma.elements import without_period
from tocsin.client.gma.loop import LoopThread
from tocsin.client.gma.made import Failed, Made, read_filter
from tocsin.client.gma.maker import Outcome
from tocsin.client.gma.numbering import Numbering
from tocsin.client.gma.offers import Offers
from tocsin.client.gma.unfinished import Unfinished
from tocsin.errors import BadMessage, Busy, TocsinError
from tocsin.event.filter import Filter
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.write import event_message

FRAME_BYTES_MAX: Final = 1 << 20  # of a request
IDLE_S_MAX: Final = 300.0  # for a connection without subscriptions
NOTHING_YET: Final = "no such event has happened yet"

log = logging.getLogger("tocsin.gma")


class House(Protocol):
    """What all guests of a producer share."""

    offers: Offers
    thread: LoopThread
    numbering: Numbering
    unfinished: Unfinished

    def may_subscribe(self) -> bool:
        """True if there is room for one more."""

    def lost(self, count: int) -> None:
        """Events were given up because somebody reads too slowly."""

    def came(self, guest: Guest) -> bool:
        """It is there; False if there is no room for it."""

    def left(self, guest: Guest) -> None:
        """It is gone."""


class _Taker:
    """Takes the events of one subscription, which is called so by its consumer, and sends them."""

    def __init__(self, guest: Guest, peer_id: str) -> None:
        self._guest = guest
        self._peer_id = peer_id

    def deliver(self, made: Made) -> None:
        self._guest.send_event(self._peer_id, event_message(self._peer_id, made.content))

    def fail(self, failed: Failed) -> None:
        message = m.EventMessage(self._peer_id, error=failed.error, error_detail=failed.detail)
        self._guest.send_error(message)


class _Subscribed(NamedTuple):
    subscription: c.Subscription
    demand: Demand
    taker: _Taker


class Guest:
    """Of the loop's thread alone."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._thread = house.thread
        self._loop = house.thread.loop
        self._demands: dict[str, _Subscribed] = {}  # by the consumer's ids
        self._backlog = Backlog()
        self._goodbyes = 0
        self._heard_s = self._loop.time()
        self._idle_timer: asyncio.TimerHandle | None = None
        self.gone = asyncio.Event()
        self.connection = PeerConnection(
            self,
            house.numbering.conversation(c.PRODUCER),
            frame_bytes_max=FRAME_BYTES_MAX,
            accepted=True,
            in_turns=True,
            unfinished=house.unfinished,
        )

    @property
    def subscriptions(self) -> int:
        return len(self._demands)

    def say_goodbye(self) -> None:
        """End all subscriptions; the connection is closed when the guest has replied."""
        for each in self._demands.values():
            each.demand.stop()
            self.connection.send(self.connection.conversation.unsubscribe(each.subscription))
            self._goodbyes += 1
        self._demands.clear()
        if not self._goodbyes:
            self.connection.close("the producer closes")

    # What the connection tells

    def opened(self) -> None:
        if self._house.came(self):
            self._idle_timer = self._loop.call_later(IDLE_S_MAX, self._check_idle)
        else:
            self.connection.abort("there is no room")

    def happened(self, happening: c.Happening) -> None:
        self._heard_s = self._loop.time()
        match happening:
            case c.SubscribeAsked(request):
                self._answer_or_refuse(request, partial(self._subscribe, request))
            case c.Asked(inquiry):
                self._answer_or_refuse(inquiry, partial(self._asked, inquiry))
            case c.Ended(subscription, reply):
                self._end(subscription)
                self.connection.send(reply)
            case c.Refusal(reply):
                self.connection.send(reply)
            case c.Answered():
                # Nothing but the end of its subscriptions is ever asked of a guest.
                self._goodbyes -= 1
                if self._goodbyes == 0 and not self._demands:
                    self.connection.close("the producer closes")
            case c.Subscribed() | c.Refused() | c.EventArrived():
                raise AssertionError("a guest is asked for no subscription and sends no events")
            case c.Stale(_, answer):
                if answer is not None:
                    self.connection.send(answer)

    def has_room(self) -> None:
        for peer_id, count in self._backlog.take_lost().items():
            if peer_id in self._demands:
                detail = f"{count} events were given up, because they were not read in time"
                self._demands[peer_id].taker.fail(Failed("Lost", detail))
        while not self.connection.is_clogged and (message := self._backlog.take()) is not None:
            self.connection.send_bytes(message)

    def closed(self, why: str) -> None:
        for each in self._demands.values():
            each.demand.stop()
        log.debug("the consumer %s is gone: %s", self.connection.peer, why)
        self._demands.clear()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._house.left(self)
        self.gone.set()

    # Events

    def send_event(self, peer_id: str, message: bytes) -> None:
        """Send an event, or keep it until the guest has read on."""
        if not self.connection.is_clogged and not self._backlog:
            self.connection.send_bytes(message)
            return
        given_up = self._backlog.put(peer_id, message)
        if given_up:
            self._house.lost(given_up)

    def send_error(self, message: m.EventMessage) -> None:
        """Tell of an error now, or not at all: who does not read needs no more to read."""
        if not self.connection.is_clogged:
            self.connection.send(message)

    # Requests

    def _answer_or_refuse(self, request: m.Request, answer: Callable[[], None]) -> None:
        try:
            answer()
        except TocsinError as error:
            self.connection.send(self.connection.conversation.refuse(request, str(error)))

    def _subscribe(self, request: m.SubscribeRequest) -> None:
        offer = self._house.offers.wanted(request.parameters)
        if not self._house.may_subscribe():
            raise Busy("the producer has no room for more subscriptions", remedy="Come back later.")
        taker = _Taker(self, request.subscription_id)
        demand = Demand(self._thread, offer, request.parameters, request.filter, taker)
        agreed = None
        if request.filter is not None or request.options is not None:
            agreed = m.Options(role=c.PRODUCER, filtered=request.filter is not None)
        reply, subscription = self.connection.conversation.accept(request, agreed=agreed)
        self._demands[request.subscription_id] = _Subscribed(subscription, demand, taker)
        self.connection.send(reply)
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
        names = tuple(self._house.offers.names)
        if not names:  # a reply has one or more of them (section 4.5.2)
            raise BadMessage("there are no events", remedy=self._house.offers.listed())
        self._reply(request, m.EventNamesReply(request.request_id, names=names))

    def _query(self, request: m.QueryRequest) -> None:
        asked = without_period(request.parameters)
        offer = self._house.offers.wanted(asked)
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
        self.connection.conversation.replied(request)
        self.connection.send(reply)

    def _check_idle(self) -> None:
        quiet_s = self._loop.time() - self._heard_s
        if not self._demands and quiet_s >= IDLE_S_MAX:
            self.connection.close("nothing was asked for a long time")
            return
        left_s = IDLE_S_MAX if self._demands else IDLE_S_MAX - quiet_s
        self._idle_timer = self._loop.call_later(left_s, self._check_idle)
