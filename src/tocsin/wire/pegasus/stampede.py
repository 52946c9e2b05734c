"""Stampede events as messages: a workflow is a run, and each job of its DAG an activity.

Jobs and not tasks, because they are what is planned, submitted, held and tried again. Tasks that
Pegasus clustered into one job share its activity, and what they used is added up there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tocsin.errors import BadMessage
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.engines.checked_values import filled, moment, name, object_json, text, whole
from tocsin.wire.pegasus.framing import read_record
from tocsin.wire.pegasus.jobs import TASKS_PER_JOB_MAX, Run, Runs
from tocsin.wire.pegasus.plan import plan_messages
from tocsin.wire.pegasus.tries import Instance, JobEvents

PREFIX: Final = "stampede."
SOURCE: Final = "/pegasus"
# Known, and about files, integrity or the loading itself: nothing that a monitor asks about.
OF_NO_CONCERN: Final = frozenset(
    {
        *("static.start", "static.meta.start", "static.meta.end", "xwf.meta", "task.meta"),
        *("task.edge", "rc.meta", "rc.pfn", "wf.map.file", "int.metric", "inv.start"),
        *("job_inst.submit.start", "job_inst.pre.term", "job_inst.post.term", "job_inst.tag"),
        *("job_inst.grid.submit.start", "job_inst.globus.submit.start"),
    }
)

Fields = Mapping[str, Any]


class Stampede:
    """Reads the events of any number of workflows, each in the order in which they were sent."""

    def __init__(self, runs: Runs | None = None) -> None:
        self._runs = runs or Runs()
        self._jobs = JobEvents()
        self.unknown = 0
        """How many events were of a kind that is not known."""
        self._of_runs: dict[str, Callable[[Run, Fields, str], list[Message]]] = {
            "wf.plan": self._planned,
            "xwf.start": self._started,
            "xwf.end": self._ended,
            "xwf.map.subwf_job": self._inner,
            "static.end": self._plan_complete,
            "task.info": self._task,
            "job.info": self._job,
            "job.edge": self._edge,
            "wf.map.task_job": self._task_of_job,
            "task.monitoring": self._user_event,
        }

    def read(self, record: bytes, received: str) -> list[Message]:
        """The messages of one record; none for what concerns nobody. Raises BadMessage, TooLarge.

        `received` is when it came in, for what has no time that can be read.
        """
        fields = read_record(record)
        kind = fields["event"].removeprefix(PREFIX)
        if kind in OF_NO_CONCERN:
            return []
        of_run, of_job = self._of_runs.get(kind), self._jobs.get(kind)
        if of_run is None and of_job is None:
            self.unknown += 1
            return []
        id = name(fields.get("xwf_id"))
        if id is None and kind == "static.end":
            id = self._runs.last  # in the old form it names no workflow, and comes with the others
        if id is None:
            raise BadMessage(
                f"a {kind} event does not say of which workflow",
                remedy="Every stampede event has an xwf_id.",
            )
        run = self._runs.run(id)
        if of_run is not None:
            return of_run(run, fields, moment(fields.get("ts")) or received)
        job, number_ = name(fields.get("job_id")), whole(fields.get("job_inst_id"))
        if of_job is None or job is None:
            raise BadMessage(
                f"a {kind} event does not say of which job", remedy="It has a job_id then."
            )
        known = self._runs.job(run, job)
        instance = Instance(run, known, job, 1 if number_ is None else number_)
        return of_job(instance, fields, moment(fields.get("ts")) or received)

    def _message(self, run: Run, what: str, pairs: Mapping[str, str | None], time: str) -> Message:
        whole_pairs = filled({**pairs, "RunId": run.id, "WorkflowName": run.workflow})
        return Message(whole_pairs, id=f"{run.id}/{what}", source=SOURCE, time=time)

    def _about(self, run: Run, fields: Fields) -> dict[str, str | None]:
        """What nearly every event of monitord repeats; the old form has it in the first only."""
        label = name(fields.get("dax_label"))
        if label is None and not run.workflow:
            dag = name(fields.get("dag"))  # the label with a number behind it
            label = None if dag is None else dag.removesuffix(".dag").rpartition("-")[0]
        run.workflow = label or run.workflow
        version = name(fields.get("planner_version")) or name(fields.get("pegasus_version"))
        return {
            "EngineName": "pegasus",
            "EngineVersion": version,
            "UserName": name(fields.get("user")) or name(fields.get("wf_user")),
            "Host": name(fields.get("submit_hostname")),
            "WorkingDirectory": text(fields.get("submit_dir")),
        }

    def _planned(self, run: Run, fields: Fields, time: str) -> list[Message]:
        run.planned = time
        argv = text(fields.get("argv"))
        about = {
            "WorkflowCreated": time,
            **self._about(run, fields),
            "ParentRun": self._parent(run, fields),
            "CommandLine": None if argv is None else text(f"pegasus-plan {argv}"),
        }
        return [self._message(run, "WorkflowCreated", about, time)]

    def _parent(self, run: Run, fields: Fields) -> str | None:
        """The workflow of which this is a part: as it says, or else the outermost one."""
        parent = name(fields.get("parent_xwf_id")) or name(fields.get("root_xwf_id"))
        return parent if parent != run.id else None

    def _inner(self, run: Run, fields: Fields, time: str) -> list[Message]:
        """A job of this run is a workflow itself."""
        inner = name(fields.get("subwf_id"))
        if inner is None:
            return []
        pairs = {"RunId": inner, "ParentRun": run.id}
        return [Message(pairs, id=f"{inner}/ParentRun", source=SOURCE, time=time)]

    def _started(self, run: Run, fields: Fields, time: str) -> list[Message]:
        again = whole(fields.get("restart_count")) or 0
        about = {"WorkflowStarted": time, **self._about(run, fields)}
        if again:
            about = {"WorkflowResumed": time, **about}
        return [self._message(run, f"WorkflowStarted/{again}", about, time)]

    def _ended(self, run: Run, fields: Fields, time: str) -> list[Message]:
        status = whole(fields.get("status"))
        again = whole(fields.get("restart_count")) or 0
        if status is None:
            concept = "WorkflowTerminalEvent"  # it ended, and nobody says how
        else:
            concept = "WorkflowTerminated" if status else "WorkflowCompleted"
        about = {
            concept: time,
            **self._about(run, fields),
            "ExitCode": None if not status else str(status),
            "ErrorMessage": text(fields.get("reason")) if status else None,
        }
        return [self._message(run, f"{concept}/{again}", about, time)]

    # The plan, which comes piece by piece

    def _task(self, run: Run, fields: Fields, time: str) -> list[Message]:
        task, transformation = name(fields.get("task_id")), name(fields.get("transformation"))
        if task is not None and transformation is not None:
            self._runs.task(run, task, transformation)
        return []

    def _job(self, run: Run, fields: Fields, time: str) -> list[Message]:
        id = name(fields.get("job_id"))
        if id is not None:
            job = self._runs.job(run, id)
            job.kind = name(fields.get("type_desc")) or ""
            job.retries_max = whole(fields.get("max_retries"))
        return []

    def _task_of_job(self, run: Run, fields: Fields, time: str) -> list[Message]:
        id, task = name(fields.get("job_id")), name(fields.get("task_id"))
        if id is not None and task is not None:
            job = self._runs.job(run, id)
            if job.tasks < TASKS_PER_JOB_MAX:
                job.tasks += 1
            job.transformation = job.transformation or run.transformations.get(task, "")
        return []

    def _edge(self, run: Run, fields: Fields, time: str) -> list[Message]:
        parent, child = name(fields.get("parent_job_id")), name(fields.get("child_job_id"))
        if parent is not None and child is not None:
            self._runs.edge(run, parent, child)
        return []

    def _plan_complete(self, run: Run, fields: Fields, time: str) -> list[Message]:
        self._about(run, fields)
        # The times of the plan's own events are of no use: monitord counts them from elsewhere.
        planned = run.planned or moment(fields.get("wf_ts")) or time
        messages = [
            self._message(run, what, pairs, planned)
            for what, pairs in (() if run.is_plan_published else plan_messages(run, planned))
        ]
        if run.jobs:
            self._runs.plan_published(run)
        return messages

    def _user_event(self, run: Run, fields: Fields, time: str) -> list[Message]:
        """What a job of Pegasus sent of its own accord."""
        event = name(fields.get("monitoring_event")) or "task.monitoring"
        payload = fields.get("payload")
        about = {
            "UserEvent": time,
            "ActivityId": name(fields.get("job_id")) or name(fields.get("dag_job_id")),
            "EventName": event,
            "EventData": text(payload) if isinstance(payload, str) else object_json(payload),
        }
        return [self._message(run, f"UserEvent/{event}/{time}", about, time)]
