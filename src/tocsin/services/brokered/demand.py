"""Publishing on demand: the broker subscribes at such publishers only while somebody listens.

A check four times a second, which costs nothing while nobody comes or goes, compares each upstream
subscription with what it should be, and asks the publisher for the next step.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from tocsin.access.session import internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Tasks
from tocsin.errors import ShuttingDown, TocsinError
from tocsin.event.filter import EVERYTHING, Filter
from tocsin.event.instant import NS_PER_S
from tocsin.services.brokered import upstream_client
from tocsin.services.brokered.registrations import Registrations
from tocsin.services.soap.consumers import ConsumerRules
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.wsn.faults import Faults
from tocsin.wire.wsn_brokered.registration import Registration, topic_filter
from tocsin.wire.wsn_brokered.upstream import (
    Step,
    Upstream,
    closed,
    from_bytes,
    next_step,
    to_bytes,
)

KEY: Final = "upstream/"
SERVICE: Final = internal("demand")
CHECK_S: Final = 0.25
LINGER_NS: Final = NS_PER_S  # a subscriber may return at once: the upstream is not paused before
TASKS_MAX: Final = 32  # publishers talked to at once
RETRY_S_MAX: Final = 60.0
ENDING_TRIES_MAX: Final = 8  # two minutes; then the subscription is left to lapse by itself
_NEVER_NS: Final = 2**63 - 1


class DemandedTopic:
    """A topic of a publisher on demand, and the upstream subscription for it."""

    __slots__ = (
        "failures",
        "filter",
        "is_busy",
        "registration",
        "retry_ns",
        "topic",
        "unwanted_ns",
        "upstream",
        "wanted",
    )

    def __init__(self, upstream: Upstream, registration: Registration | None, topic: int) -> None:
        self.upstream = upstream
        self.registration = registration  # None once it has ended
        self.topic = topic  # which of the registration's
        self.filter: Filter = _filter(registration, topic)
        self.wanted: bool | None = None  # None until first asked
        self.unwanted_ns: int | None = None  # since when nobody wants it any more
        self.failures = 0
        self.retry_ns = 0
        self.is_busy = False


class Demand:
    """All upstream subscriptions. Their state is kept with the log and restored at the start."""

    def __init__(
        self, port: BrokerPort, registrations: Registrations, consumers: ConsumerRules
    ) -> None:
        self._port = port
        self._own = port.own(SERVICE)
        self._runtime = port.runtime
        self._consumers = consumers
        self._registrations = registrations
        self._demanded: dict[str, DemandedTopic] = {}
        self._seen = (0, -1)
        self._due_ns = 0
        self._tasks = Tasks(port.runtime)
        self._restore()
        self._watch = port.runtime.spawn(self._run())

    def _restore(self) -> None:
        for key, value in self._own.kept(KEY).items():
            registration_id, _, topic = key.removeprefix(KEY).partition("/")
            registration = self._registrations.find(registration_id)
            self._demanded[key] = DemandedTopic(from_bytes(value), registration, int(topic))

    def close(self) -> None:
        self._watch.cancel()
        self._tasks.cancel()

    async def _run(self) -> None:
        while True:
            try:
                self._check(self._runtime.now_ns())
            except Exception as error:
                self._runtime.note(
                    "error", "publishers on demand could not be updated", error=repr(error)
                )
            await self._runtime.sleep(CHECK_S)

    def _check(self, now_ns: int) -> None:
        seen = self._own.interest.version, self._registrations.version
        if seen == self._seen and now_ns < self._due_ns:
            return
        if seen[1] != self._seen[1]:
            self._follow_registrations()
        self._seen = seen
        self._due_ns = _NEVER_NS
        for registration in self._registrations:
            if registration.is_over(now_ns):
                self._spawn(partial(self._end, registration))
            elif registration.expires_ns is not None:
                self._due_ns = min(self._due_ns, registration.expires_ns)
        for key, demanded in list(self._demanded.items()):
            if not demanded.is_busy:
                self._consider(key, demanded, now_ns)

    def _follow_registrations(self) -> None:
        there: set[str] = set()
        for registration in self._registrations:
            for topic in range(len(registration.topics) if registration.demand else 0):
                key = f"{KEY}{registration.id}/{topic}"
                there.add(key)
                if key not in self._demanded:
                    upstream = Upstream(
                        spec=registration.spec, soap=registration.soap, wsa=registration.wsa
                    )
                    self._demanded[key] = DemandedTopic(upstream, registration, topic)
        for key, demanded in self._demanded.items():
            if key not in there:
                demanded.registration = None

    async def _end(self, registration: Registration) -> None:
        try:
            await self._registrations.end(SERVICE, registration)
        except TocsinError as error:
            self._due_ns = min(self._due_ns, self._runtime.now_ns() + NS_PER_S)
            self._runtime.note("warning", "a registration did not end", error=error.problem)

    def _consider(self, key: str, demanded: DemandedTopic, now_ns: int) -> None:
        """Start the next step for a topic, or note when to check it again."""
        over = demanded.registration is None
        wanted = not over and self._is_wanted(demanded, now_ns)
        step = next_step(demanded.upstream, wanted=wanted, over=over, now_ns=now_ns)
        if step is Step.NOTHING and not over:
            self._check_again(demanded.upstream.renew_ns)
        elif now_ns < demanded.retry_ns:
            self._check_again(demanded.retry_ns)
        elif len(self._tasks) >= TASKS_MAX:
            self._check_again(now_ns)
        else:
            demanded.is_busy = True
            if step is Step.NOTHING:
                self._spawn(partial(self._forget, key))
            else:
                self._spawn(partial(self._perform, key, demanded, step))

    def _check_again(self, at_ns: int | None) -> None:
        if at_ns is not None:
            self._due_ns = min(self._due_ns, at_ns)

    def _is_wanted(self, demanded: DemandedTopic, now_ns: int) -> bool:
        """Whether somebody listens, or did a moment ago."""
        if self._own.interest.has(demanded.filter):
            demanded.wanted, demanded.unwanted_ns = True, None
        elif demanded.wanted is None:
            demanded.wanted = False
        elif demanded.wanted:
            if demanded.unwanted_ns is None:
                demanded.unwanted_ns = now_ns
            until_ns = demanded.unwanted_ns + LINGER_NS
            demanded.wanted = now_ns < until_ns
            if demanded.wanted:
                self._check_again(until_ns)
        return demanded.wanted

    def _spawn(self, work: Callable[[], Awaitable[None]]) -> None:
        self._tasks.spawn(self._noting_bugs(work))

    async def _noting_bugs(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception as error:
            self._runtime.note("error", "a publisher could not be updated", error=repr(error))

    async def _perform(self, key: str, demanded: DemandedTopic, step: Step) -> None:
        try:
            if step is Step.SUBSCRIBE:
                assert demanded.registration is not None
                upstream = await upstream_client.subscribe(
                    self._runtime,
                    self._consumers,
                    demanded.upstream,
                    demanded.registration,
                    demanded.topic,
                )
            else:
                upstream = await upstream_client.perform(self._runtime, demanded.upstream, step)
            self._back_off_if_lost(demanded, step, upstream)
            await self._changed(key, demanded, upstream)
        except ShuttingDown:
            return
        except (TocsinError, upstream_client.PublisherRefused) as error:
            self._failed(key, demanded, step, str(error))
        finally:
            demanded.is_busy = False
            self._due_ns = 0

    def _back_off_if_lost(self, demanded: DemandedTopic, step: Step, upstream: Upstream) -> None:
        """A publisher that loses our subscription again and again is not asked all the time."""
        if upstream.reference is None and step is not Step.UNSUBSCRIBE:
            self._wait(demanded)
        elif step is not Step.SUBSCRIBE:
            demanded.failures = 0

    def _wait(self, demanded: DemandedTopic) -> None:
        demanded.failures += 1
        wait_s = (
            min(RETRY_S_MAX, 2.0 ** min(demanded.failures - 1, 10))
            * (1 + self._runtime.jitter())
            / 2
        )
        demanded.retry_ns = self._runtime.now_ns() + int(wait_s * NS_PER_S)

    async def _changed(self, key: str, demanded: DemandedTopic, upstream: Upstream) -> None:
        """The answer of the publisher counts from now on, even if it cannot be put on disk."""
        if upstream == demanded.upstream:
            return
        demanded.upstream = upstream
        await self._keep(key, to_bytes(upstream))

    def _failed(self, key: str, demanded: DemandedTopic, step: Step, reason: str) -> None:
        self._wait(demanded)
        if demanded.failures == 1:
            problem = f"a publisher on demand did not {step.name.lower()}"
            self._runtime.note("warning", problem, error=reason, upstream=key)
        if demanded.registration is None and demanded.failures >= ENDING_TRIES_MAX:
            demanded.upstream = closed(demanded.upstream)

    async def _forget(self, key: str) -> None:
        try:
            await self._keep(key, None)
        except TocsinError as error:
            self._runtime.note(
                "warning",
                "an ended subscription at a publisher could not be removed",
                error=error.problem,
                upstream=key,
            )
        self._demanded.pop(key, None)

    async def _keep(self, key: str, value: bytes | None) -> None:
        await self._port.keep(SERVICE, key, value)


def _filter(registration: Registration | None, topic: int) -> Filter:
    if registration is None or topic >= len(registration.topics):
        return EVERYTHING
    try:
        return topic_filter(registration.topics[topic], Faults(registration.spec, 0))
    except (TocsinError, SoapFault):
        return EVERYTHING  # an expression that an older version took
