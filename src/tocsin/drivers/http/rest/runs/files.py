"""`/files`: which runs wrote or read a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from tocsin.drivers.http.rest.endpoint import Endpoint, reads
from tocsin.drivers.http.rest.responses import answer
from tocsin.drivers.monitor.queries.file_queries import DEPTH_MAX, find_files
from tocsin.wire.api.query import Query

if TYPE_CHECKING:
    from tocsin.drivers.monitor.monitor import Monitor

LIMIT_MAX: Final = 1_000
LIMIT_DEFAULT: Final = 100
ROLES: Final = ("output", "input")


def file_routes(monitor: Monitor) -> list[Endpoint]:
    async def files(request: Request) -> Response:
        names = ("name", "role", "depth", "limit", "after")
        query = Query.parse(request.scope["query_string"], names)
        wrote = query.choice("role", query.text("role") or "output", ROLES) == "output"
        depth = query.number("depth", 0, least=0, most=DEPTH_MAX)
        limit = query.number("limit", LIMIT_DEFAULT, least=1, most=LIMIT_MAX)
        found = await monitor.ask(
            lambda ask, now_ns: find_files(
                ask.index,
                now_ns,
                query.text("name") or "",
                wrote=wrote,
                limit=limit,
                after=query.text("after"),
                depth=depth,
            )
        )
        return answer(found)

    return [Endpoint("GET", "/files", files, reads("files"))]
