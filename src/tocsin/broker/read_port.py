"""ReadPort: the part of the port that reads, and asks whether a session may."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tocsin.access.decision import EVERYBODY, About, Access, Action, Permit, Readable
from tocsin.access.session import Session
from tocsin.broker.broker import Broker
from tocsin.broker.engine import Engine
from tocsin.broker.log import StoreReader
from tocsin.broker.status import BrokerStatus, ClockStatus, clock_status_of, status_of
from tocsin.event.stored import Stored

T = TypeVar("T")


class ReadPort:
    """See `BrokerPort`, which is more than this."""

    def __init__(self, broker: Broker, engine: Engine, access: Access = EVERYBODY) -> None:
        self.runtime = engine.runtime
        self._broker = broker
        self._engine = engine
        self.access = access
        self._decide = access.decide

    def check(self, session: Session, action: Action, resource: str, about: About = None) -> None:
        """Raise NotAllowed if the session may not. For what a service does by itself: the other
        calls ask on their own. `about`: whose it is, the topic or the filter that it is about."""
        self._decide(session, action, resource, about)

    def may(self, session: Session, action: Action, resource: str, about: About = None) -> bool:
        """The same as an answer, for a list of which everybody sees a part."""
        return self.access.allows(session, action, resource, about)

    def read_permit(self, session: Session) -> Permit | None:
        """Which events the session may read; None for every one."""
        return self.access.session_permit(session, Action.READ)

    def readable(self, session: Session, resource: str = "") -> Readable | None:
        """What the session may read at this moment, for any thread; None for everything, or if it
        has a right to the whole resource, which is made of events."""
        permit = self.read_permit(session)
        found = None if permit is None else permit.readable()
        if found is not None and resource and found.has_all_on(resource, frozenset()):
            return None
        return found

    async def read(self, session: Session, resource: str, work: Callable[[StoreReader], T]) -> T:
        """Ask the log something; the resource says what, as in `events` or `deadletters`."""
        self._decide(session, Action.READ, resource)
        found = await self._engine.read(work)
        self._check_still(session, Action.READ, resource)
        return found

    def still_readable(self, session: Session, events: Sequence[Stored]) -> list[Stored]:
        """Of events that were read a moment ago, those that the session may read now."""
        permit = self.read_permit(session)
        return [each for each in events if permit is None or permit.allows(each.event)]

    def _check_still(
        self, session: Session, action: Action, resource: str, about: About = None
    ) -> None:
        """Raise for who has lost the right while it waited. What was decided before is recorded,
        and a second yes is not."""
        if not self.may(session, action, resource, about):
            self._decide(session, action, resource, about)

    def report_corrupt(self, sequences: list[int]) -> None:
        """A reader of the log was not given these records, which are damaged."""
        if sequences:
            self._broker.report_corrupt(sequences)
            self.runtime.wake()

    def status(self, session: Session) -> BrokerStatus:
        """How the broker is at this moment."""
        self._decide(session, Action.READ, "status")
        return status_of(self._broker)

    @property
    def head(self) -> int:
        """The number of the last event."""
        return self._broker.head

    @property
    def first(self) -> int:
        """The number of the oldest event that the log still has."""
        return self._broker.first

    @property
    def lower_bound_ns(self) -> int:
        """The time that it is at least, also while the machine's clock is in doubt."""
        return self._broker.clock.lower_bound_ns(self._engine.steady_ns())

    @property
    def is_clock_in_doubt(self) -> bool:
        """True while nothing should be given up because its time is over."""
        return self._broker.clock.doubt is not None

    @property
    def clock_complaint(self) -> str:
        """What is wrong with the machine's clock; empty if nothing is."""
        return self._broker.clock.complaint()

    def clock_status(self, session: Session) -> ClockStatus:
        self._decide(session, Action.READ, "clock")
        return clock_status_of(self._broker)
