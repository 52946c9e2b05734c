"""Sessions that publish: on which topics they may, and how many events were allowed on each.

So the decision about an event costs a look into a table, and its record a sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tocsin.access.policy.grants import Grants
from tocsin.access.session import Session
from tocsin.event.instant import LATEST_NS, NS_PER_S

PUBLISHERS_MAX: Final = 5_000
LOOK_NS_MAX: Final = NS_PER_S
TOPICS_MAX: Final = 100_000  # of all of them

Published = Callable[[Session, str, str, int], None]
"""Called with a session, a topic, why it may publish there, and how many events it has since."""


class _Allowed:
    """A topic on which a session may publish everything."""

    __slots__ = ("events", "reason")

    def __init__(self, reason: str, events: int) -> None:
        self.reason = reason
        self.events = events


class Publisher:
    """One session, and what was decided of its topics."""

    __slots__ = ("_allowed", "_expires_ns", "_is_timed", "_look_ns", "grants", "session")

    def __init__(self, session: Session, grants: Grants) -> None:
        self.session = session
        self.grants = grants
        expires_ns = None if session.credential is None else session.credential.expires_ns
        self._expires_ns = LATEST_NS if expires_ns is None else expires_ns
        self._is_timed = grants.is_timed or expires_ns is not None
        self._look_ns = 0  # by the steady clock: before then the time of day is not asked for
        self._allowed: dict[str, _Allowed] = {}

    def is_over(self, now_ns: Callable[[], int], steady_ns: Callable[[], int] | None) -> bool:
        """True if it has to be decided again: something ended, or the clock went back to before.
        The time of day takes longer to find out than all the rest. With a steady clock it is asked
        for when it may have come so far, and once a second, as it can be set."""
        if not self._is_timed:
            return False
        at_ns = 0
        if steady_ns is not None and (at_ns := steady_ns()) < self._look_ns:
            return False
        moment_ns = now_ns()
        if moment_ns >= self._expires_ns or not self.grants.holds_at(moment_ns):
            return True
        left_ns = min(self._expires_ns, self.grants.until_ns) - moment_ns
        self._look_ns = at_ns + min(left_ns, LOOK_NS_MAX)
        return False

    def count(self, topic: str, events: int) -> bool:
        """True if these events on the topic are known to be allowed."""
        known = self._allowed.get(topic)
        if known is None:
            return False
        known.events += events
        return True

    def allow(self, topic: str, reason: str, events: int) -> None:
        self._allowed[topic] = _Allowed(reason, events)

    def report(self, published: Published) -> None:
        for topic, allowed in self._allowed.items():
            if allowed.events:
                published(self.session, topic, allowed.reason, allowed.events)
                allowed.events = 0

    def forget(self) -> None:
        self._allowed.clear()


class Publishers:
    """All of them, by the session."""

    def __init__(self, published: Published) -> None:
        self._published = published
        # By id(): a session is the same object for as long as its connection lasts, and is held
        # here, so that no other gets its id() meanwhile.
        self._by_id: dict[int, Publisher] = {}
        self._topics = 0  # of all

    def find(self, session: Session) -> Publisher | None:
        return self._by_id.get(id(session))

    def add(self, session: Session, grants: Grants) -> Publisher:
        """In place of one whose time was over."""
        was = self._by_id.pop(id(session), None)
        if was is not None:
            was.report(self._published)
        if len(self._by_id) >= PUBLISHERS_MAX:
            self.forget()
        publisher = self._by_id[id(session)] = Publisher(session, grants)
        return publisher

    def allow(self, publisher: Publisher, topic: str, reason: str, events: int) -> None:
        if self._topics >= TOPICS_MAX:
            self.forget()
            self._by_id[id(publisher.session)] = publisher
        self._topics += 1
        publisher.allow(topic, reason, events)

    def report(self) -> None:
        """Call `published` with what has come since the last time."""
        for publisher in self._by_id.values():
            publisher.report(self._published)

    def forget(self) -> None:
        """What was decided may be decided otherwise now."""
        self.report()
        for publisher in self._by_id.values():
            publisher.forget()
        self._by_id.clear()
        self._topics = 0
