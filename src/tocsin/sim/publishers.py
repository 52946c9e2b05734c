"""Publishers: each sends its events until all are acknowledged, in turn or several abreast."""

from __future__ import annotations

from tocsin.broker.effects import Accepted
from tocsin.event.event import Event
from tocsin.sim.log_witness import LogWitness
from tocsin.sim.network import Network
from tocsin.sim.plan import PublisherPlan
from tocsin.sim.process import Process
from tocsin.sim.workload import draw_event
from tocsin.sim.world import World

ANSWER_MS = 150  # then it is sent again


class Publisher:
    """Somebody who publishes, and does not rest before the broker has said that it is kept."""

    def __init__(
        self,
        world: World,
        network: Network,
        process: Process,
        log: LogWitness,
        number: int,
        plan: PublisherPlan,
    ) -> None:
        self._world = world
        self._network = network
        self._process = process
        self._log = log
        self._pace_ms = plan.pace_ms
        self._source = f"/publisher/{number}"
        self._waiting = self._draw(plan)
        self._under_way: set[int] = set()
        self._abreast = plan.abreast
        self._latest = 0  # of those that arrived
        if plan.abreast == 1:
            log.promise_order(self._source)

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
        for _ in range(self._abreast):
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
        self._process.ask(
            lambda broker, question: broker.publish(events, question),
            lambda result: self._answered(events, result),
        )

    def _answered(self, events: list[Event], result: object) -> None:
        """The answer leaves the broker."""
        if not isinstance(result, Accepted):
            self._world.seen[f"publish refused: {type(result).__name__}"] += 1
            return
        self._world.trace(f"acknowledge {self._source} {events[0].id}, event {result.first}")
        if result.duplicates:
            self._world.seen["repeat acknowledged"] += 1
        self._log.acknowledge(events, result)
        self._network.carry(lambda: self._heard(int(events[0].id)))

    def _heard(self, number: int) -> None:
        if number in self._under_way:
            self._under_way.remove(number)
            self._world.soon(0, self._pace_ms, self._next)
