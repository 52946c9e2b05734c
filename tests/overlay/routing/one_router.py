"""One router, and neighbours that a test plays itself."""

from __future__ import annotations

from tocsin.overlay.routing.effects import Effect, Send
from tocsin.overlay.routing.links import Identity
from tocsin.overlay.routing.options import RoutingOptions
from tocsin.overlay.routing.router import Router
from tocsin.wire.link import messages as m

S = 1_000_000_000


def broker_a(**options: int) -> Router:
    return Router(Identity("A", "log-A", m.DATA_FORMAT, "test/1"), RoutingOptions(**options))


def hello(broker: str, behind: dict[str, str] | None = None) -> m.Hello:
    return m.Hello(
        m.PROTOCOL_VERSION, broker, f"log-{broker}", m.DATA_FORMAT, "test/1", behind=behind or {}
    )


def link(
    router: Router, number: int, broker: str, behind: dict[str, str] | None = None, now_ns: int = 0
) -> list[Effect]:
    effects = router.link_opened(number, now_ns, is_outgoing=False)
    effects += router.receive(number, hello(broker, behind), now_ns)
    for message in (m.Welcome(), m.Synced("advertisements"), m.Synced("subscriptions")):
        effects += router.receive(number, message, now_ns)
    return effects


def sent_to(effects: list[Effect], link: int) -> list[m.Message]:
    return [each.message for each in effects if isinstance(each, Send) and each.link == link]
