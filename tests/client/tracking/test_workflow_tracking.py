"""A workflow tells what it does, from inside, and is never the worse for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tracked import Received

from tocsin.client.tracking import Activity, Outbox, Workflow
from tocsin.ontology import built_in

THIRTEEN = (
    *("Aborted", "Changed", "Completed", "Created", "Exception", "Idle", "Loaded"),
    *("Persisted", "Resumed", "Started", "Suspended", "Terminated", "Unloaded"),
)
SIX = ("Canceling", "Closed", "Compensating", "Executing", "Faulting", "Initialized")


def test_the_thirteen_events_of_a_workflow_can_be_reported(tmp_path: Path) -> None:
    received = Received()
    run = Workflow("forecast", link=received.board, spool=tmp_path)
    needs_words = {"Exception": ("it broke",)}
    for name in THIRTEEN:
        if name != "Created":
            getattr(run, name.lower())(*needs_words.get(name, ()))
    run.close()

    reported = {concept for message in received.messages for concept in message.pairs}
    assert reported >= {f"Workflow{name}" for name in THIRTEEN}


def test_the_six_events_of_an_activity_can_be_reported(tmp_path: Path) -> None:
    received = Received()
    with received.workflow(tmp_path) as run:
        step = run.activity("align")
        needs_words = {"Faulting": ("it broke",)}
        for name in ("Initialized", "Executing", "Faulting", "Canceling", "Compensating", "Closed"):
            getattr(step, name.lower())(*needs_words.get(name, ()))

    reported = {concept for message in received.messages for concept in message.pairs}
    assert reported >= {f"Activity{name}" for name in SIX}


def test_every_key_that_is_reported_is_a_concept(tmp_path: Path) -> None:
    received = Received("Concept")
    with received.workflow(tmp_path, version="1", parameters={"a": 1}, files=[__file__]) as run:
        run.plan([{"id": "a"}], counts={"align": 1}, cores=2)
        with run.activity("align", inputs=[__file__], parents=["b"], command="ls") as step:
            step.event("seen", what=1)
            step.milestone("half")
            step.progress(0.5)
            step.report(GpuPercent=93)
        run.changed("a", "b", version="2")

    known = built_in()
    assert {concept for message in received.messages for concept in message.pairs} <= set(
        known.concepts
    )


def test_a_run_says_who_it_is_when_it_starts_and_its_events_are_in_order(tmp_path: Path) -> None:
    received = Received()
    named = {"version": "3", "run_id": "r1", "parent_run": "r0"}
    with received.workflow(tmp_path, **named) as run, run.activity("align", id="a"):
        pass

    [started] = received.of("WorkflowStarted")
    assert started["RunId"] == "r1"
    assert started["WorkflowName"] == "forecast"
    assert started["WorkflowVersion"] == "3"
    assert started["ParentRun"] == "r0"
    assert started["EngineName"] == "python"
    assert {"Host", "UserName", "HeartbeatSeconds"} <= started.keys()
    leads = [next(iter(message.pairs)) for message in received.messages]
    assert leads == [
        "WorkflowCreated",
        "WorkflowStarted",
        "ActivityExecuting",
        "ActivitySucceeded",
        "WorkflowCompleted",
    ]


def test_an_id_names_run_activity_attempt_and_concept(tmp_path: Path) -> None:
    received = Received()
    with received.workflow(tmp_path, run_id="r1") as run, run.activity("align", id="a", attempt=2):
        pass

    ids = [message.id for message in received.messages]
    assert [id.partition("@")[0] for id in ids] == ["r1"] * len(ids)
    assert [id.partition("/")[2] for id in ids][2:] == [
        "a/2/ActivityExecuting",
        "a/2/ActivitySucceeded",
        "/WorkflowCompleted",
    ]
    assert len(set(ids)) == len(ids)
    assert len({message.source for message in received.messages}) == 1


def test_two_runs_that_were_given_one_id_are_both_recorded(tmp_path: Path) -> None:
    received = Received()
    for _ in range(2):
        with received.workflow(tmp_path, run_id="nightly") as run, run.activity("align", id="a"):
            pass

    assert len(received.of("ActivitySucceeded")) == 2
    assert len({message.id for message in received.messages}) == len(received.messages)


@pytest.mark.parametrize(
    ("error", "concept"),
    [
        (ValueError("bad"), "ActivityFailed"),
        (MemoryError(), "ActivityOutOfMemory"),
        (TimeoutError("late"), "ActivityTimedOut"),
        (KeyboardInterrupt(), "ActivityCancelled"),
        (subprocess.CalledProcessError(137, ["sort", "big file"]), "ActivityOutOfMemory"),
        (SystemExit(3), "ActivityFailed"),
    ],
)
def test_an_exception_inside_an_activity_is_reported_and_goes_on(
    tmp_path: Path, error: BaseException, concept: str
) -> None:
    received = Received()

    with pytest.raises(type(error)), received.workflow(tmp_path) as run, run.activity("align"):
        raise error

    [failed] = received.of(concept)
    assert failed["ErrorMessage"].startswith(type(error).__name__)
    assert "tests/client/tracking" in failed["ErrorTrace"]
    ended = "WorkflowAborted" if concept == "ActivityCancelled" else "WorkflowTerminated"
    assert len(received.of(ended)) == 1
    assert not received.of("WorkflowCompleted")


def test_a_command_that_failed_is_reported_with_its_exit_code_and_last_words(
    tmp_path: Path,
) -> None:
    received = Received()
    script = "import sys; sys.exit('x' * 9000 + ' the end')"
    with (
        pytest.raises(subprocess.CalledProcessError),
        received.workflow(tmp_path) as run,
        run.activity("align"),
    ):
        subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)

    [failed] = received.of("ActivityFailed")
    assert failed["ExitCode"] == "1"
    assert failed["LogTail"].strip().endswith("the end")
    assert len(failed["LogTail"]) == 4096
    assert failed["CommandLine"].startswith(sys.executable)


def test_a_run_that_exits_with_zero_is_completed(tmp_path: Path) -> None:
    received = Received()

    with pytest.raises(SystemExit), received.workflow(tmp_path):
        sys.exit(0)

    assert len(received.of("WorkflowCompleted")) == 1


def test_an_attempt_that_fails_is_reported_and_the_last_error_is_raised(tmp_path: Path) -> None:
    received = Received()
    done = []
    with received.workflow(tmp_path) as run:
        for step in run.attempts("fetch", tries=3, id="f"):
            with step:
                if step.step.attempt < 3:
                    raise OSError("no network")
                done.append(step.step.attempt)
        with pytest.raises(OSError, match="still none"):
            never_well(run)

    assert done == [3]
    retried = [(p["ActivityId"], p.get("Attempt", "1")) for p in received.of("ActivityRetrying")]
    assert retried == [("f", "1"), ("f", "2"), ("g", "1")]
    assert [p["Attempt"] for p in received.of("ActivitySucceeded")] == ["3"]
    assert [p["Attempt"] for p in received.of("ActivityFailed")] == ["2"]


def never_well(run: Workflow) -> None:
    for step in run.attempts("fetch", tries=2, id="g"):
        with step:
            raise OSError("still none")


@pytest.mark.parametrize("end", ["skipped", "cached", "cancelled", "succeeded", "closed"])
def test_an_activity_can_say_how_it_ended_and_says_it_once(tmp_path: Path, end: str) -> None:
    received = Received()
    with received.workflow(tmp_path) as run, run.activity("align") as step:
        getattr(step, end)()

    below = built_in().below("ActivityTerminalEvent")
    ends = [c for message in received.messages for c in message.pairs if c in below]
    assert ends == [f"Activity{end.capitalize()}"]


def test_files_are_measured_and_what_the_run_made_itself_is_not_external(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(b"x" * 1000)
    received = Received()
    with received.workflow(tmp_path / "spool") as run:
        with run.activity("trim", inputs=[tmp_path / "raw"], outputs=tmp_path / "trimmed") as trim:
            (tmp_path / "trimmed").write_bytes(b"x" * 600)
        both = [tmp_path / "raw", tmp_path / "trimmed", tmp_path / "missing"]
        with run.activity("align", inputs=both, parents=[trim]):
            pass

    trimmed, aligned = received.of("ActivityExecuting")
    assert (trimmed["InputBytes"], trimmed["ExternalBytes"]) == ("1000", "1000")
    assert (aligned["InputBytes"], aligned["ExternalBytes"]) == ("1600", "1000")
    assert json.loads(aligned["ParentActivity"]) == [trim.id]
    assert received.of("OutputBytes")[0]["OutputBytes"] == "600"


def test_a_plan_goes_in_chunks_and_may_grow(tmp_path: Path) -> None:
    received = Received()
    with received.workflow(tmp_path) as run:
        tasks = [{"id": f"t{n}", "type": "t", "parents": [f"t{n - 1}"]} for n in range(1, 2502)]
        run.plan(tasks, cores=4)
        run.plan(total=2600)

    first, second = received.of("ActivityPlan")
    assert [len(json.loads(each["ActivityPlan"])) for each in (first, second)] == [2000, 501]
    assert (first["PlannedActivities"], first["PlannedCores"]) == ("2501", "4")
    assert received.of("WorkflowChanged")[0]["PlannedActivities"] == "2600"


def test_the_files_of_a_workflow_are_reported_with_their_text_if_they_are_small(
    tmp_path: Path,
) -> None:
    (tmp_path / "small.py").write_text("print(1)\n")
    (tmp_path / "large.py").write_text("#" * 70_000)
    received = Received()
    names = ("small.py", "large.py", "missing.py")
    with received.workflow(tmp_path / "spool", files=[tmp_path / name for name in names]):
        pass

    [small], [large] = [
        json.loads(reported["WorkflowFile"]) for reported in received.of("WorkflowFile")
    ]
    assert small["text"] == "print(1)\n"
    assert large["text"] is None
    assert len(large["sha256"]) == 64


def test_a_running_workflow_has_a_heartbeat(tmp_path: Path) -> None:
    received = Received("WorkflowHeartbeat")
    beaten = threading.Event()
    with received.workflow(tmp_path, heartbeat_s=0.01) as run:
        beaten.wait(0.2)
        run.outbox.flush()

    assert received.of("WorkflowHeartbeat")


WRONG_CALLS: list[Callable[[Workflow, Activity], object]] = [
    lambda run, step: step.progress("half"),  # type: ignore[arg-type]
    lambda run, step: run.plan([{"no": "id"}]),
    lambda run, step: run.plan(7),  # type: ignore[arg-type]
    lambda run, step: step.measure("NoSuchResource"),
    lambda run, step: step.report(NoSuchResource=1),
    lambda run, step: step.event("odd", what=object()),
    lambda run, step: run.parameters({"odd": object()}),
    lambda run, step: run.files(object()),
    lambda run, step: step.faulting(_Unprintable()),
]


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("call", WRONG_CALLS)
def test_a_wrong_report_never_raises_into_the_workflow(
    tmp_path: Path, call: Callable[[Workflow, Activity], object]
) -> None:
    received = Received()
    with received.workflow(tmp_path) as run, run.activity("align") as step:
        call(run, step)

    assert len(received.of("ActivitySucceeded")) == 1


def test_what_nobody_asked_for_is_not_sent(tmp_path: Path) -> None:
    received = Received("ActivityProblem", "RunId")
    with received.workflow(tmp_path, run_id="r1") as run:
        with run.activity("align"):
            pass
        with pytest.raises(ValueError), run.activity("align"):
            raise ValueError

    [only] = received.messages
    assert only.pairs.keys() == {"ActivityFailed", "RunId"}
    assert run.outbox.counts.sent == 1
    assert run.outbox.counts.filtered == 6


def test_many_threads_tell_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    received = Received("ActivityEvent", "Identity")
    with received.workflow(tmp_path) as run:

        def steps() -> None:
            for _ in range(200):
                with run.activity("align"):
                    pass

        threads = [threading.Thread(target=steps) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len({pairs["ActivityId"] for pairs in received.of("ActivitySucceeded")}) == 1600


def test_several_runs_can_share_one_outbox(tmp_path: Path) -> None:
    received = Received()
    with Outbox(link=received.board, source="/shared", spool=tmp_path) as outbox:
        for number in (1, 2):
            with Workflow("forecast", run_id=f"r{number}", outbox=outbox):
                pass

    assert [p["RunId"] for p in received.of("WorkflowCompleted")] == ["r1", "r2"]


def test_an_activity_id_of_a_forked_child_is_nobody_elses(tmp_path: Path) -> None:
    received = Received()
    with received.workflow(tmp_path) as run:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, run.activity("align").id.encode())
            os._exit(0)
        os.waitpid(child, 0)
        theirs = os.read(read, 1000).decode()

        assert theirs != run.activity("align").id


def test_a_forked_child_does_not_wait_for_the_thread_of_the_heartbeat() -> None:
    """A fork copies the lock as it is; the thread that would release it is not copied."""
    script = """
import os, signal
from tocsin.client.tracking.heartbeat import Heartbeat
heartbeat = Heartbeat(lambda: None)
with heartbeat._stopped._cond:
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        heartbeat.stop()
        os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)


def test_a_forked_child_that_leaves_the_block_ends_neither_activity_nor_run(tmp_path: Path) -> None:
    script = f"""
import os, sys
from pathlib import Path
from tocsin.client.tracking import Workflow
with Workflow("forked", broker="127.0.0.1:9", spool=Path({str(tmp_path)!r})) as run:
    with run.activity("align"):
        child = os.fork()
        if child == 0:
            sys.exit(0)
        os.waitpid(child, 0)
"""
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)

    lines = [line for path in tmp_path.glob("*.spool") for line in path.read_text().splitlines()]
    assert sum("WorkflowCompleted" in line for line in lines) == 1
    assert sum("ActivitySucceeded" in line for line in lines) == 1
