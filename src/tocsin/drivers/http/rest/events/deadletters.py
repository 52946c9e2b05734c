"""`/deadletters`: what was given up, and another try."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from tocsin.broker.port import BrokerPort
from tocsin.drivers.http.rest.endpoint import BY_PORT, Endpoint, session_in
from tocsin.drivers.http.rest.events.views import dead_letter_info
from tocsin.drivers.http.rest.responses import answer
from tocsin.services.dead_letters.dead_letters import DeadLetters
from tocsin.wire.api.query import Query
from tocsin.wire.api.views import DeadLettersPage, RedriveResult

LIMIT_MAX: Final = 1_000
LIMIT_DEFAULT: Final = 100


def dead_letter_routes(port: BrokerPort) -> list[Endpoint]:
    letters = DeadLetters(port)

    async def index(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("limit", "after", "subscription"))
        page = await letters.page(
            session_in(request),
            after=query.text("after") or "",
            limit=query.number("limit", LIMIT_DEFAULT, least=1, most=LIMIT_MAX),
            subscription=query.text("subscription"),
        )
        return answer(DeadLettersPage([dead_letter_info(each) for each in page.letters], page.next))

    async def show(request: Request) -> Response:
        letter = await letters.find(session_in(request), request.path_params["id"])
        return answer(dead_letter_info(letter))

    async def delete(request: Request) -> Response:
        await letters.drop(session_in(request), request.path_params["id"])
        return Response(status_code=204)

    async def redrive(request: Request) -> Response:
        redriven = await letters.redrive(session_in(request), request.path_params["id"])
        return answer(RedriveResult(redriven.dead_letter.id))

    one = "/deadletters/{id}"
    return [
        Endpoint("GET", "/deadletters", index, BY_PORT),
        Endpoint("GET", one, show, BY_PORT),
        Endpoint("DELETE", one, delete, BY_PORT),
        Endpoint("POST", f"{one}/redrive", redrive, BY_PORT),
    ]
