"""Hints: what waited without need, how much time that cost, and no hint where there was no room."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.estimate.estimate_runs import snakemake_runs
from tocsin.cli.evaluate.recorded_log import case_of, state_from
from tocsin.monitor.estimate.inputs import Task, executed_tasks
from tocsin.monitor.hints import TaskSpan, hints, why_no_hints
from tocsin.monitor.states import AttemptTimes


def test_two_that_need_not_wait_for_each_other_are_hinted_at() -> None:
    tasks = [
        TaskSpan("fetch", 0, 10),
        TaskSpan("index", 10, 40),
        TaskSpan("align", 40, 100, data=(0,)),
    ]

    found = hints(tasks, slots=2)

    assert [(hint.first, hint.second, hint.saves_s) for hint in found] == [
        ("index", "align", 30.0),
        ("fetch", "index", 10.0),
    ]
    assert "reads none of its data" in found[0].why


def test_who_reads_the_other_s_data_has_to_wait() -> None:
    tasks = [
        TaskSpan("fetch", 0, 10),
        TaskSpan("index", 10, 40, data=(0,)),
        TaskSpan("align", 40, 90, data=(1,)),
    ]

    assert hints(tasks, slots=8) == []


def test_data_of_data_is_waited_for_too() -> None:
    tasks = [
        TaskSpan("fetch", 0, 10),
        TaskSpan("split", 10, 20, data=(0,)),
        TaskSpan("align", 20, 50, data=(0, 1)),
    ]

    assert hints(tasks, slots=8) == []


def test_without_a_free_slot_there_is_no_hint() -> None:
    tasks = [
        TaskSpan("a", 0, 50),
        TaskSpan("b", 50, 100),
        TaskSpan("c", 100, 110, data=(0, 1)),
    ]

    assert hints(tasks, slots=1) == []
    assert [hint.saves_s for hint in hints(tasks, slots=2)] == [50.0]


def test_only_the_time_with_a_free_slot_counts() -> None:
    tasks = [
        TaskSpan("a", 0, 50),
        TaskSpan("other", 0, 30),
        TaskSpan("b", 50, 100),
        TaskSpan("c", 100, 110, (0, 1, 2)),
    ]

    found = hints(tasks, slots=2)

    assert [(hint.second, hint.saves_s) for hint in found] == [("b", 20.0)]


def test_a_declared_order_is_named_as_the_cause() -> None:
    tasks = [TaskSpan("clean", 0, 20), TaskSpan("plot", 20, 60, control=(0,))]

    found = hints(tasks, slots=4)

    assert found[0].first == "clean"
    assert "declared" in found[0].why


def test_a_run_that_tells_no_dependence_gets_no_hint() -> None:
    tasks = [TaskSpan("a", 0, 50), TaskSpan("b", 50, 100), TaskSpan("c", 100, 150)]

    assert hints(tasks, slots=4) == []


def test_who_stood_in_a_queue_before_the_other_ended_did_not_wait_for_it() -> None:
    queued = TaskSpan("align", 40, 100, data=(0,), asked_s=11)
    tasks = [TaskSpan("fetch", 0, 10), TaskSpan("index", 10, 40, data=(0,)), queued]

    assert hints(tasks, slots=4) == []
    assert [hint.second for hint in hints([*tasks[:2], replace(queued, asked_s=40)], 4)] == [
        "align"
    ]


def test_a_try_that_failed_is_no_time_to_be_saved() -> None:
    again = TaskSpan("align", 60, 100, data=(0,), asked_s=10)  # failed from 10 to 55
    tasks = [TaskSpan("fetch", 0, 10), TaskSpan("index", 10, 50, data=(0,)), again]

    assert hints(tasks, slots=4) == []


def test_of_whom_nobody_told_what_it_reads_nothing_is_said() -> None:
    tasks = [
        TaskSpan("a", 0, 50),
        TaskSpan("b", 50, 100, linked=False),
        TaskSpan("c", 100, 110, data=(0,)),
    ]

    assert [hint.second for hint in hints(tasks, slots=4)] == ["c"]


def test_why_there_are_no_hints_is_told() -> None:
    loose = [TaskSpan("a", 0, 50), TaskSpan("b", 50, 100)]

    assert "does not report" in (why_no_hints(loose) or "")
    assert why_no_hints([*loose, TaskSpan("c", 100, 110, data=(0,))]) is None


def test_who_waited_for_the_very_first_task_is_hinted_at() -> None:
    tasks = [
        TaskSpan("first", 0, 30),
        TaskSpan("second", 30, 60),
        TaskSpan("last", 60, 70, data=(0, 1)),
    ]

    assert [(hint.first, hint.second) for hint in hints(tasks, slots=2)] == [("first", "second")]


def test_hints_are_per_pair_of_types_and_the_largest_is_first() -> None:
    tasks = [
        TaskSpan("a", 0, 10),
        TaskSpan("b", 10, 20),
        TaskSpan("a", 20, 30),
        TaskSpan("b", 30, 40),
        TaskSpan("c", 40, 140),
        TaskSpan("d", 140, 150),
        TaskSpan("e", 150, 160, data=(0, 1, 2, 3, 4, 5)),
    ]

    found = hints(tasks, slots=2)

    assert found[0].first == "c"
    assert [hint.saves_s for hint in found] == sorted((h.saves_s for h in found), reverse=True)
    assert len({(hint.first, hint.second) for hint in found}) == len(found)
    assert "2 times" in next(hint.why for hint in found if hint.second == "b")


def test_a_run_that_kept_its_slots_busy_gets_no_hint() -> None:
    for one in snakemake_runs():
        done = one.done
        tasks = [
            TaskSpan(task.type, done[i].started_s or 0.0, done[i].ended_s or 0.0, task.parents)
            for i, task in enumerate(one.plan.tasks)
        ]

        found = hints(tasks, slots=one.plan.cores)

        assert sum(hint.saves_s for hint in found) < 0.1 * one.makespan_s


def test_of_a_very_large_run_the_first_tasks_are_looked_at() -> None:
    many = [TaskSpan("t", 2.0 * n, 2.0 * n + 2, control=(n - 1, 5_999)) for n in range(6_000)]

    found = hints(many, slots=2)

    assert found[0].saves_s == pytest.approx(2.0 * (5_000 - 1))


ran = st.builds(
    lambda start, lasts, data, control, asked: TaskSpan(
        "t" + str(int(start) % 3), start, start + lasts, tuple(data), tuple(control), asked
    ),
    st.floats(0, 100),
    st.floats(-1, 50),
    st.lists(st.integers(-1, 12), max_size=3),
    st.lists(st.integers(-1, 12), max_size=2),
    st.none() | st.floats(-10, 150),
)


@given(tasks=st.lists(ran, max_size=10), slots=st.integers(-1, 4))
def test_no_hint_saves_more_than_the_run_took(tasks: list[TaskSpan], slots: int) -> None:
    found = hints(tasks, slots)

    length_s = max((task.ended_s for task in tasks), default=0.0)
    assert all(0 < hint.saves_s <= length_s for hint in found)


def reading(inputs: tuple[str, ...], outputs: tuple[str, ...]) -> list[Task]:
    """A task, and one that waits for it."""
    second_ns = 10**9
    first = AttemptTimes("succeeded", None, second_ns, 2 * second_ns, 1.0, is_skewed=False)
    then = AttemptTimes("succeeded", None, 2 * second_ns, 3 * second_ns, 1.0, is_skewed=False)
    return [
        Task("1", "split", "", "succeeded", first, outputs=outputs),
        Task("2", "use", "", "succeeded", then, parents=("1",), inputs=inputs, outputs=("b",)),
    ]


@pytest.mark.parametrize(
    ("inputs", "outputs", "is_data"),
    [
        (("parts/x.txt",), ("parts",), True),
        (("parts/deep/x.txt",), ("parts",), True),
        (("/data/parts/x.txt",), ("/data/parts",), True),
        (("parts.txt",), ("parts",), False),
        (("other/x.txt",), ("parts",), False),
    ],
)
def test_who_reads_a_file_in_a_directory_that_another_made_waits_for_data(
    inputs: tuple[str, ...], outputs: tuple[str, ...], is_data: bool
) -> None:
    _, second = executed_tasks(reading(inputs, outputs))

    assert second.data == ((0,) if is_data else ())
    assert second.control == (() if is_data else (0,))


def test_a_recorded_run_with_a_checkpoint_gets_no_hint_about_its_directory() -> None:
    path = Path(__file__).parents[1] / "recordings" / "snakemake9_ok_checkpoint.jsonl"
    case = case_of([json.loads(line) for line in path.read_text().splitlines()], "checkpoint")
    assert case is not None

    ran = executed_tasks(state_from(case.messages).tasks)

    assert ran
    assert all(not each.control for each in ran)
