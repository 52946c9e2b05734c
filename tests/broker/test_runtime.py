"""The tasks of a service: ended with it, whether they had begun or not."""

from __future__ import annotations

from manual_runtime import ManualRuntime
from tocsin.broker.runtime import Tasks


async def wait_for_ever(runtime: ManualRuntime) -> None:
    await runtime.signal()


def test_whoever_waits_for_a_task_learns_that_it_ended_even_if_it_never_began() -> None:
    runtime = ManualRuntime()
    tasks = Tasks(runtime)
    ended: list[str] = []
    tasks.spawn(wait_for_ever(runtime), lambda: ended.append("begun"))
    runtime.settle()
    tasks.spawn(wait_for_ever(runtime), lambda: ended.append("not begun"))

    tasks.cancel()
    runtime.settle()

    assert sorted(ended) == ["begun", "not begun"]
    assert len(tasks) == 0
