"""Discovery: what drivers, the simulator and services call. `DiscoveryCore` is the one there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from tocsin.event.event import Value
from tocsin.overlay.discovery.context import IsBehind, MayConnectTo
from tocsin.overlay.discovery.effects import Effect
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.overlay.discovery.requests import Registration, Request
from tocsin.wire.link.discovery_messages import DiscoveryMessage


class Discovery(Protocol):
    """One broker's part in finding resources. Every call returns what must be done, in order.

    Messages between two neighbours must arrive whole, in order and once, until the link is
    reported as down.
    """

    options: DiscoveryOptions
    is_behind: IsBehind  # set where the tree of brokers is known
    may_connect_to: MayConnectTo  # set where there are addresses

    def register(self, registration: Registration, now_ns: int) -> list[Effect]:
        """Adds a resource, or changes it; with the same description only its lease begins anew."""

    def update(self, resource_id: str, values: Mapping[str, Value], now_ns: int) -> list[Effect]:
        """Replaces the current values of a resource."""

    def withdraw(self, resource_id: str, now_ns: int) -> list[Effect]: ...

    def discover(self, request: Request, now_ns: int) -> list[Effect]: ...

    def cancel(self, request_id: str, now_ns: int) -> list[Effect]:
        """Ends a request; one whose answer is being shared only stops answering its client."""

    def link_up(self, neighbour: str, now_ns: int) -> list[Effect]:
        """A new neighbour is sent what is known, after all that is left of links before."""

    def link_down(self, neighbour: str, now_ns: int) -> list[Effect]:
        """Begins to forget what came over the link; `clear` goes on with it."""

    @property
    def is_clearing(self) -> bool:
        """True if not everything is forgotten that came over links that have ended. Until then no
        neighbour's message should be handed in: it would have to wait for all of that."""

    def clear(self, now_ns: int) -> list[Effect]:
        """Forgets so much of it as takes a few milliseconds."""

    def receive(self, neighbour: str, message: DiscoveryMessage, now_ns: int) -> list[Effect]: ...

    def receive_direct(self, message: DiscoveryMessage, now_ns: int) -> list[Effect]:
        """Takes what another broker sent by `SendDirect`."""

    def tick(self, now_ns: int) -> list[Effect]:
        """Ends what is due."""

    def next_due_ns(self) -> int | None:
        """When `tick` has something to do."""

    def tables(self) -> dict[str, object]:
        """A snapshot for people, of plain values."""
