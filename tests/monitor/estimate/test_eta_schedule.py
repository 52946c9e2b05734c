"""List scheduling: its laws, and that nothing hangs it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.monitor.estimate import Plan, Planned
from tocsin.monitor.estimate.schedule import critical_path, schedule
from tocsin.monitor.estimate.shape import Shape, compile_plan


@st.composite
def workflows(draw: st.DrawFn, *, cyclic: bool = False) -> tuple[Shape, list[float]]:
    count = draw(st.integers(1, 12))
    tasks = []
    for index in range(count):
        above = st.integers(0, count - 1 if cyclic else max(index - 1, 0))
        parents = draw(st.lists(above, max_size=3)) if index or cyclic else []
        tasks.append(Planned("t", tuple(parents)))
    seconds = draw(st.lists(st.floats(0, 100), min_size=count, max_size=count))
    return compile_plan(Plan(tuple(tasks), cores=draw(st.integers(1, 4)))), seconds


@given(workflow=workflows())
def test_nobody_starts_before_its_parents_end_and_slots_suffice(
    workflow: tuple[Shape, list[float]],
) -> None:
    shape, seconds = workflow

    table = schedule(shape, seconds)

    for index, above in enumerate(shape.parents):
        assert all(table.starts[index] >= table.ends[parent] for parent in above)
    for moment in table.starts:
        spans = zip(table.starts, table.ends, strict=True)
        assert sum(start <= moment < end for start, end in spans) <= shape.slots


@given(workflow=workflows())
def test_a_run_takes_as_long_as_its_work_on_all_slots_at_least_and_on_one_at_most(
    workflow: tuple[Shape, list[float]],
) -> None:
    shape, seconds = workflow

    length_s = schedule(shape, seconds).length_s

    assert sum(seconds) / shape.slots <= length_s * (1 + 1e-9)
    assert length_s <= sum(seconds) * (1 + 1e-9)


@given(workflow=workflows(), data=st.data())
def test_the_rest_of_a_run_continues_it(
    workflow: tuple[Shape, list[float]], data: st.DataObject
) -> None:
    shape, seconds = workflow
    whole = schedule(shape, seconds)
    now = data.draw(st.floats(0, 1)) * whole.length_s
    ended = [i for i in range(shape.count) if whole.ends[i] <= now]
    left = {
        i: whole.ends[i] - now for i in range(shape.count) if whole.starts[i] <= now < whole.ends[i]
    }

    rest = schedule(shape, seconds, ended=ended, left=left)

    assert abs(now + rest.length_s - whole.length_s) <= 1e-6 * max(whole.length_s, 1.0)


@settings(max_examples=50)
@given(workflow=workflows(cyclic=True))
def test_tasks_on_a_cycle_run_in_the_end(workflow: tuple[Shape, list[float]]) -> None:
    shape, seconds = workflow

    table = schedule(shape, seconds)

    pairs = zip(table.starts, table.ends, seconds, strict=True)
    assert all(abs(end - start - lasts) < 1e-6 for start, end, lasts in pairs)
    assert critical_path(shape, table, ())


def test_the_critical_path_is_what_the_end_waits_for() -> None:
    tasks = (Planned("a"), Planned("b"), Planned("c", (0, 1)), Planned("d", (2,)))
    shape = compile_plan(Plan(tasks, cores=8))

    table = schedule(shape, [1.0, 5.0, 2.0, 3.0])

    assert critical_path(shape, table, ()) == (1, 2, 3)
    assert table.length_s == 10.0
