"""`/overlay`: links to other brokers, routing tables, and brokers that are gone for good."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.requests import Request
from starlette.responses import Response

from tocsin.drivers.http.rest.endpoint import Endpoint, manages, reads, session_in
from tocsin.drivers.http.rest.responses import answer, shown
from tocsin.event.instant import rfc3339, rfc3339_or_none
from tocsin.overlay.routing.views import EntryView
from tocsin.services.link.service import LinkService
from tocsin.services.link.views import OverlayInfo
from tocsin.wire.api.overlay_views import (
    ROWS_DEFAULT,
    ROWS_MAX,
    ControlStatus,
    NeighbourStatus,
    OverlayStatus,
    PeerStatus,
    RouteInfo,
    TdnsStatus,
)
from tocsin.wire.api.query import Query


def overlay_routes(links: LinkService | None) -> list[Endpoint]:
    """Where there are links: a service of message boxes has none."""
    if links is None:
        return []

    async def show(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("rows",))
        rows = query.number("rows", ROWS_DEFAULT, least=0, most=ROWS_MAX)
        return answer(overlay_status(links.info(session_in(request), rows)))

    async def forget(request: Request) -> Response:
        await links.forget(session_in(request), request.path_params["id"])
        return Response(status_code=204)

    return [
        Endpoint("GET", "/overlay", show, reads("overlay")),
        Endpoint("DELETE", "/overlay/brokers/{id}", forget, manages("overlay/{id}")),
    ]


def overlay_status(info: OverlayInfo) -> OverlayStatus:
    return shown(
        OverlayStatus,
        info,
        peers=[
            shown(PeerStatus, each, next_attempt_s=_rounded(each.next_attempt_s))
            for each in info.peers
        ],
        neighbours=[
            shown(
                NeighbourStatus,
                each,
                outgoing=each.is_outgoing,
                since=rfc3339_or_none(each.since_ns),
                round_trip_ms=_rounded(each.round_trip_ms),
            )
            for each in info.neighbours
        ],
        advertisements=_routes(info.advertisements),
        subscriptions=_routes(info.subscriptions),
        tdns=[shown(TdnsStatus, each) for each in info.control.tdns],
        control=shown(ControlStatus, info.control),
    )


def _routes(entries: Iterable[EntryView]) -> list[RouteInfo]:
    return [
        shown(
            RouteInfo,
            each,
            last_hop=each.last_hop or None,
            reached={broker: rfc3339(since_ns) for broker, since_ns in each.reached},
        )
        for each in entries
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
