"""`/gma`: performance events by HTTP, one message a POST."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from tocsin.drivers.frames.visits import Visits
from tocsin.drivers.http.rest.endpoint import Endpoint, reads
from tocsin.drivers.http.rest.json_answers import answer
from tocsin.wire.api.query import Query

if TYPE_CHECKING:
    from tocsin.drivers.node import Node

XML = "text/xml; charset=utf-8"


def performance_routes(node: Node) -> list[Endpoint]:
    visits = Visits(node.performance)

    async def show(request: Request) -> Response:
        return answer(node.performance.doors)

    async def take(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("role",))
        if (role := query.text("role")) is not None:
            query.choice("role", role, ("producer", "consumer"))
        peer = request.client.host if request.client else ""
        reply = await visits.answer(await request.body(), peer)
        if reply is None:
            return Response(status_code=204)
        return Response(reply, headers={"content-type": XML})

    return [
        Endpoint("GET", "/gma", show, reads("gma")),
        Endpoint("POST", "/gma", take, reads("gma")),
    ]
