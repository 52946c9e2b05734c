"""What cannot be as it was told is shown, and changes nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from monitor.runs import activity_pairs, at, folded, ns, received, run_pairs
from tocsin.monitor.anomalies import find_cycle, of_attempt, of_cycle, of_run
from tocsin.monitor.fold import RunMessage
from tocsin.monitor.states import attempt_times


def kinds_of_attempt(*messages: RunMessage) -> set[str]:
    row = folded(messages)[1]["r", "a", 1]
    return {anomaly.kind for anomaly in of_attempt(row, attempt_times(row), "a")}


def kinds_of_run(*messages: RunMessage, known: int = 0, total: int | None = None) -> set[str]:
    return {anomaly.kind for anomaly in of_run(folded(messages)[0]["r"], known=known, total=total)}


def test_an_ordinary_attempt_has_none() -> None:
    messages = received(
        activity_pairs("a", "ActivityQueued", 0),
        activity_pairs("a", "ActivityExecuting", 1),
        activity_pairs("a", "ActivitySucceeded", 7_201),
    )

    assert kinds_of_attempt(*messages) == set()


def test_what_is_odd_about_an_attempt_is_named() -> None:
    backwards = received(
        activity_pairs("a", "ActivityExecuting", 50), activity_pairs("a", "ActivityFailed", 1)
    )
    torn = received(
        activity_pairs("a", "ActivitySucceeded", 5), activity_pairs("a", "ActivityFailed", 6)
    )
    skewed = received(
        activity_pairs("a", "ActivityExecuting", 0),
        activity_pairs("a", "ActivityExecuting", 8 * 3_600 + 1),
    )
    early = [RunMessage(activity_pairs("a", "ActivityExecuting", 9_000), 1, ns(0))]

    assert kinds_of_attempt(*backwards) == {"end before start"}
    assert kinds_of_attempt(*torn) == {"ended in two ways"}
    assert kinds_of_attempt(*skewed) == {"zone skew"}
    assert kinds_of_attempt(*early) == {"from the future"}


def test_an_end_before_its_start_by_milliseconds_is_one_moment_by_two_clocks() -> None:
    by_two_clocks = received(
        activity_pairs("a", "ActivityExecuting", 5.012), activity_pairs("a", "ActivitySucceeded", 5)
    )
    row = folded(by_two_clocks)[1]["r", "a", 1]

    assert kinds_of_attempt(*by_two_clocks) == set()
    assert attempt_times(row).duration_s == 0.0


def test_what_is_odd_about_a_run_is_named() -> None:
    start, end = run_pairs("WorkflowStarted", 0), run_pairs("WorkflowCompleted", 100)

    assert kinds_of_run(*received(start, end)) == set()
    assert kinds_of_run(*received(run_pairs("WorkflowStarted", 900), end)) == {"end before start"}
    assert kinds_of_run(*received(start, end, activity_pairs("a", "ActivityExecuting", 1_000))) == {
        "activity after the end of the run"
    }
    assert kinds_of_run(*received(run_pairs("ActivityFailed", 3))) == {"activity without id"}
    assert kinds_of_run(*received({"RunId": "r", "WorkflowStarted": "soon"})) == {"unreadable time"}
    assert kinds_of_run(*received(start), known=4, total=3) == {"more than planned"}
    assert kinds_of_run(*received(start, end, run_pairs("WorkflowTerminated", 101))) == {
        "ended in two ways"
    }
    assert kinds_of_run(*received(start, end, run_pairs("WorkflowStarted", 500))) == {
        "run id used again"
    }
    assert kinds_of_run(*received(start, activity_pairs("a", "ActivityExecuting", -28_800))) == {
        "zone skew"
    }


def test_a_plan_is_of_no_single_activity() -> None:
    counts = run_pairs("ActivityPlanned", 1, PlannedCounts='{"align": 3}')
    total = run_pairs("ActivityPlanned", 1, PlannedActivities="3")

    assert kinds_of_run(*received(counts)) == kinds_of_run(*received(total)) == set()
    assert kinds_of_run(*received({**counts, "ActivityFailed": at(2)})) == {"activity without id"}


def test_an_id_that_two_runs_share_is_told_of_for_good() -> None:
    first = [run_pairs("WorkflowStarted", 0), run_pairs("WorkflowCompleted", 10)]
    second = [run_pairs("WorkflowStarted", 60), run_pairs("WorkflowCompleted", 70)]
    by_another_clock = run_pairs("WorkflowStarted", 3)

    assert kinds_of_run(*received(*first, *second)) == {"run id used again"}
    assert kinds_of_run(*received(first[0], run_pairs("WorkflowStarted", 4_000))) == {
        "run id used again"  # the first was killed, and said nothing of its end
    }
    assert kinds_of_run(*received(*first, by_another_clock)) == set()


def test_how_far_a_clock_is_ahead_is_told_as_people_say_it() -> None:
    row = folded([RunMessage(run_pairs("WorkflowStarted", 130_176_432), 1, ns(0))])[0]["r"]

    (anomaly,) = of_run(row, known=0, total=None)

    assert anomaly.detail == "a time was about 4 years ahead of when it was received"


def test_a_cycle_is_found_and_named() -> None:
    parents = {"a": ["b"], "b": ["c"], "c": ["a", "x"], "d": ["a"], "x": []}

    (anomaly,) = of_cycle(find_cycle(parents))

    assert anomaly.detail == "these wait for each other: a <- b <- c <- a"
    assert find_cycle({"a": ["a"]}) == ["a"]
    assert find_cycle({"a": ["b", "b"], "c": ["b", "gone"]}) == []


def test_a_chain_as_long_as_a_run_is_walked_without_a_deep_stack() -> None:
    parents = {str(number): [str(number + 1)] for number in range(100_000)}

    assert find_cycle(parents) == []


@given(st.dictionaries(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=4)))
def test_a_cycle_is_found_exactly_where_no_order_exists(graph: dict[int, list[int]]) -> None:
    parents = {str(node): [str(each) for each in edges] for node, edges in graph.items()}
    left = dict(parents)
    while ready := [n for n, edges in left.items() if not any(e in left for e in edges)]:
        for node in ready:
            del left[node]

    cycle = find_cycle(parents)

    assert bool(cycle) == bool(left)
    assert all(
        after in parents[node] for node, after in zip(cycle, cycle[1:] + cycle[:1], strict=True)
    )
