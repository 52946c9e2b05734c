"""`/events`: the log, page by page, and what publishers send in an unusual way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from tocsin.drivers.http.rest.endpoint import BY_PORT, Endpoint, reads, session_in
from tocsin.drivers.http.rest.events.views import events_info
from tocsin.drivers.http.rest.responses import answer
from tocsin.errors import BadMethod
from tocsin.event.stored import Stored
from tocsin.services.event_pages import LIMIT_DEFAULT, LIMIT_MAX, read_page
from tocsin.services.publishing import publish as service
from tocsin.wire.api.arrow import YES_OR_NO, is_wanted
from tocsin.wire.api.query import Query
from tocsin.wire.api.views import SignatureInfo

if TYPE_CHECKING:
    from tocsin.access.sign_in.certificates import Authorities
    from tocsin.broker.port import BrokerPort
    from tocsin.drivers.archive.archiver import Archiver
    from tocsin.drivers.http.rest.events.arrow import ArrowReader
    from tocsin.drivers.http.server import HttpServer

SIGNATURES: Final = "signatures"


def event_routes(
    port: BrokerPort,
    archiver: Archiver | None,
    server: HttpServer,
    authorities: Callable[[], Authorities],
) -> list[Endpoint]:
    """Streams and sockets are opened by the connection itself, and so is nearly all publishing."""
    limits, body_bytes_max = server.event_limits, server.limits.body_bytes_max
    arrow: list[ArrowReader] = []

    async def publish(request: Request) -> Response:
        """For a publish whose path is spelt unusually, so that the connection did not see it."""
        Query.parse(request.scope["query_string"], ())
        headers = dict(request.headers.raw)
        headers.pop(b"content-encoding", None)  # unpacked already
        events = service.events_of(headers, await request.body(), limits, body_bytes_max)
        accepted = await service.publish(port, session_in(request), events)
        return answer(service.publish_result(accepted), 202)

    async def read(request: Request) -> Response:
        if is_wanted(request.headers.get("accept", "")):
            if not arrow:
                arrow.append(await asyncio.to_thread(_arrow_reader, port, archiver))
            return await arrow[0].answer(request)
        query = Query.parse(request.scope["query_string"], ("after", "limit", "filter", SIGNATURES))
        after = query.number("after", 0)
        limit = query.number("limit", LIMIT_DEFAULT, least=1, most=LIMIT_MAX)
        filter = query.filter()
        checks_signatures = query.choice(SIGNATURES, "no", YES_OR_NO) == "yes"
        session = session_in(request)
        page = await read_page(port, session, after, limit, filter)
        found, signatures = page.events, None
        if checks_signatures:
            checked = await asyncio.to_thread(_signatures, found, authorities())
            of_event = dict(zip((each.seq for each in found), checked, strict=True))
            found = port.still_readable(session, found)
            signatures = [of_event[each.seq] for each in found]
        more = page.next < port.head
        return answer(events_info(found, page.next, page.corrupt, more=more, signatures=signatures))

    async def stream_head(request: Request) -> Response:
        return Response(media_type="text/event-stream")

    async def socket_head(request: Request) -> Response:
        raise BadMethod("a WebSocket begins with GET", remedy="Open it with a WebSocket client.")

    return [
        Endpoint("GET", "/events", read, BY_PORT),
        Endpoint("POST", "/events", publish, BY_PORT),
        Endpoint("GET", "/events/stream", stream_head, reads("events")),
        Endpoint("GET", "/events/socket", socket_head, reads("events")),
    ]


def _signatures(found: list[Stored], trusted: Authorities) -> list[SignatureInfo | None]:
    # It loads the library for certificates, as few brokers have to.
    from tocsin.drivers.http.rest.events.signatures import signature_info

    return [signature_info(each.event, trusted) for each in found]


def _arrow_reader(port: BrokerPort, archiver: Archiver | None) -> ArrowReader:
    # Arrow takes a quarter of a second to load, and many megabytes: most brokers never need it.
    from tocsin.drivers.http.rest.events.arrow import ArrowReader

    return ArrowReader(port, archiver)
