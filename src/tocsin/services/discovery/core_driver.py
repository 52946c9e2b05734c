"""CoreDriver: calls the core of discovery with the time, and hands on what it wants done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Timer
from tocsin.errors import TocsinError
from tocsin.event.instant import NS_PER_S
from tocsin.overlay.discovery.effects import (
    Answered,
    Current,
    Effect,
    Finished,
    Ignored,
    Notice,
    Refused,
    Send,
    SendDirect,
)
from tocsin.overlay.discovery.port import Discovery
from tocsin.wire.link.discovery_messages import DiscoveryMessage

WAIT_S_MAX: Final = 60.0  # the clock may be set meanwhile

ForClient = Answered | Finished | Current | Notice


class Links(Protocol):
    """The links to other brokers. Without any, everything is found at this one."""

    def send(self, neighbour: str, message: DiscoveryMessage) -> None:
        """In order, whole and once, until the link is reported as down."""

    def send_direct(self, broker: str, address: str, message: DiscoveryMessage) -> None:
        """To a broker that may be no neighbour, by a connection of its own to this address."""

    def ignored(self, neighbour: str, error: TocsinError) -> None:
        """What the neighbour advertises is not taken: it and people have to know."""


class CoreDriver:
    """One core, its clock and its neighbours. `for_client` gets what concerns clients here."""

    def __init__(
        self, port: BrokerPort, core: Discovery, for_client: Callable[[ForClient], None]
    ) -> None:
        self.core = core
        self.links: Links | None = None
        self._port = port
        self._for_client = for_client
        self._latest_ns = 0
        self._timer: Timer | None = None
        self._due_ns: int | None = None

    def now_ns(self) -> int:
        """The time of day; it never goes back, and no lease ends by a clock that is in doubt."""
        self._latest_ns = max(self._latest_ns, self._port.lower_bound_ns)
        return self._latest_ns

    def perform(self, effects: list[Effect]) -> None:
        """Do what the core wants. Raises if it refused the call that these are the effects of."""
        refusal: Refused | None = None
        for effect in effects:
            match effect:
                case Send(neighbour, message):
                    if self.links is not None:
                        self.links.send(neighbour, message)
                case SendDirect(broker, message, address):
                    if self.links is not None:
                        self.links.send_direct(broker, address, message)
                case Ignored(neighbour, error):
                    if self.links is not None:
                        self.links.ignored(neighbour, error)
                case Refused():
                    refusal = effect
                case _:
                    self._for_client(effect)
        self._set_timer()
        if refusal is not None:
            raise refusal.error

    # Called by the service of links

    def link_up(self, neighbour: str) -> None:
        self.perform(self.core.link_up(neighbour, self.now_ns()))

    def link_down(self, neighbour: str) -> None:
        """To be followed by `clear`, before anything else that concerns neighbours."""
        self.perform(self.core.link_down(neighbour, self.now_ns()))

    def clear(self) -> bool:
        """Go on with what is left to be done for links that have ended; True if something is."""
        if self.core.is_clearing:
            self.perform(self.core.clear(self.now_ns()))
        return self.core.is_clearing

    def receive(self, neighbour: str, message: DiscoveryMessage) -> None:
        self.perform(self.core.receive(neighbour, message, self.now_ns()))

    def receive_direct(self, message: DiscoveryMessage) -> None:
        self.perform(self.core.receive_direct(message, self.now_ns()))

    # Time

    def _set_timer(self) -> None:
        due_ns = self.core.next_due_ns()
        if due_ns is None or (self._due_ns is not None and self._due_ns <= due_ns):
            return
        if self._timer is not None:
            self._timer.cancel()
        delay_s = min(max(0.0, (due_ns - self.now_ns()) / NS_PER_S), WAIT_S_MAX)
        self._due_ns = due_ns
        self._timer = self._port.runtime.call_later(delay_s, self._tick)

    def _tick(self) -> None:
        self._timer = self._due_ns = None
        if not self._port.runtime.is_stopping:
            self.perform(self.core.tick(self.now_ns()))
