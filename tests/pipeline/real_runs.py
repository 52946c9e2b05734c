"""Runs that really took place, as the messages that a broker would have got of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec

from engine_streams import RECEIVED, SHARED, trace_rows, weblog
from tocsin.cli.demo.history import recorded
from tocsin.cli.evaluate.runs_file import read_runs
from tocsin.event.instant import NS_PER_S, iso8601_ns, rfc3339
from tocsin.monitor.estimate.types import PastRun
from tocsin.monitor.evaluation.estimates import with_times
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.nextflow import Names, read_weblog
from tocsin.wire.pegasus import RecordSplitter, Stampede

INSTANCES = SHARED / "instances" / "runs.jsonl.gz"
STAMPEDE = tuple(
    SHARED / "traces" / "pegasus_stampede" / name for name in ("blackdiamond.bp", "montage-1.0.bp")
)
MONITORD = tuple(
    SHARED / "engines" / f"pegasus_monitord_{name}.jsonl"
    for name in (
        *("process_wf_failure", "process_wf_failure_TZSKEW8h"),
        *("sample_wf_held", "hierarchical_wf_failure"),
    )
)
OPENPROBLEMS = tuple(
    SHARED / "traces" / f"openproblems_{date}.tsv"
    for date in ("2021-03-04", "2022-05-13", "2022-05-15")
)
TASKS_A_RUN_MAX = 500  # of the instances: the 27 larger runs would treble the number of tasks
_BEGAN = iso8601_ns("2026-10-01T00:00:00Z")


def snakemake() -> dict[str, list[Message]]:
    """What the package brings along, by run."""
    runs: dict[str, list[Message]] = {}
    for each in recorded():
        runs.setdefault(each.pairs["RunId"], []).append(each)
    return runs


def instances() -> dict[str, PastRun]:
    """Runs of WfCommons, by name, with the times that a replay gives them."""
    return {
        f"{application}/{place}": with_times(each.run)
        for application, runs in read_runs(INSTANCES).items()
        for place, each in enumerate(runs)
        if len(each.run.plan.tasks) <= TASKS_A_RUN_MAX
    }


def reported_of_instance(name: str, run: PastRun) -> Iterator[Message]:
    """A workflow that announces its plan, and tells of each task when it starts and ends."""
    assert _BEGAN is not None
    began_ns = _BEGAN
    first = {"RunId": name, "WorkflowName": name.partition("/")[0]}

    def message(at_s: float, what: str, **pairs: str) -> Message:
        time = rfc3339(began_ns + round(at_s * NS_PER_S))
        id = f"{name}/{pairs.get('ActivityId', '')}/{what}"
        return Message({**first, what: time, **pairs}, id, "/replay", time)

    plan = [
        {"id": str(n), "type": task.type, "parents": [str(p) for p in task.parents]}
        for n, task in enumerate(run.plan.tasks)
    ]
    yield message(0.0, "WorkflowStarted", ActivityPlan=json.dumps(plan))
    for number, done in run.done.items():
        assert done.started_s is not None
        assert done.ended_s is not None
        task = {"ActivityId": str(number), "ActivityType": run.plan.tasks[number].type}
        size = {} if done.in_bytes is None else {"InputBytes": str(done.in_bytes)}
        yield message(done.started_s, "ActivityExecuting", **task, **size)
        yield message(done.ended_s, "ActivitySucceeded", **task)
    yield message(run.makespan_s, "WorkflowCompleted")


def pegasus(*paths: Path) -> dict[str, list[Message]]:
    """What monitord or the old loader wrote, by file. Two are of one run: here they are two."""
    found: dict[str, list[Message]] = {}
    for path in paths:
        stampede = Stampede()
        found[path.name] = [
            _of(path.stem, message)
            for record in RecordSplitter().receive(path.read_bytes())
            for message in stampede.read(record, RECEIVED)
        ]
    return found


def _of(recording: str, message: Message) -> Message:
    pairs = {**message.pairs, "RunId": f"{recording}/{message.pairs['RunId']}"}
    return msgspec.structs.replace(message, pairs=pairs, source=f"/{recording}{message.source}")


def openproblems() -> dict[str, list[Message]]:
    """What Nextflow's weblog would have told of runs that left these trace files."""
    return {
        path.name: [
            message
            for post in weblog(trace_rows(path), run_name=path.stem)
            for message in read_weblog(post, names, RECEIVED)
        ]
        for path in OPENPROBLEMS
        for names in (Names(),)
    }
