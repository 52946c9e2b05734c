"""The provenance of a run, made of what the monitor has of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from tocsin.drivers.monitor.queries.queries import Queries
from tocsin.errors import TooLarge
from tocsin.event.instant import rfc3339
from tocsin.wire.api.run_views import ActivityInfo

if TYPE_CHECKING:  # imported when somebody asks: a broker starts sooner without
    from tocsin.monitor.provenance import RunView

ACTIVITIES_MAX: Final = 200_000  # of a run that is written whole, in one answer
PAGE: Final = 1_000

FORMATS: Final = {
    "prov-json": "application/json",
    "prov-n": "text/provenance-notation; charset=utf-8",
    "turtle": "text/turtle; charset=utf-8",
    "crate": "application/zip",
}


def provenance(queries: Queries, run_id: str, now_ns: int, form: str) -> bytes:
    """The run's provenance in one of the formats."""
    from tocsin.monitor.provenance import RunView, WorkflowVersion

    run = queries.runs.run(run_id, now_ns)
    known = run.activities.known
    if known > ACTIVITIES_MAX:
        raise TooLarge(
            f"the run has {known:,} activities, and at most {ACTIVITIES_MAX:,} are shown at once",
            remedy=f"Read them page by page: GET /runs/{run_id[:80]}/activities.",
        )
    versions = tuple(
        WorkflowVersion(run.workflow, version, previous or None, fork_of, rfc3339(at_ns))
        for version, previous, fork_of, at_ns in queries.changes.lineage(run.workflow)
    )
    # Read once: they are gone through many times, and must not change meanwhile.
    activities = tuple(_activities(queries, run_id, now_ns, known))
    view = RunView(run, activities, versions, rfc3339(now_ns))
    return _writer(form)(view)


def _activities(queries: Queries, run_id: str, now_ns: int, left: int) -> Iterator[ActivityInfo]:
    """The activities of a run, read page by page."""
    after: str | None = None
    while left > 0:
        records, after = queries.runs.activities(run_id, now_ns, limit=min(PAGE, left), after=after)
        yield from records
        left -= len(records)
        if after is None:
            return


def _writer(form: str) -> Callable[[RunView], bytes]:
    from tocsin.monitor.provenance import crate_zip, prov_json, prov_n, turtle

    return {"prov-json": prov_json, "prov-n": prov_n, "turtle": turtle, "crate": crate_zip}[form]
