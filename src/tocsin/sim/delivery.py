"""Delivery: pushes and handshakes, from a broker to its sinks and back to the broker."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Protocol
from urllib.parse import urlsplit

from tocsin.broker import effects as do
from tocsin.broker.delivery.outcome import Answered, Outcome, Verdict, judge
from tocsin.broker.delivery.soap_messages import RenderCache, envelope, soap_template
from tocsin.errors import TocsinError
from tocsin.sim.access_plan import CHAIN
from tocsin.sim.checks.delivery import DeliveryCheck
from tocsin.sim.checks.log import LogCheck
from tocsin.sim.checks.subscription import SubscriptionRecord
from tocsin.sim.faults.crashes import CrashPoint
from tocsin.sim.network import Network, Request, Response
from tocsin.sim.process import Process
from tocsin.sim.sinks import TIMED_OUT, Consent, Sink
from tocsin.sim.world import Action, World
from tocsin.wire.cloudevents.webhook import Allowed
from tocsin.wire.cloudevents.write import batch

Done = Callable[[Outcome], None]


class DeliveryMachine(Protocol):
    """The machine that pushes leave."""

    process: Process | None
    network: Network
    host: str


class Delivery:
    """All sinks of a broker by address, and what is under way to them."""

    def __init__(self, world: World, checks: DeliveryCheck, machine: DeliveryMachine) -> None:
        self.sinks: dict[str, Sink] = {}
        self.brokers: dict[str, LogCheck] = {}  # that may be pushed into, by host
        self.sign_in: dict[str, Callable[[str], dict[str, str]]] = {}  # what shows who sends
        self._world = world
        self._checks = checks
        self._machine = machine
        self._cache = RenderCache()

    def push(self, push: do.Push) -> None:
        """The request leaves; the broker hears of it if it still runs by then."""
        process, record = self._running(), self._checks.pushing(push)
        numbers = [stored.seq for stored in push.events]
        self._world.trace(f"push {numbers} for {record.id} to {push.sink}")
        again = len(numbers) == 1 and numbers[0] in record.given_up
        moves = record.moves

        def done(outcome: Outcome) -> None:
            if process.is_alive:
                in_turn = not again and moves == record.moves
                self._pushed(push, record, outcome, in_turn=in_turn, again=again)
                process.node.broker.pushed(push.lane, outcome, process.node.steady_ns())
                process.node.wake()

        def took() -> None:
            self._checks.took(record, push.events)
            process.reached(CrashPoint.SINK_TOOK)

        self._send(process, push, took, done)
        process.reached(CrashPoint.PUSH_SENT)

    def _running(self) -> Process:
        process = self._machine.process
        assert process is not None
        return process

    def _send(self, process: Process, push: do.Push, took: Action, done: Done) -> None:
        def answered(outcome: Outcome) -> None:
            if judge(outcome) is Verdict.DELIVERED:
                took()
            done(outcome)

        soap = push.subscription.soap
        sink = self.sinks.get(push.sink)
        if soap is not None and soap.box:
            assert process.services is not None
            process.services.own_boxes.send(push, lambda _, outcome: answered(outcome))
        elif sink is not None:
            sink.push(push, took, done)
        else:
            self._push_to_broker(push, took, done)

    def _push_to_broker(self, push: do.Push, took: Action, done: Done) -> None:
        """Into the next broker, in the bytes that it gets from any other sender."""
        sender = f"{self._machine.host}:40000"
        request = broker_request(push, sender, self._cache)
        receiver = urlsplit(push.sink).hostname or ""
        signed = self.sign_in[receiver](CHAIN)
        request = replace(request, headers={**request.headers, **signed})
        soap = push.subscription.soap

        def departing(response: Response) -> None:
            if 200 <= response.answer.status < 300:
                self._world.seen[f"taken by a broker: {soap.spec if soap else 'webhook'}"] += 1
                for stored in push.events:
                    self.brokers[receiver].check_forwarded(stored.event, soap, receiver)
                took()

        def answered(response: Response | None) -> None:
            if response is None:
                done(TIMED_OUT)
            else:
                after = response.answer.headers.get("retry-after")
                done(Answered(response.answer.status, None if after is None else float(after)))

        timeout_ms = push.timeout_s * 1e3
        self._machine.network.request(push.sink, request, timeout_ms, answered, departing)

    def _pushed(
        self,
        push: do.Push,
        record: SubscriptionRecord,
        outcome: Outcome,
        *,
        in_turn: bool,
        again: bool,
    ) -> None:
        verdict = judge(outcome)
        if again:
            self._checks.attempts.redriven(push.lane, outcome)
        else:
            self._checks.attempts.answered(record, push, outcome)
        if verdict is Verdict.DELIVERED and in_turn:
            record.settled_to = max(record.settled_to, push.events[-1].seq)
            record.settled.update(stored.seq for stored in push.events)
        if verdict in (Verdict.RETRY, Verdict.REFUSED):
            record.refused.update(stored.seq for stored in push.events)
        record.may_have_ended |= verdict is Verdict.GONE

    def close_subscription(self, closed: do.CloseSubscription) -> None:
        """The simulated sinks speak HTTP, which has no message for it."""
        self._world.trace(f"{closed.subscription_id} leaves its sink")

    def shake_hands(self, asked: do.Handshake) -> None:
        machine, process = self._machine, self._running()
        self._world.trace(f"handshake for {asked.subscription_id} with {asked.sink}")

        def done(answer: Consent) -> None:
            if process.is_alive:
                node = process.node
                node.broker.handshaken(asked.token, answer, node.steady_ns())
                node.wake()

        def call_back(answer: Consent) -> None:
            if machine.process is not None:
                with suppress(TocsinError):  # the subscription may be gone by now
                    port = machine.process.node.port
                    port.confirm(asked.subscription_id, asked.token, answer)

        sink = self.sinks.get(asked.sink)
        if sink is None:  # another broker, which wants events
            self._checks.consents.add(asked.sink)
            self._world.soon(0.1, 60, lambda: done(Allowed(None)))
        else:
            sink.handshake(asked, done, call_back)


def broker_request(push: do.Push, peer: str, cache: RenderCache) -> Request:
    """A push as the HTTP request that leaves for another broker."""
    if push.subscription.soap is None:
        headers = {"content-type": "application/cloudevents-batch+json"}
        return Request("/events", batch(push.events), headers, peer)
    lines, message = envelope(soap_template(push.subscription), push.events, cache)
    fields = (line.partition(": ") for line in lines.decode("latin-1").splitlines())
    headers = {name.lower(): value for name, _, value in fields}
    return Request(urlsplit(push.sink).path, message, headers, peer)
