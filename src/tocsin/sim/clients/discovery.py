"""Owners of resources, who register and update them, and clients that look for resources."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any, cast

from tocsin.access.session import Session, anonymous
from tocsin.errors import NoSuchResource
from tocsin.event.event import Value
from tocsin.event.instant import NS_PER_MS
from tocsin.services.discovery.answer import Answer
from tocsin.services.discovery.service import ResourceDiscovery
from tocsin.sim.checks.resources import ResourceCheck, ResourceRecord, Wanted
from tocsin.sim.machine import Machine
from tocsin.sim.overlay_plan import MemberPlan
from tocsin.sim.world import Violation
from tocsin.wire.api.resource_request import OrderBy, ResourceRequest

ATTRIBUTES = ("cores", "disk", "memory")
MOST = 20
PACE_MS = (20, 400)
SEARCH_PACE_MS = (1, 150)
AGAIN_MS = 200  # a call without an answer is made again
ENDS_MS = 12_000  # a discovery has ended by then, whatever happens between brokers


def session_of(machine: Machine) -> Session:
    """Of the clients that discover: rights to resources are not what is tried here."""
    access = machine.access
    return anonymous("http") if access is None else access.administrator("http")


def draw_wanted(random: Random) -> Wanted:
    """Few different ones, so that one often covers another."""
    names = random.sample(ATTRIBUTES, random.choice((1, 1, 2)))
    return Wanted({name: random.choice((1, 5, 10)) for name in names}, random.random() < 0.7)


class Owner:
    """One resource of one broker's client."""

    def __init__(self, machine: Machine, number: int, check: ResourceCheck) -> None:
        self._machine = machine
        self._world = machine.world
        random = self._world.random
        names = random.sample(ATTRIBUTES, random.randint(1, 3))
        most = {name: random.randint(5, MOST) for name in names}
        is_dynamic = random.random() < 0.7
        self.record = ResourceRecord(f"{machine.host}-{number}", most, is_dynamic, machine.host)
        check.add(self.record)
        self._updates = random.randint(0, 4) if is_dynamic else 0
        self._is_leaving = random.random() < 0.15
        self._is_registered = False
        self._call = 0
        self.is_done = False

    def start(self) -> None:
        self._next()

    def _next(self) -> None:
        self._call += 1
        if not self._is_registered:
            self._send_values(self._register)
        elif self._updates:
            self._updates -= 1
            self._send_values(self._update)
        elif self._is_leaving:
            self._is_leaving = False
            self._send(self._call, self._withdraw, self._withdrawn)
        else:
            self.is_done = True

    def _draw_values(self) -> dict[str, int]:
        return {
            name: self._world.random.randint(1, most) for name, most in self.record.most.items()
        }

    def _send_values(
        self, work: Callable[[ResourceDiscovery, dict[str, int]], Coroutine[Any, Any, Any]]
    ) -> None:
        values = self._draw_values() if self.record.is_dynamic else {}
        self.record.sent(values, self._world.now_ns)

        def acknowledged() -> None:
            self.record.acknowledged(self._world.now_ns)
            self._is_registered = True

        self._send(self._call, lambda discovery: work(discovery, values), acknowledged)

    def _register(
        self, discovery: ResourceDiscovery, values: dict[str, int]
    ) -> Coroutine[Any, Any, Any]:
        text = " and ".join(f"{name} <= {most}" for name, most in self.record.most.items())
        model = "dynamic" if self.record.is_dynamic else "static"
        asked = ResourceRequest(
            self.record.id, cast(Any, model), text, cast(dict[str, Value], values), lease_ns=None
        )
        return discovery.resources.register(session_of(self._machine), asked)

    def _update(
        self, discovery: ResourceDiscovery, values: dict[str, int]
    ) -> Coroutine[Any, Any, Any]:
        has, session = cast(dict[str, Value], values), session_of(self._machine)
        return discovery.resources.update(session, self.record.id, has, merge=False)

    async def _withdraw(self, discovery: ResourceDiscovery) -> None:
        with suppress(NoSuchResource):  # it is withdrawn already, and the answer was lost
            await discovery.resources.withdraw(session_of(self._machine), self.record.id)

    def _withdrawn(self) -> None:
        self.record.withdrawn(self._world.now_ns)
        self._world.seen["resource withdrawn"] += 1

    def _send(
        self,
        call: int,
        work: Callable[[ResourceDiscovery], Coroutine[Any, Any, Any]],
        done: Callable[[], None],
    ) -> None:
        """Again and again until it is answered."""
        if call != self._call:
            return
        is_over: list[bool] = []

        def answered(result: object) -> None:
            if isinstance(result, Exception):
                self._world.seen[f"resource refused: {type(result).__name__}"] += 1
            elif call == self._call and not is_over:
                is_over.append(True)
                self._call += 1
                done()
                self._world.soon(*PACE_MS, self._next)

        ask(self._machine, work, answered)
        self._world.soon(AGAIN_MS, 2 * AGAIN_MS, lambda: self._send(call, work, done))


class Seeker:
    """A client that looks for resources, again and again."""

    def __init__(
        self,
        machine: Machine,
        member: MemberPlan,
        check: ResourceCheck,
        hops_to: Callable[[str], int],
        *,
        is_searching: bool,
    ) -> None:
        """`hops_to`: over how many links another host is, once there are no faults."""
        self._machine = machine
        self._world = machine.world
        self._check = check
        self._hops_to = hops_to
        self._guard_ns = member.discovery.guard_ns
        self._kept_ns = member.discovery.cache_expiry_ns + self._guard_ns
        self._left = member.requests
        self._pace_ms = SEARCH_PACE_MS if is_searching else PACE_MS
        self._asks = Random(f"asks {machine.world.seed} {machine.host}") if is_searching else None
        self.calm_answers: list[bool] = []

    @property
    def is_done(self) -> bool:
        return self._left == 0

    def start(self) -> None:
        if self._left:
            self._world.soon(*self._pace_ms, self._next)

    def _next(self) -> None:
        self._left -= 1
        self._ask(self._draw(), lambda wanted, answer: None)
        if self._left:
            self._world.soon(*self._pace_ms, self._next)

    def _draw(self) -> Wanted:
        if self._asks is None:
            return draw_wanted(self._world.random)
        return with_more(draw_wanted(self._asks), self._asks)

    def ask_in_calm(self) -> None:
        """Once nothing changes any more: what is found is all that there is, and no more."""
        number = len(self.calm_answers)
        self.calm_answers.append(False)

        def answered(wanted: Wanted, answer: Answer) -> None:
            self._check.check_calm(wanted, answer, self._machine.host, self._hops_to)
            self.calm_answers[number] = True

        self._ask(self._draw(), answered)

    def _ask(self, wanted: Wanted, then: Callable[[Wanted, Answer], None]) -> None:
        asked_ns, process = self._world.now_ns, self._machine.process
        asked = wanted.request()
        is_answered: list[bool] = []

        def answered(result: object) -> None:
            is_answered.append(True)
            if isinstance(result, Answer):
                names = [found.resource.id for found in result.found]
                self._world.trace(f"{self._machine.host}: {wanted.text} finds {names}")
                self._check.check(wanted, result, asked_ns, self._kept_ns, self._guard_ns)
                then(wanted, result)

        def must_have_ended() -> None:
            if process is not None and process.is_alive and not is_answered:
                raise Violation(f"{self._machine.host}: the discovery of {wanted.text} never ends")

        session = session_of(self._machine)
        if ask(self._machine, lambda discovery: discovery.discover(session, asked), answered):
            self._world.after_ms(ENDS_MS, must_have_ended)


def with_more(wanted: Wanted, random: Random) -> Wanted:
    """The same, and perhaps only the first ones, of some age, or in an order."""
    orders: list[OrderBy | None] = [None, None, OrderBy("distance")]
    if wanted.is_dynamic:
        orders.append(OrderBy(min(wanted.least), is_descending=True))
    return replace(
        wanted,
        first=random.choice((0, 0, 0, 1, 2)),
        max_age_ns=random.choice((None, None, None, 0, 300 * NS_PER_MS)),
        order_by=random.choice(orders),
    )


def ask(
    machine: Machine,
    work: Callable[[ResourceDiscovery], Coroutine[Any, Any, Any]],
    answered: Callable[[object], None],
) -> bool:
    """False if there is no broker, or none that discovers yet."""
    services = machine.services
    discovery = None if services is None else services.discovery
    if discovery is None:
        return False
    machine.call(lambda _: work(discovery), answered)
    return True
