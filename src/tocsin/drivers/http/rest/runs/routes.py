"""`/runs`: what is known of workflow runs, their activities, events and failures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from tocsin.drivers.http.rest.endpoint import Endpoint, reads, session_in
from tocsin.drivers.http.rest.responses import answer, shown
from tocsin.drivers.http.rest.runs.estimates import estimate_routes
from tocsin.drivers.http.rest.runs.files import file_routes
from tocsin.drivers.http.rest.runs.history import history_routes
from tocsin.drivers.monitor.queries.queries import Queries
from tocsin.errors import MonitorOff
from tocsin.wire.api.query import Query
from tocsin.wire.api.run_views import (
    ACTIVITY_STATES,
    RUN_STATES,
    ActivitiesPage,
    EndInfo,
    FailureList,
    MessageList,
    RunsPage,
)

if TYPE_CHECKING:
    from tocsin.drivers.monitor.monitor import Monitor

LIMIT_MAX: Final = 1_000
LIMIT_DEFAULT: Final = 100
EVENTS_MAX: Final = 10_000
BEFORE_MAX: Final = 50  # events before a failure; more of them are not kept for good
BEFORE_DEFAULT: Final = 10


def run_routes(monitor: Monitor | None) -> list[Endpoint]:
    """The routes of the monitor; where there is none, each says why."""
    if monitor is not None:
        return routes(monitor)

    async def off(request: Request) -> Response:
        raise MonitorOff(
            "this broker does not record runs", remedy="Set monitor.enabled, and restart it."
        )

    paths = ("/files", "/runs", "/runs/{id:path}", "/activities", "/activities/{name:path}")
    return [
        Endpoint(method, path, off, reads("run/*"))
        for path in (*paths, "/workflows/{name:path}", "/estimates")
        for method in ("GET", "POST")
    ]


def routes(monitor: Monitor) -> list[Endpoint]:
    """Everything about runs, activities, workflows and estimates."""

    async def index(request: Request) -> Response:
        query = Query.parse(
            request.scope["query_string"], ("state", "workflow", "engine", "limit", "after")
        )
        state = _choice(query, "state", RUN_STATES)
        limit = query.number("limit", LIMIT_DEFAULT, least=1, most=LIMIT_MAX)
        records, following = await monitor.ask_for(
            session_in(request),
            lambda ask, now_ns: ask.runs.runs(
                now_ns,
                state=state,
                workflow=query.text("workflow"),
                engine=query.text("engine"),
                limit=limit,
                after=query.text("after"),
            ),
        )
        return answer(RunsPage(runs=records, next=following))

    async def show(request: Request) -> Response:
        Query.parse(request.scope["query_string"], ())
        run_id = request.path_params["id"]
        return answer(
            await monitor.ask_for(
                session_in(request), lambda ask, now_ns: ask.runs.run(run_id, now_ns)
            )
        )

    async def activities(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("state", "type", "limit", "after"))
        run_id = request.path_params["id"]
        state = _choice(query, "state", ACTIVITY_STATES)
        limit = query.number("limit", LIMIT_DEFAULT, least=1, most=LIMIT_MAX)
        records, following = await monitor.ask_for(
            session_in(request),
            lambda ask, now_ns: ask.runs.activities(
                run_id,
                now_ns,
                state=state,
                kind=query.text("type"),
                limit=limit,
                after=query.text("after"),
            ),
        )
        return answer(ActivitiesPage(activities=records, next=following))

    found = [
        Endpoint("GET", "/runs", index, reads("run/*")),
        Endpoint("GET", "/runs/{id:path}/activities", activities, reads("run/{id}")),
        *_event_routes(monitor),
        *history_routes(monitor),
        *file_routes(monitor),
        *estimate_routes(monitor),
        # Last: the id of a run may have slashes, and then this fits whatever the others do.
        Endpoint("GET", "/runs/{id:path}", show, reads("run/{id}")),
    ]
    return [replace(each, has_names=True) for each in found]


def _event_routes(monitor: Monitor) -> list[Endpoint]:
    async def events(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("last", "activity"))
        run_id = request.path_params["id"]
        last = query.number("last", LIMIT_DEFAULT, least=1, most=EVENTS_MAX)
        found = await monitor.ask_for(
            session_in(request),
            lambda ask, _: ask.runs.events(run_id, last=last, activity=query.text("activity")),
        )
        return answer(MessageList(events=found))

    async def failures(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("last",))
        run_id = request.path_params["id"]
        last = query.number("last", BEFORE_DEFAULT, least=0, most=BEFORE_MAX)
        return answer(
            await monitor.ask_for(
                session_in(request), lambda ask, now_ns: _why(ask, run_id, now_ns, last)
            )
        )

    return [
        Endpoint("GET", "/runs/{id:path}/events", events, reads("run/{id}")),
        Endpoint("GET", "/runs/{id:path}/failures", failures, reads("run/{id}")),
    ]


def _why(ask: Queries, run_id: str, now_ns: int, last: int) -> FailureList:
    """Why a run failed: what its activities say, and what it says itself."""
    record = ask.runs.run(run_id, now_ns)
    end = shown(EndInfo, record, before=ask.runs.end_of(run_id, last=last))
    return FailureList(failures=ask.runs.failures(run_id, now_ns, last=last), run=end)


def _choice(query: Query, name: str, choices: tuple[str, ...]) -> str | None:
    text = query.text(name)
    return None if text is None else query.choice(name, text, choices)
