"""Mistakes put into what the links between brokers ask before anything crosses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sim.mutations import Mutate
from tocsin.access.session import internal
from tocsin.broker.port import BrokerPort
from tocsin.services.link import neighbour, neighbours, rights, service
from tocsin.services.link.connection import Connection
from tocsin.services.link.forwarder import Forwarder
from tocsin.services.link.intake import EventIntake
from tocsin.services.link.neighbour import Neighbour
from tocsin.services.link.neighbours import Neighbours
from tocsin.services.link.service import LinkService

SERVICE = internal("link")


def _as_the_broker_itself(patch: pytest.MonkeyPatch, made: type) -> None:
    """It acts in a session of the broker, and not in that of the neighbour."""
    init = made.__init__  # type: ignore[misc]

    def careless(self: Any, port: BrokerPort, _: object, *others: Any) -> None:
        init(self, port, SERVICE, *others)

    patch.setattr(made, "__init__", careless)


def ask_nothing_at_the_sending_end(patch: pytest.MonkeyPatch) -> None:
    """Send a neighbour whatever passes the filters that came from there."""
    _as_the_broker_itself(patch, Forwarder)
    patch.setattr(Neighbours, "_session_of", lambda *_: None)
    patch.setattr(neighbours, "ANONYMOUS_OWNER", SERVICE.owner)
    patch.setattr(Neighbour, "permitted", lambda _, events: list(events))


def ask_nothing_at_the_receiving_end(patch: pytest.MonkeyPatch) -> None:
    """Store whatever a neighbour sends."""
    _as_the_broker_itself(patch, EventIntake)


def send_what_waited_without_another_look(patch: pytest.MonkeyPatch) -> None:
    """Send what was allowed when it was taken out of the log, whatever is by then."""
    patch.setattr(Neighbour, "permitted", lambda _, events: list(events))


def take_every_filter_of_a_neighbour(patch: pytest.MonkeyPatch) -> None:
    """Let a neighbour subscribe to anything, and announce anything."""
    patch.setattr(LinkService, "_check_entry", lambda *_: None)


def ask_who_is_linked_once(patch: pytest.MonkeyPatch) -> None:
    """Look at the right to a link when it begins, and not again."""
    check: Callable[..., None] = rights.check_link
    asked: set[Connection] = set()

    def once(port: BrokerPort, connection: Connection, named: str = "") -> None:
        if connection not in asked:
            check(port, connection, named)
            asked.add(connection)

    for module in (neighbour, rights, service):
        patch.setattr(module, "check_link", once)


LINK_ACCESS_MUTATIONS: dict[Mutate, str] = {
    ask_nothing_at_the_sending_end: "which has no right to it",
    ask_nothing_at_the_receiving_end: "published without a right",
    send_what_waited_without_another_look: "which has no right to it|which may not be linked",
    take_every_filter_of_a_neighbour: "takes from .* that it may",
    ask_who_is_linked_once: "which has no right to be|which may not be linked|no right to it",
}
"""Each mistake, and what a run may say of it first."""
