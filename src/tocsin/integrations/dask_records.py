"""What Dask's scheduler says of graphs, tasks and workers, as messages. Pure.

A run is what one client computes from its first graph until it leaves: it grows with each graph,
and is idle in between. With `per="computation"` it ends when nothing of it is left to do, and the
next graph begins another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tocsin.client.tracking.run import plan_pieces
from tocsin.integrations.message_builder import (
    MessageBuilder,
    Pairs,
    end,
    number,
    rfc3339,
)
from tocsin.wire.blackboard.messages import Message

ENGINE = "dask"
KEYS_MAX = 1_000_000  # remembered after Dask has forgotten them; the same key may come again
IDLE_AFTER_S = 1.0  # a loop of submit and gather is not idle in between

UNDER_WAY = frozenset({"waiting", "queued", "no-worker", "processing"})

Per = Literal["session", "computation"]


@dataclass(frozen=True, slots=True)
class GraphTask:
    """A task of a graph as it is submitted; `is_done` if its result is there already."""

    key: str
    prefix: str
    parents: tuple[str, ...] = ()
    is_done: bool = False


@dataclass(slots=True)
class _Task:
    key: str
    prefix: str
    attempt: int = 1
    phase: str = "planned"  # then submitted, running, loose, and done or failed
    reported_running: bool = False
    loose: tuple[float, str] | None = None  # since when, and by what, it is no longer processed

    @property
    def has_ended(self) -> bool:
        return self.phase in ("done", "failed")


@dataclass(slots=True)
class _Run:
    builder: MessageBuilder
    client: str
    tasks: dict[str, _Task] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)  # of tasks that Dask has forgotten
    plan: list[GraphTask] = field(default_factory=list)
    total: int = 0
    left: int = 0
    failed: set[str] = field(default_factory=set)
    deserted: int = 0  # tasks that were cut off when the client left
    plans: int = 0
    idle_since: float | None = None
    is_idle: bool = False
    turns: int = 0


@dataclass(slots=True)
class DaskRuns:
    """All runs of one scheduler. Times are the scheduler's, those of computing the workers'."""

    name: str = ENGINE
    run_id: str | None = None
    per: Per = "session"
    heartbeat_s: float | None = None
    about: Mapping[str, str | None] = field(default_factory=dict)  # versions, host, user
    runs: dict[str, _Run] = field(default_factory=dict)
    owners: dict[str, _Run] = field(default_factory=dict)
    begun: int = 0

    def graph(
        self, client: str, tasks: Iterable[GraphTask], at_s: float, given: Pairs
    ) -> list[Message]:
        """A client submits a graph. `given` is what the cluster has: PlannedCores and so on."""
        messages = []
        run = self.runs.get(client)
        if run is None:
            run = self.runs[client] = self._new_run(client, at_s)
            messages.append(self._started(run, at_s, given))
        if run.is_idle:
            run.is_idle, run.turns = False, run.turns + 1
            messages.append(run.builder.of_run("WorkflowResumed", at_s, {}, mark=str(run.turns)))
        run.idle_since = None
        for task in tasks:
            messages += self._submitted(run, task, at_s)
        return messages

    def _new_run(self, client: str, at_s: float) -> _Run:
        self.begun += 1
        id = self.run_id if self.run_id and self.begun == 1 else client
        if self.per == "computation":
            id = f"{id}-{self.begun}"
        return _Run(MessageBuilder(ENGINE, id, self.name, at_s), client)

    def _started(self, run: _Run, at_s: float, given: Pairs) -> Message:
        pairs = {
            "EngineName": ENGINE,
            **self.about,
            "HeartbeatSeconds": number(self.heartbeat_s),
            **given,
        }
        return run.builder.of_run("WorkflowStarted", at_s, pairs)

    def _submitted(self, run: _Run, task: GraphTask, at_s: float) -> list[Message]:
        if task.key in run.tasks:
            return []
        owner = self.owners.get(task.key)
        if owner is not None and not task.is_done and owner.client in self.runs:
            return []  # another client waits for it already, and reports it
        attempt = run.attempts.pop(task.key, 0) + 1
        known = run.tasks[task.key] = _Task(task.key, task.prefix, attempt)
        if attempt == 1:
            run.total += 1
            run.plan.append(task)
        if task.is_done:
            known.phase = "done"
            return [self._about(run, known, "ActivityCached", at_s, {})]
        self.owners[task.key] = run
        run.left += 1
        return []

    def plans(self, at_s: float) -> list[Message]:
        """What was submitted since the last time, in pieces."""
        return [m for run in self.runs.values() for m in self._plan(run, at_s)]

    def _plan(self, run: _Run, at_s: float) -> list[Message]:
        messages = []
        tasks = ({"id": t.key, "type": t.prefix, "parents": list(t.parents)} for t in run.plan)
        for piece in plan_pieces(tasks):
            run.plans += 1
            concept = "ActivityPlanned" if run.plans == 1 else "WorkflowChanged"
            pairs = {"PlannedActivities": str(run.total), "ActivityPlan": piece}
            messages.append(run.builder.of_run(concept, at_s, pairs, mark=str(run.plans)))
        run.plan.clear()
        return messages

    def transition(
        self, key: str, start: str, finish: str, at_s: float, details: Mapping[str, Any]
    ) -> list[Message]:
        """A task has gone from one state to another; `details` are what Dask says with it."""
        run = self.owners.get(key)
        task = run.tasks.get(key) if run is not None else None
        if run is None or task is None:
            return []
        messages: list[Message] = []
        if finish in UNDER_WAY and task.loose is not None:
            messages.append(self._retried(run, task))
        elif finish in UNDER_WAY and task.has_ended:
            self._again(run, task)  # its result was lost, or somebody asked for another try
        if finish == "processing" and task.phase == "planned":
            task.phase = "submitted"
            pairs = {"Host": _host(details), "InputBytes": number(details.get("input_bytes"))}
            messages.append(self._about(run, task, "ActivitySubmitted", at_s, pairs))
        elif finish == "memory" and not task.has_ended:
            messages.append(self._succeeded(run, task, at_s, details))
        elif finish == "erred" and not task.has_ended:
            messages.append(self._erred(run, task, at_s, details, was_tried=start == "processing"))
        elif start == "processing" and finish == "released" and not task.has_ended:
            task.phase, task.loose = "loose", (at_s, str(details.get("stimulus_id") or ""))
        elif finish == "forgotten":
            messages += self._forgotten(run, task, at_s, str(details.get("stimulus_id") or ""))
        return [*messages, *self._done(run, at_s)]

    def _again(self, run: _Run, task: _Task) -> None:
        task.attempt, task.phase, task.reported_running = task.attempt + 1, "planned", False
        run.failed.discard(task.key)
        run.left += 1
        run.idle_since = None

    def _retried(self, run: _Run, task: _Task) -> Message:
        """The try was given up, and another follows: it raised, or its worker was lost."""
        assert task.loose is not None
        at_s, stimulus = task.loose
        raised = stimulus.startswith("task-erred")
        reason = "the task raised, and may be tried again" if raised else "its worker was lost"
        message = self._about(run, task, "ActivityRetrying", at_s, {"ErrorMessage": reason})
        task.attempt, task.phase, task.reported_running = task.attempt + 1, "planned", False
        task.loose = None
        return message

    def _succeeded(
        self, run: _Run, task: _Task, at_s: float, details: Mapping[str, Any]
    ) -> Message:
        task.phase, task.loose = "done", None
        run.left -= 1
        stopped_s, times = _computed(details, at_s, is_running=task.reported_running)
        size = number(details.get("nbytes"))
        pairs = {**times, "OutputBytes": size, "Host": _host(details)}
        return self._about(run, task, "ActivitySucceeded", stopped_s, pairs)

    def _erred(
        self, run: _Run, task: _Task, at_s: float, details: Mapping[str, Any], *, was_tried: bool
    ) -> Message:
        """It raised, or one that it waited for did."""
        task.phase, task.loose = "failed", None
        run.left -= 1
        run.failed.add(task.key)
        if not was_tried:
            return self._about(run, task, "ActivitySkipped", at_s, {})
        stopped_s, times = _computed(details, at_s, is_running=task.reported_running)
        pairs = {
            **times,
            "Host": _host(details),
            "ErrorMessage": end(details.get("exception_text")),
            "ErrorTrace": end(details.get("traceback_text")),
        }
        return self._about(run, task, "ActivityFailed", stopped_s, pairs)

    def _forgotten(self, run: _Run, task: _Task, at_s: float, stimulus: str) -> list[Message]:
        """Dask needs it no more. If it was not done by then, somebody cancelled it."""
        del run.tasks[task.key]
        if self.owners.get(task.key) is run:
            del self.owners[task.key]
        run.attempts[task.key] = task.attempt
        if len(run.attempts) > KEYS_MAX:
            del run.attempts[next(iter(run.attempts))]
        if task.has_ended:
            return []
        run.left -= 1
        run.deserted += stimulus.startswith("remove-client")
        return [self._about(run, task, "ActivityCancelled", at_s, {})]

    def _done(self, run: _Run, at_s: float) -> list[Message]:
        """Whether that was the last one, for now or for good."""
        if run.left > 0 or self.runs.get(run.client) is not run:
            return []
        if self.per == "computation":
            return self.client_gone(run.client, at_s)
        if run.idle_since is None:
            run.idle_since = at_s
        return []

    def executing(self, key: str, since_s: float, worker: str) -> list[Message]:
        """A worker says, now and then, what it is at and since when."""
        run = self.owners.get(key)
        task = run.tasks.get(key) if run is not None else None
        if run is None or task is None or task.reported_running or task.phase != "submitted":
            return []
        task.phase, task.reported_running = "running", True
        pairs = {"Host": _host({"worker": worker})}
        return [self._about(run, task, "ActivityExecuting", since_s, pairs)]

    def worker(self, address: str, at_s: float, *, is_here: bool, pairs: Pairs) -> list[Message]:
        """A worker has come or gone: every run learns of it."""
        concept = "WorkerJoined" if is_here else "WorkerLost"
        given = {"Host": _host({"worker": address}), **pairs}
        return [r.builder.of_run(concept, at_s, given, mark=address) for r in self.runs.values()]

    def idle(self, at_s: float) -> list[Message]:
        """The runs that have had nothing to do for a while."""
        messages = []
        for run in self.runs.values():
            since = run.idle_since
            if since is not None and not run.is_idle and at_s - since >= IDLE_AFTER_S:
                run.is_idle = True
                mark = str(run.turns)
                messages.append(run.builder.of_run("WorkflowIdle", since, {}, mark=mark))
        return messages

    def heartbeat(self, at_s: float) -> list[Message]:
        pairs = {"HeartbeatSeconds": number(self.heartbeat_s)}
        mark = str(round(at_s * 1_000))
        runs = self.runs.values()
        return [r.builder.of_run("WorkflowHeartbeat", at_s, pairs, mark=mark) for r in runs]

    def client_gone(self, client: str, at_s: float) -> list[Message]:
        """The client has left, and with it ends its run."""
        run = self.runs.get(client)
        if run is None:
            return []
        messages = self._plan(run, at_s)
        unfinished = [t for t in run.tasks.values() if not t.has_ended]
        messages += [self._about(run, task, "ActivityCancelled", at_s, {}) for task in unfinished]
        del self.runs[client]
        for task in run.tasks.values():
            if self.owners.get(task.key) is run and task in unfinished:
                del self.owners[task.key]
        concept, reason = "WorkflowCompleted", None
        if unfinished or run.deserted:
            concept = "WorkflowAborted"
            reason = f"the client left {len(unfinished) + run.deserted} tasks undone"
        elif run.failed:
            concept, reason = "WorkflowTerminated", f"{len(run.failed)} tasks have no result"
        ended_s = run.idle_since if run.idle_since is not None and not unfinished else at_s
        return [*messages, run.builder.of_run(concept, ended_s, {"ErrorMessage": reason})]

    def closed(self, at_s: float) -> list[Message]:
        """The scheduler closes."""
        return [m for client in list(self.runs) for m in self.client_gone(client, at_s)]

    def _about(self, run: _Run, task: _Task, concept: str, at_s: float, pairs: Pairs) -> Message:
        return run.builder.of_activity(
            concept, at_s, pairs, activity=task.key, kind=task.prefix, attempt=task.attempt
        )


def _host(details: Mapping[str, Any]) -> str | None:
    """A worker is known by its address: tcp://host:port."""
    worker = details.get("worker")
    return str(worker) if worker else None


def _computed(
    details: Mapping[str, Any], at_s: float, *, is_running: bool
) -> tuple[float, dict[str, str | None]]:
    """When it was computed, by the worker's clock; what the scheduler's said goes with it."""
    startstops = details.get("startstops")
    computed = [
        (float(item["start"]), float(item["stop"]))
        for item in (startstops if isinstance(startstops, Iterable) else ())
        if isinstance(item, Mapping) and item.get("action") == "compute"
    ]
    if not computed:
        return at_s, {}
    started_s = min(start for start, _ in computed)
    stopped_s = max(stop for _, stop in computed)
    pairs: dict[str, str | None] = {} if is_running else {"ActivityExecuting": rfc3339(started_s)}
    pairs["Duration"] = number(sum(stop - start for start, stop in computed))
    pairs["ReceivedTime"] = rfc3339(at_s)
    return stopped_s, pairs
