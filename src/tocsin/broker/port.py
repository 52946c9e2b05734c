"""BrokerPort: the one way in. Every endpoint does everything through it, in a session.

The port asks whether the session may, puts the call to the broker, and answers once what was asked
is on disk. Nothing else calls the broker on behalf of a client, and nothing reads the log behind
its back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from tocsin.access.decision import Action, Decide, allow_all, not_allowed
from tocsin.access.resources import filter_resource, subscription_resource
from tocsin.access.session import BROKER, Session
from tocsin.broker.broker import Broker
from tocsin.broker.delivery.deadletter import DeadLetter
from tocsin.broker.delivery.trust import plain_address
from tocsin.broker.effects import Accepted, Pulled, Redriven, Token
from tocsin.broker.log import StoreReader
from tocsin.broker.runtime import Runtime, Signal
from tocsin.broker.service_port import ServicePort
from tocsin.broker.state import no_such_subscription
from tocsin.broker.status import BrokerStatus, ClockStatus, clock_status_of, status_of
from tocsin.broker.subscriber import SubscriptionView
from tocsin.errors import ShuttingDown, TocsinError
from tocsin.event.event import Event
from tocsin.event.filter import Filter
from tocsin.event.stored import Arrival, Stored
from tocsin.event.subscription import Change, Kind, Subscription
from tocsin.wire.cloudevents.webhook import Allowed, Refused

T = TypeVar("T")
Name = TypeVar("Name", bound=Hashable)


class Replier(Protocol):
    """Whoever published and waits. `answer` is called once and never raises."""

    def answer(self, result: object) -> None: ...


class StreamSink(Protocol):
    """The far end of an open stream."""

    def write(self, events: list[Stored]) -> bool:
        """Take the events; False if the transport is full until `stream_ready` is called."""
        ...

    def dropped(self, count: int) -> None: ...

    def end(self, reason: str) -> None: ...


class Engine(Protocol):
    """What the port needs of whatever runs the broker, beside what services need."""

    @property
    def runtime(self) -> Runtime: ...

    def steady_ns(self) -> int:
        """The time that the broker is given; it never goes back."""

    def read(self, work: Callable[[StoreReader], T]) -> Awaitable[T]:
        """Ask the log something, where that holds nobody up."""

    def attach(self, stream: int, sink: StreamSink) -> None:
        """What the broker writes to the stream goes there."""

    def detach(self, stream: int) -> bool:
        """False if nothing was attached."""


class BrokerPort:
    """A broker, as everything that is not a broker sees it."""

    def __init__(self, broker: Broker, engine: Engine, decide: Decide = allow_all) -> None:
        self.runtime = engine.runtime
        self._broker = broker
        self._engine = engine
        self._decide = decide

    def check(self, session: Session, action: Action, resource: str) -> None:
        """Raise NotAllowed if the session may not. For what a service does by itself: the other
        calls ask on their own."""
        self._decide(session, action, resource)

    def own(self, session: Session) -> ServicePort:
        """What only the broker's own services call; NotAllowed for everybody else, whatever rights
        they have."""
        if session.principal != BROKER:
            raise not_allowed(session, Action.MANAGE, "broker")
        return ServicePort(self._broker, self.runtime, self._engine.steady_ns)

    # Publishing

    def submit(self, session: Session, events: list[Event], replier: Replier) -> None:
        """Store these, then answer. No coroutine: this is the hottest path there is."""
        try:
            self._may_publish(session, events)
        except TocsinError as error:
            replier.answer(error)
            return
        self._broker.publish(events, replier)
        self.runtime.wake()

    async def publish(self, session: Session, events: list[Event]) -> Accepted:
        """Store these; returns once they are on disk."""
        self._may_publish(session, events)
        accepted: Accepted = await self._ask(lambda token, _: self._broker.publish(events, token))
        return accepted

    async def relay(
        self, session: Session, events: list[Event], arrivals: list[Arrival]
    ) -> Accepted:
        """Store what a neighbour sent, with how each came; returns once they are on disk."""
        self._may_publish(session, events)
        accepted: Accepted = await self._ask(
            lambda token, _: self._broker.publish(events, token, arrivals)
        )
        return accepted

    def _may_publish(self, session: Session, events: list[Event]) -> None:
        if self.runtime.is_stopping:
            raise _stopping()
        for event in events:
            self._decide(session, Action.PUBLISH, event.topic)

    # Subscriptions

    async def subscribe(
        self, session: Session, asked: Subscription, filter: Filter, start: int | None
    ) -> SubscriptionView:
        """Begin with the next event, or after `start`; returns once it is on disk."""
        self._decide(session, Action.SUBSCRIBE, filter_resource(filter))
        view: SubscriptionView = await self._ask(
            lambda token, now_ns: self._broker.subscribe(asked, filter, start, token, now_ns)
        )
        return view

    async def change(
        self, session: Session, subscription_id: str, change: Change, kind: Kind = Kind.PUSH
    ) -> SubscriptionView:
        """Another filter, or another sink for what passes it, is as new a wish as a subscription:
        it is asked for too."""
        self._decide(session, Action.SUBSCRIBE, subscription_resource(kind, subscription_id))
        was = self._find(subscription_id, kind)
        if change.filter is not None or change.sink not in (None, was.subscription.sink):
            self._decide(session, Action.SUBSCRIBE, filter_resource(change.filter or was.filter))
        view: SubscriptionView = await self._ask(
            lambda token, now_ns: self._broker.change(subscription_id, change, token, now_ns)
        )
        return view

    async def unsubscribe(
        self,
        session: Session,
        subscription_id: str,
        kind: Kind = Kind.PUSH,
        *,
        quietly: bool = False,
    ) -> None:
        """End it. `quietly` if its own consumer asks, who need not be notified of the end then."""
        self._decide(session, Action.SUBSCRIBE, subscription_resource(kind, subscription_id))
        self._find(subscription_id, kind)
        await self._ask(
            lambda token, now_ns: self._broker.unsubscribe(
                subscription_id, token, now_ns, quietly=quietly
            )
        )

    def _find(self, subscription_id: str, kind: Kind) -> SubscriptionView:
        """The caller says which kind it is, not what is there: else a refusal would tell whether it
        is. So a right to something of one kind is none to what is of another."""
        view = self._broker.view(subscription_id)
        if view.subscription.kind is not kind:
            raise no_such_subscription(subscription_id)
        return view

    def want(
        self,
        session: Session,
        link_id: str,
        added: Mapping[Name, Filter],
        removed: Iterable[Name] = (),
    ) -> None:
        """What a neighbour wants, by names of the service of links, and what no longer: events
        that pass any of it. Nothing of this is saved."""
        self._decide(session, Action.SUBSCRIBE, f"link/{link_id}")
        self._broker.want(link_id, added, removed, self._engine.steady_ns())
        self.runtime.wake()

    def confirm(self, subscription_id: str, token: str, answer: Allowed | Refused) -> None:
        """A sink calls back to say whether it wants events. The token is its right to do so."""
        self._broker.confirm(subscription_id, token, answer, self._engine.steady_ns())
        self.runtime.wake()

    def view(self, session: Session, subscription_id: str) -> SubscriptionView:
        self._decide(session, Action.READ, f"subscription/{subscription_id}")
        return self._broker.view(subscription_id)

    def view_box(self, session: Session, box_id: str) -> SubscriptionView:
        self._decide(session, Action.READ, f"box/{box_id}")
        return self._broker.view_box(box_id)

    def views(self, session: Session) -> list[SubscriptionView]:
        self._decide(session, Action.READ, "subscription/*")
        return self._broker.views()

    def subscription_ids(self, session: Session) -> list[str]:
        """Of every subscription, oldest first. Cheaper than their views."""
        self._decide(session, Action.READ, "subscription/*")
        return self._broker.subscription_ids()

    # Message boxes

    async def pull(
        self, session: Session, box_id: str, events_max: int, wait_ns: int, ack: str | None
    ) -> Pulled:
        """Fetch from a box; what was handed out before is released by its token, `ack`."""
        self._decide(session, Action.SUBSCRIBE, f"box/{box_id}")
        pulled: Pulled = await self._ask(
            lambda token, now_ns: self._broker.pull(box_id, events_max, wait_ns, ack, token, now_ns)
        )
        return pulled

    async def take(
        self,
        session: Session,
        box_id: str,
        events_max: int,
        wait_ns: int,
        kind: Kind = Kind.BOX,
    ) -> tuple[Pulled, Token]:
        """Fetch what is in no other answer. The token is to be released, or given back."""
        self._decide(session, Action.SUBSCRIBE, subscription_resource(kind, box_id))
        tokens: list[Token] = []

        def call(token: Token, now_ns: int) -> None:
            tokens.append(token)
            self._broker.boxes.take(box_id, events_max, wait_ns, token, now_ns, kind)

        pulled: Pulled = await self._ask(call)
        return pulled, tokens[0]

    def release(self, token: Token, through: int | None = None) -> None:
        """What was taken has arrived; of it, what is past `through` has not. In no session: only
        who took it has the token."""
        self._broker.boxes.release(token, through)
        self.runtime.wake()

    def give_back(self, token: Token) -> None:
        """What was taken did not arrive: it is in the box again. By its token, as to release."""
        self._broker.boxes.give_back(token)
        self.runtime.wake()

    # Dead letters

    async def redrive(self, session: Session, letter: DeadLetter) -> Redriven:
        """Send a dead letter again, to where its subscription points now."""
        self._decide(session, Action.MANAGE, f"deadletter/{letter.id}")
        redriven: Redriven = await self._ask(
            lambda token, now_ns: self._broker.redrive(letter, token, now_ns)
        )
        return redriven

    async def drop_dead_letter(self, session: Session, letter_id: str) -> None:
        """Discard a dead letter that the caller has seen to exist."""
        self._decide(session, Action.MANAGE, f"deadletter/{letter_id}")
        await self._ask(lambda token, now_ns: self._broker.drop_dead(letter_id, token, now_ns))

    # Streams

    def open_stream(
        self,
        session: Session,
        sink: StreamSink,
        filter: Filter,
        after: int | None,
        name: str,
        asks: frozenset[str] | None = None,
    ) -> int:
        """Follow the log; events go to `sink.write` from the next turn of the loop on."""
        if self.runtime.is_stopping:
            raise _stopping()
        self._decide(session, Action.SUBSCRIBE, filter_resource(filter))
        number = self._broker.open_stream(filter, after, name, asks)
        self._engine.attach(number, sink)
        self.runtime.wake()
        return number

    def stream_ready(self, stream: int) -> None:
        """Its sink takes events again. In no session: only who opened it has the number."""
        self._broker.stream_ready(stream)
        self.runtime.wake()

    def close_stream(self, stream: int) -> None:
        """By its number, as `stream_ready`."""
        if self._engine.detach(stream):
            self._broker.close_stream(stream)
            self.runtime.wake()

    def peer_connected(self, host: str) -> None:
        """Somebody connected from this address: perhaps a consumer that is back."""
        if self._broker.unreachable:
            self._broker.peer_connected(plain_address(host), self._engine.steady_ns())
            self.runtime.wake()

    # Reading

    async def read(self, session: Session, resource: str, work: Callable[[StoreReader], T]) -> T:
        """Ask the log something; the resource says what, as in `events` or `deadletters`."""
        self._decide(session, Action.READ, resource)
        return await self._engine.read(work)

    def report_corrupt(self, sequences: list[int]) -> None:
        """A reader of the log was not given these records, which are damaged."""
        if sequences:
            self._broker.report_corrupt(sequences)
            self.runtime.wake()

    def status(self, session: Session) -> BrokerStatus:
        """How the broker is at this moment."""
        self._decide(session, Action.READ, "status")
        return status_of(self._broker)

    def hold_for_archive(self, session: Session, archived: int | None) -> None:
        """Keep what follows `archived`, although it may be trimmed; None to keep nothing so."""
        self._decide(session, Action.MANAGE, "archive")
        self._broker.hold_for_archive(archived)

    @property
    def head(self) -> int:
        """The number of the last event."""
        return self._broker.head

    @property
    def first(self) -> int:
        """The number of the oldest event that the log still has."""
        return self._broker.first

    @property
    def lower_bound_ns(self) -> int:
        """The time that it is at least, also while the machine's clock is in doubt."""
        return self._broker.clock.lower_bound_ns(self._engine.steady_ns())

    @property
    def is_clock_in_doubt(self) -> bool:
        """True while nothing should be given up because its time is over."""
        return self._broker.clock.doubt is not None

    @property
    def clock_complaint(self) -> str:
        """What is wrong with the machine's clock; empty if nothing is."""
        return self._broker.clock.complaint()

    def clock_status(self, session: Session) -> ClockStatus:
        self._decide(session, Action.READ, "clock")
        return clock_status_of(self._broker)

    async def accept_clock(self, session: Session, wall_ns: int) -> ClockStatus:
        """An operator says that the machine's clock is right. Returns how it is then."""
        self._decide(session, Action.MANAGE, "clock")
        await self._ask(lambda token, now_ns: self._broker.clock.accept(wall_ns, token, now_ns))
        return clock_status_of(self._broker)

    # What services keep

    async def keep(self, session: Session, key: str, value: bytes | None) -> None:
        """Keep bytes by name, or None for no longer; returns once that is on disk."""
        self._decide(session, Action.MANAGE, f"service/{key}")
        await self._ask(lambda token, now_ns: self._broker.keep({key: value}, token))

    async def keep_table(self, session: Session, rows: Mapping[str, bytes | None]) -> None:
        """The same for many at once, of a service that limits by itself how much it keeps."""
        self._decide(session, Action.MANAGE, "service/table")
        await self._ask(lambda token, now_ns: self._broker.keep(rows, token, is_limited=False))

    # Underneath

    async def _ask(self, call: Callable[[Token, int], None]) -> Any:
        if self.runtime.is_stopping:
            raise _stopping()
        signal: Signal = self.runtime.signal()
        call(signal, self._engine.steady_ns())
        self.runtime.wake()
        try:
            return await signal
        except BaseException:
            # Whoever waited has left, perhaps just after the answer: what it took is given back.
            self._broker.cancel(signal)
            raise


def _stopping() -> ShuttingDown:
    return ShuttingDown("the broker is stopping", remedy="Send it again when it is back.")
