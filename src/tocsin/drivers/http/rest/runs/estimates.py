"""The time left of a run, the time that one would take, and what a run leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from tocsin.drivers.http.rest.endpoint import Endpoint, reads, session_in
from tocsin.drivers.http.rest.responses import answer
from tocsin.drivers.monitor.queries.provenance import FORMATS, provenance
from tocsin.errors import BadRequest
from tocsin.monitor.anomalies import find_cycle
from tocsin.wire.api.estimate_request import EstimateRequest, read_estimate_request
from tocsin.wire.api.query import Query
from tocsin.wire.api.run_views import HintList

if TYPE_CHECKING:
    from tocsin.drivers.monitor.monitor import Monitor
    from tocsin.monitor.estimate import Plan

DEFAULT_FORMAT: Final = "prov-json"
NAMED_MAX: Final = 5  # of the tasks that wait for each other


def estimate_routes(monitor: Monitor) -> list[Endpoint]:
    async def left(request: Request) -> Response:
        Query.parse(request.scope["query_string"], ())
        run_id = request.path_params["id"]
        session = session_in(request)
        found = await monitor.ask_for(
            session, lambda ask, now_ns: ask.estimates.estimate(run_id, now_ns)
        )
        return answer(found)

    async def side_by_side(request: Request) -> Response:
        Query.parse(request.scope["query_string"], ())
        run_id = request.path_params["id"]
        session = session_in(request)
        found, reason = await monitor.ask_for(
            session, lambda ask, now_ns: ask.estimates.hints(run_id, now_ns)
        )
        return answer(HintList(hints=found, reason=reason))

    async def unstarted(request: Request) -> Response:
        Query.parse(request.scope["query_string"], ())
        name = request.path_params["name"]
        found = await monitor.ask(
            lambda ask, now_ns: ask.estimates.estimate_unstarted(name, now_ns)
        )
        return answer(found)

    async def planned(request: Request) -> Response:
        Query.parse(request.scope["query_string"], ())
        asked = read_estimate_request(await request.body())
        plan = _plan(asked) if asked.tasks else None
        names = tuple(task.id for task in asked.tasks)
        found = await monitor.ask(
            lambda ask, now_ns: ask.estimates.estimate_unstarted(
                asked.workflow, now_ns, plan, names
            )
        )
        return answer(found)

    async def provenance_of(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("format",))
        run_id = request.path_params["id"]
        form = query.choice("format", DEFAULT_FORMAT, tuple(FORMATS))
        session = session_in(request)
        content = await monitor.ask_for(
            session, lambda ask, now_ns: provenance(ask, run_id, now_ns, form)
        )
        return Response(content, headers={"content-type": FORMATS[form], **_name(form)})

    # What other runs took goes into these.
    learned = reads("run/{id}", "estimates")
    return [
        Endpoint("GET", "/runs/{id:path}/estimate", left, learned),
        Endpoint("GET", "/runs/{id:path}/hints", side_by_side, learned),
        Endpoint("GET", "/runs/{id:path}/provenance", provenance_of, reads("run/{id}")),
        Endpoint("GET", "/workflows/{name:path}/estimate", unstarted, reads("workflow/{name}")),
        Endpoint("POST", "/estimates", planned, reads("estimates")),
    ]


def _plan(asked: EstimateRequest) -> Plan:
    from tocsin.monitor.estimate import Plan, Planned  # with numpy: not before it is needed

    place = {task.id: index for index, task in enumerate(asked.tasks)}
    cycle = find_cycle({task.id: task.parents for task in asked.tasks})
    if cycle:
        raise BadRequest(
            f"task {cycle[0][:80]!r} waits for itself"
            + (f", through {_named(cycle[1:])}" if len(cycle) > 1 else ""),
            remedy="Remove one of these dependencies.",
        )
    return Plan(
        tasks=tuple(
            Planned(
                task.type,
                tuple(place[each] for each in task.parents),
                task.external_bytes,
                input_bytes=task.input_bytes,
            )
            for task in asked.tasks
        ),
        machines=asked.machines,
        cores=asked.cores,
        version=asked.version,
    )


def _named(tasks: list[str]) -> str:
    listed = ", ".join(repr(each[:80]) for each in tasks[:NAMED_MAX])
    return listed + (f" and {len(tasks) - NAMED_MAX:,} more" if len(tasks) > NAMED_MAX else "")


def _name(form: str) -> dict[str, str]:
    """A crate is a file for a person to keep; the rest is read where it is."""
    if form != "crate":
        return {"cache-control": "no-store"}
    return {"cache-control": "no-store", "content-disposition": 'attachment; filename="crate.zip"'}
