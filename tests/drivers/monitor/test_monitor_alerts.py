"""What goes slower than usual reaches whoever asked for problems: once, and it changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import apsw
import msgspec
import pytest

from monitor.beside_a_node import say, watch
from monitor.kept import Kept
from monitor.runs import activity_pairs, ns, received, run_pairs
from tocsin.access.session import Session, internal
from tocsin.broker.engine import Replier
from tocsin.drivers.monitor.database.schema import APPLICATION_ID, FILE_NAME, TABLES
from tocsin.drivers.monitor.monitor import Monitor
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.drivers.node import Node
from tocsin.errors import DiskFull
from tocsin.event.concept_filter import concepts_filter
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.monitor.alerts.messages import SOURCE
from tocsin.monitor.alerts.scanner import ACTIVITIES_AT_ONCE, PER_RUN_MAX, AlertScanner
from tocsin.monitor.fold import RunMessage
from tocsin.store.store import Store

OPTIONS = MonitorOptions(look_every_s=0.02)
NOW_NS = ns(9_060)


def past_runs(runs: int, each: int, took_s: float = 10.0) -> Iterator[dict[str, str]]:
    for run in range(runs):
        name, start = f"p{run}", run * 100.0
        yield run_pairs("WorkflowStarted", start, run=name, WorkflowName="w")
        for n in range(each):
            end = start + took_s * (1 + (run + n) % 5 / 20)
            yield activity_pairs(f"align-{n}", "ActivityExecuting", start, run=name)
            yield activity_pairs(f"align-{n}", "ActivitySucceeded", end, run=name)
        yield run_pairs("WorkflowCompleted", start + 2 * took_s, run=name)


def begun(*activities: str) -> Iterator[dict[str, str]]:
    yield run_pairs("WorkflowStarted", 9_000, WorkflowName="w")
    for each in activities:
        yield activity_pairs(each, "ActivityExecuting", 9_000, Attempt="2")


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    found = Kept(tmp_path, OPTIONS)
    yield found
    found.close()


@pytest.fixture
def scanner(kept: Kept) -> AlertScanner:
    return AlertScanner(kept.asked.alerts, kept.asked.alerts.policy)


# What is found


def test_a_slow_activity_and_a_slow_run_are_found_and_remembered(
    kept: Kept, scanner: AlertScanner
) -> None:
    kept.fold(received(*past_runs(20, 6), *begun("align-1", "new-1"), received_ns=ns(9_000)))

    assert scanner.scan(ns(9_009)) == []
    found = scanner.scan(NOW_NS)
    whole, one = (each.straggler for each in found)
    assert (whole.run, whole.activity, whole.took_s, whole.rate) == ("r", "", 60.0, 0.1)
    assert (one.activity, one.type, one.attempt, one.rate) == ("align-1", "align", 2, 0.01)
    assert 10 < one.usual_s < one.limit_s < one.took_s == 60
    assert scanner.scan(NOW_NS) == found  # nobody was told of it yet

    kept.store.remember_alerts([each.key for each in found])

    assert scanner.scan(NOW_NS) == []
    assert [each["activity"] for each in kept.asked.runs.run("r", NOW_NS).alerts] == [
        None,
        "align-1",
    ]


def test_a_clock_eight_hours_behind_makes_nothing_slow(kept: Kept, scanner: AlertScanner) -> None:
    late = ns(9_000 + 8 * 3_600)
    messages = received(*past_runs(20, 6), *begun("align-1"), received_ns=late)
    kept.fold(messages)

    assert scanner.scan(late + 5_000_000_000) == []
    assert len(scanner.scan(late + 60_000_000_000)) == 2


@pytest.mark.parametrize(
    "more",
    [
        [run_pairs("WorkflowTerminated", 9_030)],
        [run_pairs("WorkflowSuspended", 9_030)],
        [run_pairs("WorkflowHeartbeat", 9_030, HeartbeatSeconds="5")],  # it is lost at 9,015
    ],
)
def test_what_has_ended_waits_or_is_lost_is_not_slow(
    kept: Kept, scanner: AlertScanner, more: list[dict[str, str]]
) -> None:
    kept.fold(received(*past_runs(20, 6), *begun("align-1"), *more, received_ns=ns(9_000)))

    assert scanner.scan(NOW_NS) == []


def test_of_a_run_larger_than_all_before_it_nothing_is_said(
    kept: Kept, scanner: AlertScanner
) -> None:
    def planned(run: str, tasks: int) -> dict[str, str]:
        counts = msgspec.json.encode({"align": tasks}).decode()
        return run_pairs("WorkflowStarted", 9_000, run, WorkflowName="w", PlannedCounts=counts)

    kept.fold(
        received(
            *past_runs(20, 6), planned("as usual", 6), planned("more", 60), received_ns=ns(9_000)
        )
    )

    assert [each.straggler.run for each in scanner.scan(NOW_NS)] == ["as usual"]


def test_with_few_past_runs_no_run_is_called_slow(kept: Kept, scanner: AlertScanner) -> None:
    kept.fold(received(*past_runs(8, 6), *begun(), received_ns=ns(9_000)))

    assert scanner.scan(NOW_NS) == []


def test_each_look_is_bounded_and_the_next_goes_on_where_it_was(
    kept: Kept, scanner: AlertScanner
) -> None:
    waiting = [f"other-{n:05}" for n in range(ACTIVITIES_AT_ONCE + 5)]
    kept.fold(received(*past_runs(20, 6), *begun(*waiting, "z-1"), received_ns=ns(9_000)))
    slow = activity_pairs("z-1", "ActivityExecuting", 9_000, ActivityType="align", Attempt="2")
    kept.fold([RunMessage(slow, 10_000, ns(9_000))])

    looks = [[each.straggler.activity for each in scanner.scan(NOW_NS)] for _ in range(2)]

    assert [set(each) - {""} for each in looks] == [set(), {"z-1"}]


def test_of_a_run_in_which_everything_is_slow_only_so_many_are_told(
    kept: Kept, scanner: AlertScanner
) -> None:
    many = [f"align-{n}" for n in range(PER_RUN_MAX + 50)]
    kept.fold(received(*past_runs(20, 6), *begun(*many), received_ns=ns(9_000)))

    found = scanner.scan(NOW_NS)
    kept.store.remember_alerts([each.key for each in found])

    assert len(found) == PER_RUN_MAX
    assert "No more alerts for this run" in found[-1].straggler.why
    assert scanner.scan(NOW_NS) == []


# What the monitor's own words do: nothing


def test_an_alert_changes_no_state_and_a_silent_run_stays_lost(kept: Kept) -> None:
    kept.fold(received(*begun("align-1"), received_ns=ns(9_000)))
    later = ns(9_000 + OPTIONS.silence_s + 60)
    before = kept.asked.runs.run("r", later), kept.asked.runs.activities("r", later)
    alert = {**activity_pairs("align-1", "ActivityStraggling", 30_000), "Attempt": "2"}
    whole = run_pairs("WorkflowStraggling", 30_000, WorkflowName="other")

    kept.fold(
        [RunMessage(alert, 90, later, derived=True), RunMessage(whole, 91, later, derived=True)]
    )
    kept.fold([RunMessage({**alert, "RunId": "unheard of"}, 92, later, derived=True)])

    assert (kept.asked.runs.run("r", later), kept.asked.runs.activities("r", later)) == before
    assert before[0].state == "lost"
    assert [each.seq for each in kept.asked.runs.events("r")][-2:] == [90, 91]
    assert [run.id for run in kept.asked.runs.runs(later)[0]] == ["r"]
    assert kept.asked.index.rows("SELECT activity, attempt FROM alerts") == [
        ("", 0),
        ("align-1", 2),
    ]


def test_tables_of_before_there_were_alerts_are_taken_over(tmp_path: Path) -> None:
    old = apsw.Connection(str(tmp_path / FILE_NAME))
    for statement in (*TABLES, f"PRAGMA application_id={APPLICATION_ID}", "PRAGMA user_version=1"):
        old.execute(statement)
    old.execute("UPDATE place SET seq = 7")
    old.close()

    kept = Kept(tmp_path)

    assert kept.store.place == 7
    kept.fold(received(*past_runs(20, 6), *begun("align-1"), received_ns=ns(9_000)))
    assert len(AlertScanner(kept.asked.alerts, kept.asked.alerts.policy).scan(NOW_NS)) == 2
    kept.close()


# Beside a node


class Asker:
    """A stream of whoever asked for problems."""

    def __init__(self) -> None:
        self.got: list[Stored] = []

    def write(self, events: list[Stored]) -> bool:
        self.got += events
        return True

    def dropped(self, count: int) -> None: ...

    def withheld(self, count: int) -> None: ...

    def end(self, reason: str) -> None: ...


def test_who_asked_for_problems_hears_of_what_is_slow_once_and_a_restart_repeats_nothing(
    tmp_path: Path,
) -> None:
    asker = Asker()
    problems = concepts_filter(("ActivityProblem", "WorkflowProblem"))

    async def begin(node: Node, monitor: Monitor) -> None:
        node.port.open_stream(internal("test"), asker, problems, 0, "an asker")
        await say(node, *past_runs(20, 6, took_s=0.001), *begun("align-1"))
        while len(asker.got) < 2:
            await asyncio.sleep(0.01)
        await looked(monitor)
        run = await monitor.ask(lambda past, now_ns: past.runs.run("r", now_ns))
        assert (run.state, run.activities.running) == ("running", 1)
        assert monitor.under_way == {"running": 1}

    async def begin_again(node: Node, monitor: Monitor) -> None:
        node.port.open_stream(internal("test"), asker, problems, 0, "an asker")
        await looked(monitor)

    watch(tmp_path, begin, OPTIONS)
    events = [each.event for each in asker.got]
    for lost_tables in (False, True):
        asker.got.clear()
        for file in tmp_path.glob(f"{FILE_NAME}*") if lost_tables else ():
            file.unlink()
        watch(tmp_path, begin_again, OPTIONS)
        assert [each.event for each in asker.got] == events

    assert {each.source for each in events} == {SOURCE}
    by_id = {each.id: msgspec.json.decode(each.data or b"") for each in events}
    alert, whole = by_id["r/align-1/2/ActivityStraggling"], by_id["r/WorkflowStraggling"]
    data = msgspec.json.decode(alert["EventData"])
    assert alert["ActivityType"] == "align"
    assert whole["WorkflowName"] == "w"
    assert data["took_s"] >= data["limit_s"] >= data["usual_s"] > 0  # to the millisecond
    assert data["false_alarm_rate"] == 0.01


def test_alerts_that_are_off_are_not_published_and_still_shown(tmp_path: Path) -> None:
    async def script(node: Node, monitor: Monitor) -> None:
        await say(node, *past_runs(20, 6, took_s=0.001), *begun("align-1"))
        await looked(monitor)
        run = await monitor.ask(lambda past, now_ns: past.runs.run("r", now_ns))
        assert len(run.alerts) == 2

    watch(tmp_path, script, replace(OPTIONS, alerts=False))
    log = Store.open(tmp_path)
    assert log.last_seq == 20 * 14 + 2
    log.close()


def test_an_alert_that_could_not_be_published_is_published_later(tmp_path: Path) -> None:
    refused: list[int] = []

    async def script(node: Node, monitor: Monitor) -> None:
        submit = node.port.submit

        def at_first_not(session: Session, events: list[Event], replier: Replier) -> None:
            if len(refused) < 2:
                refused.append(len(events))
                replier.answer(DiskFull("no room", remedy="Make some."))
            else:
                submit(session, events, replier)

        node.port.submit = at_first_not  # type: ignore[method-assign]
        await say(node, *past_runs(20, 6, took_s=0.001), *begun("align-1"))
        while node.broker.head < 20 * 14 + 2 + 2:
            await asyncio.sleep(0.01)
        await looked(monitor)
        assert node.broker.head == 20 * 14 + 2 + 2

    watch(tmp_path, script, OPTIONS)
    assert len(refused) == 2


def test_a_fault_in_the_alerts_costs_the_alerts_alone(tmp_path: Path) -> None:
    async def script(node: Node, monitor: Monitor) -> None:
        def fail(*_: object) -> None:
            raise RuntimeError("a bug in the alerts")

        monitor.recorder.alerts._scanner.scan = fail  # type: ignore[method-assign,assignment]
        await looked(monitor, 1)
        await say(node, *begun("align-1"))
        run = await monitor.ask(lambda past, now_ns: past.runs.run("r", now_ns))
        assert run.state == "running"

    watch(tmp_path, script, OPTIONS)


async def looked(monitor: Monitor, times: int = 3) -> None:
    """Until the monitor has looked around so many times more."""
    wanted = monitor.recorder.alerts.scans + times
    while monitor.recorder.alerts.scans < wanted:
        await asyncio.sleep(0.01)
