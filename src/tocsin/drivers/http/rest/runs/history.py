"""What looks across runs: the history of activities, two runs side by side, what changed."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from tocsin.drivers.http.rest.endpoint import Endpoint, reads, session_in
from tocsin.drivers.http.rest.responses import answer
from tocsin.drivers.monitor.queries.change_queries import VERSIONS_PAGE
from tocsin.errors import NoSuchRun
from tocsin.wire.api.query import SEQ_MAX, Query
from tocsin.wire.api.run_views import TypeList, VersionList, WorkflowChanges

if TYPE_CHECKING:
    from tocsin.drivers.monitor.monitor import Monitor

VERSIONS_MAX: Final = 1_000
NAMES_MAX: Final = 2_000  # that are looked through for one that is meant
NAME_CHARS_MAX: Final = 80
NEAR_MAX: Final = 3


def history_routes(monitor: Monitor) -> list[Endpoint]:
    async def types(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("workflow",))
        workflow = query.text("workflow")
        found = await monitor.ask(lambda ask, _: ask.history.types(workflow=workflow))
        return answer(TypeList(activities=found))

    async def history(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("workflow", "version"))
        kind = request.path_params["type"]
        record = await monitor.ask(
            lambda ask, now_ns: ask.history.history(
                kind, now_ns, workflow=query.text("workflow"), version=query.text("version")
            )
        )
        if not record.count:
            raise _never_ended(kind, await monitor.ask(lambda ask, _: ask.history.names()))
        return answer(record)

    async def versions(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("limit", "after"))
        name = request.path_params["name"]
        limit = query.number("limit", VERSIONS_PAGE, least=1, most=VERSIONS_MAX)
        after = query.number("after", SEQ_MAX)
        found, following = await monitor.ask(
            lambda ask, _: ask.changes.versions(name, limit=limit, after=after)
        )
        return answer(VersionList(versions=found, next=following))

    async def workflow_changes(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("version",))
        name, version = request.path_params["name"], query.text("version")
        found = await monitor.ask(lambda ask, _: ask.changes.changes_of(name, version))
        return answer(WorkflowChanges(changes=found))

    return [
        *_between_runs(monitor),
        Endpoint("GET", "/activities", types, reads("activity/*")),
        Endpoint("GET", "/activities/{type:path}", history, reads("activity/{type}")),
        Endpoint("GET", "/workflows/{name:path}/versions", versions, reads("workflow/{name}")),
        Endpoint(
            "GET", "/workflows/{name:path}/changes", workflow_changes, reads("workflow/{name}")
        ),
    ]


def _between_runs(monitor: Monitor) -> list[Endpoint]:
    async def compare(request: Request) -> Response:
        Query.parse(request.scope["query_string"], ())
        one, other = request.path_params["id"], request.path_params["other"]
        session = session_in(request)
        found = await monitor.ask_for(
            session, lambda ask, now_ns: ask.changes.compare(one, other, now_ns)
        )
        return answer(found)

    async def changes(request: Request) -> Response:
        Query.parse(request.scope["query_string"], ())
        run_id = request.path_params["id"]
        session = session_in(request)
        found = await monitor.ask_for(
            session, lambda ask, now_ns: ask.changes.changes(run_id, now_ns)
        )
        return answer(found)

    return [
        Endpoint(
            "GET", "/runs/{id:path}/compare/{other:path}", compare, reads("run/{id}", "run/{other}")
        ),
        Endpoint("GET", "/runs/{id:path}/changes", changes, reads("run/{id}")),
    ]


def _never_ended(kind: str, known: list[str]) -> NoSuchRun:
    near = get_close_matches(kind[:NAME_CHARS_MAX], known[:NAMES_MAX], n=NEAR_MAX, cutoff=0.5)
    meant = "" if kind in near or not near else f"Did you mean {' or '.join(dict.fromkeys(near))}? "
    return NoSuchRun(
        f"no activity of the type {kind[:80]!r} has ended",
        remedy=f"{meant}`tocsin wf history` lists the types that are known.",
    )
