"""PerformanceSession: the broker's side of one conversation, whatever carries its messages.

To drive it, give it the service, a `MessageTransport` to send by, and the caller's `Session`:

    session = PerformanceSession(service, transport, anonymous("frames", "192.0.2.1:5000"))
    await session.take([message, ...])   # whole messages, in their order, without lengths in front
    session.writable()                   # the transport returned False, and has room again
    session.end()                        # say goodbye, while the peer is there
    session.lost()                       # the peer is gone

Messages are taken in their order, and a reply is sent only when every event that came before its
request is on disk: so any reply shows a producer how far its events are safe. What the caller may
not do is refused with a `Failure` reply that has the code, or else ends the conversation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tocsin.access.decision import Action
from tocsin.access.session import Session
from tocsin.errors import BadMessage, Busy, NotAllowed, TocsinError
from tocsin.event.event import Event
from tocsin.event.filter import Filter
from tocsin.services.performance import subscribe_rules as rules
from tocsin.services.performance.event_stream import EventStream, MessageTransport
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.conversation import (
    CONSUMER,
    PRODUCER,
    Conversation,
    Ended,
    EventArrived,
    Refusal,
    RequestReceived,
    SubscribeAsked,
    Subscription,
)
from tocsin.wire.gma.normal import topic_of
from tocsin.wire.gma.parameters import period_of, wanted
from tocsin.wire.gma.read import read_content
from tocsin.wire.gma.write import write

if TYPE_CHECKING:
    from tocsin.services.performance.service import PerformanceService

# Who does not say its role is sent no event for so long: a producer sends one of its own first.
UNDECIDED_S = 0.25
# While too many events of all senders wait for the disk: try again so often, and for so long.
BUSY_PAUSE_S = 0.05
BUSY_S_MAX = 30.0

BROKER = frozenset({PRODUCER, CONSUMER})
ARCHIVE = frozenset({CONSUMER})


class PerformanceSession:
    """One peer, and what flows to and from it."""

    def __init__(
        self,
        service: PerformanceService,
        transport: MessageTransport,
        caller: Session,
        roles: frozenset[str] = BROKER,
        *,
        carries_events: bool = True,
        new_id: Callable[[], str] | None = None,
        in_order: bool = False,
    ) -> None:
        """`roles` is what the broker is to this peer. `carries_events`: what brings the peer our
        replies can bring it events as well. `in_order`: what comes behind an event that could not
        be stored is left, as it would be if nobody were here."""
        self._service = service
        self._port = service.port
        self._transport = transport
        self._caller = caller
        self._host = caller.peer.rpartition(":")[0]
        self._roles = roles
        self._carries_events = carries_events
        self._in_order = in_order
        self._conversation = Conversation(
            roles, new_id or service.new_id, subscriptions_max=service.options.subscriptions_max
        )
        self._streams: dict[str, tuple[EventStream, int]] = {}  # by our id; the stream's number
        self._is_lost = False
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
        self,
        messages: list[bytes],
        on_error: Callable[[TocsinError], None] | None = None,
        caller: Session | None = None,
    ) -> None:
        """Do what these ask. What no reply can say goes to `on_error`, or else is raised,
        and the rest is left. `caller` if these messages have one of their own, as requests do."""
        caller = caller or self._caller
        try:
            for data in messages:
                try:
                    await self._take(data, caller)
                except TocsinError as error:
                    if on_error is None:
                        raise
                    on_error(error)
        finally:
            await self._store(caller)

    async def _take(self, data: bytes, caller: Session) -> None:
        try:
            message, content = read_content(data)
            if isinstance(message, m.EventMessage):
                self._event(message, content)
                return
        except BadMessage as error:
            self._service.unreadable += 1
            if error.refusal is None:
                raise
            await self._store(caller)
            self._send(error.refusal)  # type: ignore[arg-type]  # what `read` puts there
            return
        if self._arrived:
            await self._store(caller)
        await self._handle(message, caller)

    # Events of the peer

    def _event(self, message: m.EventMessage, content: bytes | None) -> None:
        received = self._conversation.receive(message)
        if not isinstance(received, EventArrived):
            if message.request_id is not None:
                detail = f"the subscription {message.subscription_id} has ended"
                self._send(m.EventReply(message.request_id, m.FAILURE, detail))
            return
        subscription = received.subscription
        if received.settled:
            self._close_stream(subscription)
        agreed = subscription.agreed
        is_answered = agreed is not None and agreed.acknowledge is not None
        number = message.request_id if is_answered else None
        try:
            event = self._service.event_of(subscription, message, content, self._host)
        except TocsinError as error:
            refusal = None if number is None else m.EventReply(number, m.FAILURE, str(error))
            raise BadMessage(error.problem, remedy=error.remedy, refusal=refusal) from None
        self._service.received += 1
        self._arrived.append((event, number))

    async def _store(self, caller: Session) -> None:
        """Put on disk what has arrived, then reply to those who asked for that."""
        arrived, self._arrived = self._arrived, []
        if not arrived:
            return
        returned, detail, failure = m.SUCCESS, None, None
        try:
            await self._publish([event for event, _ in arrived], caller)
        except TocsinError as error:
            returned, detail, failure = m.FAILURE, str(error), error
        numbers = [number for _, number in arrived if number is not None]
        await self._answer([write(m.EventReply(number, returned, detail)) for number in numbers])
        # Who gets no reply learns it from the closed connection. Others might have sent more
        # already, which must not be stored before what is then sent again.
        if failure is not None and (self._in_order or len(numbers) < len(arrived)):
            raise failure

    async def _publish(self, events: list[Event], caller: Session) -> None:
        """Put these on disk. While too much waits for it already, their sender waits, too: what
        it sends next is not read before."""
        runtime = self._service.runtime
        deadline_s = runtime.elapsed_s() + BUSY_S_MAX
        while True:
            try:
                await self._port.publish(caller, events)
                return
            except Busy:
                if runtime.elapsed_s() >= deadline_s:
                    raise
            await runtime.sleep(BUSY_PAUSE_S)

    # Requests of the peer

    async def _handle(self, message: m.Message, caller: Session) -> None:
        if self._is_lost:
            return  # nobody is left to be answered
        if isinstance(message, m.UnsubscribeRequest) and not self._may_end(message, caller):
            return
        match self._conversation.receive(message):
            case SubscribeAsked(request):
                self._subscribe(request, caller)
            case Ended(subscription, reply):
                self._close_stream(subscription)
                self._send(reply)
            case Refusal(reply):
                self._send(reply)
            case RequestReceived(m.QueryRequest() as query):
                await self._answer([await self._service.query(query, caller)])
                self._conversation.replied(query)
            case RequestReceived(m.EventNamesRequest() as request):
                await self._answer([await self._service.names(request, caller)])
                self._conversation.replied(request)
            case _:
                pass  # a reply to our goodbye, or what came too late

    def _may_end(self, request: m.UnsubscribeRequest, caller: Session) -> bool:
        try:
            self._check_may_end(request.subscription_id, caller)
        except NotAllowed as error:
            self._send(m.UnsubscribeReply(request.request_id, m.FAILURE, str(error)))
            return False
        return True

    def _check_may_end(self, wanted: str, caller: Session) -> None:
        """What was begun by this conversation, its own peer may end while it could begin it."""
        known = (each for each in self._conversation.subscriptions if each.own_id == wanted)
        subscription = next(known, None)
        if subscription is None or caller.principal != self._caller.principal:
            self._port.check(caller, Action.SUBSCRIBE, f"subscription/{wanted}")
        elif wanted in self._streams or wanted in self._undecided:
            self._port.check(caller, Action.SUBSCRIBE, "subscription/own")
        else:
            self._port.check(caller, Action.PUBLISH, topic_of(subscription.parameters))

    async def _answer(self, replies: list[bytes]) -> None:
        """Send these, and wait while the peer does not read them."""
        if replies and not self._transport.send(replies):
            await self._transport.wait_writable()

    def _subscribe(self, request: m.SubscribeRequest, caller: Session) -> None:
        asked = request.options or m.Options()
        is_producer = PRODUCER not in self._roles or asked.role == PRODUCER
        is_known = asked.role is not None or len(self._roles) == 1
        begin: Callable[[], tuple[EventStream, int]] | None = None
        opened: tuple[EventStream, int] | None = None
        try:
            if not is_producer and not self._carries_events:
                rules.refuse_consumer(asked.role)
                is_producer = True
            filter = wanted(request.parameters, request.filter)
            rules.check_caller(
                self._port, caller, request.parameters, None if is_producer else filter, is_known
            )
            if is_producer and asked.acknowledge is not None:
                rules.refuse_own_events(self._port, asked.acknowledge)
            period_s = period_of(request.parameters)
            if not is_producer:
                after = self._port.head if asked.after is None else asked.after
                begin = partial(self._begin, request, filter, period_s, after, caller)
                opened = begin() if is_known else None
        except TocsinError as error:
            self._send(self._conversation.refuse(request, str(error)))
            return
        reply, subscription = self._conversation.accept(
            request,
            detail=None
            if is_producer
            else rules.detail(self._port, caller, self._service.types, request.parameters),
            agreed=rules.agreed_options(request, is_producer, self._port.head),
        )
        if opened is not None:
            self._streams[subscription.own_id] = opened
        elif begin is not None:
            self._undecided[subscription.own_id] = partial(self._decide, subscription, begin)
            no_longer = partial(self._wait_no_longer, subscription.own_id)
            self._service.runtime.call_later(UNDECIDED_S, no_longer)
        self._send(reply)

    def _begin(
        self,
        request: m.SubscribeRequest,
        filter: Filter,
        period_s: float | None,
        after: int,
        caller: Session,
    ) -> tuple[EventStream, int]:
        asked = request.options or m.Options()
        stream = EventStream(
            self._transport,
            request.subscription_id,
            with_context=asked.context,
            period_filter=None if period_s is None else self._service.period_filter(period_s),
            on_end=self._broker_ends,
        )
        name = f"{request.parameters.name} to {self._host}"
        return stream, self._port.open_stream(caller, stream, filter, after, name)

    def _wait_no_longer(self, own_id: str) -> None:
        """It sent no event: if it is a consumer, it waits for ours."""
        decide = self._undecided.pop(own_id, None)
        if decide is not None:
            decide()

    def _decide(
        self, subscription: Subscription, begin: Callable[[], tuple[EventStream, int]]
    ) -> None:
        try:
            self._streams[subscription.own_id] = begin()
        except TocsinError as error:
            self._service.runtime.note(
                "warning", error.problem, code=error.code, peer=self._caller.peer
            )
            assert subscription.peer_id is not None, "the peer asked for it"
            refused = m.EventMessage(subscription.peer_id, error="Refused", error_detail=str(error))
            self._send(refused)
            self._send(self._conversation.unsubscribe(subscription))

    def repeated(self, request: m.SubscribeRequest) -> m.SubscribeReply | None:
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

    # The end

    def _broker_ends(self, ended: EventStream) -> None:
        for subscription in self._conversation.subscriptions:
            stream, _ = self._streams.get(subscription.own_id, (None, 0))
            if stream is ended:
                self._close_stream(subscription)
                self._send(self._conversation.unsubscribe(subscription))

    def writable(self) -> None:
        """The peer has read enough for more to be sent."""
        for _, stream in list(self._streams.values()):
            self._port.stream_ready(stream)

    def end(self) -> None:
        """Say goodbye: the broker stops."""
        for subscription in self._conversation.subscriptions:
            self._close_stream(subscription)
            self._send(self._conversation.unsubscribe(subscription))

    def lost(self) -> None:
        """The peer is gone."""
        for _, stream in self._streams.values():
            self._port.close_stream(stream)
        self._streams.clear()
        self._undecided.clear()
        self._is_lost = True

    def _close_stream(self, subscription: Subscription) -> None:
        self._undecided.pop(subscription.own_id, None)
        _, stream = self._streams.pop(subscription.own_id, (None, None))
        if stream is not None:
            self._port.close_stream(stream)

    def _send(self, message: m.Message) -> None:
        self._transport.send([write(message)])
