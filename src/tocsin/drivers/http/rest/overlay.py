"""`/overlay`: links to other brokers, routing tables, and brokers that are gone for good."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from tocsin.drivers.http.rest.endpoint import Endpoint, manages, reads, session_in
from tocsin.drivers.http.rest.responses import answer
from tocsin.event.instant import rfc3339_or_none
from tocsin.overlay.routing.views import EntryView
from tocsin.services.link.service import LinkService
from tocsin.services.link.views import LinkProblem, NeighbourInfo, OverlayInfo, PeerInfo
from tocsin.wire.api.overlay_views import (
    ROWS_DEFAULT,
    ROWS_MAX,
    LinkProblemInfo,
    NeighbourStatus,
    OverlayStatus,
    PeerStatus,
    RouteInfo,
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
    return OverlayStatus(
        broker=info.broker,
        log=info.log,
        link=info.link,
        covering=info.covering,
        brokers=list(info.brokers),
        peers=[_peer(each) for each in info.peers],
        neighbours=[_neighbour(each) for each in info.neighbours],
        advertisements=[_route(each) for each in info.advertisements],
        advertisements_total=info.advertisements_total,
        subscriptions=[_route(each) for each in info.subscriptions],
        subscriptions_total=info.subscriptions_total,
        forgotten=list(info.forgotten),
        handovers=info.handovers,
        refused=info.refused,
        discovery=info.discovery,
    )


def _peer(peer: PeerInfo) -> PeerStatus:
    next_s = peer.next_attempt_s
    return PeerStatus(
        addresses=list(peer.addresses),
        state=peer.state,  # type: ignore[arg-type]  # the service says no other words
        used=peer.used,
        broker=peer.broker,
        next_attempt_s=None if next_s is None else round(next_s, 3),
        error=_problem(peer.error),
    )


def _neighbour(neighbour: NeighbourInfo) -> NeighbourStatus:
    round_trip_ms = neighbour.round_trip_ms
    return NeighbourStatus(
        broker=neighbour.broker,
        state=neighbour.state,  # type: ignore[arg-type]  # the router says no other words
        peer=neighbour.peer,
        outgoing=neighbour.is_outgoing,
        agent=neighbour.agent,
        since=rfc3339_or_none(neighbour.since_ns),
        round_trip_ms=None if round_trip_ms is None else round(round_trip_ms, 3),
        behind=list(neighbour.behind),
        advertisements=neighbour.advertisements,
        subscriptions=neighbour.subscriptions,
        lag=neighbour.lag,
        in_flight=neighbour.in_flight,
        sent=neighbour.sent,
        received=neighbour.received,
        repeats=neighbour.repeats,
        ignored=neighbour.ignored,
        dropped=neighbour.dropped,
        error=_problem(neighbour.error),
    )


def _problem(problem: LinkProblem | None) -> LinkProblemInfo | None:
    if problem is None:
        return None
    return LinkProblemInfo(problem.code, problem.problem, problem.remedy)


def _route(entry: EntryView) -> RouteInfo:
    return RouteInfo(
        origin=entry.origin,
        id=entry.id,
        filter=entry.filter,
        last_hop=entry.last_hop or None,
        sent_to=list(entry.sent_to),
        covered_by=[list(each) for each in entry.covered_by],
        reached=list(entry.reached),
    )
