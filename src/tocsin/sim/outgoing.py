"""Outgoing: pushes and handshakes, from the broker to the sinks and back to the broker."""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from tocsin.broker import effects as do
from tocsin.broker.broker import Broker
from tocsin.broker.delivery.outcome import Outcome, Verdict, judge
from tocsin.errors import TocsinError
from tocsin.sim.account import Account
from tocsin.sim.checkers import Checkers
from tocsin.sim.sinks import Sink
from tocsin.sim.strikes import Point
from tocsin.sim.world import World
from tocsin.wire.cloudevents.webhook import Allowed, Refused


class Running(Protocol):
    """The process that things go out of."""

    broker: Broker | None
    boot: int  # how often it ended

    def kick(self) -> None: ...

    def reached(self, point: Point) -> None: ...


class Outgoing:
    """All sinks by address, and what is under way to them."""

    def __init__(self, world: World, checkers: Checkers, process: Running) -> None:
        self.sinks: dict[str, Sink] = {}
        self._world = world
        self._checkers = checkers
        self._process = process

    def push(self, push: do.Push) -> None:
        """The request leaves; the broker hears of it if it still runs by then."""
        process, account = self._process, self._checkers.pushing(push)
        numbers = [stored.seq for stored in push.events]
        self._world.trace(f"push {numbers} for {account.id} to {push.sink}")
        again = len(numbers) == 1 and numbers[0] in account.given_up
        moves, boot = account.moves, process.boot

        def done(outcome: Outcome) -> None:
            if boot == process.boot:
                in_turn = not again and moves == account.moves
                self._pushed(push, account, outcome, in_turn=in_turn)

        sink = self.sinks[push.sink]
        sink.push(push, account, lambda: process.reached(Point.SINK_TOOK), done)
        process.reached(Point.PUSH_SENT)

    def _pushed(self, push: do.Push, account: Account, outcome: Outcome, *, in_turn: bool) -> None:
        process = self._process
        assert process.broker is not None
        verdict = judge(outcome)
        if verdict is Verdict.DELIVERED and in_turn:
            account.settled_to = max(account.settled_to, push.events[-1].seq)
        if verdict in (Verdict.RETRY, Verdict.REFUSED):
            account.refused.update(stored.seq for stored in push.events)
        account.may_have_ended |= verdict is Verdict.GONE
        process.broker.pushed(push.lane, outcome, self._world.clock_ns)
        process.kick()

    def close_subscription(self, leave: do.CloseSubscription) -> None:
        """The simulated sinks speak HTTP, which has no word for it."""
        self._world.trace(f"leave taken for {leave.subscription_id}")

    def shake_hands(self, asked: do.Handshake) -> None:
        process = self._process
        boot = process.boot
        self._world.trace(f"handshake for {asked.subscription_id} with {asked.sink}")

        def done(answer: Allowed | Refused) -> None:
            if boot == process.boot and process.broker is not None:
                process.broker.handshaken(asked.token, answer, self._world.clock_ns)
                process.kick()

        def call_back(answer: Allowed | Refused) -> None:
            if process.broker is not None:
                with suppress(TocsinError):  # the subscription may be gone by now
                    process.broker.confirm(
                        asked.subscription_id, asked.token, answer, self._world.clock_ns
                    )
                process.kick()

        self.sinks[asked.sink].handshake(asked, done, call_back)
