"""AlertPublisher: every few seconds, alerts about slow runs are published through the port.

They are published as anybody's events are, so that they are on disk and reach their subscribers.
The id of an alert is the same each time, and what was published is remembered with the runs:
neither a restart nor a lost database repeats it.

Scans run beside the event loop, where reading the database holds nobody up; `publish` and `answer`
are called on the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.errors import TocsinError
from tocsin.event.event import Event
from tocsin.event.instant import rfc3339
from tocsin.monitor.alerts.messages import SOURCE
from tocsin.monitor.alerts.scanner import AlertKey, AlertScanner, FoundAlert
from tocsin.ontology import Vocabulary
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.blackboard.normal import to_event

SCAN_S_MAX: Final = 0.25  # then the rest waits for the next scan


class PublishedAlerts(Protocol):
    """Where published alerts are remembered."""

    def remember_alerts(self, keys: Sequence[AlertKey]) -> None: ...


class AlertPublisher:
    """One scan at a time; the next is after the alerts of the last one were answered."""

    def __init__(
        self,
        port: BrokerPort,
        session: Session,
        scanner: AlertScanner,
        published: PublishedAlerts,
        vocabulary: Vocabulary,
        *,
        every_s: float,
        is_enabled: bool = True,
    ) -> None:
        """If it is not enabled, runs under way are counted and nothing is published."""
        self._port = port
        self._session = session
        self._scanner = scanner
        self._published = published
        self._vocabulary = vocabulary
        self._is_enabled = is_enabled
        self.every_s = every_s
        self.under_way: dict[str, int] = {}
        """Runs by state, as they were last counted."""
        self.scans = 0
        self._is_off = False
        self._scanned_s = port.runtime.elapsed_s()
        self._due: tuple[int, int] | None = None
        self._in_flight: list[FoundAlert] = []
        self._answer: object | None = None

    def due(self, folded_through: int) -> int | None:
        """The time to scan for; None if it is too early, or not all is folded that was published
        when the scan became due: what seems to run may have ended."""
        if self._due is None:
            elapsed_s = self._port.runtime.elapsed_s() - self._scanned_s
            if self._is_off or elapsed_s < self.every_s:
                return None
            self._due = self._port.head, self._port.runtime.now_ns()
        head, now_ns = self._due
        return now_ns if folded_through >= head else None

    def scan(self, now_ns: int, is_stopping: Callable[[], bool] = lambda: False) -> list[Event]:
        """Count runs and look for alerts. Returns the events to `publish`."""
        self._due = None
        try:
            return self._scan(now_ns, is_stopping)
        finally:
            self._scanned_s = self._port.runtime.elapsed_s()
            self.scans += 1

    def switch_off(self) -> None:
        """No more scans: runs can be asked about without alerts."""
        self._is_off = True

    def publish(self, events: list[Event]) -> None:
        self._port.submit(self._session, events, self)

    def answer(self, result: object) -> None:
        """What became of the events that were published last."""
        self._answer = result
        if isinstance(result, TocsinError):
            note = self._port.runtime.note
            note("warning", "alerts could not be published yet", why=str(result))

    def _scan(self, now_ns: int, is_stopping: Callable[[], bool]) -> list[Event]:
        self.under_way = self._scanner.counts(now_ns)
        if not self._is_enabled or not self._is_settled():
            return []
        elapsed_s = self._port.runtime.elapsed_s
        begun_s = elapsed_s()
        found = self._scanner.scan(
            now_ns, lambda: is_stopping() or elapsed_s() - begun_s > SCAN_S_MAX
        )
        if not found or is_stopping():
            return []
        self._in_flight, self._answer = found, None
        return [self._event(each, now_ns) for each in found]

    def _is_settled(self) -> bool:
        """False while alerts are on their way to the log. Those that are stored are remembered."""
        if self._in_flight and self._answer is None:
            return False
        if self._in_flight and not isinstance(self._answer, TocsinError):
            self._published.remember_alerts([each.key for each in self._in_flight])
        self._in_flight = []
        return True

    def _event(self, found: FoundAlert, now_ns: int) -> Event:
        straggler = found.straggler
        message = Message(
            straggler.pairs(now_ns), id=straggler.id, source=SOURCE, time=rfc3339(now_ns)
        )
        return to_event(message, id=straggler.id, source=SOURCE, vocabulary=self._vocabulary)
