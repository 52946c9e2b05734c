"""ReadCheck: what is answered to who reads, by the rights of the moment when the answer leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tocsin.access.session import Session
from tocsin.broker.delivery.deadletter import DeadLetter
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Owner
from tocsin.services.event_pages import EventPage
from tocsin.sim.checks.access import AccessModel
from tocsin.sim.checks.grants import Holder, Holding, holder_of_session
from tocsin.sim.checks.log import LogCheck
from tocsin.sim.rights import PUBLISH, READ, SUBSCRIBE, Shape, shape_of, shapes_on
from tocsin.sim.workload import TOPICS
from tocsin.sim.world import Violation
from tocsin.wire.api.status_views import TopicsPage


@dataclass(frozen=True, slots=True)
class Asked:
    """When somebody began to read, and what he surely had then."""

    holder: Holder
    surely: Holding
    changes: int  # of anybody's rights, so far


class ReadCheck:
    """Of one broker."""

    def __init__(self, model: AccessModel, log: LogCheck) -> None:
        self._model = model
        self._log = log

    def begin(self, session: Session) -> Asked:
        holder = holder_of_session(session)
        assert holder is not None
        model = self._model
        model.tick()
        return Asked(holder, model.surely(holder), model.changes)

    def _now(self, asked: Asked) -> Holding:
        self._model.tick()
        return self._model.maybe(asked.holder, exactly=True)

    # Events

    def page(
        self, asked: Asked, after: int, limit: int, wants: Callable[[Shape], bool], page: EventPage
    ) -> None:
        numbers = [stored.seq for stored in page.events]
        who = f"{asked.holder.name} read the log past {after} and got {numbers}"
        within = all(after < seq <= page.next for seq in numbers)
        if numbers != sorted(set(numbers)) or len(numbers) > limit or not within:
            raise Violation(f"{who}, and next {page.next}")
        self.events(asked, page.events, who)
        if not all(wants(shape_of(stored.event)) for stored in page.events):
            raise Violation(f"{who}, which it did not ask for")
        missing = self._owed(asked, range(after + 1, page.next + 1), wants) - set(numbers)
        if missing:
            raise Violation(f"{who}, and not {sorted(missing)}")

    def _owed(
        self, asked: Asked, numbers: Iterable[int], wants: Callable[[Shape], bool]
    ) -> set[int]:
        """What he surely might read all the time."""
        model, log = self._model, self._log
        if asked.changes != model.changes:
            return set()
        surely, gone = model.surely(asked.holder), max(log.trimmed_to, log.trim_asked)
        shapes = {
            seq: shape_of(log.events[seq])
            for seq in numbers
            if seq > gone and seq in log.events and seq not in log.unreadable
        }
        return {
            seq
            for seq, shape in shapes.items()
            if wants(shape)
            and all(each.is_valid and each.allows(READ, shape) for each in (asked.surely, surely))
        }

    def events(self, asked: Asked, events: Sequence[Stored], what: str) -> None:
        """These are in an answer."""
        holding = self._now(asked)
        for stored in events:
            if self._log.events.get(stored.seq) != stored.event:
                raise Violation(f"{what}: event {stored.seq} is not what the log has")
            self._event(holding, stored.event, what)

    def one_of(self, asked: Asked, events: list[Event], what: str) -> None:
        """One of these, which are alike, is in an answer."""
        if not events:
            raise Violation(f"{what}, which the log has not")
        holding = self._now(asked)
        if not any(_may_read(holding, event) for event in events):
            self._event(holding, events[-1], what)

    def _event(self, holding: Holding, event: Event, what: str) -> None:
        if not _may_read(holding, event):
            raise Violation(f"{what}: {event.source} {event.id} is read without a right")

    # Other things

    def resource(self, asked: Asked, resource: str, owner: Owner | None = None) -> None:
        """This is in an answer."""
        holding, holder = self._now(asked), asked.holder
        if self._model.may(holding, holder, READ, resource, owner) is False:
            raise Violation(f"{holder.name} ({holder.credential}) reads {resource} without a right")

    def views(self, asked: Asked, views: Iterable[SubscriptionView]) -> None:
        for view in views:
            found = view.subscription
            self.resource(asked, f"subscription/{found.id}", found.owner)

    def topics(self, asked: Asked, page: TopicsPage) -> None:
        """A topic is listed to who may do anything with some event on it; how many came, to who may
        read them all."""
        holding, name = self._now(asked), asked.holder.name
        for info in page.topics:
            if info.topic not in TOPICS:
                continue
            shapes = shapes_on(info.topic)
            is_known = any(
                holding.allows(action, shape)
                for action in (READ, SUBSCRIBE, PUBLISH)
                for shape in shapes
            )
            if not (holding.is_valid and is_known):
                raise Violation(f"{name} is told of the topic {info.topic} without a right")
            if info.events is None:
                continue
            if not all(holding.allows(READ, shape) for shape in shapes):
                raise Violation(f"{name} is told how much is on {info.topic} without a right")

    def letters(
        self, asked: Asked, letters: Iterable[DeadLetter], owner_of: Callable[..., Owner | None]
    ) -> None:
        holding, holder, model = self._now(asked), asked.holder, self._model
        for letter in letters:
            owner, shape = owner_of(letter), shape_of(letter.event)
            is_own = bool(holder.credential) and owner is not None and owner.name == holder.name
            reads = holding.allows(READ, shape) and (
                is_own or model.may(holding, holder, READ, "deadletter/*", None) is not False
            )
            gets = is_own and holding.allows(SUBSCRIBE, shape)
            if not holding.is_valid or not (reads or gets):
                raise Violation(f"{holder.name} reads dead letter {letter.id} without a right")


def _may_read(holding: Holding, event: Event) -> bool:
    return holding.is_valid and holding.allows(READ, shape_of(event))
