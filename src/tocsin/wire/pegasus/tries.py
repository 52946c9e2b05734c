"""The events of one submission of a job: queued, held, running, and how it ended.

What decides the end: if the job has a script behind it, the script; else its main part. In streams
of today the script begins before the event of the main part's end, in old ones after. So the main
part's word is given at once where no script is known of, and taken back if a script says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from tocsin.wire.blackboard.messages import Message
from tocsin.wire.engines.checked_values import (
    amount,
    decimal,
    filled,
    moment,
    name,
    number,
    tail,
    text,
    total,
    whole,
)
from tocsin.wire.pegasus.jobs import Job, Run, Try

SOURCE: Final = "/pegasus"
KIB: Final = 1_024
OUT_OF_MEMORY_EXIT: Final = 137
_NUMBERED: Final = re.compile(r"\.(\d{3})$", re.ASCII)  # of each try's own output, from 000 up
_LOG_CHARS: Final = 16 << 10  # of what is still quoted with percent signs

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Instance:
    """One submission of one job of one run."""

    run: Run
    job: Job
    job_id: str
    number: int
    """Counted through the whole workflow; which try of the job it is follows from that."""

    @property
    def attempt(self) -> int:
        return self.job.attempt(self.number)

    @property
    def known(self) -> Try:
        return self.job.try_(self.number)

    def message(self, what: str, pairs: Mapping[str, str | None], time: str) -> Message:
        whose = {
            "RunId": self.run.id,
            "WorkflowName": self.run.workflow,
            "ActivityId": self.job_id,
            "ActivityType": self.job.type,
            "Attempt": str(self.attempt),
        }
        # The number and not the attempt: it stays the same when we have forgotten the others.
        id = f"{self.run.id}/{self.job_id}/{self.number}/{what}"
        return Message(filled({**pairs, **whose}), id=id, source=SOURCE, time=time)


OfJob = Callable[[Instance, Fields, str], list[Message]]


class JobEvents:
    """What each kind of event about a job says."""

    def __init__(self) -> None:
        self._readers: dict[str, OfJob] = {
            "job_inst.pre.start": _concept_handler("ActivityInitialized"),
            "job_inst.pre.end": _pre_ended,
            "job_inst.submit.end": _submitted,
            "job_inst.grid.submit.end": _submitted,
            "job_inst.globus.submit.end": _submitted,
            "job_inst.held.start": _held,
            "job_inst.held.end": _released,
            "job_inst.abort.info": _aborted,
            "job_inst.main.start": _concept_handler("ActivityExecuting"),
            "job_inst.main.term": _terminated,
            "job_inst.main.end": _main_ended,
            "job_inst.composite": _composite,
            "job_inst.post.start": _post_began,
            "job_inst.post.end": _post_ended,
            "job_inst.host.info": _on_host,
            "job_inst.image.info": _image,
            "inv.end": _invoked,
        }

    def get(self, kind: str) -> OfJob | None:
        return self._readers.get(kind)


def _concept_handler(concept: str) -> OfJob:
    def read(instance: Instance, fields: Fields, time: str) -> list[Message]:
        return [instance.message(concept, {concept: time, **_place(fields)}, time)]

    return read


def _place(fields: Fields) -> dict[str, str | None]:
    return {"EngineJobId": name(fields.get("sched_id"))}


def _submitted(instance: Instance, fields: Fields, time: str) -> list[Message]:
    if not whole(fields.get("status")):
        about = {"ActivitySubmitted": time, **_place(fields)}
        return [instance.message("ActivitySubmitted", about, time)]
    fault = {"ActivityFaulting": time, "ErrorMessage": text(fields.get("reason"))}
    return [instance.message(f"ActivityFaulting/{time}", fault, time)]


def _held(instance: Instance, fields: Fields, time: str) -> list[Message]:
    reason = text(fields.get("reason"))
    instance.known.reason = (reason or "").strip() or None
    about = {"ActivityHeld": time, "ErrorMessage": instance.known.reason, **_place(fields)}
    return [instance.message(f"ActivityHeld/{time}", about, time)]


def _released(instance: Instance, fields: Fields, time: str) -> list[Message]:
    instance.known.reason = None
    about = {"ActivityQueued": time, **_place(fields)}
    return [instance.message(f"ActivityQueued/{time}", about, time)]


def _aborted(instance: Instance, fields: Fields, time: str) -> list[Message]:
    """It was removed from the queue; its end will report what that means."""
    known = instance.known
    known.ended = known.ended or time
    about = {"ActivityCanceling": time, "ErrorMessage": text(fields.get("reason"))}
    return [instance.message(f"ActivityCanceling/{time}", about, time)]


def _terminated(instance: Instance, fields: Fields, time: str) -> list[Message]:
    # Its status is not that of the program, which monitord reads from its output only now.
    instance.known.ended = time
    return []


def _pre_ended(instance: Instance, fields: Fields, time: str) -> list[Message]:
    if whole(fields.get("status")):
        instance.known.reason = "the job's PRE script failed"
    return []


def _post_began(instance: Instance, fields: Fields, time: str) -> list[Message]:
    instance.known.has_post = True
    return []


def _on_host(instance: Instance, fields: Fields, time: str) -> list[Message]:
    host = name(fields.get("hostname"))
    known = instance.known
    if host is None or host == known.host:
        return []
    known.host = host
    # Most often this comes before the end, and goes along with that.
    return [instance.message("Host", {"Host": host}, time)] if known.end_concept else []


def _composite(instance: Instance, fields: Fields, time: str) -> list[Message]:
    """The end of the main part once more, with more about the machine."""
    messages = _on_host(instance, fields, time)
    if instance.known.failed is None:
        messages += _main_ended(instance, fields, time)
    return messages


def _image(instance: Instance, fields: Fields, time: str) -> list[Message]:
    size = total(fields.get("size"), KIB)
    if size is None:
        return []
    return [instance.message(f"MemoryVirtual/{time}", {"MemoryVirtual": size}, time)]


def _invoked(instance: Instance, fields: Fields, time: str) -> list[Message]:
    """One task of the job ended on its machine, by whose clock these times are."""
    number_ = whole(fields.get("inv_id"))
    if number_ is None or number_ < 1:  # the scripts before and behind a job count from -1 down
        return []
    known, job = instance.known, instance.job
    # Where the plan is not known it may be a cluster, and better no type than one of its tasks'.
    if not job.transformation and job.kind == "compute" and job.tasks <= 1:
        job.transformation = name(fields.get("transformation")) or ""
    known.cpu_s += max(0, number(fields.get("remote_cpu_time")) or 0)
    known.peak_bytes = max(known.peak_bytes, KIB * (whole(fields.get("maxrss")) or 0))
    known.command = known.command or _command(fields)
    about: dict[str, str | None] = {
        "CpuSeconds": decimal(known.cpu_s) if known.cpu_s else None,
        "MemoryPeak": str(known.peak_bytes) if known.peak_bytes else None,
    }
    began = moment(fields.get("start_time"))
    if number_ == 1:
        # Both clocks go on: the submitting host's from main.start, and this one.
        about = {"ActivityExecuting": began, **about, "EndTime": time}
        if job.tasks <= 1:
            about["Duration"] = amount(fields.get("dur"))
    if not filled(about):
        return []
    return [instance.message(f"inv/{number_}", about, time)]


def _command(fields: Fields) -> str | None:
    executable, argv = text(fields.get("executable")), text(fields.get("argv"))
    return text(" ".join(part for part in (executable, argv) if part)) or None


def _main_ended(instance: Instance, fields: Fields, time: str) -> list[Message]:
    known = instance.known
    known.ended = known.ended or time
    known.exit_code = exit_code(fields.get("exitcode"))
    known.failed = bool(whole(fields.get("status"))) or bool(known.exit_code)
    known.log_file = text(fields.get("stderr_file")) or text(fields.get("stdout_file"))
    if (matched := _NUMBERED.search(text(fields.get("stdout_file")) or "")) is not None:
        instance.job.is_attempt(instance.number, int(matched[1]) + 1)
    known.log = _log(fields) if known.failed else None
    if known.has_post:
        return []
    return _end_messages(instance, known, failed=known.failed, time=known.ended)


def _post_ended(instance: Instance, fields: Fields, time: str) -> list[Message]:
    known = instance.known
    failed = bool(whole(fields.get("status"))) or bool(exit_code(fields.get("exitcode")))
    if known.end_concept:
        return (
            []
            if (known.end_concept == "ActivitySucceeded") != failed
            else _differs(instance, failed, time)
        )
    if failed and not known.failed:
        known.exit_code = exit_code(fields.get("exitcode"))
        known.reason = known.reason or "the job's POST script failed"
    return _end_messages(instance, known, failed=failed, time=known.ended or time)


def _differs(instance: Instance, failed: bool, time: str) -> list[Message]:
    """The script behind the job overrules what its main part came to."""
    known = instance.known
    if failed:
        known.reason = known.reason or "the job's POST script failed"
    return _end_messages(instance, known, failed=failed, time=time)


def _end_messages(instance: Instance, known: Try, *, failed: bool, time: str) -> list[Message]:
    concept = _end(instance, known) if failed else "ActivitySucceeded"
    known.end_concept = concept
    about: dict[str, str | None] = {
        concept: time,
        "ExitCode": None if known.exit_code is None else str(known.exit_code),
        "Host": known.host,
        "LogFile": known.log_file,
        "CommandLine": known.command,
    }
    if failed:
        about |= {"ErrorMessage": known.reason, "LogTail": known.log}
    # Nothing more is needed of it but that its end was reported.
    known.log = known.command = known.log_file = None
    return [instance.message(concept, about, time)]


def _end(instance: Instance, known: Try) -> str:
    retries_max = instance.job.retries_max
    if retries_max is not None and instance.attempt <= retries_max:
        return "ActivityRetrying"
    return "ActivityOutOfMemory" if known.exit_code == OUT_OF_MEMORY_EXIT else "ActivityFailed"


def exit_code(value: object) -> int | None:
    """What the program returned: stampede has the status of wait(2), its code times 256."""
    code = whole(value)
    if code is None or not 0 <= code < 1 << 16 or code & 0xFF:
        return code
    return code >> 8


def _log(fields: Fields) -> str | None:
    """The end of what it printed, where people look for the reason; errors last."""
    parts = [fields.get("stdout_text"), fields.get("stderr_text")]
    tails = [unquote(part[-_LOG_CHARS:]) for part in parts if isinstance(part, str) and part]
    return tail("\n".join(tails)) or None
