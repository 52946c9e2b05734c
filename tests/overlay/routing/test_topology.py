"""What neighbours say of the brokers behind them: bounded work, and bounded memory."""

from __future__ import annotations

import time

from tocsin.overlay.routing.effects import CloseLink, Effect
from tocsin.overlay.routing.links import Identity
from tocsin.overlay.routing.options import RoutingOptions
from tocsin.overlay.routing.reach import Reach
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


def chain(first: str, names: list[str]) -> dict[str, str]:
    """Each broker is reached by way of the one before it in the list."""
    return dict(zip(names, [first, *names], strict=False))


def refusals(effects: list[Effect]) -> list[str]:
    return [each.error.code for each in effects if isinstance(each, CloseLink) and each.error]


def test_a_long_chain_of_brokers_behind_two_neighbours_is_compared_in_time_that_is_linear() -> None:
    names = [f"n{number:05}" for number in range(4_900)]
    router = broker_a()
    link(router, 1, "B", chain("B", names))
    link(router, 2, "C")
    began_s = time.process_time()

    router.receive(2, m.Behind(chain("C", names)), 1)
    router.tick(1)
    router.tick(10 * S)

    assert time.process_time() - began_s < 2.0


def test_brokers_that_do_not_lead_back_to_their_neighbour_are_not_walked_one_by_one() -> None:
    """Each is behind two neighbours, and what they say of it goes in a circle."""
    names = [f"n{number:05}" for number in range(4_000)]
    circle = chain(names[-1], names)
    reach = Reach("A")
    for neighbour in ("B", "C"):
        reach.add_neighbour(neighbour, circle)
    began_s = time.process_time()

    assert reach.edge_to_cut() is None
    assert time.process_time() - began_s < 1.0


def test_the_edge_that_is_cut_is_the_largest_of_the_cycle() -> None:
    reach = Reach("A")
    reach.add_neighbour("B", {"D": "B"})
    reach.add_neighbour("C", {"D": "C", "E": "D"})

    assert reach.edge_to_cut() == ("C", "D")
