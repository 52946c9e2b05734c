"""Generations: a run id that is used again is another run, told apart in the order of the log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.kept import Kept
from monitor.runs import RECEIVED_NS, activity_pairs, at, ns, received, run_pairs
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.monitor.fold import RunMessage
from tocsin.monitor.generations import Boundary, Generations, named
from tocsin.wire.api.run_views import ReusedInfo

NOW_NS = RECEIVED_NS
DAY_S = 86_400


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    found = Kept(tmp_path)
    yield found
    found.close()


def one_run(start_s: float, *, depth: str = "1") -> list[dict[str, str]]:
    """Created with its parameters, started, one activity, completed: ten seconds in all."""
    return [
        run_pairs("WorkflowCreated", start_s, WorkflowName="w", Parameters=f'{{"depth":{depth}}}'),
        run_pairs("WorkflowStarted", start_s + 0.1),
        activity_pairs("a", "ActivityExecuting", start_s + 1),
        activity_pairs("a", "ActivitySucceeded", start_s + 4),
        run_pairs("WorkflowCompleted", start_s + 10.1),
    ]


def at_once(*messages: dict[str, str], first_seq: int = 1) -> list[RunMessage]:
    """Each received when it happened."""
    found = []
    for seq, pairs in enumerate(messages, first_seq):
        times = [value for value in pairs.values() if value.startswith("20")]
        found.append(RunMessage(pairs, seq, ns(0) + _ns_of(max(times))))
    return found


def _ns_of(text: str) -> int:
    from tocsin.event.instant import iso8601_ns

    moment_ns = iso8601_ns(text)
    assert moment_ns is not None
    return moment_ns - ns(0)


def shown(kept: Kept) -> dict[str, tuple[str, str | None, float | None]]:
    runs, _ = kept.asked.runs.runs(NOW_NS + 10 * DAY_S * 10**9)
    return {each.id: (each.state, each.started, each.duration_s) for each in runs}


def test_a_run_id_that_is_used_again_is_a_run_of_its_own(kept: Kept) -> None:
    kept.fold(received(*one_run(0), *one_run(60, depth="2")))

    first, second = kept.asked.runs.run("r", NOW_NS), kept.asked.runs.run("r~2", NOW_NS)

    assert (first.started, first.duration_s, first.state) == (at(0.1), 10.0, "completed")
    assert (second.started, second.duration_s, second.state) == (at(60.1), 10.0, "completed")
    assert (first.parameters, second.parameters) == ({"depth": 1}, {"depth": 2})
    assert first.activities.succeeded == second.activities.succeeded == 1
    assert first.anomaly_list == second.anomaly_list == ()
    [activity] = kept.asked.runs.activities("r~2", NOW_NS)[0]
    assert (activity.started, activity.run) == (at(61), "r~2")
    assert len(kept.asked.runs.events("r~2")) == 5


@pytest.mark.parametrize("batch", [1, 3, 1_000])
def test_a_third_run_is_the_third_however_the_log_is_cut_into_batches(
    batch: int, kept: Kept
) -> None:
    kept.fold(received(*one_run(0), *one_run(60), *one_run(120)), batch=batch)

    assert shown(kept) == {
        "r": ("completed", at(0.1), 10.0),
        "r~2": ("completed", at(60.1), 10.0),
        "r~3": ("completed", at(120.1), 10.0),
    }


def test_a_run_of_each_night_under_one_id_is_no_matter_of_time_zones(kept: Kept) -> None:
    kept.fold(at_once(*one_run(0), *one_run(DAY_S), *one_run(2 * DAY_S)))

    assert {each: state for each, (state, _, _) in shown(kept).items()} == dict.fromkeys(
        ("r", "r~2", "r~3"), "completed"
    )


def test_what_comes_late_goes_to_the_run_that_it_is_of(kept: Kept) -> None:
    *most, last = one_run(0)
    late = activity_pairs("b", "ActivitySucceeded", 8, CpuSeconds="5")
    kept.fold(received(*most, last, *one_run(60)[:3], late, *one_run(60)[3:]))

    assert kept.asked.runs.run("r", NOW_NS).activities.known == 2
    assert kept.asked.runs.run("r~2", NOW_NS).activities.known == 1
    assert kept.asked.runs.run("r", NOW_NS).resources["CpuSeconds"] == 5


def test_an_earlier_run_that_was_sent_later_from_the_spool_is_told_apart(kept: Kept) -> None:
    later, earlier = one_run(4_000, depth="2"), one_run(0)
    kept.fold(received(*later[:3], *earlier, *later[3:]))

    assert shown(kept) == {
        "r": ("completed", at(4_000.1), 10.0),  # the first that was heard of
        "r~2": ("completed", at(0.1), 10.0),
    }
    assert kept.asked.runs.run("r", NOW_NS).parameters == {"depth": 2}


def test_a_run_that_was_killed_and_started_again_later_is_two_runs(kept: Kept) -> None:
    kept.fold(received(*one_run(0)[:3], *one_run(4_000)))

    assert shown(kept) == {
        "r": ("lost", at(0.1), 0.9),
        "r~2": ("completed", at(4_000.1), 10.0),
    }


def test_a_start_that_is_told_twice_is_one_start(kept: Kept) -> None:
    by_another_clock = run_pairs("WorkflowStarted", 3)
    in_another_zone = run_pairs("WorkflowStarted", 8 * 3_600)
    created, *rest = one_run(0)
    kept.fold(received(created, by_another_clock, in_another_zone, *rest, by_another_clock))

    assert list(shown(kept)) == ["r"]


def test_a_run_that_waited_for_an_hour_before_it_began_is_one_run(kept: Kept) -> None:
    created, *rest = one_run(0)
    kept.fold(received({**created, "WorkflowCreated": at(-3_700)}, *rest))

    assert list(shown(kept)) == ["r"]


def test_each_use_of_an_id_is_learnt_from(kept: Kept) -> None:
    kept.fold(received(*one_run(0), *one_run(60), *one_run(120)))

    assert [each.id for each, _, _ in kept.asked.estimates.past_runs("w")] == ["r", "r~2", "r~3"]


def test_the_number_goes_on_when_the_runs_before_were_forgotten(tmp_path: Path) -> None:
    kept = Kept(tmp_path, MonitorOptions(retain_age_s=DAY_S))
    kept.fold(at_once(*one_run(0), *one_run(60)))
    while kept.store.prune(ns(3 * DAY_S)):
        pass
    assert shown(kept) == {}

    kept.fold(at_once(*one_run(3 * DAY_S), first_seq=100))

    assert list(shown(kept)) == ["r~3"]
    kept.close()


def test_a_database_of_before_goes_on_with_the_run_that_it_has(kept: Kept) -> None:
    kept.fold(received(*one_run(0)))
    kept.store._connection.execute("DELETE FROM generations")  # as version 3 had none

    kept.store.write(received(*one_run(0), *one_run(60))[5:], 10)

    assert list(shown(kept)) == ["r~2", "r"]


def test_what_a_run_shares_its_id_with_is_told(kept: Kept) -> None:
    kept.fold(received(*one_run(0), *one_run(60), run_pairs("WorkflowStarted", 0, run="other")))

    assert kept.asked.runs.run("r", NOW_NS).reused == ReusedInfo(
        id="r",
        number=1,
        of=2,
        last="r~2",
    )
    assert kept.asked.runs.run("r~2", NOW_NS).reused == ReusedInfo(
        id="r",
        number=2,
        of=2,
        last="r~2",
    )
    assert kept.asked.runs.run("other", NOW_NS).reused is None


def test_a_message_that_is_read_twice_opens_no_other_run() -> None:
    turns = [Boundary(0, None, None, 1), Boundary(None, 5, None, 2), Boundary(None, None, 90, 3)]
    again = [
        Boundary(100, None, None, 4),
        Boundary(None, 105, None, 5),
        Boundary(None, None, 190, 6),
    ]
    known = Generations()

    first = [known.take(each) for each in (*turns, *again)]

    assert first == [known.take(each) for each in (*turns, *again)] == [1, 1, 1, 2, 2, 2]
    assert [named("x", each) for each in (1, 2)] == ["x", "x~2"]
