"""ServicePort: what only the broker's own services call, on behalf of no client.

`BrokerPort.own` gives it to a session of the broker itself. No right that can be granted does, so
an endpoint cannot come by it for whoever it serves.
"""

from __future__ import annotations

from collections.abc import Callable

from tocsin.broker.broker import Broker
from tocsin.broker.delivery.deadletter import DeadLetter
from tocsin.broker.runtime import Runtime
from tocsin.broker.state.interest import Interest
from tocsin.broker.state.local_filters import LocalFilters
from tocsin.errors import TocsinError
from tocsin.event.event import Event
from tocsin.event.subscription import Owner

OwnerOf = Callable[[str], Owner | None]
"""Who registered what has this id, SOMEBODY if nobody had signed in; None if it is not there, or
its time is over."""


class ServicePort:
    """A broker, as its own services see it."""

    def __init__(
        self,
        broker: Broker,
        runtime: Runtime,
        steady_ns: Callable[[], int],
        count_registrations: Callable[[str, OwnerOf], None],
    ) -> None:
        self.count_registrations = count_registrations
        """To be called by a service that has found again what clients have registered: it is kept
        under names that begin so, with an id behind. Then it counts for their quotas."""
        self._broker = broker
        self._runtime = runtime
        self._steady_ns = steady_ns

    def kept(self, prefix: str) -> dict[str, bytes]:
        """What services keep under names that begin so, as it is on disk."""
        return self._broker.kept(prefix)

    @property
    def interest(self) -> Interest:
        """What anybody wants now."""
        return self._broker.interest

    def is_wanted(self, event: Event) -> bool:
        """True if a subscription, a stream or a neighbour asks for such an event now."""
        return self._broker.is_wanted(event)

    def watch_local_filters(self, notify: Callable[[], None]) -> LocalFilters:
        """What the clients of this broker want; `notify` is called when that changes. For the one
        service that asks other brokers for it."""
        return self._broker.watch_local_filters(notify)

    def refuse_events(self, refusal: Callable[[], TocsinError] | None) -> None:
        """Answer every publisher with this from now on; None to take events again."""
        self._broker.refuse(refusal)

    @property
    def disk_full_count(self) -> int:
        """How many commits the disk had no room for, since the start."""
        return self._broker.counters.disk_full

    def count_unverified_soap(self) -> None:
        """A SOAP request came with WS-Security, and nothing in it was verified."""
        self._broker.counters.soap_unverified += 1

    def letter_owner(self, letter: DeadLetter) -> Owner | None:
        """Whose subscription it is; of one that is gone, whose it was."""
        return self._broker.letter_owner(letter)

    def on_clock_change(self, call: Callable[[], None]) -> None:
        """Have this called when the time of day is another: set, in doubt, or right again."""
        self._broker.clock.on_change.append(call)

    def show_clock(self, wall_ns: int) -> None:
        """The machine's clock says this now."""
        self._broker.clock.read(wall_ns, self._steady_ns())
        self._runtime.wake()
