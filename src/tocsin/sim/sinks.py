"""Sinks: the far end of pushes and handshakes, with tempers of their own."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.broker.delivery.outcome import Answered, Failed, Outcome, describe
from tocsin.broker.effects import Handshake, Push
from tocsin.event.stored import Stored
from tocsin.sim.account import Account
from tocsin.sim.checkers import Checkers
from tocsin.sim.network import Network
from tocsin.sim.plan import Temper
from tocsin.sim.workload import is_poison
from tocsin.sim.world import Action, World
from tocsin.wire.cloudevents.webhook import Allowed, Refused

HANDSHAKE_WAIT_MS = 100.0
TIMED_OUT = Failed("the sink did not answer in time")
YES = Answered(204)

Consent = Allowed | Refused


class Sink:
    """One address that events are pushed to."""

    def __init__(
        self, world: World, network: Network, checkers: Checkers, number: int, temper: Temper
    ) -> None:
        self._world = world
        self._network = network
        self._checkers = checkers
        self._temper = temper
        self._up_at_ns = world.now_ns + int(temper.down_s * 1e9)
        self._refusals_left = temper.refusals
        self.url = f"http://sink-{number}.example/"
        if temper.trusted:
            checkers.trusted.add(self.url)

    def push(
        self,
        push: Push,
        account: Account,
        took: Callable[[], None],
        done: Callable[[Outcome], None],
    ) -> None:
        """Have the request arrive, or not; `took` is called when the sink accepts it."""
        world, timeout_ms = self._world, push.timeout_s * 1e3
        if not world.calm and world.now_ns < self._up_at_ns:
            world.seen["sink down"] += 1
            world.soon(0.1, 2, lambda: done(Failed("connection refused")))
            return
        if self._network.loses():
            world.after_ms(timeout_ms, lambda: done(TIMED_OUT))
            return
        delay_ms = self._network.delay_ms()
        if world.fault(self._temper.slow):
            world.seen["sink slow"] += 1
            delay_ms += timeout_ms
            world.after_ms(timeout_ms, lambda: done(TIMED_OUT))
            world.after_ms(delay_ms, lambda: self._arrive(push, account, took, _to_nobody))
            return
        world.after_ms(delay_ms, lambda: self._arrive(push, account, took, done))

    def _arrive(
        self,
        push: Push,
        account: Account,
        took: Action,
        done: Callable[[Outcome], None],
    ) -> None:
        world = self._world
        outcome = self._answer(push.events)
        world.trace(f"{self.url} answers {describe(outcome)}")
        if outcome == YES:
            self._checkers.took(account, push.events)
            took()
        if self._network.loses():
            world.after_ms(push.timeout_s * 1e3, lambda: done(TIMED_OUT))
        else:
            world.after_ms(self._network.delay_ms(), lambda: done(outcome))

    def _answer(self, events: list[Stored]) -> Outcome:
        world, temper = self._world, self._temper
        if not world.calm and temper.poison and any(is_poison(s.event) for s in events):
            return self._seen("sink refuses an event", Answered(400))
        if world.fault(temper.failing):
            return self._seen("sink fails", Answered(500))
        if world.fault(temper.waiting):
            patience_s = world.random.choice((0.0, 0.2, 5.0))
            status = world.random.choice((429, 503))
            return self._seen("sink asks for patience", Answered(status, patience_s))
        if world.fault(temper.broken):
            return self._seen("sink answers garbage", Failed("not HTTP", reachable=True))
        if world.fault(temper.leaving):
            return self._seen("sink is gone", Answered(410))
        return YES

    def _seen(self, what: str, outcome: Outcome) -> Outcome:
        self._world.seen[what] += 1
        return outcome

    def handshake(
        self,
        asked: Handshake,
        done: Callable[[Consent], None],
        call_back: Callable[[Consent], None],
    ) -> None:
        """Consent, decline, or say nothing; a sink may also call back later."""
        world = self._world
        if self._network.loses():
            world.after_ms(HANDSHAKE_WAIT_MS, lambda: done(Refused("timed out")))
            return
        if self._refusals_left > 0 and not world.calm:
            self._refusals_left -= 1
            world.seen["handshake declined"] += 1
            world.soon(0.1, 30, lambda: done(Refused("not now")))
            return
        self._checkers.consents.add(self.url)
        consent = Allowed(self._temper.rate_per_minute)
        if world.fault(0.3):
            world.seen["handshake by call back"] += 1
            world.soon(0.1, 30, lambda: done(Refused("accepted for later")))
            world.soon(1, 200, lambda: call_back(consent))
            return
        world.seen["handshake allowed"] += 1
        world.soon(0.1, 60, lambda: done(consent))


def _to_nobody(_: Outcome) -> None:
    """The broker has hung up."""
