"""The decision: may this session do that? One object is asked by the port for every operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from tocsin.access.session import BROKER, Session
from tocsin.access.wording import OPERATOR, refusal, who_grants
from tocsin.errors import NotAllowed, NotSignedIn
from tocsin.event.event import Event
from tocsin.event.filter import Filter
from tocsin.event.subscription import Owner


class Action(StrEnum):
    """What rights are granted for."""

    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    READ = "read"
    MANAGE = "manage"


ANY_BOX = "box/own"  # a box that the caller makes
TO_BOXES = "endpoint/box"  # who sends to boxes

About = Filter | Owner | frozenset[str] | str | None
"""What else a decision may need to know of a resource: the filter of `filter/...`, whose a
subscription or a box is, the topic that something is about, or all topics of the events that it is
made of."""


class Permit(Protocol):
    """Which events somebody may have. It follows the rights as they change."""

    @property
    def version(self) -> int:
        """Another one whenever an event might be answered otherwise than before."""

    @property
    def is_empty(self) -> bool:
        """True if it allows nothing: the right, or the credential, has ended."""

    @property
    def tells_withheld(self) -> bool:
        """Whether its holder may learn how many events it did not get for want of a right."""

    def allows(self, event: Event) -> bool: ...

    def readable(self) -> Readable | None:
        """As it is at this moment; None if it allows everything."""


class Readable(Protocol):
    """What somebody may have at one moment. It stays as it is, and any thread may ask it."""

    def has_event(self, event: Event) -> bool: ...

    def has_all_on(self, resource: str, topics: frozenset[str]) -> bool:
        """Whether it may have a resource that is made of events on these topics: by a right to the
        resource, or to every event of each of the topics."""

    def has_topic(self, topic: str) -> bool:
        """Whether it may know of the topic: it may publish, get or read some event on it."""


Reach = Callable[[Owner | None], bool]
"""Whether what this owner made is the caller's own: made in its name, and with no other rights."""


class Access(Protocol):
    """Decides. Whatever it refuses, it refuses by NotSignedIn or NotAllowed."""

    def decide(self, session: Session, action: Action, resource: str, about: About = None) -> None:
        """Raise if the session may not do this to the resource. A resource is a topic for `publish`
        (or `endpoint/soap`, for a sequence of reliable messages on any topic), and else of one of
        the kinds of `resources.py`, as in `subscription/4f2a`."""

    def allows(self, session: Session, action: Action, resource: str, about: About = None) -> bool:
        """The same as an answer, for lists of which everybody sees a part: a no is no refusal, and
        nothing of it is recorded."""

    def decide_events(self, session: Session, events: Sequence[Event]) -> None:
        """Raise if the session may not publish every one of these."""

    def permit(self, owner: Owner | None, action: Action) -> Permit | None:
        """Which events this owner may be sent (SUBSCRIBE) or may read (READ); None for every
        event. The same object for the same owner."""

    def session_permit(self, session: Session, action: Action) -> Permit | None:
        """The same for a session, and only while its credential is valid."""

    def reach(self, session: Session) -> Reach:
        """As it is at this moment; any thread may ask it."""


class Decision(msgspec.Struct, frozen=True):
    """What was decided of one thing, and why: the id of the rule or token, or another reason."""

    session: Session
    action: Action
    resource: str
    allowed: bool
    reason: str


class Recorder(Protocol):
    """Is shown every decision but those about the broker itself."""

    def decided(self, decision: Decision) -> None: ...

    def published(self, session: Session, topic: str, reason: str, count: int) -> None:
        """So many events on a topic were allowed."""


Decide = Callable[[Session, Action, str], None]
"""Raises NotAllowed if the session may not do this to the resource."""


class DecidedBy:
    """Access by one function, which is not asked about single events."""

    def __init__(self, function: Decide) -> None:
        self._function = function

    def decide(self, session: Session, action: Action, resource: str, about: About = None) -> None:
        self._function(session, action, resource)

    def allows(self, session: Session, action: Action, resource: str, about: About = None) -> bool:
        try:
            self._function(session, action, resource)
        except (NotAllowed, NotSignedIn):
            return False
        return True

    def decide_events(self, session: Session, events: Sequence[Event]) -> None:
        for event in events:
            self._function(session, Action.PUBLISH, event.topic)

    def permit(self, owner: Owner | None, action: Action) -> Permit | None:
        return None

    def session_permit(self, session: Session, action: Action) -> Permit | None:
        return None

    def reach(self, session: Session) -> Reach:
        return session.is_owner


class BoxAccess:
    """The decisions of another access, for the broker that holds the message boxes. A box holds
    what was sent to that box, and whatever somebody may fetch of it is for them. Its topic is a
    secret of that broker: who may subscribe to anything may have a box, and who may publish
    anything may send to one."""

    def __init__(self, access: Access) -> None:
        self._decide = access.decide
        self._allows = access.allows
        self.reach = access.reach

    def decide(self, session: Session, action: Action, resource: str, about: About = None) -> None:
        if action is Action.SUBSCRIBE and isinstance(about, Filter):
            self._decide(session, action, ANY_BOX)
        else:
            self._decide(session, action, resource, about)

    def allows(self, session: Session, action: Action, resource: str, about: About = None) -> bool:
        if action is Action.SUBSCRIBE and isinstance(about, Filter):
            return self._allows(session, action, ANY_BOX)
        return self._allows(session, action, resource, about)

    def decide_events(self, session: Session, events: Sequence[Event]) -> None:
        self._decide(session, Action.PUBLISH, TO_BOXES)

    def permit(self, owner: Owner | None, action: Action) -> Permit | None:
        return None

    def session_permit(self, session: Session, action: Action) -> Permit | None:
        return None


def allow_all(session: Session, action: Action, resource: str) -> None:
    """Everybody may do everything."""


def deny_all(session: Session, action: Action, resource: str) -> None:
    """Nobody but the broker itself may do anything. Tests find endpoints that do not ask by it."""
    if session.principal != BROKER:
        raise not_allowed(session, action, resource)


EVERYBODY: Access = DecidedBy(allow_all)
"""`auth.mode = open`."""


def not_allowed(
    session: Session, action: Action, resource: str, contact: str = OPERATOR
) -> NotAllowed:
    """The refusal: which right is missing, and that `contact` can grant it."""
    return NotAllowed(
        refusal(session.principal.name, action, resource),
        remedy=who_grants(action, resource, contact),
    )
