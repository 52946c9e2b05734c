"""Publishing on demand: the broker subscribes at such publishers only while somebody listens.

One look four times a second, which costs nothing while nobody comes or goes, compares what each tap
should be with what it is, and sets out to bring them together.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Final

from tocsin.access.session import internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Tasks
from tocsin.errors import ShuttingDown, TocsinError
from tocsin.event.filter import EVERYTHING, Filter
from tocsin.services.soap import taps
from tocsin.services.soap.consumers import ConsumerRules
from tocsin.services.soap.registrations import Registrations
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.times import NS_PER_S
from tocsin.wire.wsn.faults import Faults
from tocsin.wire.wsn_brokered.registration import Registration, topic_filter
from tocsin.wire.wsn_brokered.tap import Step, Tap, closed, from_bytes, next_step, to_bytes

KEY: Final = "tap/"
SERVICE: Final = internal("demand")
LOOK_S: Final = 0.25
LINGER_NS: Final = NS_PER_S  # whoever leaves may come back at once: a tap is not shut before
TASKS_MAX: Final = 32  # publishers talked to at once
RETRY_S_MAX: Final = 60.0
ENDING_TRIES_MAX: Final = 8  # two minutes; then the subscription is left to lapse by itself
_NEVER_NS: Final = 2**63 - 1


class DemandedTopic:
    """One tap at work."""

    __slots__ = (
        "failures",
        "filter",
        "is_busy",
        "registration",
        "retry_ns",
        "tap",
        "topic",
        "unwanted_ns",
        "wanted",
    )

    def __init__(self, tap: Tap, registration: Registration | None, topic: int) -> None:
        self.tap = tap
        self.registration = registration  # None once it has ended
        self.topic = topic  # which of the registration's
        self.filter: Filter = _filter(registration, topic)
        self.wanted: bool | None = None  # None until first asked
        self.unwanted_ns: int | None = None  # since when nobody wants it any more
        self.failures = 0
        self.retry_ns = 0
        self.is_busy = False


class Demand:
    """All taps. They are kept with the log: after a restart they are taken up as they were."""

    def __init__(
        self, port: BrokerPort, registrations: Registrations, consumers: ConsumerRules
    ) -> None:
        self._port = port
        self._runtime = port.runtime
        self._consumers = consumers
        self._registrations = registrations
        self._lines: dict[str, DemandedTopic] = {}
        self._seen = (0, -1)
        self._due_ns = 0
        self._tasks = Tasks(port.runtime)
        self._take_up()
        self._watch = port.runtime.spawn(self._run())

    def _take_up(self) -> None:
        for key, value in self._port.kept(KEY).items():
            registration_id, _, topic = key.removeprefix(KEY).partition("/")
            registration = self._registrations.find(registration_id)
            self._lines[key] = DemandedTopic(from_bytes(value), registration, int(topic))

    def close(self) -> None:
        self._watch.cancel()
        self._tasks.cancel()

    async def _run(self) -> None:
        while True:
            try:
                self._look(self._runtime.now_ns())
            except Exception as error:
                self._runtime.note(
                    "error", "publishers on demand could not be updated", error=repr(error)
                )
            await self._runtime.sleep(LOOK_S)

    def _look(self, now_ns: int) -> None:
        seen = self._port.interest.version, self._registrations.version
        if seen == self._seen and now_ns < self._due_ns:
            return
        if seen[1] != self._seen[1]:
            self._follow_registrations()
        self._seen = seen
        self._due_ns = _NEVER_NS
        for registration in self._registrations:
            if registration.is_over(now_ns):
                self._spawn(self._end(registration))
            elif registration.expires_ns is not None:
                self._due_ns = min(self._due_ns, registration.expires_ns)
        for key, line in list(self._lines.items()):
            if not line.is_busy:
                self._consider(key, line, now_ns)

    def _follow_registrations(self) -> None:
        there: set[str] = set()
        for registration in self._registrations:
            for topic in range(len(registration.topics) if registration.demand else 0):
                key = f"{KEY}{registration.id}/{topic}"
                there.add(key)
                if key not in self._lines:
                    tap = Tap(spec=registration.spec, soap=registration.soap, wsa=registration.wsa)
                    self._lines[key] = DemandedTopic(tap, registration, topic)
        for key, line in self._lines.items():
            if key not in there:
                line.registration = None

    async def _end(self, registration: Registration) -> None:
        try:
            await self._registrations.end(SERVICE, registration)
        except TocsinError as error:
            self._due_ns = min(self._due_ns, self._runtime.now_ns() + NS_PER_S)
            self._runtime.note("warning", "a registration did not end", error=error.problem)

    def _consider(self, key: str, line: DemandedTopic, now_ns: int) -> None:
        """Set out to do what is to be done for a tap, or note when to look again."""
        over = line.registration is None
        wanted = not over and self._is_wanted(line, now_ns)
        step = next_step(line.tap, wanted=wanted, over=over, now_ns=now_ns)
        if step is Step.NOTHING and not over:
            self._look_again(line.tap.renew_ns)
        elif now_ns < line.retry_ns:
            self._look_again(line.retry_ns)
        elif len(self._tasks) >= TASKS_MAX:
            self._look_again(now_ns)
        else:
            line.is_busy = True
            self._spawn(self._forget(key) if step is Step.NOTHING else self._do(key, line, step))

    def _look_again(self, at_ns: int | None) -> None:
        if at_ns is not None:
            self._due_ns = min(self._due_ns, at_ns)

    def _is_wanted(self, line: DemandedTopic, now_ns: int) -> bool:
        """Whether somebody listens, or did a moment ago."""
        if self._port.interest.has(line.filter):
            line.wanted, line.unwanted_ns = True, None
        elif line.wanted is None:
            line.wanted = False
        elif line.wanted:
            if line.unwanted_ns is None:
                line.unwanted_ns = now_ns
            until_ns = line.unwanted_ns + LINGER_NS
            line.wanted = now_ns < until_ns
            if line.wanted:
                self._look_again(until_ns)
        return line.wanted

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        self._tasks.spawn(self._noting_bugs(work))

    async def _noting_bugs(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except Exception as error:
            self._runtime.note("error", "a publisher could not be updated", error=repr(error))

    async def _do(self, key: str, line: DemandedTopic, step: Step) -> None:
        try:
            if step is Step.SUBSCRIBE:
                assert line.registration is not None
                tap = await taps.subscribe(
                    self._runtime, self._consumers, line.tap, line.registration, line.topic
                )
            else:
                tap = await taps.turn(self._runtime, line.tap, step)
            self._fared(line, step, tap)
            await self._changed(key, line, tap)
        except ShuttingDown:
            return
        except (TocsinError, taps.Refused) as error:
            self._failed(key, line, step, str(error))
        finally:
            line.is_busy = False
            self._due_ns = 0

    def _fared(self, line: DemandedTopic, step: Step, tap: Tap) -> None:
        """A publisher that loses our subscription again and again is not asked all the time."""
        if tap.reference is None and step is not Step.UNSUBSCRIBE:
            self._wait(line)
        elif step is not Step.SUBSCRIBE:
            line.failures = 0

    def _wait(self, line: DemandedTopic) -> None:
        line.failures += 1
        wait_s = (
            min(RETRY_S_MAX, 2.0 ** min(line.failures - 1, 10)) * (1 + self._runtime.jitter()) / 2
        )
        line.retry_ns = self._runtime.now_ns() + int(wait_s * NS_PER_S)

    async def _changed(self, key: str, line: DemandedTopic, tap: Tap) -> None:
        """What the publisher said holds from now on, also if it cannot be put on disk."""
        if tap == line.tap:
            return
        line.tap = tap
        await self._keep(key, to_bytes(tap))

    def _failed(self, key: str, line: DemandedTopic, step: Step, reason: str) -> None:
        self._wait(line)
        if line.failures == 1:
            problem = f"a publisher on demand did not {step.name.lower()}"
            self._runtime.note("warning", problem, error=reason, tap=key)
        if line.registration is None and line.failures >= ENDING_TRIES_MAX:
            line.tap = closed(line.tap)

    async def _forget(self, key: str) -> None:
        try:
            await self._keep(key, None)
        except TocsinError as error:
            self._runtime.note(
                "warning",
                "an ended subscription at a publisher could not be removed",
                error=error.problem,
                tap=key,
            )
        self._lines.pop(key, None)

    async def _keep(self, key: str, value: bytes | None) -> None:
        await self._port.keep(SERVICE, key, value)


def _filter(registration: Registration | None, topic: int) -> Filter:
    if registration is None or topic >= len(registration.topics):
        return EVERYTHING
    try:
        return topic_filter(registration.topics[topic], Faults(registration.spec, 0))
    except (TocsinError, SoapFault):
        return EVERYTHING  # an expression that an older version took
