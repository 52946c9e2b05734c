"""A recorded log of Snakemake, as the messages that the plug-in would have sent, and when.

The log lacks what the plug-in reads from the running workflow: which job waits for which. That is
put together from the files that the jobs name, and sent with the record with which the plug-in
sends it. So are the numbers of the commands, which the plug-in reads with the same function: a log
has each command from the job's start. (A number that a function of the workflow takes out of a file
which the run itself makes is known to the plug-in only then; in a log it looks like any other.) No
file of the run is looked at, so sizes are not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tocsin.integrations.files import NoFiles
from tocsin.integrations.snakemake.log_text import paths_in
from tocsin.integrations.snakemake.numbers import numbers_in
from tocsin.integrations.snakemake.plan import PlannedJob, by_number, with_numbers
from tocsin.integrations.snakemake.records import Record, SnakemakeRun
from tocsin.wire.blackboard.messages import Message

CLOSED = "HANDLER_CLOSE"  # written by the recorder where Snakemake closes its logger


def is_recorded_log(first: object) -> bool:
    """Whether a file that begins with this value is such a log; a file of runs names an `app`."""
    return isinstance(first, Mapping) and "event" in first and "ts" in first


def sent_by_plugin(
    records: Sequence[Record], name: str | None = None
) -> Iterator[tuple[float, Message]]:
    """Each message with the second at which it was sent, in order."""
    run = SnakemakeRun(files_in=lambda directory: NoFiles(), name=name)
    planned = _plan(records)
    at_s = 0.0
    for record in records:
        at_s = _seconds(record, at_s)
        if record.get("event") == CLOSED:
            continue
        seen: dict[str, Any] = {**record, "created": at_s}
        if planned and record.get("event") == "run_info":
            seen["tocsin_planned"] = planned
        for message in run.handle(seen):
            yield at_s, message
    for message in run.closed(at_s):
        yield at_s, message


def _seconds(record: Record, before_s: float) -> float:
    at_s = record.get("ts")
    known = isinstance(at_s, int | float) and not isinstance(at_s, bool)
    return max(float(at_s), before_s) if known else before_s  # type: ignore[arg-type]


def _plan(records: Sequence[Record]) -> tuple[PlannedJob, ...]:
    """The jobs with their parents; empty if not all of them were known when the run began.

    Snakemake logs at the start how many jobs of each rule there are. If others ran than these, as
    after a checkpoint, the log does not say which of them were known: then the counts are sent.
    """
    jobs: dict[str, Record] = {}
    commands: dict[str, object] = {}
    tries: Counter[str] = Counter()
    stats: Mapping[str, object] = {}
    for record in records:
        event = record.get("event")
        if event == "job_info":
            jobs[str(record.get("jobid"))] = record
            tries[str(record.get("jobid"))] += 1
            commands.setdefault(str(record.get("jobid")), record.get("shellcmd"))
        elif event == "run_info" and not stats and isinstance(record.get("stats"), Mapping):
            stats = record["stats"]
    ran = Counter(str(job.get("rule_name") or "") for job in jobs.values())
    if ran != {rule: count for rule, count in stats.items() if rule != "total"}:
        return ()
    makers = {path: id for id, job in jobs.items() for path in paths_in(job.get("output"))}
    planned = [_job(id, job, makers, tries[id] - 1) for id, job in jobs.items()]
    return with_numbers(planned, {id: numbers_in(each) for id, each in commands.items()})


def _job(id: str, record: Record, makers: Mapping[str, str], retries: int) -> PlannedJob:
    inputs = paths_in(record.get("input"))
    return PlannedJob(
        id,
        str(record.get("rule_name") or ""),
        tuple(sorted({makers[path] for path in inputs if path in makers} - {id}, key=by_number)),
        tuple(path for path in inputs if path not in makers),
        retries,
        record.get("is_checkpoint") is True,
    )
