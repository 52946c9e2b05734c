"""Subscribers by HTTP: they subscribe, change, pause, move, renew, delete and redrive."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import msgspec

from tocsin.access.session import Session, anonymous
from tocsin.broker.delivery.deadletter import DeadLetter
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.event.instant import NS_PER_MS
from tocsin.event.subscription import Config, Kind, SoapTerms, State, Subscription
from tocsin.sim.access_plan import NAMES
from tocsin.sim.checks.subscription import SubscriptionRecord
from tocsin.sim.clients.pullers import Puller
from tocsin.sim.clients.rest import (
    Members,
    check_answer,
    check_ended,
    config_change,
    create_body,
    expiry_change,
    state_change,
)
from tocsin.sim.machine import Machine
from tocsin.sim.services import Services
from tocsin.sim.workload import POOL, Want

SESSION = anonymous("http")
BEGIN_MS_MAX = 30
CHANGES_MS = (10, 400)
LEASE_MS = (30, 2_000)
BY_OTHERS = 0.15  # of all changes, where not everybody may make them
LOOK_MS = 100  # between two looks at what is to be resumed or redriven in the end
ASK_AGAIN_MS = 1_000
WITH_AN_END = SoapTerms(spec="wse04", end_to="http://owner.example/")


def webhook_url(host: str) -> str:
    """Where a broker takes events."""
    return f"http://{host}/"


def soap_url(host: str) -> str:
    """Where a broker takes notifications."""
    return f"http://{host}/soap"


class Subscribers:
    """Everybody who owns a subscription or a box of one broker."""

    def __init__(self, machine: Machine, brokers: list[str]) -> None:
        """`brokers`: the hosts of other brokers that events may be pushed into."""
        self._machine = machine
        self._world = machine.world
        self._plan = machine.plan
        self._network = machine.network
        self._checks = machine.checks
        self._brokers = brokers
        machine.checks.on_open = self._opened
        self._asked_ns: dict[str, int] = {}  # what was resumed or redriven at last, and when
        self.pending = 0

    @property
    def is_done(self) -> bool:
        return self.pending == 0

    def start(self) -> None:
        plan, world = self._plan, self._world
        for kind, number in ((Kind.PUSH, plan.subscriptions), (Kind.BOX, plan.boxes)):
            for _ in range(number):
                self._later((0, BEGIN_MS_MAX), partial(self._subscribe, kind))
        for _ in range(plan.changes):
            change = world.random.choice(
                (
                    self._pause,
                    self._resume,
                    self._refilter,
                    self._refilter,
                    self._move,
                    self._move,
                    self._reconfigure,
                    self._renew,
                    self._unsubscribe,
                    self._redrive,
                    self._redrive,
                    self._drop_dead,
                    partial(self._subscribe, Kind.PUSH),
                )
            )
            self._later(CHANGES_MS, change)

    def _later(self, between_ms: tuple[int, int], action: Callable[[], None]) -> None:
        self.pending += 1

        def happen() -> None:
            self.pending -= 1
            action()

        self._world.soon(*between_ms, happen)

    # Subscribing

    def _subscribe(self, kind: Kind) -> None:
        random, want = self._world.random, self._world.random.choice(POOL)
        soap = WITH_AN_END if random.random() < 0.3 else None
        sink = self._draw_sink(is_soap=soap is not None) if kind is Kind.PUSH else None
        config = self._draw_config(is_soap=soap is not None)
        expires_ns = self._draw_expiry() if random.random() < 0.15 else None
        is_paused = random.random() < 0.1
        start = random.choice((None, None, 0, 5))
        session = self._session_of_anybody()
        if soap is not None:
            asked = Subscription(
                id="",
                kind=kind,
                sink=sink,
                filters=want.raw,
                config=config,
                expires_ns=expires_ns,
                state=State.PAUSED if is_paused else State.ACTIVE,
                soap=soap,
            )
            self._network.carry(lambda: self._subscribe_with_terms(session, asked, want, start))
            return
        body = create_body(want, sink, config, expires_ns, start)
        self._network.carry(lambda: self._create(session, kind, body, is_paused=is_paused))

    def _session_of_anybody(self) -> Session:
        access = self._machine.access
        name = "" if access is None else access.random.choice(NAMES)
        return self._machine.session(name, "http")

    def _session_for(self, record: SubscriptionRecord) -> Session:
        """Of whoever made it; at times of somebody else, who may not be allowed to."""
        access = self._machine.access
        if access is None:
            return SESSION
        if self._world.calm or record.watched is None:
            return access.administrator("http")
        if access.random.random() < BY_OTHERS:
            return self._session_of_anybody()
        return access.owner_session(record.watched.holder, "http")

    def _subscribe_with_terms(
        self, session: Session, asked: Subscription, want: Want, start: int | None
    ) -> None:
        """As a SOAP service does that has read its own request: with an address for the end."""
        self._machine.call(
            lambda services: services.port.subscribe(session, asked, want.filter, start),
            lambda result: None,
        )

    def _create(self, session: Session, kind: Kind, body: bytes, *, is_paused: bool) -> None:
        """POST /subscriptions or /boxes."""

        def work(services: Services) -> Coroutine[Any, Any, Any]:
            subscriptions = services.subscriptions
            create = subscriptions.create_box if kind is Kind.BOX else subscriptions.create
            return create(session, body)

        def answered(result: object) -> None:
            if isinstance(result, SubscriptionView):
                check_answer(self._machine, None, result)
                self._world.seen[f"created by REST: {kind.value}"] += 1
                if is_paused:
                    record = self._checks.records[result.subscription.id]
                    self._change(record, state_change("paused"))

        self._machine.call(work, answered)

    def _draw_sink(self, *, is_soap: bool) -> str:
        brokers = [soap_url(host) if is_soap else webhook_url(host) for host in self._brokers]
        sinks = [*self._machine.delivery.sinks, *brokers]
        return self._world.random.choice(sinks)

    def _draw_config(self, *, is_soap: bool) -> Config:
        random = self._world.random
        return Config(
            batch=1 if is_soap else random.choice((1, 1, 3)),  # the API refuses more
            attempts=random.choice((None, 1, 2)),
            backlog=random.choice((None, None, None, None, None, 1, 4)),
            backlog_age_s=random.choice((None, None, None, None, None, None, 1.0)),
        )

    def _draw_expiry(self) -> int:
        return self._machine.clock.fair_ns + int(self._world.random.uniform(*LEASE_MS) * NS_PER_MS)

    def _opened(self, record: SubscriptionRecord) -> None:
        """A box is pulled from by its owner."""
        if record.kind is Kind.BOX:
            Puller(self._machine, record).pull()

    # Changing

    def _any(self, kind: Kind | None = None) -> SubscriptionRecord | None:
        live = [
            record
            for record in self._checks.records.values()
            if not record.is_ended and kind in (None, record.kind)
        ]
        return self._world.random.choice(live) if live else None

    def _pause(self) -> None:
        self._change(self._any(), state_change("paused"))

    def _resume(self) -> None:
        self._change(self._any(), state_change("active"))

    def _refilter(self) -> None:
        want = self._world.random.choice(POOL)
        self._change(self._any(), {"filters": want.raw})

    def _move(self) -> None:
        record = self._any(Kind.PUSH)
        if record is not None and not any("/boxes/" in str(sink) for sink in record.sink.now()):
            self._change(record, {"sink": self._draw_sink(is_soap=record.is_soap)})

    def _reconfigure(self) -> None:
        record = self._any()
        config = self._draw_config(is_soap=record is not None and record.is_soap)
        if record is not None:
            self._change(record, config_change(config, record.kind))

    def _renew(self) -> None:
        expires_ns = self._draw_expiry() if self._world.random.random() < 0.5 else None
        self._change(self._any(), expiry_change(expires_ns))

    def _change(self, record: SubscriptionRecord | None, asked: Members) -> None:
        """PATCH."""
        if record is None:
            return
        body = msgspec.json.encode(asked)
        session = self._session_for(record)

        def work(services: Services) -> Coroutine[Any, Any, Any]:
            subscriptions, is_box = services.subscriptions, record.kind is Kind.BOX
            change = subscriptions.change_box if is_box else subscriptions.change
            return change(session, record.id, body)

        def answered(result: object) -> None:
            if isinstance(result, SubscriptionView):
                check_answer(self._machine, asked, result)
                self._world.seen[f"changed by REST: {record.kind.value}"] += 1

        self._send(work, answered)

    def _unsubscribe(self) -> None:
        record = self._any()
        if record is None:
            return
        # Quietly is how its consumer ends it, by SOAP.
        session = self._session_for(record)
        quietly = self._world.random.random() < 0.5 and record.is_soap

        def work(services: Services) -> Coroutine[Any, Any, Any]:
            subscriptions = services.subscriptions
            if quietly:
                return services.port.unsubscribe(session, record.id, record.kind, quietly=True)
            if record.kind is Kind.BOX:
                return subscriptions.delete_box(session, record.id)
            return subscriptions.delete(session, record.id)

        def answered(result: object) -> None:
            if result is None:
                check_ended(self._machine, record.id)
                self._world.seen[f"deleted by REST: {record.kind.value}"] += 1

        self._send(work, answered)

    def _send(
        self,
        work: Callable[[Services], Coroutine[Any, Any, Any]],
        answered: Callable[[object], None],
    ) -> None:
        def arrive() -> None:
            self._machine.call(work, answered)

        self._network.carry(arrive)

    # Dead letters

    def _redrive(self) -> None:
        letters = self._machine.dead_letters()
        if letters:
            letter = self._world.random.choice(letters)
            self._network.carry(lambda: self._redrive_arrives(letter))

    def _operator(self) -> Session:
        access = self._machine.access
        return SESSION if access is None else access.administrator("http")

    def _redrive_arrives(self, letter: DeadLetter) -> None:
        if all(kept.id != letter.id for kept in self._machine.dead_letters()):
            return
        self._world.trace(f"redrive {letter.id}")
        session = self._operator()
        self._machine.call(
            lambda services: services.port.redrive(session, letter),
            lambda result: self._world.seen.update([f"redrive: {type(result).__name__}"]),
        )

    def _drop_dead(self) -> None:
        letters = self._machine.dead_letters()
        if letters:
            self._network.carry(lambda: self._drop_arrives(letters[0]))

    def _drop_arrives(self, letter: DeadLetter) -> None:
        if all(kept.id != letter.id for kept in self._machine.dead_letters()):
            return
        self._world.trace(f"drop {letter.id}")
        session = self._operator()
        self._world.seen["dead letter dropped"] += 1
        self._checks.records[letter.subscription].discarded.add(letter.seq)
        self._machine.call(
            lambda services: services.port.drop_dead_letter(session, letter),
            lambda result: None,
        )

    # In the end

    def wind_up(self) -> None:
        """Resume what is paused and redrive what was given up, until nothing is."""
        node = self._machine.node
        if node is not None:
            for view in node.broker.views():
                if view.subscription.kind is Kind.LINK:
                    continue
                record = self._checks.records[view.subscription.id]
                if view.subscription.state is State.PAUSED and self._is_time(record.id):
                    self._change(record, state_change("active"))
            for letter in self._machine.dead_letters():
                if self._is_time(letter.id):
                    self._end_letter(letter)
        self._world.after_ms(LOOK_MS, self.wind_up)

    def _end_letter(self, letter: DeadLetter) -> None:
        """Send it again; what its subscriber may not have is dropped."""
        access, record = self._machine.access, self._checks.records[letter.subscription]
        watched = record.watched
        holder = None if watched is None else watched.holder
        if access is None or holder is None or access.model.may_get(holder, letter.seq):
            self._redrive_arrives(letter)
        else:
            self._drop_arrives(letter)

    def _is_time(self, name: str) -> bool:
        asked_ns = self._asked_ns.get(name)
        if asked_ns is not None and self._world.now_ns - asked_ns < ASK_AGAIN_MS * NS_PER_MS:
            return False
        self._asked_ns[name] = self._world.now_ns
        return True
