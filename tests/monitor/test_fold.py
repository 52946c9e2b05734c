"""The fold: any order, any repetition, the same state."""

from __future__ import annotations

import json
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.runs import READING, RECEIVED_NS, activity_pairs, at, folded, ns, received, run_pairs
from tocsin.monitor.fold import RunMessage, merge, parse_message
from tocsin.monitor.rules import FIELD_RULES, MERGES, STATE_RULES, WANTED
from tocsin.monitor.states import (
    attempt_state,
    attempt_times,
    in_run,
    is_zone_apart,
    lost_at_ns,
    run_state,
)
from tocsin.ontology import built_in

WHOLE_RUN = received(
    run_pairs("WorkflowCreated", 0, WorkflowName="blast", PlannedActivities="3"),
    run_pairs("WorkflowStarted", 1, WorkflowVersion="7", UserName="ada", Host="head"),
    activity_pairs("split-1", "ActivityQueued", 2),
    activity_pairs("split-1", "ActivityExecuting", 3, Host="node1"),
    activity_pairs("split-1", "ActivitySucceeded", 13, CpuSeconds="9.5", ExitCode="0"),
    activity_pairs("align-1", "ActivityExecuting", 14, ParentActivity="split-1"),
    activity_pairs("align-1", "ActivityRetrying", 20, ExitCode="1", ErrorMessage="no disk"),
    activity_pairs("align-1", "ActivityExecuting", 21, Attempt="2"),
    activity_pairs("align-1", "ActivityOutOfMemory", 30, Attempt="2", ExitCode="137"),
    activity_pairs("join-1", "ActivitySkipped", 31),
    run_pairs("WorkflowTerminated", 32, ErrorMessage="align failed"),
)


def test_every_concept_and_every_field_of_the_table_is_known() -> None:
    vocabulary = built_in()

    assert {rule.concept for rule in STATE_RULES} <= vocabulary.concepts.keys()
    assert {rule.concept for rule in FIELD_RULES} - {"*"} <= vocabulary.concepts.keys()
    assert {rule.field for rule in FIELD_RULES} <= MERGES.keys()
    assert set(WANTED) <= vocabulary.concepts.keys()


@given(st.randoms(use_true_random=False), st.lists(st.sampled_from(WHOLE_RUN)))
def test_no_order_and_no_repetition_makes_a_difference(
    chance: random.Random, again: list[RunMessage]
) -> None:
    messages = [*WHOLE_RUN, *again]
    chance.shuffle(messages)

    assert folded(messages) == folded(WHOLE_RUN)


_CONCEPTS = st.sampled_from(
    [
        *("WorkflowStarted", "WorkflowSuspended", "WorkflowResumed", "WorkflowCompleted"),
        *("ActivityExecuting", "ActivityHeld", "ActivityFailed", "ActivityClosed"),
        *("CpuSeconds", "MemoryRss", "ErrorMessage", "InputFile", "Host", "WorkflowFile"),
    ]
)
_VALUES = st.one_of(
    st.integers(0, 50).map(at),
    st.sampled_from(["", "7", "-1.5", "nan", "x", '["a","b"]', '[{"path":"f"}]', "[", "é" * 9]),
)
_PAIRS = st.dictionaries(_CONCEPTS, _VALUES, max_size=4).map(
    lambda pairs: {"RunId": "r", "ActivityId": "a", **pairs}
)
_ROWS = st.builds(
    RunMessage, _PAIRS, st.integers(1, 9), st.integers(0, 60).map(ns), st.none() | st.just(at(5))
).map(lambda message: parse_message(message, READING))


@given(_ROWS, _ROWS, _ROWS)
def test_merging_is_commutative_associative_and_idempotent(one, two, three) -> None:  # type: ignore[no-untyped-def]
    a, b, c = one.run_row, two.run_row, three.run_row

    assert merge(a, b) == merge(b, a)
    assert merge(merge(a, b), c) == merge(a, merge(b, c))
    assert merge(a, a) == a
    d, e = one.activities["a", 1], two.activities["a", 1]
    assert merge(d, e) == merge(e, d)
    assert merge(merge(d, e), e) == merge(d, e)


@given(_ROWS)
def test_a_row_that_was_on_disk_equals_one_that_was_not(one) -> None:  # type: ignore[no-untyped-def]
    row = one.activities["a", 1]

    assert msgspec.msgpack.decode(msgspec.msgpack.encode(row)) == row


@given(st.dictionaries(st.sampled_from(sorted(built_in().concepts)), st.text(max_size=30)))
def test_no_message_whatever_it_says_makes_the_fold_fail(pairs: dict[str, str]) -> None:
    said = parse_message(RunMessage({**pairs, "RunId": "r"}, 1, RECEIVED_NS, "nonsense"), READING)

    assert said is not None
    run_state(said.run_row)
    for row in said.activities.values():
        attempt_times(row)


def test_a_whole_run_ends_in_the_states_that_were_told() -> None:
    runs, attempts = folded(WHOLE_RUN)

    assert run_state(runs["r"]) == "failed"
    assert {key[1:]: attempt_state(row) for key, row in attempts.items()} == {
        ("split-1", 1): "succeeded",
        ("align-1", 1): "retrying",
        ("align-1", 2): "failed",
        ("join-1", 1): "skipped",
    }
    assert attempt_times(attempts["r", "split-1", 1]).duration_s == 10.0


@pytest.mark.parametrize(
    ("concepts", "state"),
    [
        ([("WorkflowCreated", 0)], "created"),
        ([("WorkflowHeartbeat", 0)], "running"),
        ([("WorkflowStarted", 0), ("WorkflowSuspended", 5)], "suspended"),
        ([("WorkflowStarted", 0), ("WorkflowSuspended", 5), ("WorkflowResumed", 6)], "running"),
        ([("WorkflowStarted", 0), ("WorkflowIdle", 5)], "idle"),
        ([("WorkflowIdle", 5), ("ActivityExecuting", 6)], "running"),
        ([("WorkflowException", 3), ("WorkflowStarted", 0)], "running"),
        ([("WorkflowStarted", 0), ("WorkflowAborted", 5)], "aborted"),
        ([("WorkflowCompleted", 1), ("WorkflowStarted", 5)], "completed"),  # end before start
        (
            [("WorkflowStarted", 0), ("WorkflowTerminated", 5), ("WorkflowStarted", 9)],
            "running",  # it was started again
        ),
    ],
)
def test_a_run_is_in_the_state_of_its_last_phase(
    concepts: list[tuple[str, float]], state: str
) -> None:
    messages = received(*(run_pairs(concept, seconds) for concept, seconds in concepts))

    assert run_state(folded(messages)[0]["r"]) == state
    assert run_state(folded(reversed(messages))[0]["r"]) == state


@pytest.mark.parametrize(
    ("concepts", "state"),
    [
        ([("ActivityPlanned", 0)], "planned"),
        ([("ActivitySubmitted", 0)], "queued"),
        ([("ActivityExecuting", 1), ("ActivityHeld", 5)], "held"),
        ([("ActivityHeld", 5), ("ActivityExecuting", 6)], "running"),
        ([("ActivityHeld", 5), ("ActivityQueued", 6)], "queued"),
        ([("ActivityExecuting", 2), ("ActivityQueued", 3)], "running"),  # two clocks
        ([("ActivityClosed", 2)], "succeeded"),
        ([("ActivityTimedOut", 2)], "failed"),
        ([("ActivityCached", 2)], "cached"),
        ([("ActivityCancelled", 2), ("ActivityExecuting", 3)], "cancelled"),
        ([("ActivityRetrying", 2), ("ActivityFailed", 2)], "failed"),
    ],
)
def test_an_attempt_is_in_the_state_of_its_last_phase(
    concepts: list[tuple[str, float]], state: str
) -> None:
    messages = received(*(activity_pairs("a", concept, seconds) for concept, seconds in concepts))

    assert attempt_state(folded(messages)[1]["r", "a", 1]) == state
    assert attempt_state(folded(reversed(messages))[1]["r", "a", 1]) == state


def test_what_only_ended_failed_if_its_exit_code_says_so() -> None:
    messages = received(activity_pairs("a", "ActivityClosed", 2, ExitCode="3"))

    assert attempt_state(folded(messages)[1]["r", "a", 1]) == "failed"


def test_a_time_from_the_future_does_not_pin_the_state() -> None:
    year_s = 365 * 86_400.0
    messages = [
        RunMessage(run_pairs("WorkflowStarted", 0), 1, ns(1)),
        RunMessage(run_pairs("WorkflowSuspended", year_s), 2, ns(5)),
        RunMessage(run_pairs("WorkflowResumed", 9), 3, ns(10)),
    ]

    row = folded(messages)[0]["r"]

    assert run_state(row) == "running"
    assert row["last_event"] == ns(9)
    assert row["ahead_at"] == 2


def test_a_plan_makes_activities_that_wait_to_be_heard_of() -> None:
    plan = json.dumps(
        [
            {"id": "a", "type": "split", "parents": [], "external_bytes": 12},
            {"id": "b", "type": "join", "parents": ["a"], "unknown": 1},
            {"type": "nameless"},
            "nonsense",
        ]
    )

    runs, attempts = folded(received(run_pairs("WorkflowCreated", 0, ActivityPlan=plan)))

    assert {key[1]: attempt_state(row) for key, row in attempts.items()} == {
        "a": "planned",
        "b": "planned",
    }
    assert attempts["r", "b", 1]["parents"] == ["a"]
    assert runs["r"]["nameless_at"] == 1


def test_an_event_of_an_activity_that_is_not_named_is_told_of_its_run() -> None:
    runs, attempts = folded(received(run_pairs("ActivityFailed", 3)))

    assert attempts == {}
    assert runs["r"]["nameless_at"] == 1
    assert run_state(runs["r"]) == "running"


def test_a_message_without_a_run_says_nothing() -> None:
    assert parse_message(RunMessage({"WorkflowName": "blast"}, 1, RECEIVED_NS), READING) is None
    assert parse_message(RunMessage({"RunId": "x" * 10_000}, 1, RECEIVED_NS), READING) is None


def test_an_end_before_its_start_has_no_duration() -> None:
    messages = received(
        activity_pairs("a", "ActivityExecuting", 20), activity_pairs("a", "ActivitySucceeded", 5)
    )

    times = attempt_times(folded(messages)[1]["r", "a", 1])

    assert times.state == "succeeded"
    assert times.duration_s is None


def test_of_two_clocks_eight_hours_apart_the_duration_is_taken_from_one() -> None:
    skew_s = 8 * 3_600
    messages = received(
        activity_pairs("a", "ActivityExecuting", 100),
        activity_pairs("a", "ActivityClosed", 106),
        activity_pairs("a", "ActivityExecuting", 101 + skew_s),
        activity_pairs("a", "ActivitySucceeded", 104 + skew_s),
    )

    times = attempt_times(folded(messages)[1]["r", "a", 1])

    assert times.state == "succeeded"
    assert times.is_skewed
    assert times.duration_s == 3.0


def test_a_duration_that_was_told_stands_against_another_zone() -> None:
    messages = received(
        activity_pairs("a", "ActivityExecuting", 100),
        activity_pairs("a", "ActivitySucceeded", 102 + 5.5 * 3_600, Duration="2.2"),
    )

    times = attempt_times(folded(messages)[1]["r", "a", 1])

    assert times.is_skewed
    assert times.duration_s == 2.2


def test_only_whole_half_hours_from_one_on_are_a_zone() -> None:
    apart = [seconds for seconds in range(0, 100_000, 100) if is_zone_apart(seconds)]

    assert apart[0] == 3_600
    assert all(seconds % 1_800 in (0, 1_800) for seconds in apart)


def test_a_silent_run_is_lost_after_three_heartbeats_or_else_after_the_setting() -> None:
    plain = folded(received(run_pairs("WorkflowStarted", 0), received_ns=ns(0)))[0]["r"]
    beating = folded(
        received(run_pairs("WorkflowStarted", 0, HeartbeatSeconds="10"), received_ns=ns(0))
    )[0]["r"]
    ended = folded(received(run_pairs("WorkflowCompleted", 0)))[0]["r"]
    waiting = folded(received(run_pairs("WorkflowSuspended", 0)))[0]["r"]

    assert lost_at_ns(plain, 60) == ns(60)
    assert lost_at_ns(beating, 60) == ns(30)
    assert lost_at_ns(ended, 60) is None
    assert lost_at_ns(waiting, 60) is None


def test_nothing_runs_in_a_run_that_has_ended() -> None:
    assert in_run("running", "completed") == "lost"
    assert in_run("retrying", "failed") == "failed"
    assert in_run("running", "lost") == "lost"
    assert in_run("queued", "completed") == "queued"
    assert in_run("running", "running") == "running"
