"""Sinks: the far end of pushes and handshakes, each with faults of its own."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.broker.delivery.outcome import Answered, Failed, Outcome, describe
from tocsin.broker.effects import Handshake, Push
from tocsin.broker.runtime import HttpAnswer
from tocsin.event.stored import Stored
from tocsin.sim.checks.delivery import DeliveryCheck
from tocsin.sim.network import Network, Request, Response
from tocsin.sim.plan import SinkPlan
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
        self, world: World, network: Network, checks: DeliveryCheck, name: str, plan: SinkPlan
    ) -> None:
        self._world = world
        self._network = network
        self._checks = checks
        self._plan = plan
        self._up_at_ns = world.now_ns + int(plan.down_s * 1e9)
        self._refusals_left = plan.refusals
        self.url = f"http://{name}.example/"
        network.hosts[f"{name}.example"] = self
        if plan.trusted:
            checks.trusted.add(self.url)

    def push(
        self,
        push: Push,
        took: Action,
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
        if world.fault(self._plan.slow):
            world.seen["sink slow"] += 1
            delay_ms += timeout_ms
            world.after_ms(timeout_ms, lambda: done(TIMED_OUT))
            world.after_ms(delay_ms, lambda: self._arrive(push, took, _to_nobody))
            return
        world.after_ms(delay_ms, lambda: self._arrive(push, took, done))

    def _arrive(
        self,
        push: Push,
        took: Action,
        done: Callable[[Outcome], None],
    ) -> None:
        world = self._world
        outcome = self._answer(push.events)
        world.trace(f"{self.url} answers {describe(outcome)}")
        if outcome == YES:
            took()
        if self._network.loses():
            world.after_ms(push.timeout_s * 1e3, lambda: done(TIMED_OUT))
        else:
            world.after_ms(self._network.delay_ms(), lambda: done(outcome))

    def _answer(self, events: list[Stored]) -> Outcome:
        world, plan = self._world, self._plan
        if not world.calm and plan.poison and any(is_poison(s.event) for s in events):
            return self._seen("sink refuses an event", Answered(400))
        if world.fault(plan.failing):
            return self._seen("sink fails", Answered(500))
        if world.fault(plan.waiting):
            patience_s = world.random.choice((0.0, 0.2, 5.0))
            status = world.random.choice((429, 503))
            return self._seen("sink asks for patience", Answered(status, patience_s))
        if world.fault(plan.broken):
            return self._seen("sink answers garbage", Failed("not HTTP", reachable=True))
        if world.fault(plan.leaving):
            return self._seen("sink is gone", Answered(410))
        return YES

    def _seen(self, what: str, outcome: Outcome) -> Outcome:
        self._world.seen[what] += 1
        return outcome

    def handle(self, request: Request, respond: Callable[[Response], None]) -> None:
        """A service posts something that is no event: the end of a subscription, a profile."""
        status = 500 if self._world.fault(self._plan.failing) else 204
        respond(Response(HttpAnswer(status, {}, b"")))

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
        self._checks.consents.add(self.url)
        consent = Allowed(self._plan.rate_per_minute)
        if world.fault(0.3):
            world.seen["handshake by call back"] += 1
            world.soon(0.1, 30, lambda: done(Refused("accepted for later")))
            world.soon(1, 200, lambda: call_back(consent))
            return
        world.seen["handshake allowed"] += 1
        world.soon(0.1, 60, lambda: done(consent))


def _to_nobody(_: Outcome) -> None:
    """The broker has hung up."""
