"""RunTreeNode: where in the tree of runs an OpenLineage event belongs.

To OpenLineage all is a run of a job, and the parent facet says inside which other one. Here a run
has activities. What integrations call a DAG, an application or a project is a run; what has a
parent is an activity of it; and what has neither is a run with one activity, itself. A run inside
an activity of another (Spark in an Airflow task) is a run whose parent is the outermost one, as
only that one is known to be a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tocsin.wire.engines.checked_values import member, name, whole

RUN_TYPES: Final = frozenset({"DAG", "APPLICATION"})
# dbt calls its whole invocation JOB, and Spark's streams are no DAG either.
RUN_TYPES_OF: Final[Mapping[str, frozenset[str]]] = {"DBT": frozenset({"JOB"})}
# In these a job runs once within its parent, so its name will do, and is the same in every run.
NAMES_ITS_JOBS_APART: Final = frozenset({"AIRFLOW", "DBT"})
_RUN_CHARS = 12


@dataclass(frozen=True, slots=True)
class RunTreeNode:
    """The run that an event is about, or of which its activity is one."""

    run: str
    workflow: str
    is_run: bool
    """The event is about the run itself."""
    activity: str | None = None
    type: str = ""
    parent_run: str | None = None


def node_of(event: Mapping[str, Any]) -> RunTreeNode | None:
    """Where it belongs; None if it names no run, as events about datasets and jobs do not."""
    facets = member(event, "run", "facets")
    own = name(member(event, "run", "runId"))
    job = name(member(event, "job", "name")) or name(member(event, "job", "namespace"))
    if own is None:
        return None
    job = job or own
    parent = _parent(facets)
    above = name(member(parent, "run", "runId"))
    root = name(member(parent, "root", "run", "runId"))
    if above == own:
        above = None  # nobody is inside itself
    if above is None or _is_run(event):
        outer = root if root not in (None, own) else above
        lonely = above is None and not _is_run(event)
        return RunTreeNode(
            run=own,
            workflow=job,
            is_run=True,
            activity=job if lonely else None,
            type=job if lonely else "",
            parent_run=outer,
        )
    workflow = name(member(parent, "job", "name")) or above
    short = job.removeprefix(f"{workflow}.")
    return RunTreeNode(
        run=above,
        workflow=workflow,
        is_run=False,
        activity=_activity(event, short, own),
        type=short,
        parent_run=root if root not in (None, above, own) else None,
    )


def _parent(facets: object) -> Any:
    """The parent facet; early clients called it otherwise."""
    found = member(facets, "parent")
    return found if isinstance(found, Mapping) else member(facets, "parentRun")


def _is_run(event: Mapping[str, Any]) -> bool:
    """True for what its integration calls a whole, whether or not anything is above it."""
    if member(event, "run", "facets", "airflowDagRun") is not None:
        return True
    kind, integration = _job_type(event)
    return kind in RUN_TYPES or kind in RUN_TYPES_OF.get(integration, ())


def _job_type(event: Mapping[str, Any]) -> tuple[str, str]:
    facet = member(event, "job", "facets", "jobType")
    kind, integration = member(facet, "jobType"), member(facet, "integration")
    return (
        kind.upper() if isinstance(kind, str) else "",
        integration.upper() if isinstance(integration, str) else "",
    )


def _activity(event: Mapping[str, Any], short: str, own: str) -> str:
    """The same for all tries of it, and of no other activity of the run."""
    facets = member(event, "run", "facets")
    index = whole(member(facets, "airflow", "taskInstance", "map_index"))
    if index is None:
        index = whole(member(facets, "airflow_mappedTask", "mapIndex"))
    if index is not None and index >= 0:
        return f"{short}[{index}]"
    airflow = isinstance(member(facets, "airflow", "taskInstance"), Mapping)
    if airflow or _job_type(event)[1] in NAMES_ITS_JOBS_APART:
        return short
    return f"{short}-{own[-_RUN_CHARS:]}"
