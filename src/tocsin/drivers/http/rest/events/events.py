"""`/events`: the log, page by page, and what publishers send in an unusual way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from tocsin.access.decision import Readable
from tocsin.broker.log import StoreReader
from tocsin.drivers.http.rest.endpoint import BY_PORT, Endpoint, reads, session_in
from tocsin.drivers.http.rest.events.views import events_info
from tocsin.drivers.http.rest.responses import answer
from tocsin.errors import BadMethod
from tocsin.event.filter import EVERYTHING, Filter
from tocsin.event.filter_eval import matches
from tocsin.event.stored import Stored
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

LIMIT_MAX: Final = 1_000
LIMIT_DEFAULT: Final = 100
SCANNED_MAX: Final = (
    20_000  # events that one call looks at for a filter; `next` says how far it got
)
PAGE: Final = 1_000
PAGE_BYTES: Final = 8 << 20
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
        readable = port.readable(session)
        found, reached, corrupt = await port.read(
            session, "events", lambda log: _scan(log, after, limit, filter, readable)
        )
        port.report_corrupt(corrupt)
        signatures = None
        if checks_signatures:
            signatures = await asyncio.to_thread(_signatures, found, authorities())
        more = reached < port.head
        return answer(events_info(found, reached, corrupt, more=more, signatures=signatures))

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


def _scan(
    log: StoreReader, after: int, limit: int, filter: Filter, readable: Readable | None
) -> tuple[list[Stored], int, list[int]]:
    """Events that pass the filter and may be read, how far was looked, and what was damaged on the
    way."""
    takes_all = filter == EVERYTHING and readable is None
    found: list[Stored] = []
    corrupt: list[int] = []
    reached, scanned = after, 0
    while len(found) < limit and scanned < SCANNED_MAX:
        page_max = limit if takes_all else PAGE
        page = log.read(reached, page_max, PAGE_BYTES)
        corrupt.extend(page.corrupt)
        scanned += len(page.events) + len(page.corrupt)
        if page.next <= reached or not (page.events or page.corrupt):
            return found, max(page.next, reached), corrupt
        for stored in page.events:
            if readable is not None and not readable.has_event(stored.event):
                continue
            if filter == EVERYTHING or matches(filter, stored.event):
                found.append(stored)
                if len(found) == limit:
                    return found, stored.seq, [seq for seq in corrupt if seq <= stored.seq]
        reached = page.next
        if takes_all:
            break
    return found, reached, corrupt
