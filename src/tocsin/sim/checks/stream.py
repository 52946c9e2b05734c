"""StreamCheck: what one reader gets over all its connections, in order and complete."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.access.session import Session
from tocsin.event.event import Event
from tocsin.sim.checks.access import AccessModel
from tocsin.sim.checks.grants import Watched, holder_of_session
from tocsin.sim.checks.log import LogCheck
from tocsin.sim.world import Violation


class StreamCheck:
    """The place of a reader in the log, and what it was told is missing."""

    def __init__(
        self,
        name: str,
        log: LogCheck,
        wants: Callable[[Event], bool],
        access: AccessModel | None = None,
    ) -> None:
        """`access`: None where everybody may have everything."""
        self._access = access
        self._watched = Watched()
        if access is not None:
            access.watch(self._watched)
        self.after: int | None = None  # the last event it knows to have passed
        self._name = name
        self._log = log
        self._wants = wants
        self._is_first = False  # nothing has come by this connection yet
        self._gone = (0, 0)  # trimmed for sure when it connected, and perhaps
        self._dropped = 0  # since the last event
        self._is_vague = False  # it is not known which were dropped

    def connect(self, head: int, first: int) -> int:
        """A connection is being opened; returns the place after which to begin."""
        if self.after is None:
            self.after = head
        self._is_first = True
        self._gone = first - 1, max(first - 1, self._log.trim_asked)
        self._dropped = 0
        self._is_vague = False
        return self.after

    def reads_by(self, session: Session) -> None:
        """The next connection is opened in this session."""
        if self._access is not None:
            self._access.hold(self._watched, holder_of_session(session))

    def dropped(self, count: int) -> None:
        """The broker says that so many events are missing here."""
        assert self.after is not None
        # It may have asked only after more was trimmed than when it connected.
        surely = self._gone[0] - self.after
        perhaps = max(self._gone[1], self._log.trim_asked) - self.after
        if not self._is_first or perhaps <= 0:
            self._dropped += count
        elif surely <= 0:
            self._is_vague = True  # a trim was under way: this may be its count, or of what waited
        elif surely <= count <= perhaps:
            self.after += count
        else:
            raise Violation(
                f"{self._name} was told that {count} events are missing after {self.after}, where "
                f"{surely} to {perhaps} are"
            )
        self._is_first = False

    def got(self, seq: int, source: str, event_id: str) -> None:
        """An event has arrived."""
        assert self.after is not None
        event = self._log.events.get(seq)
        if event is None or (event.source, event.id) != (source, event_id):
            raise Violation(f"{self._name} got an event {seq} that the log has not")
        if seq <= self.after:
            raise Violation(f"{self._name} got event {seq} after {self.after}")
        if not self._wants(event):
            raise Violation(f"{self._name} got event {seq}, which it did not ask for")
        missing = self._missing(seq)
        if self._is_wrong(missing):
            raise Violation(
                f"{self._name} got event {seq} and not events {missing}, told that "
                f"{self._dropped} were dropped"
            )
        self.after = seq
        self._dropped = 0
        self._is_first = self._is_vague = False

    def what_is_owed(self) -> str | None:
        """Why this is not the end yet."""
        if self.after is None:
            return f"{self._name} never opened"
        missing = self._missing(self._log.last + 1)
        if self._is_wrong(missing):
            return f"{self._name} has not got events {missing}, and {self._dropped} were dropped"
        return None

    def _is_wrong(self, missing: list[int]) -> bool:
        """So many as were dropped must be missing; what may have been withheld may be one of those
        that were dropped, or not."""
        if self._is_vague:
            return False
        access = self._access
        if access is None:
            return len(missing) != self._dropped
        owed = sum(not access.is_exempt(self._watched, seq) for seq in missing)
        return not owed <= self._dropped <= len(missing)

    def _missing(self, before: int) -> list[int]:
        assert self.after is not None
        events, unreadable = self._log.events, self._log.unreadable
        return [
            seq
            for seq in range(self.after + 1, before)
            if seq not in unreadable and self._wants(events[seq])
        ]
