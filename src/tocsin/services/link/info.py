"""The overlay as one broker sees it, for people."""

from __future__ import annotations

from tocsin.access.session import internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.errors import NoSuchSubscription
from tocsin.event.subscription import Kind
from tocsin.overlay.routing.router import Router
from tocsin.overlay.routing.views import NeighbourView, RoutingView
from tocsin.services.control.views import ControlInfo
from tocsin.services.link.dialler import problem_of
from tocsin.services.link.local_filters import entry_id
from tocsin.services.link.neighbour import Neighbour
from tocsin.services.link.neighbours import Neighbours
from tocsin.services.link.views import NeighbourInfo, OverlayInfo, PeerInfo

_SERVICE = internal("link")


def overlay_info(
    view: RoutingView,
    neighbours: Neighbours,
    port: BrokerPort,
    *,
    log: str,
    link: str | None,
    peers: tuple[PeerInfo, ...],
    handovers: int,
    refused: int,
    discovery: dict[str, object],
    control: ControlInfo,
) -> OverlayInfo:
    reached = {broker for each in view.neighbours for broker in each.behind}
    return OverlayInfo(
        broker=view.broker,
        log=log,
        link=link,
        covering=view.covering,
        brokers=tuple(sorted(reached)),
        peers=peers,
        neighbours=tuple(
            _neighbour(each, neighbours.find(each.broker), port) for each in view.neighbours
        ),
        advertisements=view.advertisements,
        advertisements_total=view.advertisements_total,
        subscriptions=view.subscriptions,
        subscriptions_total=view.subscriptions_total,
        forgotten=view.forgotten,
        handovers=handovers,
        refused=refused,
        discovery=discovery,
        control=control,
    )


def reached_by(view: SubscriptionView, router: Router) -> dict[str, int] | None:
    """At which other brokers a subscription holds, and since when; None: it is not routed."""
    if view.subscription.kind is Kind.LINK:
        return None
    found = router.reached(entry_id(view.filter))
    created_ns = view.subscription.created_ns  # others may have asked for the same before
    return found and {broker: max(since_ns, created_ns) for broker, since_ns in found.items()}


def _neighbour(
    routed: NeighbourView, neighbour: Neighbour | None, port: BrokerPort
) -> NeighbourInfo:
    known = neighbour or Neighbour(routed.broker, port)
    connection, place = known.connection, _place(known, port)
    return NeighbourInfo(
        broker=routed.broker,
        state=routed.state,
        peer=None if connection is None else connection.transport.peer,
        is_outgoing=None if connection is None else connection.is_outgoing,
        agent=None if connection is None else connection.agent,
        since_ns=known.since_ns if connection is not None else routed.gone_ns,
        round_trip_ms=None if connection is None else connection.round_trip_ms,
        behind=routed.behind,
        advertisements=routed.advertisements,
        subscriptions=routed.subscriptions,
        lag=None if place is None else place.behind,
        in_flight=known.in_flight,
        sent=known.counts.sent,
        received=known.counts.received,
        repeats=known.counts.repeats,
        ignored=known.counts.ignored,
        dropped=0 if place is None else place.dropped,
        error=None if known.error is None else problem_of(known.error),
    )


def _place(neighbour: Neighbour, port: BrokerPort) -> SubscriptionView | None:
    """Its place in the log."""
    if not neighbour.link_id:
        return None
    try:
        return port.view(_SERVICE, neighbour.link_id)
    except NoSuchSubscription:
        return None
