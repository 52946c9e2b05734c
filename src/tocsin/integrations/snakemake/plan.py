"""What Snakemake knows and does not log: its jobs with their parents, its files, its settings.

Snakemake logs counts and a graph of rules, but not which job waits for which. The workflow is in
the same process: these functions copy plain values out of it, in the thread that owns it, while it
holds still. Whatever another version of Snakemake has elsewhere is left out, never an error.
"""

from __future__ import annotations

import json
import os.path
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from tocsin.integrations.message_builder import content_hash
from tocsin.integrations.snakemake.numbers import Numbers, NumbersOfJobs, differing
from tocsin.monitor.command_files import is_program, named_files

FRAMES_MAX = 16  # between a log record and the workflow that wrote it; Snakemake 9 has five
JOBS_MAX = 200_000
FILES_MAX = 500
WORDS_MAX = 10_000  # of all commands; each may be a file's name
PARAMETERS_BYTES_MAX = 64 << 10


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job that will run. `external` are the input files that no job of this run makes.

    After a `checkpoint` Snakemake plans again. `numbers` are those of its command that differ from
    those of other jobs of its rule; None if they are not known yet.
    """

    id: str
    rule: str
    parents: tuple[str, ...] = ()
    external: tuple[str, ...] = ()
    retries: int = 0
    checkpoint: bool = False
    numbers: Numbers | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What a workflow is made of.

    `files` are its Snakefiles, the main one first, and its configuration; `scripts` those that
    rules run, by rule; `named` are words in a rule's command or inputs that may be files which it
    runs or reads; `versions` are names for the code of each rule, without its script's.
    """

    files: tuple[str, ...] = ()
    parameters: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def workflow_that_logs(frame: FrameType | None = None) -> Any | None:
    """The workflow on whose behalf the caller runs, found up the stack; None if there is none."""
    if frame is None:
        frame = sys._getframe(1)
    for _ in range(FRAMES_MAX):
        if frame is None:
            return None
        owner = frame.f_locals.get("self")
        for candidate in (owner, getattr(owner, "workflow", None)):
            kind = type(candidate)
            if kind.__name__ == "Workflow" and kind.__module__ == "snakemake.workflow":
                return candidate
        frame = frame.f_back
    return None


def facts_of(workflow: Any) -> Facts:
    versions = {rule.name: version for rule in workflow.rules if (version := _version(rule))}
    files = tuple(islice(_files(workflow), FILES_MAX))
    scripts = dict(islice(_scripts(workflow), FILES_MAX))
    return Facts(files, _parameters(workflow), versions, scripts, _named(workflow))


def touches(workflow: Any) -> bool:
    """True if results are only marked as up to date, and no command is run."""
    return getattr(workflow, "touch", False) is True


def jobs_of(workflow: Any, asked: NumbersOfJobs | None = None) -> tuple[PlannedJob, ...]:
    """Every job that runs or ran, with its parents among them; `asked` knows their numbers."""
    dag = workflow.dag
    jobs = list(islice(dag.needrun_jobs(exclude_finished=False), JOBS_MAX))
    ids = {job: str(dag.jobid(job)) for job in jobs}
    planned = []
    for job in jobs:
        makers = dag.dependencies.get(job, {})
        parents = [parent for parent in makers if parent in ids]
        made = {str(path) for parent in parents for path in makers[parent]}
        external = (path for path in map(str, job.input) if path not in made)
        planned.append(
            PlannedJob(
                ids[job],
                job.rule.name,
                tuple(sorted((ids[parent] for parent in parents), key=by_number)),
                tuple(external),
                int(job.restart_times or 0),
                getattr(job, "is_checkpoint", False) is True,
            )
        )
    return with_numbers(
        planned, {id: asked.of(id, job) for job, id in ids.items()} if asked else {}
    )


def with_numbers(
    jobs: Iterable[PlannedJob], numbers: Mapping[str, Mapping[str, float] | None]
) -> tuple[PlannedJob, ...]:
    """The jobs in order, with those of their `numbers`, by job, that are to be sent."""
    ordered = sorted(jobs, key=lambda job: by_number(job.id))
    sent = differing([(job.rule, numbers.get(job.id)) for job in ordered])
    return tuple(replace(job, numbers=each) for job, each in zip(ordered, sent, strict=True))


def by_number(id: str) -> tuple[int, str]:
    """Jobs in the order of their numbers; names that are none come last."""
    return (int(id), "") if id.isdigit() else (sys.maxsize, id)


def _version(rule: Any) -> str | None:
    """A name for the code of a rule: its command or function, and what runs it."""
    parts = [
        getattr(rule, name, None)
        for name in ("shellcmd", "run_func_src", "script", "notebook", "wrapper")
    ]
    texts = [str(part) for part in parts if part]
    deployed = [getattr(rule, name, None) for name in ("conda_env", "container_img", "env_modules")]
    return content_hash(*texts, *(str(part) for part in deployed if part)) if texts else None


def _files(workflow: Any) -> Iterator[str]:
    """Local paths: Snakefiles, then configuration."""
    seen = set()
    for path in (*_snakefiles(workflow), *map(str, workflow.configfiles)):
        if path not in seen and "://" not in path:
            seen.add(path)
            yield path


def _snakefiles(workflow: Any) -> Iterator[str]:
    yield str(workflow.main_snakefile)
    for file in workflow.included:
        yield str(file.get_path_or_uri(secret_free=True))


def _scripts(workflow: Any) -> Iterator[tuple[str, str]]:
    for rule in workflow.rules:
        for name in ("script", "notebook"):
            text = getattr(rule, name, None)
            if isinstance(text, str) and "{" not in text:
                base = rule.basedir.get_path_or_uri(secret_free=True)
                if "://" not in (path := str(Path(str(base)) / text)):
                    yield rule.name, path


def _named(workflow: Any) -> dict[str, tuple[str, ...]]:
    """By rule, without what a rule makes, and without data that a rule has as its input."""
    made = {path for rule in workflow.rules for path in _literal(rule.products())}
    named: dict[str, tuple[str, ...]] = {}
    left = WORDS_MAX
    for rule in workflow.rules:
        inputs = _literal(rule.input)
        words = (word for word in named_files(_command(rule)) if word not in inputs)
        programs = (path for path in inputs if is_program(path))
        found = tuple(islice((w for w in (*words, *programs) if not _is_in(w, made)), left))
        left -= len(found)
        if found:
            named[rule.name] = found
    return named


def _command(rule: Any) -> str:
    """Its shell command or Python code, with the directories that it names filled in."""
    text = str(getattr(rule, "shellcmd", None) or getattr(rule, "run_func_src", None) or "")
    main = os.path.dirname(str(rule.workflow.main_snakefile))
    here = str(rule.basedir.get_path_or_uri(secret_free=True))
    text = text.replace("{workflow.basedir}", main)
    return text.replace("{workflow.current_basedir}", here)


def _literal(paths: Any) -> set[str]:
    """Those that are known before any job is: no function, no wildcard."""
    plain = (str(path) for path in paths if isinstance(path, str))
    return {os.path.normpath(path) for path in plain if "{" not in path}


def _is_in(path: str, made: set[str]) -> bool:
    """True for what is made, and for what lies in a directory that is."""
    while path not in ("", "/", "."):
        if path in made:
            return True
        path = os.path.dirname(path)
    return False


def _parameters(workflow: Any) -> str | None:
    config = getattr(workflow, "config", None)
    if not config:
        return None
    text = json.dumps(config, default=str, ensure_ascii=False)
    return text if len(text.encode()) <= PARAMETERS_BYTES_MAX else None
