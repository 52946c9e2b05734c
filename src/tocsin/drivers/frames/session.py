"""Session: the broker's side of one conversation, whatever carries its messages.

Messages are taken in their order, and a reply is sent only when every event that came before its
request is on disk: so any reply tells a producer how far its events are safe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from tocsin.drivers.frames.flow import Flow, Outlet
from tocsin.errors import BadMessage, Busy, NoSuchSubscription, TocsinError
from tocsin.event.event import Event
from tocsin.event.filter import Filter
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.conversation import (
    CONSUMER,
    PRODUCER,
    Asked,
    Conversation,
    Ended,
    EventArrived,
    Refusal,
    SubscribeAsked,
    Subscription,
)
from tocsin.wire.gma.parameters import period_of, wanted
from tocsin.wire.gma.read import read_content
from tocsin.wire.gma.write import write

if TYPE_CHECKING:
    from tocsin.drivers.frames.desk import PerformanceDesk

# Who does not say its role is sent no event for so long: a producer sends one of its own first.
UNDECIDED_S = 0.25
# While too many events of all senders wait for the disk: try again so often, and for so long.
BUSY_PAUSE_S = 0.05
BUSY_S_MAX = 30.0

BROKER = frozenset({PRODUCER, CONSUMER})
ARCHIVE = frozenset({CONSUMER})


class Session:
    """One peer, and what flows to and from it."""

    def __init__(
        self,
        desk: PerformanceDesk,
        outlet: Outlet,
        peer: str,
        plays: frozenset[str] = BROKER,
        *,
        carries_events: bool = True,
        new_id: Callable[[], str] | None = None,
        room: Callable[[], Awaitable[None]] | None = None,
        in_order: bool = False,
    ) -> None:
        """`carries_events`: what brings the peer our replies can bring it events as well. `room`
        waits until there is some in the outlet, if that has any limit. `in_order`: what comes
        behind an event that could not be stored is left, as it would be if nobody were here."""
        self._desk = desk
        self._node = desk.node
        self._outlet = outlet
        self._peer = peer
        self._plays = plays
        self._carries_events = carries_events
        self._room = room
        self._in_order = in_order
        self._conversation = Conversation(
            plays, new_id or desk.new_id, subscriptions_max=desk.limits.subscriptions_max
        )
        self._flows: dict[str, tuple[Flow, int]] = {}  # by our id; the stream's number
        self._is_gone = False
        self._undecided: dict[str, Callable[[], None]] = {}  # by our id: begins to send events
        self._arrived: list[tuple[Event, str | None]] = []  # and the number that asks for a reply

    @property
    def is_subscribed(self) -> bool:
        """True if the peer may be silent for long: events flow, or will."""
        return bool(self._conversation.subscriptions)

    @property
    def subscription_ids(self) -> list[str]:
        """What the peer's messages call its subscriptions."""
        return [each.own_id for each in self._conversation.subscriptions]

    async def take(
        self, messages: list[bytes], tell: Callable[[TocsinError], None] | None = None
    ) -> None:
        """Do what these say. What the peer cannot be told by a reply is told to `tell`, or else
        raised, and the rest is left."""
        try:
            for data in messages:
                try:
                    await self._take(data)
                except TocsinError as error:
                    if tell is None:
                        raise
                    tell(error)
        finally:
            await self._store()

    async def _take(self, data: bytes) -> None:
        try:
            message, content = read_content(data)
            if isinstance(message, m.EventMessage):
                self._event(message, content)
                return
        except BadMessage as error:
            self._desk.unreadable += 1
            if error.refusal is None:
                raise
            await self._store()
            self._say(error.refusal)  # type: ignore[arg-type]  # what `read` puts there
            return
        if self._arrived:
            await self._store()
        await self._follow(message)

    def _event(self, message: m.EventMessage, content: bytes | None) -> None:
        happening = self._conversation.receive(message)
        if not isinstance(happening, EventArrived):
            if message.request_id is not None:
                detail = f"the subscription {message.subscription_id} has ended"
                self._say(m.EventReply(message.request_id, m.FAILURE, detail))
            return
        subscription = happening.subscription
        if happening.settled:
            self._close_flow(subscription)
        agreed = subscription.agreed
        is_answered = agreed is not None and agreed.acknowledge is not None
        number = message.request_id if is_answered else None
        try:
            event = self._desk.event_of(subscription, message, content, self._peer)
        except TocsinError as error:
            refusal = None if number is None else m.EventReply(number, m.FAILURE, str(error))
            raise BadMessage(error.problem, remedy=error.remedy, refusal=refusal) from None
        self._desk.received += 1
        self._arrived.append((event, number))

    async def _store(self) -> None:
        """Put on disk what has arrived, then say so to those who want to know."""
        arrived, self._arrived = self._arrived, []
        if not arrived:
            return
        returned, detail, failure = m.SUCCESS, None, None
        try:
            await self._publish([event for event, _ in arrived])
        except TocsinError as error:
            returned, detail, failure = m.FAILURE, str(error), error
        numbers = [number for _, number in arrived if number is not None]
        replies = [write(m.EventReply(number, returned, detail)) for number in numbers]
        await self._answer(replies)
        # Who cannot be told by a reply learns it from the closed connection. Others might have sent
        # more already, which must not be stored before what is then sent again.
        if failure is not None and (self._in_order or len(numbers) < len(arrived)):
            raise failure

    async def _publish(self, events: list[Event]) -> None:
        """Put these on disk. While too much waits for it already, their sender waits, too: what
        it sends next is not read before."""
        node = self._node
        deadline_s = node.loop.time() + BUSY_S_MAX
        while True:
            try:
                await node.ask(lambda token, _: node.broker.publish(events, token))
                return
            except Busy:
                if node.loop.time() >= deadline_s:
                    raise
            await asyncio.sleep(BUSY_PAUSE_S)

    async def _follow(self, message: m.Message) -> None:
        if self._is_gone:
            return  # nobody is left to be answered
        happening = self._conversation.receive(message)
        match happening:
            case SubscribeAsked(request):
                self._subscribe(request)
            case Ended(subscription, reply):
                self._close_flow(subscription)
                self._say(reply)
            case Refusal(reply):
                self._say(reply)
            case Asked(m.QueryRequest() as query):
                await self._answer([await self._desk.query(query)])
                self._conversation.replied(query)
            case Asked(m.EventNamesRequest() as request):
                await self._answer([await self._desk.names(request)])
                self._conversation.replied(request)
            case _:
                pass  # a reply to our goodbye, or what came too late

    async def _answer(self, replies: list[bytes]) -> None:
        """Send these, and wait while the peer does not read them."""
        if replies and not self._outlet.send(replies) and self._room is not None:
            await self._room()

    def _subscribe(self, request: m.SubscribeRequest) -> None:
        asked = request.options or m.Options()
        is_producer = PRODUCER not in self._plays or asked.role == PRODUCER
        is_known = asked.role is not None or len(self._plays) == 1
        after = self._node.broker.head if asked.after is None else asked.after
        begin: Callable[[], tuple[Flow, int]] | None = None
        opened: tuple[Flow, int] | None = None
        try:
            if not is_producer and not self._carries_events:
                is_producer = self._must_produce(asked.role)
            if is_producer and asked.acknowledge is not None:
                self._refuse_ourselves(asked.acknowledge)
            period_s = period_of(request.parameters)
            filter = wanted(request.parameters, request.filter)
            if not is_producer:
                flow = Flow(
                    self._outlet,
                    request.subscription_id,
                    tells_context=asked.context,
                    thinning=None if period_s is None else self._desk.thinning(period_s),
                    ended=self._broker_ends,
                )
                name = f"{request.parameters.name} to {self._peer}"
                begin = partial(self._begin, flow, filter, after, name)
                opened = begin() if is_known else None
        except TocsinError as error:
            self._say(self._conversation.refuse(request, str(error)))
            return
        reply, subscription = self._conversation.accept(
            request,
            detail=None if is_producer else self._detail(request.parameters),
            agreed=_agreed(request, is_producer, self._node.broker.head),
        )
        if opened is not None:
            self._flows[subscription.own_id] = opened
        elif begin is not None:
            self._undecided[subscription.own_id] = partial(self._decide, subscription, begin)
            self._node.loop.call_later(UNDECIDED_S, self._wait_no_longer, subscription.own_id)
        self._say(reply)

    def _detail(self, parameters: m.Parameters) -> str | None:
        """What a consumer should know: how it was understood, and that there is nothing yet."""
        told = [_narrowed(parameters)]
        if not self._node.types.has(parameters.name.type):
            told.append(f"no event {parameters.name} has arrived since the broker started")
        return "; ".join(filter(None, told)) or None

    def _begin(self, flow: Flow, filter: Filter, after: int, name: str) -> tuple[Flow, int]:
        return flow, self._node.open_stream(flow, filter, after, name)

    def _wait_no_longer(self, own_id: str) -> None:
        """It sent no event: if it is a consumer, it waits for ours."""
        decide = self._undecided.pop(own_id, None)
        if decide is not None:
            decide()

    def _decide(self, subscription: Subscription, begin: Callable[[], tuple[Flow, int]]) -> None:
        try:
            self._flows[subscription.own_id] = begin()
        except TocsinError as error:
            self._node.note("warning", error.problem, code=error.code, peer=self._peer)
            assert subscription.peer_id is not None, "the peer asked for it"
            told = m.EventMessage(subscription.peer_id, error="Refused", error_detail=str(error))
            self._say(told)
            self._say(self._conversation.unsubscribe(subscription))

    def _refuse_ourselves(self, acknowledge: str) -> None:
        """A subscription of this broker that pushes to its own door would go round for ever."""
        try:
            self._node.broker.view(acknowledge)
        except NoSuchSubscription:
            return
        raise BadMessage(
            "these events come from this broker itself",
            remedy="Let the subscription push to the consumer's own address.",
        )

    def _must_produce(self, role: str | None) -> bool:
        """Nothing can be sent to this peer: a consumer has to come another way."""
        if role != CONSUMER:
            return True
        raise BadMessage(
            "events cannot come back this way",
            remedy="POST to /gma?role=consumer, which answers with a stream of frames, or "
            "subscribe by TCP.",
        )

    def again(self, request: m.SubscribeRequest) -> m.SubscribeReply | None:
        """The reply once more, if the peer asked for the very same before: it may be lost."""
        for each in self._conversation.subscriptions:
            asked = (each.peer_id, each.parameters, each.filter, each.options)
            if asked == (
                request.subscription_id,
                request.parameters,
                request.filter,
                request.options,
            ):
                return m.SubscribeReply(
                    request.request_id, subscription_id=each.own_id, options=each.agreed
                )
        return None

    def _broker_ends(self, ended: Flow, reason: str) -> None:
        for subscription in self._conversation.subscriptions:
            flow, _ = self._flows.get(subscription.own_id, (None, 0))
            if flow is ended:
                self._close_flow(subscription)
                self._say(self._conversation.unsubscribe(subscription))

    def writable(self) -> None:
        """The peer has read enough for more to be sent."""
        for _, stream in list(self._flows.values()):
            self._node.stream_ready(stream)

    def end(self) -> None:
        """Say goodbye: the broker stops."""
        for subscription in self._conversation.subscriptions:
            self._close_flow(subscription)
            self._say(self._conversation.unsubscribe(subscription))

    def lost(self) -> None:
        """The peer is gone."""
        for _, stream in self._flows.values():
            self._node.close_stream(stream)
        self._flows.clear()
        self._undecided.clear()
        self._is_gone = True

    def _close_flow(self, subscription: Subscription) -> None:
        self._undecided.pop(subscription.own_id, None)
        _, stream = self._flows.pop(subscription.own_id, (None, None))
        if stream is not None:
            self._node.close_stream(stream)

    def _say(self, message: m.Message) -> None:
        self._outlet.send([write(message)])


def _agreed(request: m.SubscribeRequest, is_producer: bool, head: int) -> m.Options | None:
    """What of our own extensions is understood; nothing to who asked for none.

    Who wants to know where events are in the log is told where its subscription begins: there it
    can go on if the connection breaks before the first event.
    """
    asked = request.options or m.Options()
    if is_producer:
        return (asked.acknowledge and m.Options(acknowledge=asked.acknowledge)) or None
    begins = head if asked.after is None else min(asked.after, head)
    agreed = m.Options(
        after=begins if asked.context else None,
        context=asked.context,
        filtered=request.filter is not None,
    )
    return agreed if agreed != m.Options() else None


def _narrowed(parameters: m.Parameters) -> str | None:
    """How parameters are understood that this side makes no events from."""
    told = [f"{each.name} is {each.value}" for each in parameters.elements if each.name != "Period"]
    return f"only events whose {' and '.join(told)}" if told else None
