"""LinkAccessCheck: what crosses the links of one broker, by what its neighbours are granted there.

Both ends ask: an event is sent to who may have it, and stored from who may publish it. Here the
bytes are read that are sent, and looked at is what is stored, whatever the service of links says.
"""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.access.session import Session
from tocsin.event.event import Event
from tocsin.event.filter import TopicIs
from tocsin.event.filter_text import parse_filter
from tocsin.event.instant import NS_PER_MS
from tocsin.sim.checks.access import ANY_LINK, AccessModel
from tocsin.sim.checks.grants import Holder, holder_of_session
from tocsin.sim.rights import MANAGE, PUBLISH, SUBSCRIBE, shape_of
from tocsin.sim.world import Violation, World
from tocsin.wire.link.codec import LinkMessage, LinkReader
from tocsin.wire.link.messages import (
    Advertise,
    Bye,
    Direct,
    Events,
    Handover,
    Hello,
    Refuse,
    Subscribe,
)

LINK_ENDS_NS = 1_200 * NS_PER_MS  # after the right to it has, which is looked at every second


class LinkAccessCheck:
    """Of one broker, over all its processes."""

    def __init__(self, world: World, host: str, model: AccessModel) -> None:
        self.host = host
        self.model = model
        self.world = world
        self._holders: dict[str, list[Holder]] = {}  # by the id of the broker

    def begin(self) -> None:
        """A process begins."""
        self._holders.clear()

    def knows(self, broker: str, session: Session) -> None:
        """Somebody is, or says to be, this broker."""
        holder = holder_of_session(session)
        if holder is None:
            raise Violation(f"{broker} is linked to {self.host} as the broker itself")
        holders = self._holders.setdefault(broker, [])
        if holder not in holders:
            holders.append(holder)

    def may_be_linked(self, holder: Holder) -> bool:
        holding = self.model.maybe(holder, exactly=True)
        return self.model.may(holding, holder, MANAGE, ANY_LINK, None) is not False

    def may_relay(self, event: Event, neighbour: str) -> bool:
        """Whether an event of this neighbour may be stored now."""
        return any(
            self.model.may_publish(self.model.maybe(holder, exactly=True), [event])
            for holder in self._holders.get(neighbour, ())
        )

    def check_entry(self, session: Session, message: Subscribe | Advertise) -> None:
        """A neighbour's entry was taken."""
        holder = holder_of_session(session)
        assert holder is not None
        action = SUBSCRIBE if isinstance(message, Subscribe) else PUBLISH
        wanted, holding = parse_filter(message.filter), self.model.maybe(holder, exactly=True)
        may = self.model.may(holding, holder, action, "filter", wanted)
        # Of other filters the broker may not know that no event passes both.
        is_apart = may is None and isinstance(wanted, TopicIs)
        if may is False or is_apart:
            raise Violation(
                f"{self.host} takes from {holder.name} that it may {action} {message.filter!r}"
            )


class LinkEndCheck:
    """Of one end of a connection: what its broker writes, and for how long."""

    def __init__(self, check: LinkAccessCheck, session: Session) -> None:
        self._check = check
        self._holder = holder_of_session(session)
        self._reader = LinkReader()
        self._is_direct = False
        self._over_ns: int | None = None  # since when there is no right to the link

    def wrote(self, data: bytes) -> None:
        """These bytes leave."""
        for message in self._reader.read(data):
            self._wrote(message)

    def _wrote(self, message: LinkMessage) -> None:
        check, holder = self._check, self._holder
        assert holder is not None
        match message:
            case Events() | Handover():
                self._check_events(holder, (each.event for each in message.events))
            case Direct():
                self._is_direct = True
            case Refuse() | Bye() | Hello():
                return
        check.world.seen["access: looked at a message of a link"] += 1
        self.check_end()

    def _check_events(self, holder: Holder, events: Iterable[Event]) -> None:
        check, model = self._check, self._check.model
        holding, is_linked = model.maybe(holder, exactly=True), check.may_be_linked(holder)
        for event in events:
            what = f"{check.host} sends {event.source} {event.id} to {holder.name}"
            if not (holding.is_valid and holding.allows(SUBSCRIBE, shape_of(event))):
                raise Violation(f"{what}, which has no right to it")
            if not is_linked:
                raise Violation(f"{what}, which may not be linked")

    def is_for_results(self) -> None:
        """The connection is no link: results of a discovery come by it."""
        self._is_direct = True

    def check_end(self) -> None:
        """Without a right to it, the link ends soon."""
        check, holder, now_ns = self._check, self._holder, self._check.world.now_ns
        assert holder is not None
        if self._is_direct or check.may_be_linked(holder):
            self._over_ns = None
        elif self._over_ns is None:
            self._over_ns = now_ns
        elif now_ns - self._over_ns > LINK_ENDS_NS:
            raise Violation(f"{check.host} is linked to {holder.name}, which has no right to be")
