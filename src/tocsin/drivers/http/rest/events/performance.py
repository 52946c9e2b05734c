"""`/gma`: performance events by HTTP, one message a POST."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from tocsin.drivers.http.rest.endpoint import BY_PORT, Endpoint, reads, session_in
from tocsin.drivers.http.rest.responses import answer
from tocsin.services.performance.http_sessions import HttpSessions
from tocsin.services.performance.service import PerformanceService
from tocsin.wire.api.query import Query

XML = "text/xml; charset=utf-8"


def performance_routes(service: PerformanceService) -> list[Endpoint]:
    sessions = HttpSessions(service)

    async def show(request: Request) -> Response:
        return answer(service.addresses)

    async def take(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("role",))
        if (role := query.text("role")) is not None:
            query.choice("role", role, ("producer", "consumer"))
        reply = await sessions.answer(await request.body(), session_in(request))
        if reply is None:
            return Response(status_code=204)
        return Response(reply, headers={"content-type": XML})

    return [
        Endpoint("GET", "/gma", show, reads("gma")),
        Endpoint("POST", "/gma", take, BY_PORT),
    ]
