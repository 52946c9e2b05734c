"""The monitor's tables: what messages add up to, on disk, whatever their order."""

from __future__ import annotations

import json
import random
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from failing_run import FAILING, NOW_NS
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.kept import Kept
from monitor.runs import activity_pairs, at, ns, received, run_pairs
from tocsin.drivers.monitor.database.attempt_rows import decode_row
from tocsin.drivers.monitor.database.writer import RunWriter
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.errors import BadRequest, DataDirectoryUnusable, NoSuchRun, NothingToEstimate
from tocsin.monitor.fold import RunMessage
from tocsin.ontology import built_in
from tocsin.wire.api.run_views import (
    CountsInfo,
)

OPTIONS = MonitorOptions()


def test_what_a_later_try_recovered_from_comes_after_the_cause_of_the_failure(kept: Kept) -> None:
    flaky = [
        activity_pairs("flaky-1", "ActivityExecuting", 1),
        activity_pairs("flaky-1", "ActivityRetrying", 2, ErrorMessage="no network"),
        activity_pairs("flaky-1", "ActivityExecuting", 3, Attempt="2"),
        activity_pairs("flaky-1", "ActivitySucceeded", 4, Attempt="2"),
    ]
    kept.fold(received(*flaky, *FAILING))

    failures = kept.asked.runs.failures("r", NOW_NS)

    assert [(each.id, each.attempt, each.recovered) for each in failures] == [
        ("align-1", 2, False),
        ("align-1", 1, False),
        ("flaky-1", 1, True),
    ]


def test_a_list_of_activities_and_the_history_of_one_count_the_same_failures(kept: Kept) -> None:
    kept.fold(received(*FAILING))

    [listed] = [each for each in kept.asked.history.types() if each.type == "align"]

    assert listed.failed == kept.asked.history.history("align", NOW_NS).failed == 2


def test_a_failed_run_is_shown_with_all_that_is_known_of_it(kept: Kept) -> None:
    kept.fold(received(*FAILING))

    run = kept.asked.runs.run("r", NOW_NS)

    assert (run.workflow, run.version, run.user, run.state) == ("blast", "1", "ada", "failed")
    assert (run.started, run.ended, run.duration_s) == (at(0), at(13), 13.0)
    assert run.activities == CountsInfo(total=4, known=3, succeeded=1, failed=1, lost=1)
    assert run.progress == 0.25
    assert run.error == "align-1 failed"
    assert run.resources == {"CpuSeconds": 5.0, "MemoryPeak": 300}
    assert run.anomaly_list == ()


def test_the_tables_are_the_same_whatever_the_order_and_the_batches(tmp_path: Path) -> None:
    messages = received(*FAILING)
    shown = []
    for number, batch in enumerate((1, 3, 100)):
        directory = tmp_path / str(number)
        directory.mkdir()
        found = Kept(directory)
        mixed = [*messages, *messages[2:5]]
        random.Random(number).shuffle(mixed)
        found.fold(mixed, batch=batch)
        activities, _ = found.asked.runs.activities("r", NOW_NS)
        failures = found.asked.runs.failures("r", NOW_NS)
        shown.append((found.asked.runs.run("r", NOW_NS), activities, failures))
        found.close()

    assert shown[0] == shown[1] == shown[2]


def test_activities_are_found_by_state_and_type_and_page_by_page(kept: Kept) -> None:
    kept.fold(received(*FAILING))
    ask = kept.asked.runs.activities

    assert [each.id for each in ask("r", NOW_NS)[0]] == ["align-1", "align-2", "split-1"]
    assert [each.id for each in ask("r", NOW_NS, state="failed")[0]] == ["align-1"]
    assert [each.id for each in ask("r", NOW_NS, state="lost")[0]] == ["align-2"]
    assert ask("r", NOW_NS, state="running") == ([], None)
    assert [each.id for each in ask("r", NOW_NS, kind="align")[0]] == ["align-1", "align-2"]
    first, after = ask("r", NOW_NS, limit=2)
    rest, end = ask("r", NOW_NS, limit=2, after=after)
    assert [each.id for each in (*first, *rest)] == ["align-1", "align-2", "split-1"]
    assert end is None


def test_an_activity_has_its_attempts_and_what_the_first_said_of_all(kept: Kept) -> None:
    kept.fold(received(*FAILING))

    activity = kept.asked.runs.activity("r", "align-1", NOW_NS)

    assert (activity.attempt, activity.attempts, activity.state) == (2, 2, "failed")
    assert activity.duration_s == 3.0
    assert activity.parents == ("split-1",)
    assert [each.state for each in activity.tries] == ["retrying"]


def test_a_failure_is_told_with_what_came_before_and_how_often_it_was_seen(kept: Kept) -> None:
    other = activity_pairs("align-9", "ActivityFailed", 10, ErrorMessage="disk 1 full")
    kept.fold(received(*FAILING, {**other, "RunId": "other", "ExitCode": "1"}))

    last, first = kept.asked.runs.failures("r", NOW_NS, last=2)

    assert (first.error, first.seen_before) == ("disk 7 full", 0)
    # Its own first try does not count.
    assert (last.error, last.seen_before) == ("disk 9 full", 1)
    assert [each.pairs.get("ActivityId") for each in last.before] == ["align-1", "align-1"]
    assert [each.seq for each in last.before] == [5, 6]


def test_what_came_before_a_failure_is_kept_when_the_rest_is_let_go(tmp_path: Path) -> None:
    kept = Kept(tmp_path, replace(OPTIONS, events_per_run=100))
    messages = [activity_pairs(f"a-{n}", "ActivitySucceeded", n) for n in range(60)]
    messages.append(activity_pairs("bad", "ActivityFailed", 60))
    messages += [activity_pairs(f"b-{n}", "ActivitySucceeded", 61 + n) for n in range(2_000)]
    kept.fold(received(*messages), batch=50)

    (failure,) = kept.asked.runs.failures("r", NOW_NS, last=50)

    assert len(failure.before) == 50
    assert failure.before[-1].pairs["ActivityId"] == "a-59"
    assert len(kept.asked.runs.events("r", last=10_000)) <= 100 * 1.1 + 51 + 50
    kept.close()


def test_runs_are_listed_latest_first_and_page_by_page(kept: Kept) -> None:
    kept.fold(
        received(
            *(run_pairs("WorkflowStarted", n, run=f"r{n}", WorkflowName="w") for n in range(5)),
            run_pairs("WorkflowCompleted", 9, run="r2"),
        )
    )
    ask = kept.asked.runs.runs

    first, after = ask(NOW_NS - 86_400, limit=3)
    rest, end = ask(NOW_NS, limit=3, after=after)

    assert [run.id for run in (*first, *rest)] == ["r4", "r3", "r2", "r1", "r0"]
    assert end is None
    assert [run.id for run in ask(NOW_NS, state="completed")[0]] == ["r2"]
    assert ask(NOW_NS, workflow="other")[0] == []
    with pytest.raises(BadRequest):
        ask(NOW_NS, after="nonsense")


def test_a_silent_run_is_lost_and_comes_back_by_itself(kept: Kept) -> None:
    kept.fold([RunMessage(run_pairs("WorkflowStarted", 0, HeartbeatSeconds="10"), 1, ns(0))])
    kept.fold([RunMessage(activity_pairs("a", "ActivityExecuting", 1), 2, ns(1))])

    assert kept.asked.runs.run("r", ns(30)).state == "running"
    lost = kept.asked.runs.run("r", ns(32))
    assert (lost.state, lost.duration_s, lost.activities.lost) == ("lost", 1.0, 1)
    assert [run.id for run in kept.asked.runs.runs(ns(32), state="lost")[0]] == ["r"]
    assert kept.asked.runs.runs(ns(32), state="running")[0] == []
    kept.fold([RunMessage(run_pairs("WorkflowHeartbeat", 40), 3, ns(40))])
    assert kept.asked.runs.run("r", ns(41)).state == "running"


def test_anomalies_are_counted_and_listed_and_the_states_stay_right(kept: Kept) -> None:
    skew_s = 8 * 3_600
    kept.fold(
        received(
            run_pairs("WorkflowStarted", 0),
            run_pairs("ActivityFailed", 3),
            activity_pairs("backwards", "ActivityExecuting", 50),
            activity_pairs("backwards", "ActivitySucceeded", 20),
            activity_pairs("skewed", "ActivityExecuting", 10),
            activity_pairs("skewed", "ActivityExecuting", 11 + skew_s),
            activity_pairs("skewed", "ActivitySucceeded", 13 + skew_s),
            activity_pairs("one", "ActivityExecuting", 14, ParentActivity="two"),
            activity_pairs("two", "ActivityExecuting", 14, ParentActivity='["one"]'),
        )
    )

    run = kept.asked.runs.run("r", NOW_NS)

    assert {(each.kind, each.activity) for each in run.anomaly_list} == {
        ("activity without id", None),
        ("cycle", None),
        ("end before start", "backwards"),
        ("zone skew", "skewed"),
    }
    assert run.anomalies == 4
    assert run.activities.succeeded == 2
    assert kept.asked.runs.activity("r", "backwards", NOW_NS).duration_s is None
    assert kept.asked.runs.activity("r", "skewed", NOW_NS).duration_s == 2.0


def test_a_run_s_types_are_counted_by_state_and_only_so_many_are_told(kept: Kept) -> None:
    kept.fold(received(*FAILING))
    many = [activity_pairs(f"t{n:04}-1", "ActivitySucceeded", n, run="s") for n in range(1_005)]
    kept.fold([RunMessage(pairs, 100 + n, NOW_NS) for n, pairs in enumerate(many)])

    types = kept.asked.runs.run("r", NOW_NS).types
    assert types == {"align": {"failed": 1, "lost": 1}, "split": {"succeeded": 1}}
    assert list(kept.asked.runs.run("s", NOW_NS).types) == [f"t{n:04}" for n in range(1_000)]


def test_the_time_left_is_learnt_from_past_runs_and_worked_out_from_now(kept: Kept) -> None:
    plan = json.dumps(
        [
            {"id": "split-1", "type": "split", "parents": []},
            {"id": "align-1", "type": "align", "parents": ["split-1"]},
            {"id": "join-1", "type": "join", "parents": ["align-1"]},
        ]
    )
    messages: list[dict[str, str]] = []
    for n in range(4):
        start, run = n * 1_000.0, f"p{n}"
        messages.append(
            run_pairs("WorkflowStarted", start, run=run, WorkflowName="w", ActivityPlan=plan)
        )
        for name, begin, end in (("split-1", 0, 10), ("align-1", 10, 110), ("join-1", 110, 120)):
            messages.append(activity_pairs(name, "ActivityExecuting", start + begin, run=run))
            messages.append(activity_pairs(name, "ActivitySucceeded", start + end, run=run))
        messages.append(run_pairs("WorkflowCompleted", start + 120, run=run))
    messages.append(run_pairs("WorkflowStarted", 9_000, WorkflowName="w", ActivityPlan=plan))
    messages.append(activity_pairs("split-1", "ActivityExecuting", 9_000))
    messages.append(activity_pairs("split-1", "ActivitySucceeded", 9_010))
    messages.append(activity_pairs("align-1", "ActivityExecuting", 9_010))
    kept.fold(received(*messages, received_ns=ns(9_010)))

    found = kept.asked.estimates.estimate("r", ns(9_020))

    assert found.remaining_s == pytest.approx(100, rel=0.05)
    assert found.low_s <= found.remaining_s <= found.high_s
    assert found.past_runs == 4
    assert found.eta is not None
    assert kept.asked.estimates.estimate_unstarted("w", NOW_NS).total_s == pytest.approx(
        120, rel=0.05
    )
    assert kept.asked.estimates.estimate("p0", NOW_NS).method == "ended"
    with pytest.raises(NothingToEstimate):
        kept.asked.estimates.estimate_unstarted("never heard of", NOW_NS)


def test_old_runs_and_too_many_are_let_go_a_few_rows_at_a_time(tmp_path: Path) -> None:
    kept = Kept(tmp_path, replace(OPTIONS, retain_age_s=1_000, runs_max=2))
    for n in range(4):
        pairs = [run_pairs("WorkflowCompleted", n, run=f"r{n}")]
        pairs += [activity_pairs(f"a-{k}", "ActivitySucceeded", n, run=f"r{n}") for k in range(9)]
        kept.fold([RunMessage(each, n * 10 + k, ns(n * 400)) for k, each in enumerate(pairs, 1)])

    while kept.store.prune(ns(1_300)):
        pass

    assert [run.id for run in kept.asked.runs.runs(NOW_NS)[0]] == ["r3", "r2"]
    with pytest.raises(NoSuchRun):
        kept.asked.runs.run("r0", NOW_NS)
    assert kept.asked.index.rows("SELECT count(*) FROM attempts") == [(18,)]
    kept.close()


def test_a_run_under_way_is_kept_however_old_and_however_many_there_are(tmp_path: Path) -> None:
    kept = Kept(tmp_path, replace(OPTIONS, retain_age_s=1_000, runs_max=3, silence_s=5_000))
    begun = [
        run_pairs("WorkflowSuspended", 0, run="waits"),
        run_pairs("WorkflowStarted", 0, run="goes on"),
        run_pairs("WorkflowStarted", 0, run="beats", HeartbeatSeconds="10"),
    ]
    kept.fold(received(*begun, received_ns=ns(0)))
    kept.fold([RunMessage(run_pairs("WorkflowCompleted", 2_500, run="ended"), 9, ns(2_500))])

    def left(seconds: float) -> set[str]:
        while kept.store.prune(ns(seconds)):
            pass
        return {run.id for run in kept.asked.runs.runs(NOW_NS)[0]}

    assert left(2_600) == {"waits", "goes on", "ended"}  # without heartbeats it is lost
    assert left(3_600) == {"waits", "goes on"}
    assert left(6_000) == {"waits"}  # the other is lost
    many = [run_pairs("WorkflowSuspended", n, run=f"r{n}") for n in range(9)]
    kept.fold([RunMessage(each, 10 + n, ns(6_000 + n)) for n, each in enumerate(many)])
    assert left(6_100) == {f"r{n}" for n in range(3, 9)}  # there is a limit to everything
    kept.close()


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    import apsw

    other = apsw.Connection(str(tmp_path / "monitor.db"))
    other.execute("CREATE TABLE theirs (a)")
    other.close()

    with pytest.raises(DataDirectoryUnusable):
        RunWriter(tmp_path, OPTIONS, built_in())


_ANY_PAIRS = st.builds(
    lambda name, attempt, concept, second, kind, used: activity_pairs(
        name, concept, second, Attempt=str(attempt), ActivityType=kind, CpuSeconds=str(used)
    ),
    st.sampled_from("abc"),
    st.integers(1, 3),
    st.sampled_from(
        [
            "ActivityQueued",
            "ActivityExecuting",
            "ActivityRetrying",
            "ActivitySucceeded",
            "ActivityFailed",
        ]
    ),
    st.integers(0, 9),
    st.sampled_from(["x", "y"]),
    st.integers(0, 5),
)


@settings(max_examples=40)
@given(st.lists(_ANY_PAIRS, max_size=25), st.integers(1, 9))
def test_what_is_counted_on_the_way_equals_a_count_at_the_end(
    messages: list[dict[str, str]], batch: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        kept = Kept(Path(directory))
        kept.fold(received(*messages), batch=batch)
        rows = kept.asked.index.rows

        counted = rows("SELECT type, state, count FROM tally WHERE count ORDER BY type, state")
        assert counted == rows(
            "SELECT type, state, count(*) FROM attempts AS a WHERE attempt = (SELECT max(attempt) "
            "FROM attempts WHERE activity = a.activity) GROUP BY type, state ORDER BY type, state"
        )
        assert rows("SELECT count(*) FROM attempts WHERE last") == rows(
            "SELECT count(DISTINCT activity) FROM attempts"
        )
        used = [decode_row(row)["use.CpuSeconds"] for (row,) in rows("SELECT row FROM attempts")]
        assert rows("SELECT total(amount) FROM used") == [(sum(used),)]
        odd = [len(each) for each in (kept.asked.runs._odd_activities(1),)]
        assert rows("SELECT total(odd) FROM runs") == [tuple(float(each) for each in odd)]
        kept.close()
