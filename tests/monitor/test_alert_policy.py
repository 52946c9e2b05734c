"""What is slower than usual is decided from a history in memory, and published through the port."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import cast

import pytest

from monitor.runs import ns
from tocsin.access.session import Session, internal
from tocsin.broker.engine import Replier
from tocsin.broker.port import BrokerPort
from tocsin.errors import DiskFull
from tocsin.event.event import Event
from tocsin.monitor.alerts.limits import PastDuration
from tocsin.monitor.alerts.messages import SOURCE
from tocsin.monitor.alerts.policy import AlertPolicy, CompletedRuns, Expectation
from tocsin.monitor.alerts.scanner import (
    PER_RUN_MAX,
    AlertKey,
    AlertScanner,
    RunningAttempt,
    RunUnderWay,
)
from tocsin.monitor.fold import Row
from tocsin.monitor.views import RunFacts
from tocsin.ontology import built_in
from tocsin.services.alerts.publisher import AlertPublisher

STARTED_NS = ns(9_000)
NOW_NS = ns(9_060)
SESSION = internal("monitor")


def row_of(kind: str) -> Row:
    cell = [1, STARTED_NS, 1, "running"]
    names = ("started", "started_last", "first_received", "last_received")
    return {"state": cell, **dict.fromkeys(names, STARTED_NS), kind: [STARTED_NS, 1, "w"]}


@dataclass
class History:
    """Runs that took about ten seconds each, and one that is under way for a minute."""

    completed_count: int = 20
    activities: tuple[str, ...] = ("align-1",)
    asked: list[str] = field(default_factory=list)
    remembered: list[AlertKey] = field(default_factory=list)

    def locked(self) -> AbstractContextManager[object]:
        return nullcontext()

    def completed(self, workflow: str) -> int:
        return self.completed_count

    def completed_runs(self, workflow: str) -> CompletedRuns:
        return CompletedRuns(shortest_s=10.0, activities_max=6)

    def past_durations(self, workflow: str, kind: str) -> list[PastDuration]:
        self.asked.append(kind)
        return [PastDuration(10.0 + n % 5 / 10, f"p{run}") for run in range(20) for n in range(6)]

    def expectation(self, run_no: int, row: Row) -> Expectation:
        return Expectation(total_s=20.0, ratios=(1.0,) * 20)

    def counts(self, now_ns: int) -> dict[str, int]:
        return {"running": 1}

    def runs_under_way(self, now_ns: int, first: int, limit: int) -> list[RunUnderWay]:
        return [RunUnderWay(7, "r", "w", STARTED_NS)] if first <= 7 else []

    def running(self, run_no: int, after: str, limit: int) -> list[RunningAttempt]:
        found = [each for each in self.activities if each > after][:limit]
        return [RunningAttempt(each, 1, "align", "", lambda: row_of("type")) for each in found]

    def reported(self, run_no: int) -> set[tuple[str, int]]:
        return {(activity, attempt) for _, activity, attempt in self.remembered}

    def facts(self, run_id: str) -> tuple[int, RunFacts]:
        return 7, RunFacts(run_id, row_of("workflow"), {"running": 1})

    def remember_alerts(self, keys: list[AlertKey]) -> None:
        self.remembered += keys


class Port:
    """Takes what is published; time passes when the test says so."""

    def __init__(self) -> None:
        self.runtime = self
        self.head = 0
        self.seconds = 0.0
        self.published: list[tuple[Session, list[Event], Replier]] = []
        self.notes: list[str] = []

    def elapsed_s(self) -> float:
        return self.seconds

    def now_ns(self) -> int:
        return NOW_NS

    def note(self, level: str, message: str, **fields: object) -> None:
        self.notes.append(message)

    def submit(self, session: Session, events: list[Event], replier: Replier) -> None:
        self.published.append((session, events, replier))


def scanner_of(history: History) -> AlertScanner:
    return AlertScanner(history, AlertPolicy(history))


def publisher_of(port: Port, history: History, *, is_enabled: bool = True) -> AlertPublisher:
    scanner = scanner_of(history)
    return AlertPublisher(
        cast(BrokerPort, port),
        SESSION,
        scanner,
        history,  # type: ignore[arg-type]
        built_in(),
        every_s=5.0,
        is_enabled=is_enabled,
    )


def test_a_slow_run_and_a_slow_activity_are_found() -> None:
    whole, one = (each.straggler for each in scanner_of(History()).scan(NOW_NS))

    assert (whole.run, whole.activity, whole.took_s) == ("r", "", 60.0)
    assert (one.activity, one.took_s, one.rate) == ("align-1", 60.0, 0.01)


def test_nothing_is_slow_before_it_takes_longer_than_usual_or_without_a_history() -> None:
    assert scanner_of(History()).scan(ns(9_009)) == []
    assert scanner_of(History(completed_count=0)).scan(NOW_NS) == []


def test_what_is_usual_is_worked_out_again_when_another_run_has_completed() -> None:
    history = History()
    scanner = scanner_of(history)

    for completed in (20, 20, 21):
        history.completed_count = completed
        scanner.scan(NOW_NS)

    assert history.asked == ["align", "align"]


def test_of_one_run_only_so_many_alerts_are_found_and_the_last_says_so() -> None:
    history = History(activities=tuple(f"a-{n:04}" for n in range(PER_RUN_MAX + 20)))
    scanner = scanner_of(history)

    found = scanner.scan(NOW_NS)
    history.remember_alerts([each.key for each in found])

    assert len(found) == PER_RUN_MAX + 1  # and the run as a whole
    assert "No more alerts for this run" in found[-1].straggler.why
    assert scanner.scan(NOW_NS) == []


def test_a_scan_waits_until_all_is_folded_that_was_published_when_it_became_due() -> None:
    port = Port()
    publisher = publisher_of(port, History())

    assert publisher.due(folded_through=100) is None  # too early
    port.seconds, port.head = 5.0, 120
    assert publisher.due(folded_through=119) is None
    port.head = 500
    assert publisher.due(folded_through=120) == NOW_NS


@pytest.mark.parametrize("refused", [False, True])
def test_alerts_are_published_in_the_monitor_s_session_and_remembered_once_stored(
    refused: bool,
) -> None:
    port, history = Port(), History()
    publisher = publisher_of(port, history)

    publisher.publish(publisher.scan(NOW_NS))
    assert publisher.scan(NOW_NS) == []  # while they are on their way
    ((session, events, replier),) = port.published
    replier.answer(DiskFull("no room", remedy="Make some.") if refused else object())
    again = publisher.scan(NOW_NS)

    assert session == SESSION
    assert {each.source for each in events} == {SOURCE}
    assert [each.id for each in again] == ([each.id for each in events] if refused else [])
    assert len(history.remembered) == (0 if refused else 2)
    assert port.notes == (["alerts could not be published yet"] if refused else [])


def test_without_alerts_runs_are_counted_all_the_same() -> None:
    publisher = publisher_of(Port(), History(), is_enabled=False)

    assert publisher.scan(NOW_NS) == []
    assert publisher.under_way == {"running": 1}
