"""CheckedPort: the port of a simulated broker, with every call and answer seen by the checks.

Whatever endpoint a client uses, what it asks of the broker passes here; so subscriptions, boxes and
acknowledgements are checked once, for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from itertools import count

import msgspec

from tocsin.access.decision import EVERYBODY, Access
from tocsin.access.session import Session
from tocsin.broker.broker import Broker
from tocsin.broker.effects import Accepted, Pulled, Token
from tocsin.broker.engine import Engine, Replier, StreamSink
from tocsin.broker.port import BrokerPort
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.errors import NoSuchBox, NoSuchSubscription, NotAllowed
from tocsin.event.event import Event
from tocsin.event.filter import Filter
from tocsin.event.instant import NS_PER_MS
from tocsin.event.stored import Arrival, Stored
from tocsin.event.subscription import Change, Kind, Owner, Subscription
from tocsin.sim.checks.checked_access import CheckedAccess
from tocsin.sim.checks.delivery import DeliveryCheck
from tocsin.sim.checks.grants import Holder, holder_of_session
from tocsin.sim.checks.subscription import SubscriptionRecord
from tocsin.sim.rights import SUBSCRIBE
from tocsin.sim.runtime import Observer, SimRuntime
from tocsin.sim.world import Violation, World

STREAM_ENDS_NS = 20 * NS_PER_MS  # after the right has


class _CheckedReplier:
    """Whoever published, behind a look at the answer."""

    def __init__(
        self, session: Session, events: list[Event], replier: Replier, port: CheckedPort
    ) -> None:
        self._events = events
        self._replier = replier
        self._port = port
        self._may = port.may_publish(session, events)

    def answer(self, result: object) -> None:
        self._port.published(self._events, result, may=self._may)
        self._replier.answer(result)


class CheckedPort(BrokerPort):
    """Does what the port does."""

    runtime: SimRuntime

    def __init__(
        self,
        broker: Broker,
        engine: Engine,
        world: World,
        checks: DeliveryCheck,
        requests: count[int],
        access: Access = EVERYBODY,
    ) -> None:
        super().__init__(broker, engine, access)
        self._checked = access if isinstance(access, CheckedAccess) else None
        self._readers: dict[int, Holder | None] = {}  # of open streams, by their numbers
        self._over_ns: dict[int, int] = {}  # since when those have had no right
        self._world = world
        self._checks = checks
        self._requests = requests
        # What another broker sends; `None` where everybody may do everything.
        self.may_relay: Callable[[Event, str], bool] | None = None
        self._hand_outs: dict[Token, tuple[SubscriptionRecord, list[Stored]]] = {}

    # Publishing

    def submit(self, session: Session, events: list[Event], replier: Replier) -> None:
        super().submit(session, events, _CheckedReplier(session, events, replier, self))

    async def publish(self, session: Session, events: list[Event]) -> Accepted:
        may = self.may_publish(session, events)
        self._observe(lambda result: self.published(events, result, may=may))
        try:
            return await super().publish(session, events)
        except NotAllowed:
            holder = holder_of_session(session)
            self._checks.log.refuse(events, "" if holder is None else holder.name)
            raise
        finally:
            self._observe(None)

    async def relay(
        self, session: Session, events: list[Event], arrivals: list[Arrival]
    ) -> Accepted:
        may = self.may_relay is None or all(
            self.may_relay(event, arrival.neighbour)
            for event, arrival in zip(events, arrivals, strict=True)
        )
        self._observe(lambda result: self.published(events, result, arrivals, may=may))
        try:
            return await super().relay(session, events, arrivals)
        finally:
            self._observe(None)

    def may_publish(self, session: Session, events: list[Event]) -> bool:
        """Whether the session may publish these now, by what was granted."""
        holder = holder_of_session(session)
        if self._checked is None or holder is None:
            return True
        model = self._checked.model
        return model.may_publish(model.maybe(holder, exactly=True), events)

    def published(
        self,
        events: list[Event],
        result: object,
        arrivals: list[Arrival] | None = None,
        *,
        may: bool = True,
    ) -> None:
        """An answer leaves the broker. `may`: its publisher had the right to these events."""
        if isinstance(result, Accepted):
            if not may:
                ids = [event.id for event in events]
                raise Violation(f"the events {ids} were published without a right")
            if result.duplicates:
                self._world.seen["repeat acknowledged"] += 1
            self._checks.log.acknowledge(events, result, arrivals)

    # Subscriptions

    async def subscribe(
        self, session: Session, asked: Subscription, filter: Filter, start: int | None
    ) -> SubscriptionView:
        self._observe(self._subscribed)
        try:
            view = await super().subscribe(session, asked, filter, start)
        finally:
            self._observe(None)
        return self._answered(view)

    def _subscribed(self, result: object) -> None:
        if isinstance(result, SubscriptionView) and result.subscription.kind is Kind.LINK:
            self._world.trace(f"a neighbour has a place in the log, at {result.cursor}")
        elif isinstance(result, SubscriptionView):
            self._world.trace(f"subscribed {result.subscription.id} from {result.cursor}")
            self._checks.open(result.subscription, result.cursor)
        else:
            self._world.seen["subscribe refused"] += 1

    async def change(
        self, session: Session, subscription_id: str, change: Change, kind: Kind = Kind.PUSH
    ) -> SubscriptionView:
        record = self._checks.records.get(subscription_id)
        if record is None:
            return await super().change(session, subscription_id, change, kind)
        number = next(self._requests)
        self._world.trace(f"change {number} of {record.id}: {_summary(change)}")
        before = copy(record)
        record.request(number, change)
        self._observe(lambda result: self._changed(record, number, result))
        try:
            view = await super().change(session, subscription_id, change, kind)
        except NotAllowed:
            record.take_back(number, before)
            raise
        except NoSuchSubscription:
            self._checks.is_not_found(record)
            raise
        finally:
            self._observe(None)
        if self.runtime.current is not None:
            self.runtime.current.is_overtaken = record.last_request != number
        return self._answered(view)

    def _answered(self, view: SubscriptionView) -> SubscriptionView:
        """The task that asked has this answer now; so a service that answers without is found."""
        if self.runtime.current is not None:
            self.runtime.current.answers.append(view)
        return view

    def _changed(self, record: SubscriptionRecord, number: int, result: object) -> None:
        self._world.trace(f"change {number} answered {type(result).__name__}")
        if isinstance(result, SubscriptionView):
            self._world.seen["subscription changed"] += 1
            record.confirm(number, result.subscription, self.head)

    async def unsubscribe(
        self,
        session: Session,
        subscription_id: str,
        kind: Kind = Kind.PUSH,
        *,
        quietly: bool = False,
    ) -> None:
        record = self._checks.records.get(subscription_id)
        could_have_ended = record is not None and record.may_have_ended
        if record is not None:
            record.may_have_ended = True
            self._observe(lambda result: self._unsubscribed(record, result))
        try:
            await super().unsubscribe(session, subscription_id, kind, quietly=quietly)
        except NotAllowed:
            if record is not None:
                record.may_have_ended = could_have_ended
            raise
        finally:
            self._observe(None)
        if self.runtime.current is not None:
            self.runtime.current.answers.append(subscription_id)

    def _unsubscribed(self, record: SubscriptionRecord, result: object) -> None:
        self._world.trace(f"end of {record.id} answered {type(result).__name__}")
        if result is None:
            self._world.seen["subscription deleted"] += 1
            record.is_ended = True

    def view(self, session: Session, subscription_id: str) -> SubscriptionView:
        try:
            return super().view(session, subscription_id)
        except NoSuchSubscription:
            self._is_not_found(subscription_id)
            raise

    def view_box(self, session: Session, box_id: str) -> SubscriptionView:
        try:
            return super().view_box(session, box_id)
        except NoSuchBox:
            self._is_not_found(box_id)
            raise

    def _is_not_found(self, subscription_id: str) -> None:
        record = self._checks.records.get(subscription_id)
        if record is not None:
            self._checks.is_not_found(record)

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
        number = super().open_stream(session, sink, filter, after, name, asks)
        self._readers[number] = holder_of_session(session)
        return number

    def close_stream(self, stream: int) -> None:
        super().close_stream(stream)
        self._readers.pop(stream, None)
        self._over_ns.pop(stream, None)

    def check_stream(self, stream: int, events: list[Stored]) -> None:
        """These are written to a stream."""
        holder = self._readers.get(stream)
        if self._checked is not None:
            self._checked.model.check_sent(holder, [e.seq for e in events], f"stream {stream}")

    def check_streams(self) -> None:
        """Those whose readers may have nothing any more have ended, or do at once."""
        if self._checked is None:
            return
        now_ns, model = self._world.now_ns, self._checked.model
        for number, holder in self._readers.items():
            if holder is None or model.maybe(holder, exactly=True).has_any(SUBSCRIBE):
                self._over_ns.pop(number, None)
            elif now_ns - self._over_ns.setdefault(number, now_ns) > STREAM_ENDS_NS:
                raise Violation(
                    f"stream {number} is open, and {holder.name} ({holder.credential}) has no "
                    "right to any event"
                )

    # Message boxes

    async def pull(
        self, session: Session, box_id: str, events_max: int, wait_ns: int, ack: str | None
    ) -> Pulled:
        record = self._checks.records[box_id]
        if ack is not None:
            self._checks.releasing(record, int(ack))
        self._observe(lambda result: self._pulled(record, ack, result))
        owner = self._broker.owner_of(box_id)
        try:
            pulled = await super().pull(session, box_id, events_max, wait_ns, ack)
        except NoSuchBox:
            self._checks.is_not_found(record)
            raise
        finally:
            self._observe(None)
        self._check_fetched(session, box_id, owner)
        return pulled

    def _check_fetched(self, session: Session, box_id: str, owner: Owner | None) -> None:
        """Whoever waited for it has a right to the box when it is answered."""
        holder = holder_of_session(session)
        if self._checked is None or holder is None:
            return
        model = self._checked.model
        holding = model.maybe(holder, exactly=True)
        if model.may(holding, holder, SUBSCRIBE, f"box/{box_id}", owner) is False:
            raise Violation(
                f"{holder.name} ({holder.credential}) fetches from a box without a right"
            )

    def _pulled(self, record: SubscriptionRecord, ack: str | None, result: object) -> None:
        if isinstance(result, Pulled):
            self._checks.handing_out(record, int(ack or 0), result.events)

    async def take(
        self,
        session: Session,
        box_id: str,
        events_max: int,
        wait_ns: int,
        kind: Kind = Kind.BOX,
    ) -> tuple[Pulled, Token]:
        if kind is Kind.LINK:
            return await super().take(session, box_id, events_max, wait_ns, kind)
        record = self._checks.records[box_id]
        self._observe(lambda result: self._taken(record, result))
        try:
            pulled, token = await super().take(session, box_id, events_max, wait_ns, kind)
        finally:
            self._observe(None)
        self._hand_outs[token] = record, pulled.events
        task = self.runtime.current
        assert task is not None
        task.taken.append((record, pulled.events))
        return pulled, token

    def _taken(self, record: SubscriptionRecord, result: object) -> None:
        if isinstance(result, Pulled):
            numbers = [stored.seq for stored in result.events]
            self._world.trace(f"box {record.id} hands out {numbers}")
            self._checks.handing_out(record, None, result.events)

    def release(self, token: Token, through: int | None = None) -> None:
        if token not in self._hand_outs:  # a neighbour has it
            super().release(token, through)
            return
        record, events = self._hand_outs.pop(token)
        for stored in events:
            if through is not None and stored.seq > through:
                self._world.seen["rest of an answer kept back"] += 1
                break
            if stored.seq not in record.taken:
                raise Violation(
                    f"box {record.id} released event {stored.seq}, which its owner has not got"
                )
            record.settled.add(stored.seq)
        self._world.seen["answer of a box arrived"] += 1
        self._world.trace(f"box {record.id} releases {[stored.seq for stored in events]}")
        super().release(token, through)

    def give_back(self, token: Token) -> None:
        if self._hand_outs.pop(token, None) is not None:
            self._world.seen["answer of a box lost"] += 1
            self._world.trace("a box takes back what it handed out")
        super().give_back(token)

    def _observe(self, observer: Observer | None) -> None:
        self.runtime.observe_next(observer)


def _summary(change: Change) -> str:
    members = ("state", "expires_ns", "sink", "config", "filters")
    asked = {name: getattr(change, name) for name in members}
    return str({name: _text(value) for name, value in asked.items() if value})


def _text(value: object) -> object:
    """Without the address of an object: a trace is the same in every process."""
    return bytes(value) if isinstance(value, msgspec.Raw) else value
