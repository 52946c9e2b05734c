"""Who may have what it asked for: rights are looked at when an event matches, and again when it is
sent, for they may have ended in between."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.access.decision import Permit
from tocsin.broker.delivery.follower import Follower
from tocsin.event.stored import Stored


class PermitCheck:
    """One reader's permit, and what it withheld. Without a permit everything is allowed."""

    __slots__ = ("_checked", "_on_withheld", "permit", "withheld")

    def __init__(self, permit: Permit | None, on_withheld: Callable[[int], None]) -> None:
        """`on_withheld` is called with how many were withheld, each time."""
        self.permit = permit
        self._on_withheld = on_withheld
        self.withheld = 0  # events that were asked for and not given
        self._checked = 0  # the version of the permit by which all that waits was looked at

    def use(self, permit: Permit | None) -> None:
        """It has another owner. What waits is looked at again."""
        self.permit = permit
        self._checked = 0

    def allows(self, stored: Stored) -> bool:
        """Whether this event, which was asked for, may be given."""
        if self.permit is None or self.permit.allows(stored.event):
            return True
        self.withheld += 1
        self._on_withheld(1)
        return False

    def is_over(self) -> bool:
        """True if nothing is allowed any more."""
        return self.permit is not None and self.permit.is_empty

    def withhold(self, follower: Follower, under_way: frozenset[int] | set[int]) -> int:
        """Take what is not allowed any more from what waits. What is `under_way` was sent when it
        was allowed; it is looked at when it would be sent again."""
        permit = self.permit
        if permit is None or (version := permit.version) == self._checked:
            return 0
        if not follower.held and not under_way:
            self._checked = version
        gone = [
            stored.seq
            for number, stored in enumerate(follower.waiting)
            if number >= follower.held
            and stored.seq not in under_way
            and not permit.allows(stored.event)
        ]
        follower.take_out(gone)
        if gone:
            self.withheld += len(gone)
            self._on_withheld(len(gone))
        return len(gone)

    @property
    def disclosed(self) -> int | None:
        """How many were withheld, if the reader may know."""
        return self.withheld if self.permit is not None and self.permit.tells_withheld else None
