"""Parsl's monitoring messages to those of the blackboard. It looks at files as it is given them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any, TypeVar

from tocsin.integrations.files import Files, script_facts
from tocsin.integrations.message_builder import (
    TEXT_CHARS_MAX,
    MessageBuilder,
    array,
    beginning,
    end,
    failure_concept,
    number,
    rfc3339,
)
from tocsin.wire.blackboard.messages import Message

ENGINE = "parsl"
TRIES_MAX = 100_000  # remembered; samples of tries long over are sent without a start to count from

_EXIT_CODE = re.compile(r"BashExitFailure\([^()]{0,200}, (\d{1,3})\)")

Payload = Mapping[str, Any]
Try = tuple[str, int]
V = TypeVar("V")


@dataclass(slots=True)
class _Usage:
    """Of one try. A worker's process serves many tasks, so that its totals are counted from the
    first sample of the try."""

    cpu_s: float = 0.0
    read: float = 0.0
    written: float = 0.0
    first: tuple[float, float, float] | None = None
    rss_max: float = 0.0

    def pairs(self) -> dict[str, str | None]:
        if self.first is None:
            return {}
        return {
            "CpuSeconds": number(round(max(self.cpu_s - self.first[0], 0.0), 3)),
            "MemoryPeak": number(round(self.rss_max)),
            "IoReadBytes": number(round(max(self.read - self.first[1], 0.0))),
            "IoWriteBytes": number(round(max(self.written - self.first[2], 0.0))),
        }


@dataclass(slots=True)
class ParslRun:
    """Folds the monitoring messages of one Parsl run, in whatever order the radios bring them.

    Parsl's times are local ones without a zone: `zone` is that of this machine unless given. What
    workers say is by their clock, what the kernel says by this one's; of the former the time at
    which it was received goes with it.
    """

    files: Files
    script: str | None = None
    heartbeat_s: float | None = None
    workers_tell: bool = True
    zone: tzinfo | None = None
    builder: MessageBuilder | None = None
    kinds: dict[str, str] = field(default_factory=dict)
    ended: dict[Try, float] = field(default_factory=dict)
    usage: dict[Try, _Usage] = field(default_factory=dict)
    unfinished: dict[str, int] = field(default_factory=dict)
    nodes: dict[str, bool] = field(default_factory=dict)
    failed: int = 0
    skipped: int = 0
    completed_at: float | None = None

    def handle(self, kind: str, payload: Any, received_s: float) -> list[Message]:
        """What one message says. Some kinds bring a list of them."""
        handler = _HANDLERS.get(kind)
        if handler is None:
            return []
        if not isinstance(payload, Mapping):
            items = payload if isinstance(payload, Iterable) else ()
            each = (item for item in items if isinstance(item, Mapping))
            return [m for item in each for m in self.handle(kind, item, received_s)]
        if self.builder is None and kind != "WORKFLOW_INFO":
            return []
        return handler(self, payload, received_s)

    def closed(self, at_s: float, *, raised: BaseException | None = None) -> list[Message]:
        """The end, once every message has been read."""
        if self.builder is None:
            return []
        messages = []
        concept, reason = "WorkflowCompleted", None
        if self.failed or self.skipped:
            concept = "WorkflowTerminated"
            reason = f"{self.failed} failed; {self.skipped} that waited for them never ran"
        if raised is not None:
            stopped = isinstance(raised, KeyboardInterrupt)
            concept, reason = "WorkflowAborted" if stopped else "WorkflowTerminated", repr(raised)
            for task, attempt in sorted(self.unfinished.items()):
                messages.append(self._about("ActivityCancelled", at_s, task, attempt, {}))
        ended_s = self.completed_at or at_s
        messages.append(self.builder.of_run(concept, ended_s, {"ErrorMessage": end(reason)}))
        self.builder = None
        return messages

    def heartbeat(self, at_s: float) -> list[Message]:
        if self.builder is None or not self.heartbeat_s:
            return []
        pairs = {"HeartbeatSeconds": number(self.heartbeat_s)}
        return [self.builder.of_run("WorkflowHeartbeat", at_s, pairs, mark=str(round(at_s * 1000)))]

    def _workflow(self, payload: Payload, received_s: float) -> list[Message]:
        if self.builder is not None:  # the second one is the end
            self.completed_at = self._time(payload.get("time_completed"), received_s)
            return []
        run, name = payload.get("run_id"), str(payload.get("workflow_name") or ENGINE)
        if not run:
            return []
        began_s = self._time(payload.get("time_began"), received_s)
        self.builder = MessageBuilder(ENGINE, str(run), name.removesuffix(".py"), began_s)
        texts, version = self._script(payload)
        pairs = {
            "WorkflowVersion": version,
            "EngineName": ENGINE,
            "EngineVersion": beginning(payload.get("parsl_version")),
            "UserName": beginning(payload.get("user")),
            "Host": beginning(payload.get("host")),
            "WorkingDirectory": beginning(payload.get("rundir")),
            "HeartbeatSeconds": number(self.heartbeat_s),
            "WorkflowFile": texts,
        }
        return [self.builder.of_run("WorkflowStarted", began_s, pairs)]

    def _script(self, payload: Payload) -> tuple[str | None, str | None]:
        """The program as a file of the workflow. Unless somebody gave a version, it makes one: the
        time of the start, which is what Parsl takes, would make every run another version."""
        given = str(payload.get("workflow_version") or "")
        own = None if given in str(payload.get("time_began") or "") else given
        texts, version = script_facts(self.script, self.files)
        return texts, own or version

    def _task(self, payload: Payload, received_s: float) -> list[Message]:
        task, attempt = _try(payload)
        if task is None:
            return []
        self.kinds.setdefault(task, str(payload.get("task_func_name") or ""))
        status = str(payload.get("task_status_name") or "")
        at_s = self._time(payload.get("timestamp"), received_s)
        if status == "pending":
            if attempt > 1:
                return []  # the try before it was reported as one that is tried again
            self.unfinished[task] = attempt
            pairs = {"ParentActivity": array(_numbers(payload.get("task_depends")))}
            return [self._about("ActivityInitialized", at_s, task, attempt, pairs)]
        if status == "launched":
            self.unfinished[task] = attempt
            launched_s = self._time(payload.get("task_try_time_launched"), at_s)
            concept = "ActivitySubmitted" if self.workers_tell else "ActivityExecuting"
            return [self._about(concept, launched_s, task, attempt, {})]
        concept, needs_reason = _ENDS.get(status, ("", False))
        if not concept:
            return []  # joining, or what a later Parsl may say
        self.failed += status == "failed"
        self.skipped += status == "dep_fail"
        if status != "fail_retryable":
            self.unfinished.pop(task, None)
        returned_s = self._time(payload.get("task_try_time_returned"), at_s)
        return [self._end(concept, returned_s, (task, attempt), payload, reason=needs_reason)]

    def _end(
        self, concept: str, at_s: float, key: Try, payload: Payload, *, reason: bool
    ) -> Message:
        """The end of a try, by the worker's clock if that is known, so that its length is right."""
        usage = self.usage.get(key)
        pairs: dict[str, str | None] = dict(usage.pairs()) if usage is not None else {}
        if (ended_s := self.ended.get(key)) is not None:
            pairs["ReceivedTime"] = rfc3339(at_s)
            at_s = ended_s
        if reason:
            error = str(payload.get("task_fail_history") or "")
            found = _EXIT_CODE.search(error)
            logs = [path for name in ("stderr", "stdout") if (path := payload.get(f"task_{name}"))]
            tails = (self.files.tail(str(path), TEXT_CHARS_MAX) for path in logs)
            pairs["ExitCode"] = found[1] if found else None
            pairs["ErrorMessage"] = end(error)
            pairs["LogFile"] = str(logs[0]) if logs else None
            pairs["LogTail"] = end("\n".join(filter(None, tails)))
            if concept == "ActivityFailed":
                concept = failure_concept(int(found[1]) if found else None)
        return self._about(concept, at_s, *key, pairs)

    def _worker(self, payload: Payload, received_s: float) -> list[Message]:
        task, attempt = _try(payload)
        if task is None:
            return []
        at_s = self._time(payload.get("timestamp"), received_s)
        if payload.get("last_msg"):
            _remember(self.ended, (task, attempt), at_s)
        if not payload.get("first_msg"):
            return []
        pairs = {"Host": beginning(payload.get("hostname")), "ReceivedTime": rfc3339(received_s)}
        return [self._about("ActivityExecuting", at_s, task, attempt, pairs)]

    def _resources(self, payload: Payload, received_s: float) -> list[Message]:
        assert self.builder is not None
        task, attempt = _try(payload)
        if task is None:
            return []
        usage = self.usage.get((task, attempt))
        if usage is None:
            usage = _remember(self.usage, (task, attempt), _Usage())
        usage.cpu_s = _float(payload, "time_user") + _float(payload, "time_system")
        usage.read, usage.written = _float(payload, "disk_read"), _float(payload, "disk_write")
        rss = _float(payload, "memory_resident")
        usage.rss_max = max(usage.rss_max, rss)
        if usage.first is None:
            usage.first = usage.cpu_s, usage.read, usage.written
        pairs = {
            **usage.pairs(),
            "MemoryRss": number(round(rss)),
            "MemoryVirtual": number(round(_float(payload, "memory_virtual"))),
            "Host": beginning(payload.get("hostname")),
            "ReceivedTime": rfc3339(received_s),
        }
        at_s = self._time(payload.get("timestamp"), received_s)
        kind = self.kinds.get(task, "")
        return [self.builder.sample(at_s, pairs, activity=task, kind=kind, attempt=attempt)]

    def _node(self, payload: Payload, received_s: float) -> list[Message]:
        """A manager of workers says that it is there with every change; reported is the first, and
        that it has gone."""
        assert self.builder is not None
        id, is_here = str(payload.get("uid") or ""), bool(payload.get("active"))
        if not id or self.nodes.get(id, False) == is_here:
            return []
        self.nodes[id] = is_here
        pairs = {
            "Host": beginning(payload.get("hostname")),
            "CpuCores": number(payload.get("worker_count")),
            "EngineJobId": beginning(payload.get("block_id")),
        }
        at_s = self._time(payload.get("timestamp"), received_s)
        return [
            self.builder.of_run("WorkerJoined" if is_here else "WorkerLost", at_s, pairs, mark=id)
        ]

    def _about(
        self, concept: str, at_s: float, task: str, attempt: int, pairs: Mapping[str, str | None]
    ) -> Message:
        assert self.builder is not None
        kind = self.kinds.get(task, "")
        return self.builder.of_activity(
            concept, at_s, pairs, activity=task, kind=kind, attempt=attempt
        )

    def _time(self, value: object, otherwise_s: float) -> float:
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                return otherwise_s
        if not isinstance(value, datetime):
            return otherwise_s
        if value.tzinfo is None and self.zone is not None:
            value = value.replace(tzinfo=self.zone)
        return value.timestamp()


_ENDS: Mapping[str, tuple[str, bool]] = {
    "exec_done": ("ActivitySucceeded", False),
    "memo_done": ("ActivityCached", False),
    "failed": ("ActivityFailed", True),
    "fail_retryable": ("ActivityRetrying", True),
    "dep_fail": ("ActivitySkipped", True),
}

_HANDLERS: Mapping[str, Callable[[ParslRun, Payload, float], list[Message]]] = {
    "WORKFLOW_INFO": ParslRun._workflow,
    "TASK_INFO": ParslRun._task,
    "WORKER_TASK_INFO": ParslRun._worker,
    "RESOURCE_INFO": ParslRun._resources,
    "NODE_INFO": ParslRun._node,
    "registration": ParslRun._node,
}


def _try(payload: Payload) -> tuple[str | None, int]:
    """The task and which try it is, counted from one."""
    task, attempt = payload.get("task_id"), payload.get("try_id")
    number_of = attempt + 1 if isinstance(attempt, int) else 1
    return (None if task is None else str(task)), number_of


def _numbers(text: object) -> list[str]:
    return [part for part in str(text or "").split(",") if part.strip().isdigit()]


def _float(payload: Payload, name: str) -> float:
    value = payload.get(f"psutil_process_{name}")
    return float(value) if isinstance(value, int | float) else 0.0


def _remember(kept: dict[Try, V], key: Try, value: V) -> V:
    kept[key] = value
    if len(kept) > TRIES_MAX:
        del kept[next(iter(kept))]
    return value
