"""Grants: all the rights of one holder at one moment, so that a decision is a look into a table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Final

import msgspec

from tocsin.access.decision import About, Action
from tocsin.access.policy.rights import Right
from tocsin.access.session import ANONYMOUS
from tocsin.event.event import Event
from tocsin.event.filter import EVERYTHING, Filter, TopicIs
from tocsin.event.filter_eval import matches
from tocsin.event.instant import LATEST_NS
from tocsin.event.subscription import Owner
from tocsin.event.topic import TopicPattern
from tocsin.matching.covering import intersects

TOPICS_KEPT_MAX: Final = 4_096

# Whoever made one of these may go on with it who still has a right to this.
OWN: Final = {
    "blackboard/publisher": Action.PUBLISH,
    "blackboard/subscriber": Action.SUBSCRIBE,
    "box": Action.SUBSCRIBE,
    "deadletter": Action.SUBSCRIBE,
    "discovery": Action.SUBSCRIBE,
    "link": Action.SUBSCRIBE,
    "subscription": Action.SUBSCRIBE,
    "directory": Action.PUBLISH,
    "registration": Action.PUBLISH,
    "resource": Action.PUBLISH,
}
PRIVATE: Final = frozenset({"blackboard/subscriber", "box", "discovery", "subscription"})
# What is made of events on topics: a right to any of these events opens it, and then each event,
# run or topic is looked at for itself.
ON_TOPICS: Final = (Action.READ, Action.SUBSCRIBE, Action.PUBLISH)
OF_EVENTS: Final = frozenset({"events", "topics", "topic", "types", "endpoint", "run"})


class Reason(msgspec.Struct, frozen=True):
    """Why something is allowed or not: by which rule or token, or for want of any."""

    allowed: bool
    text: str


NONE: Final = Reason(allowed=False, text="no rule")
NOT_BOUND: Final = Reason(allowed=False, text="the token's right is not the principal's own")

OWNER: Final = Reason(allowed=True, text="its owner")

_numbers = count(1)


class Grants:
    """See the module. `number` is another one for each that is made."""

    __slots__ = (
        "_bound",
        "_by_action",
        "_by_topic",
        "from_ns",
        "is_timed",
        "is_valid",
        "name",
        "number",
        "tells_withheld",
        "until_ns",
    )

    def __init__(
        self,
        name: str,
        rights: Sequence[tuple[str, Right]] = (),
        until_ns: int = LATEST_NS,
        *,
        from_ns: int = 0,
        bound: Grants | None = None,
        is_valid: bool = True,
    ) -> None:
        """`rights`, each with what gives it; they hold until `until_ns`, and only what `bound`
        gives too. Not valid: of a credential that is revoked or unknown. Before `from_ns` there
        were more, which count again if the clock is set back."""
        self.name = name
        self.from_ns = from_ns
        self.until_ns = until_ns
        self.is_timed = from_ns > 0 or until_ns < LATEST_NS
        self.is_valid = is_valid
        self.number = next(_numbers)
        self._bound = bound
        self._by_action: dict[Action, list[tuple[Reason, Right]]] = {
            action: [
                (Reason(allowed=True, text=text), right)
                for text, right in rights
                if action in right.actions
            ]
            for action in Action
        }
        self._by_topic: dict[Action, dict[str, Reason | list[tuple[Reason, Right]]]] = {
            action: {} for action in Action
        }
        self.tells_withheld = any(
            right.tells_withheld for _, right in self._by_action[Action.SUBSCRIBE]
        )

    def has_all(self, action: Action) -> bool:
        """Whether the action is allowed on everything."""
        return any(right.is_whole for _, right in self._by_action[action]) and (
            self._bound is None or self._bound.has_all(action)
        )

    def has_topic(self, topic: str) -> bool:
        """Whether anything is allowed on some event of the topic."""
        return any(
            self._of_topic(action, topic) is not NONE
            and (self._bound is None or self._bound._of_topic(action, topic) is not NONE)
            for action in ON_TOPICS
        )

    def has_any(self, action: Action) -> bool:
        return bool(self._by_action[action]) and (
            self._bound is None or self._bound.has_any(action)
        )

    @classmethod
    def at(
        cls,
        name: str,
        rights: Sequence[tuple[str, Right]],
        now_ns: int,
        until_ns: int = LATEST_NS,
        bound: Grants | None = None,
    ) -> Grants:
        """Of those rights that are not over, until the first of them is."""
        ends = [until_ns, LATEST_NS if bound is None else bound.until_ns]
        from_ns = 0 if bound is None else bound.from_ns
        alive: list[tuple[str, Right]] = []
        for text, right in rights:
            if right.expires_ns is None or right.expires_ns > now_ns:
                alive.append((text, right))
                ends.append(right.expires_ns or LATEST_NS)
            else:
                from_ns = max(from_ns, right.expires_ns)
        return cls(name, alive, min(ends), from_ns=from_ns, bound=bound)

    def holds_at(self, now_ns: int) -> bool:
        return self.from_ns <= now_ns < self.until_ns

    # Events

    def topic_reason(self, action: Action, topic: str) -> Reason | None:
        """Whether the action is allowed on every event of the topic, and why; None if that differs
        from event to event."""
        found = self._known(action, topic)
        if isinstance(found, list):
            return None
        if found.allowed and self._bound is not None:
            bound = self._bound.topic_reason(action, topic)
            if bound is None:
                return None
            return found if bound.allowed else NOT_BOUND
        return found

    def _known(self, action: Action, topic: str) -> Reason | list[tuple[Reason, Right]]:
        known = self._by_topic[action]
        found = known.get(topic)
        if found is None:
            if len(known) >= TOPICS_KEPT_MAX:
                known.clear()
            found = known[topic] = self._of_topic(action, topic)
        return found

    def event_reason(self, action: Action, event: Event) -> Reason:
        """Whether the action is allowed on this event, and why."""
        found = self._known(action, event.topic)
        if isinstance(found, list):
            found = next((why for why, right in found if matches(right.filter, event)), NONE)
        if found.allowed and self._bound is not None:
            return found if self._bound.event_reason(action, event).allowed else NOT_BOUND
        return found

    def _of_topic(self, action: Action, topic: str) -> Reason | list[tuple[Reason, Right]]:
        """One answer for all events of the topic, or the rights that look at the event itself."""
        of_it = [
            (why, right)
            for why, right in self._by_action[action]
            if not right.resource and right.topic.matches(topic)
        ]
        for why, right in of_it:
            if right.filter == EVERYTHING:
                return why
        return of_it or NONE

    # Everything else

    def reason(self, action: Action, resource: str, about: About = None) -> Reason:
        """Whether the action is allowed on what is no event, and why."""
        found = self._reason(action, resource, about)
        if found.allowed and self._bound is not None:
            return found if self._bound.reason(action, resource, about).allowed else NOT_BOUND
        return found

    def _reason(self, action: Action, resource: str, about: About) -> Reason:
        kind = own_kind_of(resource)
        # To get every event is no right to fetch, change or end what others made for themselves,
        # without one to manage it; nor is that one alone, which would give their events.
        is_others = action is Action.SUBSCRIBE and kind in PRIVATE and resource != f"{kind}/own"
        manages = is_others and any(r.has(resource) for _, r in self._by_action[Action.MANAGE])
        for why, right in self._by_action[action]:
            if right.has(resource) and (manages or not is_others or not right.is_whole):
                return why
        if isinstance(about, Owner) and kind in OWN and (own := self._of_own(kind, about)).allowed:
            return own
        if action is Action.MANAGE and kind in OWN:
            return self._may_make(kind, resource, about)
        if kind in OWN and resource == f"{kind}/own" and about is None:  # else it is called so
            return self._some(action, kind)
        if isinstance(about, frozenset):
            return self._of_topics(action, about)
        if isinstance(about, Filter):
            return self._overlapping(action, about)
        topic = about if isinstance(about, str) else _topic_of(action, kind, resource)
        if topic is not None:
            levels = tuple(topic.split("/")) if topic else ()
            return self._overlapping(action, TopicIs(TopicPattern(levels)))
        if kind == "topics":  # whoever may do anything on a topic may know that it is there
            return next((why for each in ON_TOPICS if (why := self._first(each)).allowed), NONE)
        return self._first(action) if kind in OF_EVENTS else NONE

    def _may_make(self, kind: str, resource: str, about: About) -> Reason:
        """Who makes one needs no right to manage, if it is there for nobody else."""
        if isinstance(about, Owner) and about.name != self.name:
            return NONE
        makers = self._by_action[OWN[kind]]
        return next((w for w, r in makers if r.resource and r.has(resource)), NONE)

    def _some(self, action: Action, kind: str) -> Reason:
        """A right by which somebody may have one of the kind: to make it, or to a certain one."""
        own = self._first(OWN[kind])
        for each in () if own.allowed else {action, OWN[kind]}:
            for why, right in self._by_action[each]:
                if own_kind_of(right.resource) == kind:
                    return why
        return own

    def _of_topics(self, action: Action, topics: frozenset[str]) -> Reason:
        """A right to every event on each of the topics."""
        found = NONE
        for topic in topics:
            whole = self._of_topic(action, topic)
            if isinstance(whole, list) or not whole.allowed:
                return NONE
            found = whole
        return found

    def _first(self, action: Action) -> Reason:
        return next((why for why, right in self._by_action[action] if not right.resource), NONE)

    def _of_own(self, kind: str, owner: Owner) -> Reason:
        if owner.name != self.name or owner.name == ANONYMOUS.name:
            return NONE
        needed = OWN[kind]
        return OWNER if self._first(needed).allowed else NONE

    def _overlapping(self, action: Action, wanted: Filter) -> Reason:
        """A right to any event that passes: each of them is looked at when it comes."""
        for why, right in self._by_action[action]:
            if not right.resource and intersects(right.events, wanted):
                return why
        return NONE


def own_kind_of(resource: str) -> str:
    """The kind, as it is in OWN."""
    kind, _, rest = resource.partition("/")
    return f"{kind}/{rest.partition('/')[0]}" if kind == "blackboard" else kind


def _topic_of(action: Action, kind: str, resource: str) -> str | None:
    """The topic, or the pattern of topics, that the name of a resource is or holds."""
    if action is Action.PUBLISH:
        return None if kind == "endpoint" else resource
    return resource.partition("/")[2] if kind == "topic" else None
