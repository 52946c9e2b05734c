"""What the facets of an OpenLineage event say, in concepts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tocsin.wire.engines.checked_values import (
    LIST_MAX,
    TEXT_BYTES_MAX,
    member,
    name,
    names_json,
    number,
    tail,
    text,
    total,
    whole,
)

# What Airflow's scheduler decides by itself reaches no listener; the end of the DAG run shows it.
LEFT_OUT: Final[Mapping[str, str]] = {
    "skipped": "ActivitySkipped",
    "upstream_failed": "ActivitySkipped",
    "removed": "ActivityCancelled",
}
_DIGEST_CHARS: Final = 16
_QUALITY: Final = ("dataQualityMetrics", "bytes")
_IN_QUOTES: Final = re.compile("'([^']*)'")

Pairs = dict[str, str | None]


def engine_pairs(event: Mapping[str, Any]) -> Pairs:
    """Who ran it: the engine if it says so, else the integration that sent the event."""
    engine = member(event, "run", "facets", "processing_engine")
    integration = member(event, "job", "facets", "jobType", "integration")
    called = name(member(engine, "name")) or name(integration)
    return {
        "EngineName": None if called is None else called.lower(),
        "EngineVersion": name(member(engine, "version")),
    }


def error_pairs(facets: object) -> Pairs:
    error = member(facets, "errorMessage")
    return {
        "ErrorMessage": text(member(error, "message")),
        "ErrorTrace": tail(member(error, "stackTrace")),
    }


def command_pairs(facets: object, job_facets: object) -> Pairs:
    """What was run, and where its log is."""
    return {
        "CommandLine": text(member(job_facets, "sql", "query"))
        or text(member(job_facets, "sourceCode", "sourceCode")),
        "LogFile": text(member(facets, "airflow", "taskInstance", "log_url")),
    }


def version_of(job_facets: object) -> str | None:
    """The version of the code: as its repository has it, or a digest of the text itself."""
    location = member(job_facets, "sourceCodeLocation")
    found = name(member(location, "version")) or name(member(location, "tag"))
    if found is not None:
        return found
    code = member(job_facets, "sourceCode", "sourceCode")
    if not isinstance(code, str) or not code:
        return None
    return f"sha256:{hashlib.sha256(code.encode()).hexdigest()[:_DIGEST_CHARS]}"


def airflow_try(facets: object) -> tuple[int | None, int | None]:
    """Which try of an Airflow task this is, and how many tries may follow the first."""
    attempt = whole(member(facets, "airflow", "taskInstance", "try_number"))
    retries = whole(member(facets, "airflow", "task", "retries"))
    return (attempt if attempt is not None and attempt > 0 else None), retries


def upstream(facets: object) -> str | None:
    """The tasks before this one, which Airflow writes as Python writes a list."""
    given = member(facets, "airflow", "task", "upstream_task_ids")
    if isinstance(given, str):
        given = _IN_QUOTES.findall(given[: TEXT_BYTES_MAX * 4])
    if not isinstance(given, list):
        return None
    return names_json(found for each in given[:LIST_MAX] if (found := name(each)) is not None)


def planned_tasks(job_facets: object) -> str | None:
    """How many tasks the DAG has; mapped ones become more when they are expanded."""
    tasks = member(job_facets, "airflow", "tasks")
    return str(len(tasks)) if isinstance(tasks, Mapping) and tasks else None


def left_out(facets: object) -> Iterator[tuple[str, str]]:
    """Tasks of a DAG run that ended without ever being run, and what became of each."""
    states = member(facets, "airflowState", "tasksState")
    if not isinstance(states, Mapping):
        return
    for number_, (task, state) in enumerate(states.items()):
        if number_ == LIST_MAX:
            return
        concept = LEFT_OUT.get(state) if isinstance(state, str) else None
        if concept is not None and (called := name(task)) is not None:
            yield called, concept


def dataset_pairs(event: Mapping[str, Any]) -> Pairs:
    """What was read and written, and how much, where the facets say."""
    inputs, outputs = _datasets(event, "inputs"), _datasets(event, "outputs")
    return {
        "InputFile": names_json(_names(inputs)),
        "OutputFile": names_json(_names(outputs)),
        "InputBytes": _bytes(
            inputs, ("inputFacets", "inputStatistics", "size"), ("inputFacets", *_QUALITY)
        ),
        "OutputBytes": _bytes(outputs, ("outputFacets", "outputStatistics", "size")),
    }


def _datasets(event: Mapping[str, Any], side: str) -> list[Any]:
    found = event.get(side)
    return found[:LIST_MAX] if isinstance(found, list) else []


def _names(datasets: list[Any]) -> Iterator[str]:
    for each in datasets:
        called = name(member(each, "name"))
        if called is None:
            continue
        space = name(member(each, "namespace"))
        if space is None or space == "file" or "://" in called:
            yield called
        else:
            yield f"{space.rstrip('/')}/{called.lstrip('/')}"


def _bytes(datasets: list[Any], *paths: tuple[str, ...]) -> str | None:
    """The sum over those that say, each by the first node that does; None if none says."""
    sizes: list[float] = []
    for each in datasets:
        given = [size for path in paths if (size := number(member(each, *path))) is not None]
        if given and given[0] >= 0:
            sizes.append(given[0])
    return total(sum(sizes)) if sizes else None
