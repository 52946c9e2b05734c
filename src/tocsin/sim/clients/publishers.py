"""Publishers by HTTP: each sends its events until all are acknowledged, in turn or several at a
time."""

from __future__ import annotations

import msgspec

from tocsin.broker.effects import Accepted
from tocsin.broker.runtime import HttpAnswer
from tocsin.event.event import Event
from tocsin.sim.clients.rest import publish_request
from tocsin.sim.machine import Machine
from tocsin.sim.network import Response
from tocsin.sim.plan import PublisherPlan
from tocsin.sim.workload import draw_event
from tocsin.sim.world import Violation
from tocsin.wire.api.problem import Problem

PEER = "publisher.example:5000"
ACCEPTED = 202
TRY_AGAIN = {429, 500, 503, 507}
ANSWER_MS = 150  # then it is sent again


def source_of(host: str, number: int) -> str:
    """The CloudEvents source of a publisher's events."""
    return f"/{host}/publisher/{number}"


class Publisher:
    """Somebody who publishes, and does not rest before the broker has acknowledged it."""

    def __init__(self, machine: Machine, number: int, plan: PublisherPlan) -> None:
        self.machines = [machine]  # any of which takes its events
        self._world = machine.world
        self._network = machine.network
        self._log = machine.checks.log
        self._pace_ms = plan.pace_ms
        self._principal = machine.principal_of(f"publisher {number}")
        self._source = source_of(machine.host, number)
        self._waiting = self._draw(plan)
        self._under_way: set[int] = set()
        self._in_flight_max = plan.in_flight_max
        self._latest = 0  # of those that arrived
        if plan.in_flight_max == 1:
            machine.checks.log.promise_order(self._source)

    def _draw(self, plan: PublisherPlan) -> list[list[Event]]:
        requests: list[list[Event]] = []
        number = 0
        for _ in range(plan.requests):
            size = self._world.random.randint(1, plan.events_max)
            requests.append(
                [draw_event(self._world.random, self._source, number + i) for i in range(size)]
            )
            number += size
        requests.reverse()  # taken from the end
        return requests

    @property
    def is_done(self) -> bool:
        return not self._waiting and not self._under_way

    def start(self) -> None:
        for _ in range(self._in_flight_max):
            self._world.soon(0, self._pace_ms, self._next)

    def _next(self) -> None:
        if self._waiting:
            events = self._waiting.pop()
            self._under_way.add(int(events[0].id))
            self._send(events)

    def _send(self, events: list[Event]) -> None:
        number = int(events[0].id)
        if number not in self._under_way:
            return
        self._network.carry(lambda: self._arrive(events))
        self._world.soon(ANSWER_MS, 2 * ANSWER_MS, lambda: self._send(events))

    def _arrive(self, events: list[Event]) -> None:
        number = int(events[0].id)
        if number < self._latest:
            self._world.seen["message overtaken"] += 1
        self._latest = max(self._latest, number)
        machines = self.machines
        machine = machines[0] if len(machines) == 1 else self._world.random.choice(machines)
        request = publish_request(events, PEER, machine.headers(self._principal))
        if machine is not machines[0]:
            self._world.seen["published at another broker on the same log"] += 1
        machine.handle(request, lambda response: self._answered(events, response))

    def _answered(self, events: list[Event], response: Response) -> None:
        """The answer leaves the broker: what it speaks of must be on disk by now."""
        answer = response.answer
        if answer.status != ACCEPTED:
            self._refused(events, answer)
            return
        result = msgspec.json.decode(answer.body, type=Accepted)
        self._log.acknowledge(events, result)
        self._world.trace(f"acknowledge {self._source} {events[0].id}, event {result.first}")
        self._network.carry(lambda: self._acknowledged(int(events[0].id)))

    def _refused(self, events: list[Event], answer: HttpAnswer) -> None:
        problem = msgspec.json.decode(answer.body, type=Problem)
        machine = self.machines[0]
        if machine.may_refuse(answer.status):
            self._world.seen["access: a publisher was refused"] += 1
            if machine.gives_up():
                self._log.let_be.update((event.source, event.id) for event in events)
                self._network.carry(lambda: self._acknowledged(int(events[0].id)))
            return
        if answer.status not in TRY_AGAIN:
            raise Violation(f"{self._source} was refused: {problem}")
        self._world.seen[f"publish refused: {problem.title}"] += 1

    def _acknowledged(self, number: int) -> None:
        if number in self._under_way:
            self._under_way.remove(number)
            self._world.soon(0, self._pace_ms, self._next)
