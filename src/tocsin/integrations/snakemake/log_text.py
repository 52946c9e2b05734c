"""The sentences of Snakemake that say what no field of its records does. Pure."""

from __future__ import annotations

import csv
import hashlib
import os.path
import re
from collections.abc import Iterable, Iterator

from tocsin.integrations.message_builder import number

SIGNALS_BASE = 128  # a shell's exit code for a process ended by a signal
VERSION_DIGITS = 16
MEGABYTE = 1 << 20  # Snakemake's benchmark counts in these

_EXIT_STATUS = re.compile(r"non-zero exit status (\d{1,3})\b")
_SIGNAL = re.compile(r"died with <Signals\.\w+: (\d{1,2})>")
_RESTART = re.compile(r"Trying to restart job (\d+)\.")
_JOB_OF_ERROR = re.compile(
    r"\bJob (\d+)\s+completed successfully, but some output files are missing"
)
# What Snakemake writes behind a file's name for people.
_REMARK = re.compile(
    r" \((?:(?:cached|pipe|service|nodelocal|update|before update|access: [\w-]+)(?:, )?)?"
    r"(?:retrieve from storage|only provide storage uri|send to storage|in storage)?\)$"
)
_UNKNOWN = "<TBD>"
_FAILED = "Exiting because a job execution failed"
_STOPPED = ("Terminating processes on user request", "Will exit after finishing currently running")


def workflow_name(snakefile: str) -> str:
    """As the reader of Snakefiles has it: the directory's, or a file's that has one of its own."""
    name, _ = os.path.splitext(os.path.basename(snakefile))
    if name.lower() == "snakefile":
        name = os.path.basename(workflow_home(snakefile))
    return name or "snakemake"


def workflow_home(snakefile: str) -> str:
    """The directory of a workflow; by Snakemake's custom its file may be below, in workflow/."""
    directory = os.path.dirname(snakefile)
    return os.path.dirname(directory) if os.path.basename(directory) == "workflow" else directory


def paths_in(value: object) -> tuple[str, ...]:
    """The files of a record's field, which may be one, several or none."""
    items = (value,) if isinstance(value, str) else value
    if not isinstance(items, Iterable):
        return ()
    return tuple(_REMARK.sub("", str(item)) for item in items if str(item) != _UNKNOWN)


def path_within(path: str, *roots: str) -> str:
    """As seen from the first of these directories in which it is."""
    absolute = os.path.normpath(os.path.join(roots[-1], path))
    for root in roots:
        below = root.rstrip("/") + "/"
        if len(below) > 1 and absolute.startswith(below):
            return absolute[len(below) :]
    return path


def version_of(files: Iterable[tuple[str, str]]) -> str | None:
    """Of the paths and digests of a workflow's files; `tocsin wf record` makes the same."""
    whole = "".join(f"{digest}  {path}\n" for path, digest in sorted(files))
    return hashlib.sha256(whole.encode()).hexdigest()[:VERSION_DIGITS] if whole else None


def memory_requested(resources: object) -> str | None:
    """In bytes. Resources are an object with attributes; recordings have only a list of values."""
    megabytes = getattr(resources, "mem_mb", None)
    if isinstance(megabytes, bool) or not isinstance(megabytes, int | float):
        return None
    return number(round(megabytes * 1_000_000))


def exit_code_in(error: str) -> int | None:
    if found := _EXIT_STATUS.search(error):
        return int(found[1])
    if found := _SIGNAL.search(error):
        return SIGNALS_BASE + int(found[1])
    return None


def restarted_job(text: str) -> str | None:
    found = _RESTART.match(text)
    return found[1] if found else None


def job_of_error(text: str) -> str | None:
    """The number of the job in an exception that is followed by no record of the failed job."""
    found = _JOB_OF_ERROR.search(text)
    return found[1] if found else None


def says_failure(text: str) -> bool:
    return text.startswith(_FAILED)


def stopped_by_a_person(text: str) -> bool:
    return text.startswith(_STOPPED)


def benchmark_pairs(table: str) -> dict[str, str | None]:
    """What a job used, from the file that its `benchmark:` made: a line for each repetition."""
    rows = list(csv.DictReader(table.splitlines(), delimiter="\t"))

    def column(name: str) -> Iterator[float]:
        for row in rows:
            try:
                yield float(row.get(name) or "")
            except ValueError:
                continue  # Snakemake writes NA or - for what it could not measure

    def total(name: str, unit: int | float) -> str | None:
        values = [value * unit for value in column(name)]
        whole = sum(values)
        return number(round(whole) if unit == MEGABYTE else whole) if values else None

    peak = max(column("max_rss"), default=None)
    return {
        "Duration": total("s", 1.0),
        "CpuSeconds": total("cpu_time", 1.0),
        "MemoryPeak": None if peak is None else number(round(peak * MEGABYTE)),
        "IoReadBytes": total("io_in", MEGABYTE),
        "IoWriteBytes": total("io_out", MEGABYTE),
    }
