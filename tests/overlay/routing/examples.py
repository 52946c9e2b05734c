"""Small overlays for examples of routing, and what a test looks at in them."""

from __future__ import annotations

from overlay.routing.overlay_sim import Overlay, identity
from tocsin.event.event import Event
from tocsin.event.filter_eval import matches
from tocsin.overlay.routing.effects import (
    Effect,
    NeighbourUp,
    SubscriptionMoved,
)
from tocsin.overlay.routing.options import RoutingOptions
from tocsin.overlay.routing.router import Router
from tocsin.wire.link import messages as m


def star(*edges: str, advertises: dict[str, tuple[str, ...]] | None = None) -> Overlay:
    """Brokers with one letter each, linked as the pairs of letters say."""
    overlay = Overlay()
    for broker in sorted({letter for edge in edges for letter in edge}):
        offered = (advertises or {}).get(broker, ("",))
        overlay.add(broker, RoutingOptions(advertises=offered))
    for one, other in edges:
        overlay.dial(one, other)
    overlay.settle()
    return overlay


def at(overlay: Overlay, broker: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The PRT: id -> last hop and where it was sent."""
    rows = overlay.router(broker).tables().subscriptions
    return {row.id: (row.last_hop, row.sent_to) for row in rows}


def reading(**attributes: float) -> Event:
    return Event(id="1", source="/s", type="t", attributes=dict(attributes))


def abc(low: str) -> str:
    return f"kind = abc and a > {low}"


def figure_1() -> Overlay:
    """Publisher at A; C in the middle; subscribers at B and D. D publishes nothing of the kind."""
    other = ("kind = other",)
    return star(
        "AC", "BC", "DC", advertises={"A": (abc("10"),), "B": other, "C": other, "D": other}
    )


def moved_at(overlay: Overlay, broker: str) -> list[tuple[str, str, str]]:
    seen = [each for each in overlay.nodes[broker].seen if isinstance(each, SubscriptionMoved)]
    return [(each.key[0], each.before, each.after) for each in seen]


def rows_about(overlay: Overlay, broker: str, other: str) -> list[str]:
    rows = overlay.nodes[broker].rows
    return [row for row in rows if other in row.split("/")[1:] and not row.startswith(("f/", "t/"))]


def greeting(router: Router, hello: m.Hello) -> list[Effect]:
    router.link_opened(1, 0, is_outgoing=False)
    return router.receive(1, hello, 0)


def linked(options: RoutingOptions | None = None) -> Router:
    router = Router(identity("A"), options)
    greeting(router, m.Hello(m.PROTOCOL_VERSION, "B", "log-B", 1, "x"))
    for message in (m.Welcome(), m.Synced("advertisements"), m.Synced("subscriptions")):
        router.receive(1, message, 0)
    return router


def wanted_at(overlay: Overlay, broker: str, neighbour: str, event: Event) -> bool:
    filters = overlay.nodes[broker].wanted.get(neighbour, {})
    return any(matches(each, event) for each in filters.values())


def is_up(overlay: Overlay, broker: str, neighbour: str) -> bool:
    seen = overlay.nodes[broker].seen
    return any(isinstance(each, NeighbourUp) and each.neighbour == neighbour for each in seen)
