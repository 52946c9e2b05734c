"""CheckedAccess: the policy that ships; each decision is compared with what was granted."""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.access.decision import About, Action, Reach
from tocsin.access.policy.permits import HolderPermit
from tocsin.access.policy.policy import Policy
from tocsin.access.session import Session
from tocsin.errors import NotAllowed
from tocsin.event.event import Event
from tocsin.event.subscription import Owner
from tocsin.sim.checks.access import AccessModel
from tocsin.sim.checks.grants import holder_of_session
from tocsin.sim.world import Violation, World


class CheckedAccess:
    """Does what the policy does."""

    def __init__(self, policy: Policy, model: AccessModel, world: World) -> None:
        self.model = model
        self._policy = policy
        self._world = world

    def decide(self, session: Session, action: Action, resource: str, about: About = None) -> None:
        holder = holder_of_session(session)
        if holder is None:
            return
        model = self.model
        model.tick()
        what = f"{holder.name} ({holder.credential}) may {action} {resource}"
        try:
            self._policy.decide(session, action, resource, about)
        except NotAllowed:
            self._world.seen[f"access: {action} refused"] += 1
            if model.may(model.surely(holder), holder, action, resource, about):
                raise Violation(f"{what}, and is refused") from None
            raise
        if model.may(model.maybe(holder, exactly=True), holder, action, resource, about) is False:
            raise Violation(f"{what}, without a right")

    def allows(self, session: Session, action: Action, resource: str, about: About = None) -> bool:
        try:
            self.decide(session, action, resource, about)
        except NotAllowed:
            answer = False
        else:
            answer = True
        if self._policy.allows(session, action, resource, about) is not answer:
            raise Violation(f"{session.owner.name}: {action} {resource} is answered in two ways")
        return answer

    def decide_events(self, session: Session, events: Iterable[Event]) -> None:
        holder = holder_of_session(session)
        if holder is None:
            return
        every = list(events)
        self.model.tick()
        what = f"{holder.name} ({holder.credential}) may publish {[each.id for each in every]}"
        try:
            self._policy.decide_events(session, every)
        except NotAllowed:
            self._world.seen["access: events refused"] += 1
            if self.model.may_publish(self.model.surely(holder), every):
                raise Violation(f"{what}, and is refused") from None
            raise
        self.check_publish(session, every)

    def check_publish(self, session: Session, events: list[Event]) -> None:
        """The broker takes these."""
        holder = holder_of_session(session)
        if holder is None:
            return
        if not self.model.may_publish(self.model.maybe(holder, exactly=True), events):
            ids = [each.id for each in events]
            raise Violation(f"{holder.name} publishes {ids} without a right")

    def permit(self, owner: Owner | None, action: Action) -> HolderPermit | None:
        return self._policy.permit(owner, action)

    def session_permit(self, session: Session, action: Action) -> HolderPermit | None:
        return self._policy.session_permit(session, action)

    def reach(self, session: Session) -> Reach:
        return self._policy.reach(session)
