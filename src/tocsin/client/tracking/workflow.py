"""Workflow: reports to a blackboard what a workflow does, from inside it (paper 004, section 3.2).

    with Workflow("forecast", version="3") as run:
        with run.activity("align", inputs=["reads.fq"], outputs=["reads.bam"]) as step:
            step.progress(0.5)

Nothing here raises into the workflow or makes it wait. An exception inside a run or an activity is
reported and goes on.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Self, Unpack

from tocsin.client.blackboard.link import Link
from tocsin.client.event_json import default_source
from tocsin.client.tracking import message_builders
from tocsin.client.tracking.activity import Activity, Try, attempts, data_pairs
from tocsin.client.tracking.faults import fault_pairs, run_ending_of
from tocsin.client.tracking.files import Paths, paths_of, user_name, working_directory
from tocsin.client.tracking.heartbeat import HEARTBEAT_S, Heartbeat
from tocsin.client.tracking.log_once import never_raises
from tocsin.client.tracking.monitors.scheduler import MonitorScheduler
from tocsin.client.tracking.outbox import Build, Outbox
from tocsin.client.tracking.run import (
    Pairs,
    Run,
    Step,
    head_of,
    plan_chunks,
    value_text,
)
from tocsin.credentials.sign_in import SignIn


class Workflow:
    """One run. As a context it is started, and completed, terminated or aborted after; without one,
    call `started`, one of the ends, and `close`."""

    def __init__(
        self,
        name: str,
        *,
        version: str = "",
        run_id: str | None = None,
        broker: str | None = None,
        link: Link | None = None,
        outbox: Outbox | None = None,
        engine: str = "python",
        engine_version: str = "",
        parent_run: str = "",
        parameters: Mapping[str, object] | None = None,
        files: Iterable[object] = (),
        heartbeat_s: float = HEARTBEAT_S,
        spool: Path | None = None,
        drain_s: float = 5.0,
        **sign_in: Unpack[SignIn],
    ) -> None:
        source = default_source(engine)
        self.run = Run(
            run_id or new_run_id(name),
            name,
            version,
            engine,
            engine_version or (platform.python_version() if engine == "python" else ""),
            user=user_name(),
            host=socket.gethostname(),
            parent_run=parent_run,
            origin=os.urandom(4).hex(),
        )
        self._own_outbox = outbox is None
        self.outbox = outbox or Outbox(
            broker,
            source=f"{source}/{self.run.run_id}",
            spool=spool,
            drain_s=drain_s,
            link=link,
            **sign_in,
        )
        self.monitors = MonitorScheduler(self.outbox, self.send_sample)
        self.produced = message_builders.ProducedFiles()
        self._heartbeat_s = heartbeat_s
        self._heartbeat: Heartbeat | None = None
        self._process = os.getpid()
        self._numbers = count(1)
        self._activities = count(1)
        self._planned = False
        self._ended = False
        self._send("WorkflowCreated", whole=True, pairs=_parameter_pairs(parameters))
        self.files(*files)

    @property
    def run_id(self) -> str:
        return self.run.run_id

    def __enter__(self) -> Self:
        self.started()
        return self

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> None:
        # A forked child that comes out of the same block ends itself, not the run.
        if not self._ended and os.getpid() == self._process:
            if error is None:
                self.completed()
            else:
                self._ended_by(error)
        self.close()

    @never_raises
    def close(self) -> None:
        """Send what is left, for a bounded time. The run itself ends by its own events."""
        if self._heartbeat is not None:
            self._heartbeat.stop()
        self.monitors.close()
        if self._own_outbox:
            self.outbox.close()

    def activity(
        self,
        type: str,
        *,
        id: str | None = None,
        inputs: Paths = (),
        outputs: Paths = (),
        parents: Iterable[str | Activity] = (),
        attempt: int = 1,
        version: str = "",
        command: str = "",
        will_be_retried: bool = False,
    ) -> Activity:
        """One step, of a type whose steps are alike. With `will_be_retried` an exception inside is
        reported as a failed try, not as the end."""
        named = id if id is not None else self._new_activity_id(type)
        step = Step(named, type, attempt, version, _ids(parents) if parents else ())
        return Activity(
            self,
            step,
            inputs=paths_of(inputs) if inputs else (),
            outputs=paths_of(outputs) if outputs else (),
            command=command,
            will_be_retried=will_be_retried,
        )

    def attempts(
        self,
        type: str,
        *,
        tries: int,
        pause_s: float = 0.0,
        id: str | None = None,
        inputs: Paths = (),
        outputs: Paths = (),
        parents: Iterable[str | Activity] = (),
        version: str = "",
        command: str = "",
    ) -> Iterator[Try]:
        """The same activity until it goes well, at most `tries` times; the last error is raised.

        for step in run.attempts("fetch", tries=3):
            with step:
                fetch()
        """
        named = id if id is not None else self._new_activity_id(type)
        step = Step(named, type, 1, version, _ids(parents))
        given = {"inputs": paths_of(inputs), "outputs": paths_of(outputs)}
        return attempts(self, step, tries=tries, pause_s=pause_s, command=command, **given)

    def _new_activity_id(self, type: str) -> str:
        number = next(self._activities)
        process = os.getpid()
        # A forked child counts on from where its parent was, as its siblings do.
        return f"{type}.{number}" if process == self._process else f"{type}.{process}.{number}"

    # The thirteen events of the paper.

    def created(self) -> None:
        """Aggregation by itself, when this object is made."""
        self._send("WorkflowCreated", whole=True)

    def started(self) -> None:
        pairs = {
            "WorkingDirectory": working_directory(),
            "CommandLine": head_of(shlex.join(sys.argv)),
            "HeartbeatSeconds": value_text(self._heartbeat_s) or "0",
        }
        self._send("WorkflowStarted", whole=True, pairs={k: v for k, v in pairs.items() if v})
        if self._heartbeat is None and self._heartbeat_s > 0:
            self._heartbeat = Heartbeat(self._beat, self._heartbeat_s)
            self._heartbeat.start()

    def completed(self) -> None:
        """It ended well."""
        self._end("WorkflowCompleted")

    def terminated(self, error: BaseException | str | None = None) -> None:
        """It ended because something failed."""
        self._end("WorkflowTerminated", {} if error is None else fault_pairs(error))

    def aborted(self, reason: str = "") -> None:
        """Somebody ended it."""
        self._end("WorkflowAborted", {"ErrorMessage": head_of(reason)} if reason else {})

    def exception(self, error: BaseException | str) -> None:
        """A fault that nobody handled; not by itself the end."""
        self._send("WorkflowException", fault_pairs(error), repeated=True)

    def idle(self) -> None:
        """It waits for something outside."""
        self._send("WorkflowIdle", repeated=True)

    def suspended(self, reason: str = "") -> None:
        pairs = {"ErrorMessage": head_of(reason)} if reason else {}
        self._send("WorkflowSuspended", pairs, repeated=True)

    def resumed(self) -> None:
        self._send("WorkflowResumed", repeated=True)

    def persisted(self) -> None:
        """Its state was saved."""
        self._send("WorkflowPersisted", repeated=True)

    def loaded(self) -> None:
        """Its state was read from where it was saved."""
        self._send("WorkflowLoaded", repeated=True)

    def unloaded(self) -> None:
        """It is no longer in memory, and is to go on later."""
        self._send("WorkflowUnloaded", repeated=True)

    @never_raises
    def changed(self, was: object = None, now: object = None, *, version: str = "") -> None:
        """Its definition changed while it runs."""
        pairs: Pairs = {}
        if was is not None or now is not None:
            detail = json.dumps({"was": was, "is": now}, default=str, ensure_ascii=False)
            pairs["ChangeDetail"] = head_of(detail)
        if version:
            pairs["WorkflowVersion"] = version
            pairs["PreviousVersion"] = self.run.version
        self._send("WorkflowChanged", pairs, repeated=True)

    # What is known ahead.

    @never_raises
    def plan(
        self,
        tasks: Iterable[Mapping[str, object]] = (),
        *,
        total: int | None = None,
        counts: Mapping[str, int] | None = None,
        cores: int | None = None,
    ) -> None:
        """The activities to come: tasks with `id`, `type`, `parents` and, where known,
        `external_bytes`; or how many in all, or of each type. May be called again as they grow."""
        known = list(tasks)
        pairs: Pairs = {}
        if counts:
            pairs["PlannedCounts"] = json.dumps(dict(counts), ensure_ascii=False)
        if total is None and (known or counts):
            total = len(known) or sum((counts or {}).values())
        if total is not None:
            pairs["PlannedActivities"] = str(total)
        if cores is not None:
            pairs["PlannedCores"] = str(cores)
        concept = "WorkflowChanged" if self._planned else "ActivityPlanned"
        self._planned = True
        for chunk in list(plan_chunks(known)) or [""]:
            more = {"ActivityPlan": chunk} if chunk else {}
            self._send(concept, {**pairs, **more}, repeated=True)
            pairs = {}

    @never_raises
    def parameters(self, parameters: Mapping[str, object]) -> None:
        """What the run was started with."""
        self.send_sample(None, "", _parameter_pairs(parameters))

    @never_raises
    def files(self, *paths: object) -> None:
        """The files that define the workflow; small ones are sent with their text."""
        for path in paths:
            self.put(
                message_builders.workflow_file_message,
                self.run,
                str(path),
                time.time_ns(),
                self.next_number(),
            )

    # What happens in it, outside of its activities.

    @never_raises
    def event(self, name: str, **data: object) -> None:
        """Something of your own."""
        self._send("UserEvent", {"EventName": head_of(name), **data_pairs(data)}, repeated=True)

    @never_raises
    def milestone(self, name: str, **data: object) -> None:
        """A point on the way that people know by its name."""
        pairs = {"EventName": head_of(name), **data_pairs(data)}
        self._send("UserMilestone", pairs, repeated=True)

    @never_raises
    def progress(self, fraction: float) -> None:
        """How much is done, from 0 to 1."""
        text = value_text(min(max(float(fraction), 0.0), 1.0))
        self._send("UserProgress", {"ProgressFraction": text or "0"}, repeated=True)

    # For activities and monitors.

    def put(self, build: Build, /, *arguments: object) -> None:
        self.outbox.put_later(build, *arguments)

    def next_number(self) -> str:
        return f"{os.getpid()}.{next(self._numbers)}"

    def send_sample(self, step: Step | None, event: str, pairs: Pairs) -> None:
        if pairs:
            at_ns, number = time.time_ns(), self.next_number()
            self.put(message_builders.sample, self.run, step, at_ns, number, event, pairs)

    @never_raises
    def _send(
        self,
        concept: str,
        pairs: Pairs | None = None,
        *,
        repeated: bool = False,
        whole: bool = False,
    ) -> None:
        number = self.next_number() if repeated else ""
        at_ns = time.time_ns()
        self.put(message_builders.run_event, self.run, concept, at_ns, number, whole, pairs or {})

    def _end(self, concept: str, pairs: Pairs | None = None) -> None:
        self._ended = True
        if self._heartbeat is not None:
            self._heartbeat.stop()
        self._send(concept, pairs)

    @never_raises
    def _ended_by(self, error: BaseException) -> None:
        concept = run_ending_of(error)
        good = concept == "WorkflowCompleted"
        if isinstance(error, Exception):
            self.exception(error)
        self._end(concept, {} if good else fault_pairs(error))

    def _beat(self) -> None:
        self._send("WorkflowHeartbeat", repeated=True)


def new_run_id(name: str) -> str:
    """Unique, and it shows when the run began: NAME-20261116-064000-1f2e3d."""
    moment = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in name)
    return f"{plain}-{moment}-{os.urandom(3).hex()}"


def _ids(parents: Iterable[str | Activity]) -> tuple[str, ...]:
    return tuple(p.id if isinstance(p, Activity) else str(p) for p in parents)


def _parameter_pairs(parameters: Mapping[str, object] | None) -> Pairs:
    if not parameters:
        return {}
    return {"Parameters": json.dumps(dict(parameters), default=str, ensure_ascii=False)}
