"""BrokerPort: the one way in. Every endpoint does everything through it, in a session.

The port asks whether the session may, puts the call to the broker, and answers once what was asked
is on disk. Nothing else calls the broker on behalf of a client, and nothing reads the log behind
its back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from tocsin.access.decision import Action, not_allowed
from tocsin.access.resources import filter_resource, subscription_resource
from tocsin.access.session import BROKER, Session
from tocsin.broker.delivery.deadletter import DeadLetter
from tocsin.broker.delivery.trust import plain_address
from tocsin.broker.effects import Accepted, Pulled, Redriven, Token
from tocsin.broker.engine import Replier, StreamSink
from tocsin.broker.quota_hooks import QuotaHooks
from tocsin.broker.read_port import ReadPort
from tocsin.broker.runtime import Signal
from tocsin.broker.service_port import ServicePort
from tocsin.broker.state.state import no_such_subscription
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.broker.status import ClockStatus, clock_status_of
from tocsin.errors import ShuttingDown, TocsinError
from tocsin.event import control_topic
from tocsin.event.event import Event
from tocsin.event.filter import Filter
from tocsin.event.stored import Arrival
from tocsin.event.subscription import SOMEBODY, Change, Kind, Subscription
from tocsin.wire.cloudevents.webhook import Allowed, Refused

T = TypeVar("T")
Name = TypeVar("Name", bound=Hashable)


class BrokerPort(QuotaHooks, ReadPort):
    """A broker, as everything that is not a broker sees it."""

    def check_events(self, session: Session, events: Sequence[Event]) -> None:
        """Raise NotAllowed unless the session may publish all of these; ReservedTopic."""
        self.access.decide_events(session, events)
        control_topic.check_events(events)

    def check_filter(self, session: Session, wanted: Filter) -> None:
        """Raise NotAllowed unless the session may subscribe to some of these; ReservedTopic."""
        self._decide(session, Action.SUBSCRIBE, filter_resource(wanted), wanted)
        control_topic.check_filter(wanted)

    def own(self, session: Session) -> ServicePort:
        """What only the broker's own services call; NotAllowed for everybody else."""
        if session.principal != BROKER:
            raise not_allowed(session, Action.MANAGE, "broker")
        return ServicePort(
            self._broker, self.runtime, self._engine.steady_ns, self._count_registrations
        )

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
        self.check_events(session, events)

    # Subscriptions

    async def subscribe(
        self, session: Session, asked: Subscription, filter: Filter, start: int | None
    ) -> SubscriptionView:
        """Begin with the next event, or after `start`; returns once it is on disk."""
        self.check_filter(session, filter)
        is_internal = session.principal.is_internal  # such a one may be for somebody else
        if session.is_signed_in or (is_internal and asked.owner is None):
            asked = msgspec.structs.replace(asked, owner=session.owner)
        ask = partial(self._broker.subscribe, asked, filter, start)
        view: SubscriptionView = await self._ask(ask)
        return view

    async def change(
        self, session: Session, subscription_id: str, change: Change, kind: Kind = Kind.PUSH
    ) -> SubscriptionView:
        """Another filter, or another sink for what passes it, is as new a wish as a subscription:
        it is asked for too."""
        if change.owner is None:
            self.check_subscription(session, Action.SUBSCRIBE, subscription_id, kind)
        else:  # it is given to somebody, which its own owner may not do
            resource = subscription_resource(kind, subscription_id)
            self._decide(session, Action.MANAGE, resource, SOMEBODY)
            if kind is Kind.PUSH:  # what its next owner may have goes where it was sent before
                self._decide(session, Action.SUBSCRIBE, resource, SOMEBODY)
        was = self._find(subscription_id, kind)
        if change.filter is not None or change.sink not in (None, was.subscription.sink):
            self.check_filter(session, change.filter or was.filter)
        ask = partial(self._broker.change, subscription_id, change)
        with self._giving(session, subscription_id, change.owner, kind):
            changed: SubscriptionView = await self._ask(ask)
        return changed

    async def unsubscribe(
        self,
        session: Session,
        subscription_id: str,
        kind: Kind = Kind.PUSH,
        *,
        quietly: bool = False,
    ) -> None:
        """End it. `quietly` if its own consumer asks, who need not be notified of the end then."""
        self.check_subscription(session, Action.SUBSCRIBE, subscription_id, kind)
        self._find(subscription_id, kind)
        await self._ask(partial(self._broker.unsubscribe, subscription_id, quietly=quietly))

    def check_subscription(
        self, session: Session, action: Action, subscription_id: str, kind: Kind
    ) -> None:
        """Decide about a subscription, a box or a link; whoever made it needs less for that."""
        resource = subscription_resource(kind, subscription_id)
        self._decide(session, action, resource, self._broker.owner_of(subscription_id))

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
        self.check_subscription(session, Action.READ, subscription_id, Kind.PUSH)
        return self._broker.view(subscription_id)

    def view_box(self, session: Session, box_id: str) -> SubscriptionView:
        self.check_subscription(session, Action.READ, box_id, Kind.BOX)
        return self._broker.view_box(box_id)

    def views(self, session: Session) -> list[SubscriptionView]:
        """Of every subscription and box, or of those that the caller made."""
        return [self._broker.view(each) for each in self.subscription_ids(session)]

    def subscription_ids(self, session: Session) -> list[str]:
        """Of the same, oldest first; NotAllowed for who can have none. Cheaper than their views."""
        known, owner_of = self._broker.subscription_ids(), self._broker.owner_of
        if self.may(session, Action.READ, "subscription/*"):
            return known
        self._decide(session, Action.READ, "subscription/own")
        named = ((each, owner) for each in known if session.is_owner(owner := owner_of(each)))
        read = Action.READ  # not each of its name is its own to a token with rights of its own
        return [id for id, owner in named if self.may(session, read, f"subscription/{id}", owner)]

    # Message boxes

    async def pull(
        self, session: Session, box_id: str, events_max: int, wait_ns: int, ack: str | None
    ) -> Pulled:
        """Fetch from a box; what was handed out before is released by its token, `ack`."""
        self.check_subscription(session, Action.SUBSCRIBE, box_id, Kind.BOX)
        owner = self._broker.owner_of(box_id)
        pulled: Pulled = await self._ask(
            partial(self._broker.pull, box_id, events_max, wait_ns, ack)
        )
        self._check_still(session, Action.SUBSCRIBE, f"box/{box_id}", owner)
        return pulled

    async def take(
        self, session: Session, box_id: str, events_max: int, wait_ns: int, kind: Kind = Kind.BOX
    ) -> tuple[Pulled, Token]:
        """Fetch what is in no other answer. The token is to be released, or given back."""
        self.check_subscription(session, Action.SUBSCRIBE, box_id, kind)
        resource, owner = subscription_resource(kind, box_id), self._broker.owner_of(box_id)
        tokens: list[Token] = []

        def call(token: Token, now_ns: int) -> None:
            tokens.append(token)
            self._broker.boxes.take(box_id, events_max, wait_ns, token, now_ns, kind)

        pulled: Pulled = await self._ask(call)
        try:
            self._check_still(session, Action.SUBSCRIBE, resource, owner)
        except TocsinError:
            self.give_back(tokens[0])
            raise
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
        owner = self._broker.letter_owner(letter)
        self._decide(session, Action.MANAGE, f"deadletter/{letter.id}", owner)
        redriven: Redriven = await self._ask(partial(self._broker.redrive, letter))
        return redriven

    async def drop_dead_letter(self, session: Session, letter: DeadLetter) -> None:
        """Discard a dead letter that the caller has seen to exist."""
        owner = self._broker.letter_owner(letter)
        self._decide(session, Action.MANAGE, f"deadletter/{letter.id}", owner)
        await self._ask(lambda token, now_ns: self._broker.drop_dead(letter.id, token, now_ns))

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
        self.check_filter(session, filter)
        permit = self.access.session_permit(session, Action.SUBSCRIBE)
        number = self._broker.open_stream(filter, after, name, asks, permit)
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

    def hold_for_archive(self, session: Session, archived: int | None) -> None:
        """Keep what follows `archived`, although it may be trimmed; None to keep nothing so."""
        self._decide(session, Action.MANAGE, "archive")
        self._broker.hold_for_archive(archived)

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
