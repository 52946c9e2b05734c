"""Snakemake's log records to messages. It looks at files only through what it is given."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tocsin.integrations.files import Files, NoFiles, tails_of
from tocsin.integrations.message_builder import (
    MessageBuilder,
    array,
    beginning,
    end,
    failure_concept,
    number,
)
from tocsin.integrations.snakemake.log_text import (
    benchmark_pairs,
    exit_code_in,
    job_of_error,
    memory_requested,
    paths_in,
    restarted_job,
    says_failure,
    stopped_by_a_person,
    workflow_home,
    workflow_name,
)
from tocsin.integrations.snakemake.plan import Facts, PlannedJob
from tocsin.integrations.snakemake.sources import sources_of
from tocsin.integrations.snakemake.totals import Totals
from tocsin.wire.blackboard.messages import Message

ENGINE = "snakemake"
ERRORS_MAX = 1_000  # remembered until the job they belong to is named
BENCHMARK_BYTES_MAX = 64 << 10
LOOKED_AT_MAX = 20_000  # files of one job; of more nobody waits for the sizes
UNLIMITED = 1 << 31  # Snakemake says so with a number that no site has

Record = Mapping[str, Any]


@dataclass(slots=True)
class _Job:
    """One job, through all its tries."""

    id: str
    rule: str = ""
    attempt: int = 1
    phase: str = "planned"  # then running, and ended or failed; failed may run again
    parents: tuple[str, ...] = ()
    retries: int | None = None  # None: not known beforehand
    output: tuple[str, ...] = ()
    benchmark: str | None = None
    failure: tuple[float, dict[str, str | None]] | None = None  # whose end is not known yet
    promised: tuple[float, dict[str, str | None]] | None = (
        None  # one after which it is to run again
    )


@dataclass(slots=True)
class _Error:
    """An exception whose job is not known yet, or that has none."""

    thread: object
    text: str
    of_rule: bool


@dataclass(slots=True)
class SnakemakeRun:
    """Folds the records of one process, in the order in which they were logged, into messages.

    Retries repeat a job's number, so that attempts are counted here. Whether a try that failed is
    followed by another is known from the plan, or else once Snakemake says so.
    """

    files_in: Callable[[str], Files]
    name: str | None = None
    run_id: str | None = None
    heartbeat_s: float | None = None
    builder: MessageBuilder | None = None
    jobs: dict[str, _Job] = field(default_factory=dict)
    makers: dict[str, str] = field(default_factory=dict)
    errors: list[_Error] = field(default_factory=list)
    versions: Mapping[str, str] = field(default_factory=dict)
    totals: Totals = field(default_factory=Totals)
    host: str = ""
    aborted: bool = False
    failed: bool = False
    touches: bool = False
    runs: int = 0
    _files: Files | None = None

    def handle(self, record: Record) -> list[Message]:
        """What one record says: a log record's attributes, with `created` in seconds.

        Who can see the workflow itself may add `tocsin_facts` and `tocsin_planned`.
        """
        event = str(record.get("event") or "").lower()
        if event == "workflow_started":
            return self._started(record)
        if self.builder is None:
            return []
        handler = _HANDLERS.get(event)
        messages = handler(self, record) if handler is not None else []
        return [*self._planned(record), *messages]

    def closed(self, at_s: float, *, raised: BaseException | None = None) -> list[Message]:
        """The end of the run: Snakemake does not log it, only that it logs no more."""
        if self.builder is None:
            return []
        aborted = self.aborted or isinstance(raised, KeyboardInterrupt)
        failed = self.failed or raised is not None or any(not e.of_rule for e in self.errors)
        for job in self.jobs.values():
            job.failure = job.failure or job.promised  # Snakemake gave up before the next try
        messages = [self._failed(job) for job in self.jobs.values() if job.failure is not None]
        if aborted:
            running = (job for job in self.jobs.values() if job.phase == "running")
            messages += [self._about(job, "ActivityCancelled", at_s, {}) for job in running]
        messages += self._never_run(at_s)
        concept = "WorkflowCompleted"
        if aborted or failed:
            concept = "WorkflowAborted" if aborted else "WorkflowTerminated"
        reason = self.errors[-1].text if self.errors and (aborted or failed) else None
        messages.append(self.builder.of_run(concept, at_s, {"ErrorMessage": end(reason)}))
        self.builder = None
        return messages

    def _never_run(self, at_s: float) -> list[Message]:
        """Jobs that waited for one that failed."""
        failed = [job.id for job in self.jobs.values() if job.phase == "failed"]
        waited = sorted(self.totals.below(failed))
        left = (job for job in map(self._job, waited) if job.phase == "planned")
        return [self._about(job, "ActivitySkipped", at_s, {}) for job in left]

    def heartbeat(self, at_s: float) -> list[Message]:
        if self.builder is None or not self.heartbeat_s:
            return []
        pairs = {"HeartbeatSeconds": number(self.heartbeat_s)}
        return [self.builder.of_run("WorkflowHeartbeat", at_s, pairs, mark=str(round(at_s * 1000)))]

    def _started(self, record: Record) -> list[Message]:
        before = self.closed(_at(record))  # one process may execute twice through the API
        self._forget()
        self.runs += 1
        run = self.run_id if self.run_id and self.runs == 1 else None
        snakefile = str(record.get("snakefile_main") or "")
        directory = str(record.get("rundir") or record.get("cwd") or "")
        self.builder = MessageBuilder(
            ENGINE,
            run or str(record.get("workflow_id") or f"{record.get('host')}-{_at(record)}"),
            self.name or workflow_name(snakefile),
            _at(record),
        )
        self._files = self.files_in(directory)
        self.host = str(record.get("host") or "")
        facts = record.get("tocsin_facts") or Facts(files=(snakefile,) if snakefile else ())
        sources = sources_of(facts, self._files, workflow_home(snakefile), directory)
        self.versions = sources.rules
        pairs = {
            "WorkflowVersion": sources.version,
            "EngineName": ENGINE,
            "EngineVersion": beginning(record.get("snakemake_version")),
            "UserName": beginning(record.get("user")),
            "Host": self.host,
            "WorkingDirectory": directory,
            "CommandLine": beginning(record.get("cmd")),
            "HeartbeatSeconds": number(self.heartbeat_s),
            "WorkflowFile": sources.files,
            "Parameters": facts.parameters,
        }
        return [*before, self.builder.of_run("WorkflowStarted", _at(record), pairs)]

    def _forget(self) -> None:
        for kept in (self.jobs, self.makers, self.errors):
            kept.clear()
        self.totals, self.aborted, self.failed, self.touches = Totals(), False, False, False

    def _planned(self, record: Record) -> list[Message]:
        """The plan, if who sees the workflow has put it with the record."""
        planned = record.get("tocsin_planned")
        if planned is None or self.builder is None or self._files is None:
            return []
        self.touches = bool(record.get("tocsin_touches"))
        current = [self._linked(job) for job in planned]
        here = {job.id for job in current}
        for known in current:
            job = self._job(known.id)
            job.rule, job.parents, job.retries = known.rule, known.parents, known.retries
        # After a checkpoint Snakemake forgets what is done. What it dropped undone is not needed.
        before = [job for id, job in self.totals.plan.items() if id not in here]
        done = [job for job in before if self._job(job.id).phase != "planned"]
        dropped = [self._job(job.id) for job in before if self._job(job.id).phase == "planned"]
        for job in dropped:
            job.phase = "ended"
        return [
            *self.totals.planned(self.builder, self._files, _at(record), [*done, *current]),
            *(self._about(job, "ActivitySkipped", _at(record), {}) for job in dropped),
        ]

    def _linked(self, job: PlannedJob) -> PlannedJob:
        """With the makers of files that Snakemake takes for given once a checkpoint has passed."""
        makers = [maker for path in job.external if (maker := self._maker(path)) is not None]
        if not makers:
            return job
        external = tuple(path for path in job.external if self._maker(path) is None)
        parents = tuple(dict.fromkeys((*job.parents, *makers)))
        return replace(job, parents=parents, external=external)

    def _run_info(self, record: Record) -> list[Message]:
        assert self.builder is not None
        stats = record.get("stats")
        if record.get("tocsin_planned") or not isinstance(stats, Mapping):
            return []
        return self.totals.counted(self.builder, _at(record), stats)

    def _progress(self, record: Record) -> list[Message]:
        assert self.builder is not None
        total = record.get("total")
        # Counts all that Snakemake looked at, with --until too. A plan knows better.
        if self.totals.plan or not isinstance(total, int):
            return []
        return self.totals.grown(self.builder, _at(record), total)

    def _resources(self, record: Record) -> list[Message]:
        """What Snakemake may use. It goes with the plan, which comes next."""
        for name, field_name in (("PlannedCores", "cores"), ("PlannedMachines", "nodes")):
            value = record.get(field_name)
            if (text := number(value)) is not None and float(text) < UNLIMITED:
                self.totals.given[name] = text
        return []

    def _job_info(self, record: Record) -> list[Message]:
        job = self._job(record.get("jobid"))
        messages = []
        if job.failure is not None:
            messages.append(self._retried(job))
        if job.phase == "failed":
            job.attempt += 1
        job.promised = None
        job.phase, job.rule = "running", str(record.get("rule_name") or job.rule)
        inputs = paths_in(record.get("input"))
        if not job.parents:
            job.parents = tuple(dict.fromkeys(filter(None, map(self._maker, inputs))))
        job.output = paths_in(record.get("output"))
        self.makers.update(dict.fromkeys(job.output, job.id))
        benchmark = record.get("benchmark")
        job.benchmark = str(benchmark) if benchmark else None
        if self.touches:
            return messages
        pairs = {
            "ActivityVersion": self.versions.get(job.rule),
            "ParentActivity": array(job.parents),
            "Host": self.host if record.get("local") else None,
            "CommandLine": beginning(record.get("shellcmd")),
            "LogFile": next(iter(paths_in(record.get("log"))), None),
            "InputFile": array(inputs),
            "OutputFile": array(job.output),
            "InputBytes": self._bytes(inputs),
            "ExternalBytes": self._bytes(path for path in inputs if self._maker(path) is None),
            "CpuCores": number(record.get("threads")),
            "MemoryRequested": memory_requested(record.get("resources")),
            "ActivityPlan": self._late_numbers(job, record),
        }
        return [*messages, self._about(job, "ActivityExecuting", _at(record), pairs)]

    def _late_numbers(self, job: _Job, record: Record) -> str | None:
        if job.attempt > 1:
            return None
        return self.totals.numbers_of(job.id, job.rule, record.get("shellcmd"))

    def _maker(self, path: str) -> str | None:
        """The job that makes a file, or a directory in which it lies."""
        while path and path != "/":
            if (maker := self.makers.get(path)) is not None:
                return maker
            path = os.path.dirname(path)
        return None

    def _bytes(self, paths: Iterable[str]) -> str | None:
        listed = list(paths)
        if self._files is None or len(listed) > LOOKED_AT_MAX:
            return None
        known = [size for path in listed if (size := self._files.size(path)) is not None]
        return str(sum(known)) if known else None

    def _job_finished(self, record: Record) -> list[Message]:
        job = self._job(record.get("job_id", record.get("jobid")))
        if job.phase == "ended":
            return []
        before = [self._retried(job)] if job.failure is not None else []
        job.phase = "ended"
        pairs = {"OutputFile": array(job.output), "OutputBytes": self._bytes(job.output)}
        if job.benchmark is not None and self._files is not None and not self.touches:
            table = self._files.tail(job.benchmark, BENCHMARK_BYTES_MAX)
            pairs.update(benchmark_pairs(table or ""))
        concept = "ActivityCached" if self.touches else "ActivitySucceeded"
        return [*before, self._about(job, concept, _at(record), pairs)]

    def _error(self, record: Record) -> list[Message]:
        """An exception. It belongs to the job that is named next by the same thread, or to none."""
        self.aborted |= record.get("exception") == "KeyboardInterrupt"
        text = str(record.get("msg") or "")
        # A job whose output is missing is never named as failed: only this text has its number.
        if (named := job_of_error(text)) is not None and named in self.jobs:
            return self._job_failed(self.jobs[named], _at(record), record, text)
        if len(self.errors) < ERRORS_MAX:
            of_rule = record.get("exception") == "RuleException"
            self.errors.append(_Error(record.get("thread"), text, of_rule))
        return []

    def _job_error(self, record: Record) -> list[Message]:
        job = self._job(record.get("jobid"))
        job.rule = job.rule or str(record.get("rule_name") or "")
        return self._job_failed(job, _at(record), record, self._error_of(record))

    def _job_failed(self, job: _Job, at_s: float, record: Record, error: str) -> list[Message]:
        if job.phase in ("failed", "ended"):
            return []  # reported before
        job.phase = "failed"
        logs = paths_in(record.get("log"))
        seen = record.get("tocsin_log_tails")  # when it was logged
        tails = tails_of(self._files or NoFiles(), logs) if seen is None else seen
        code = exit_code_in(error)
        message = record.get("rule_msg") or error.strip().rpartition("\n")[2] or record.get("msg")
        job.failure = (
            at_s,
            {
                "ExitCode": None if code is None else str(code),
                "ErrorMessage": end(message),
                "ErrorTrace": end(error),
                "LogTail": end("\n".join(tails)),
                "LogFile": logs[0] if logs else None,
                "CommandLine": beginning(record.get("shellcmd")),
                "Container": beginning(record.get("container_img")),
            },
        )
        if job.retries is None:
            return []
        return [self._retried(job) if job.attempt <= job.retries else self._failed(job)]

    def _error_of(self, record: Record) -> str:
        """The exception that came before: by the same thread, else with the same command."""
        command = str(record.get("shellcmd") or "").strip()
        for at in reversed(range(len(self.errors))):
            error = self.errors[at]
            same = error.thread is not None and error.thread == record.get("thread")
            if same or (error.thread is None and command and command in error.text):
                return self.errors.pop(at).text
        return ""

    def _retried(self, job: _Job) -> Message:
        assert job.failure is not None
        (at_s, pairs), job.failure, job.promised = job.failure, None, job.failure
        return self._about(job, "ActivityRetrying", at_s, pairs)

    def _failed(self, job: _Job) -> Message:
        assert job.failure is not None
        (at_s, pairs), job.failure = job.failure, None
        code = pairs["ExitCode"]
        return self._about(job, failure_concept(int(code) if code else None), at_s, pairs)

    def _read_text(self, record: Record) -> list[Message]:
        """Plain sentences, of which some are the only sign of what happens."""
        text = str(record.get("msg") or "")
        self.aborted |= stopped_by_a_person(text)
        self.failed |= says_failure(text)
        job = self.jobs.get(restarted_job(text) or "")
        return [self._retried(job)] if job is not None and job.failure is not None else []

    def _about(
        self, job: _Job, concept: str, at_s: float, pairs: Mapping[str, str | None]
    ) -> Message:
        assert self.builder is not None
        return self.builder.of_activity(
            concept, at_s, pairs, activity=job.id, kind=job.rule, attempt=job.attempt
        )

    def _job(self, id: object) -> _Job:
        return self.jobs.setdefault(str(id), _Job(str(id)))


_HANDLERS: dict[str, Callable[[SnakemakeRun, Record], list[Message]]] = {
    "": SnakemakeRun._read_text,
    "error": SnakemakeRun._error,
    "job_error": SnakemakeRun._job_error,
    "job_finished": SnakemakeRun._job_finished,
    "job_info": SnakemakeRun._job_info,
    "progress": SnakemakeRun._progress,
    "resources_info": SnakemakeRun._resources,
    "run_info": SnakemakeRun._run_info,
}


def _at(record: Record) -> float:
    created = record.get("created")
    return float(created) if isinstance(created, int | float) else 0.0
