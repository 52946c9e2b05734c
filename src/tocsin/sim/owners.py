"""Owners: who subscribes, changes their mind, pauses, moves, renews, deletes and redrives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count

import msgspec

from tocsin.broker.delivery.deadletter import DeadLetter
from tocsin.broker.registry import Change
from tocsin.broker.subscriber import SubscriptionView
from tocsin.errors import NoSuchSubscription
from tocsin.event.subscription import Config, Kind, SoapTerms, State, Subscription
from tocsin.sim.account import Account
from tocsin.sim.checkers import Checkers
from tocsin.sim.network import Network
from tocsin.sim.plan import Plan
from tocsin.sim.process import Process
from tocsin.sim.readers import Puller
from tocsin.sim.workload import POOL
from tocsin.sim.world import NS_PER_MS, Violation, World

BEGIN_MS_MAX = 30
CHANGES_MS = (10, 400)
LEASE_MS = (30, 2_000)
LOOK_MS = 100  # between two looks at what is to be resumed or redriven in the end
ASK_AGAIN_MS = 1_000
WITH_AN_END = SoapTerms(spec="wse04", end_to="http://owner/")


class Owners:
    """Everybody who owns a subscription or a box."""

    def __init__(
        self, world: World, plan: Plan, network: Network, process: Process, checkers: Checkers
    ) -> None:
        self._world = world
        self._plan = plan
        self._network = network
        self._process = process
        self._checkers = checkers
        self._asks = count(1)
        process.found = self.follow
        self._asked_ns: dict[str, int] = {}  # what was resumed or redriven in the end, and when
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
        asked = Subscription(
            id="",
            kind=kind,
            sink=random.choice(list(self._process.outgoing.sinks)) if kind is Kind.PUSH else None,
            filters=want.raw,
            config=self._draw_config(),
            expires_ns=self._draw_expiry() if random.random() < 0.15 else None,
            state=State.PAUSED if random.random() < 0.1 else State.ACTIVE,
            soap=WITH_AN_END if random.random() < 0.3 else None,
        )
        start = random.choice((None, None, 0, 5))

        def arrive() -> None:
            self._process.ask(
                lambda broker, question: broker.subscribe(
                    asked, want.filter, start, question, self._world.clock_ns
                ),
                self._subscribed,
            )

        self._network.carry(arrive)

    def _draw_config(self) -> Config:
        random = self._world.random
        return Config(
            batch=random.choice((1, 1, 3)),
            attempts=random.choice((None, 1, 2)),
            backlog=random.choice((None, None, None, None, None, 1, 4)),
            backlog_age_s=random.choice((None, None, None, None, None, None, 0.2)),
        )

    def _draw_expiry(self) -> int:
        return self._world.fair_ns + int(self._world.random.uniform(*LEASE_MS) * NS_PER_MS)

    def _subscribed(self, result: object) -> None:
        if not isinstance(result, SubscriptionView):
            self._world.seen["subscribe refused"] += 1
            return
        self._world.trace(f"subscribed {result.subscription.id} from {result.cursor}")
        account = self._checkers.open(result.subscription, result.cursor)
        account.is_paused = result.subscription.state is State.PAUSED
        self.follow(account)

    def follow(self, account: Account) -> None:
        """A box is pulled from by its owner."""
        if account.kind is Kind.BOX:
            Puller(self._world, self._network, self._process, self._checkers, account).pull()

    # Changing

    def _any(self, kind: Kind | None = None) -> Account | None:
        live = [
            account
            for account in self._checkers.accounts.values()
            if not account.is_ended and kind in (None, account.kind)
        ]
        return self._world.random.choice(live) if live else None

    def _pause(self) -> None:
        self._change(self._any(), Change(state=State.PAUSED))

    def _resume(self) -> None:
        self._change(self._any(), Change(state=State.ACTIVE))

    def _refilter(self) -> None:
        want = self._world.random.choice(POOL)
        self._change(self._any(), Change(filters=want.raw, filter=want.filter))

    def _move(self) -> None:
        sink = self._world.random.choice(list(self._process.outgoing.sinks))
        self._change(self._any(Kind.PUSH), Change(sink=sink))

    def _reconfigure(self) -> None:
        self._change(self._any(), Change(config=self._draw_config()))

    def _renew(self) -> None:
        expires_ns = self._draw_expiry() if self._world.random.random() < 0.5 else None
        self._change(self._any(), Change(expires_ns=expires_ns))

    def _change(self, account: Account | None, change: Change) -> None:
        if account is not None:
            self._network.carry(lambda: self._change_arrives(account, change))

    def _change_arrives(self, account: Account, change: Change) -> None:
        if self._process.broker is None:
            return
        ask = next(self._asks)
        self._world.trace(f"change {ask} of {account.id}: {_summary(change)}")
        account.ask(ask, change)
        self._process.ask(
            lambda broker, question: broker.change(
                account.id, change, question, self._world.clock_ns
            ),
            lambda result: self._changed(account, ask, result),
        )

    def _changed(self, account: Account, ask: int, result: object) -> None:
        self._world.trace(f"change {ask} answered {type(result).__name__}")
        if isinstance(result, SubscriptionView):
            self._world.seen["subscription changed"] += 1
            assert self._process.broker is not None
            account.confirm(ask, result.subscription, self._process.broker.head)
        elif isinstance(result, NoSuchSubscription):
            self._not_found(account)

    def _not_found(self, account: Account) -> None:
        if not account.may_be_gone(self._world.fair_ns):
            raise Violation(f"subscription {account.id} is gone")
        account.may_have_ended = True

    def _unsubscribe(self) -> None:
        account = self._any()
        if account is not None:
            self._network.carry(lambda: self._end_arrives(account))

    def _end_arrives(self, account: Account) -> None:
        if self._process.broker is None:
            return
        account.may_have_ended = True
        quietly = self._world.random.random() < 0.5
        self._process.ask(
            lambda broker, question: broker.unsubscribe(
                account.id, question, self._world.clock_ns, quietly=quietly
            ),
            lambda result: self._ended(account, result),
        )

    def _ended(self, account: Account, result: object) -> None:
        self._world.trace(f"end of {account.id} answered {type(result).__name__}")
        if result is None:
            self._world.seen["subscription deleted"] += 1
            account.is_ended = True

    # Dead letters

    def _redrive(self) -> None:
        letters = self._process.dead_letters()
        if letters:
            letter = self._world.random.choice(letters)
            self._network.carry(lambda: self._redrive_arrives(letter))

    def _redrive_arrives(self, letter: DeadLetter) -> None:
        if all(kept.id != letter.id for kept in self._process.dead_letters()):
            return
        self._world.trace(f"redrive {letter.id}")
        self._process.ask(
            lambda broker, question: broker.redrive(letter, question, self._world.clock_ns),
            lambda result: self._world.seen.update([f"redrive: {type(result).__name__}"]),
        )

    def _drop_dead(self) -> None:
        letters = self._process.dead_letters()
        if letters:
            self._network.carry(lambda: self._drop_arrives(letters[0]))

    def _drop_arrives(self, letter: DeadLetter) -> None:
        if all(kept.id != letter.id for kept in self._process.dead_letters()):
            return
        self._world.trace(f"drop {letter.id}")
        self._world.seen["dead letter dropped"] += 1
        self._checkers.accounts[letter.subscription].renounced.add(letter.seq)
        self._process.ask(
            lambda broker, question: broker.drop_dead(letter.id, question, self._world.clock_ns),
            lambda result: None,
        )

    # In the end

    def wind_up(self) -> None:
        """Resume what is paused and redrive what was given up, until nothing is."""
        broker = self._process.broker
        if broker is not None:
            for view in broker.views():
                account = self._checkers.accounts[view.subscription.id]
                if view.subscription.state is State.PAUSED and self._is_time(account.id):
                    self._change(account, Change(state=State.ACTIVE))
            for letter in self._process.dead_letters():
                if self._is_time(letter.id):
                    self._redrive_arrives(letter)
        self._world.after_ms(LOOK_MS, self.wind_up)

    def _is_time(self, name: str) -> bool:
        asked_ns = self._asked_ns.get(name)
        if asked_ns is not None and self._world.now_ns - asked_ns < ASK_AGAIN_MS * NS_PER_MS:
            return False
        self._asked_ns[name] = self._world.now_ns
        return True


def _summary(change: Change) -> str:
    asked = {name: getattr(change, name) for name in ("state", "expires_ns", "sink", "config")}
    if change.filters is not None:
        asked["filters"] = msgspec.json.decode(change.filters)
    return str({name: value for name, value in asked.items() if value not in (None, msgspec.UNSET)})
