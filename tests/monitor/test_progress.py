"""How far a run is: what came to a good end, of what was announced."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.runs import NS_PER_S, activity_pairs, folded, ns, received, run_pairs
from tocsin.cli.format import counted
from tocsin.monitor.end_states import done_count
from tocsin.monitor.states import attempt_state
from tocsin.monitor.views import RunFacts, run_record
from tocsin.wire.api.run_views import ACTIVITY_STATES, RUN_STATES

SUCCEEDED = [activity_pairs(f"a-{n}", "ActivitySucceeded", 2) for n in range(11)]
SKIPPED = [activity_pairs(f"s-{n}", "ActivitySkipped", 3) for n in range(6)]
FAILED = activity_pairs("f-1", "ActivityFailed", 3)
BEGUN = run_pairs("WorkflowStarted", 0, PlannedActivities="18")


@pytest.mark.parametrize(
    ("messages", "progress", "done"),
    [
        ([BEGUN, *SUCCEEDED], 0.6111, 11),
        ([BEGUN, *SUCCEEDED, *SKIPPED], 0.9444, 17),
        ([BEGUN, *SUCCEEDED, FAILED], 0.6111, 11),
        ([BEGUN, *SUCCEEDED, *SKIPPED, FAILED], 0.6111, 11),
        ([BEGUN, *SUCCEEDED, *SKIPPED, FAILED, run_pairs("WorkflowTerminated", 4)], 0.6111, 11),
        ([BEGUN, *SUCCEEDED, *SKIPPED, run_pairs("WorkflowAborted", 4)], 0.6111, 11),
        ([BEGUN, *SUCCEEDED, *SKIPPED, FAILED, run_pairs("WorkflowCompleted", 4)], 1.0, 17),
    ],
)
def test_what_was_skipped_is_done_unless_something_failed(
    messages: list[dict[str, str]], progress: float, done: int
) -> None:
    runs, attempts = folded(received(*messages, received_ns=ns(5)))
    counts = Counter(map(attempt_state, attempts.values()))

    record = run_record(RunFacts("r", runs["r"], counts), ns(6), 60 * NS_PER_S)

    assert record.progress == progress
    shown = {name: getattr(record.activities, name) for name in record.activities.__slots__}
    assert counted({"activities": shown, "state": record.state}) == f"{done} of 18"


@pytest.mark.parametrize("announced", [{}, {"PlannedActivities": "5"}])
def test_a_run_is_not_whole_that_never_heard_again_of_some(announced: dict[str, str]) -> None:
    messages = [
        run_pairs("WorkflowStarted", 0, **announced),
        *(activity_pairs(f"a-{n}", "ActivitySucceeded", 2) for n in range(2)),
        *(activity_pairs(f"b-{n}", "ActivityExecuting", 2) for n in range(5)),
        run_pairs("WorkflowCompleted", 4),
    ]
    runs, attempts = folded(received(*messages, received_ns=ns(5)))
    counts = Counter(map(attempt_state, attempts.values()))

    record = run_record(RunFacts("r", runs["r"], counts), ns(6), 60 * NS_PER_S)

    assert (record.state, record.activities.lost) == ("completed", 5)
    assert record.progress == round(2 / 7, 4)


@given(
    st.dictionaries(st.sampled_from(ACTIVITY_STATES), st.integers(0, 5)),
    st.sampled_from(RUN_STATES),
    st.sampled_from(["failed", "cancelled", "lost"]),
)
def test_no_failure_raises_progress(counts: dict[str, int], run: str, bad: str) -> None:
    worse = {**counts, bad: counts.get(bad, 0) + 1}

    assert done_count(worse, run) <= done_count(counts, run) <= sum(counts.values())
