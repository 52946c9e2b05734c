"""Courier: takes messages to the link while it can, and to the spool while it cannot.

What waits in the spool goes first, so that messages arrive in the order in which they happened.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event

from tocsin.client.blackboard.link import Link
from tocsin.client.blackboard.wanted import Wanted, wanted
from tocsin.client.tracking import spool_file
from tocsin.client.tracking.handing_over import hand_over
from tocsin.client.tracking.spool import (
    BATCH_MESSAGES_MAX,
    Spool,
    remember_profile,
    remembered_profile,
)
from tocsin.client.tracking.spool_file import SpoolFile
from tocsin.client.tracking.telling import Teller
from tocsin.errors import TocsinError
from tocsin.wire.blackboard.messages import Message, Profile

RETRY_S = 1.0  # after a failed request; the watch on the profile mostly knows sooner
_AWAY = "away"


class Courier:
    """`heard` and `lost` are called by the watch's thread, all else by the sender's."""

    def __init__(self, link: Link, spool: Spool, teller: Teller, identity: frozenset[str]) -> None:
        self.link = link
        self._identity = identity
        self.spool = spool
        self.settled = Event()  # it is known whether somebody is there
        self.hurries = False  # no more requests: what is left goes to the spool
        self.wanted: Wanted | None = None
        self.sent = self.filtered = self.spooled = self.dropped = 0
        self._former: Wanted | None = None
        self._teller = teller
        self._reachable = False
        self._not_before = 0.0
        self._left_behind: list[Path] = []
        self._other: SpoolFile | None = None

    def heard(self, profile: Profile) -> None:
        """The aggregate profile is this now, and the broker is there."""
        asked = wanted(profile, self._identity)
        if not self._reachable:
            # Subscribers that a broker lost with its connections come back a little later than we
            # do. What was kept for them meanwhile is not thrown away for that.
            self._former = self.wanted or self._remembered()
            self._left_behind = self.spool.others()
            self._teller.again(_AWAY)
        self.wanted = asked
        self._not_before = 0.0
        self._reachable = True
        if self.link.is_remote:
            remember_profile(self.spool.directory, self.spool.broker, profile)
        self.settled.set()

    def lost(self, error: Exception) -> None:
        """Nobody answers. Until somebody does, the last known profile says what to measure."""
        self._reachable = False
        if self.wanted is None:
            self.wanted = self._remembered()
        self.settled.set()
        self._say_away(error)

    def _remembered(self) -> Wanted | None:
        profile = remembered_profile(self.spool.directory, self.spool.broker)
        return None if profile is None else wanted(profile, self._identity)

    @property
    def is_up(self) -> bool:
        return self._reachable and not self.hurries and time.monotonic() >= self._not_before

    def carry(self, messages: Sequence[Message]) -> None:
        """Bring them to where they are safe."""
        asked = self.wanted
        if not messages:
            return
        if self.spool.has_more or asked is None or not self.is_up:
            self.put_by(messages)
            return
        worth = [thin for message in messages if (thin := asked.thinned(message)) is not None]
        if self._send(worth):
            self.filtered += len(messages) - len(worth)
        else:
            self.put_by(messages)

    def put_by(self, messages: Sequence[Message]) -> None:
        """Into the spool; if that cannot be they are lost, and somebody learns of it."""
        try:
            self.spool.append(messages)
            self.spooled += len(messages)
        except OSError as error:
            self.dropped += len(messages)
            self._teller.once("spool", f"Events are lost, the spool cannot take them: {error}.")

    def catch_up(self, *, with_others: bool) -> bool:
        """Send one batch of what waits, our own first. True if there may be more to send."""
        if not self.is_up or self.wanted is None:
            return False
        if self.spool.has_more:
            return self._send_front(self.spool)
        if not with_others:
            return False
        return self._send_left_behind()

    def _send_front(self, source: Spool | SpoolFile) -> bool:
        try:
            if isinstance(source, Spool):
                messages, place = source.front()
            else:
                messages, place = source.front(BATCH_MESSAGES_MAX)
            asked = self.wanted
            assert asked is not None
            if self._former is not None:
                asked = asked | self._former
            worth = [thin for message in messages if (thin := asked.thinned(message)) is not None]
            if not self._send(worth):
                return False
            self.filtered += len(messages) - len(worth)
            source.release(place)
        except OSError as error:
            self._teller.once("spool read", f"The spool cannot be read: {error}.")
            self._not_before = time.monotonic() + RETRY_S
            return False
        return True

    def _send_left_behind(self) -> bool:
        """What other processes could not send, a batch at a time."""
        while self._other is None:
            if not self._left_behind:
                return False
            self._other = spool_file.take(self._left_behind.pop(0))
            if self._other is not None and self._other.broker != self.spool.broker:
                self._leave_other()
        went_well = not self._other.has_more or self._send_front(self._other)
        if not went_well or not self._other.has_more:
            self._leave_other()
        return went_well

    def _leave_other(self) -> None:
        other, self._other = self._other, None
        if other is not None:
            try:
                other.close()
            except OSError as error:
                self._teller.once("spool read", f"The spool cannot be written: {error}.")

    def _send(self, messages: Sequence[Message]) -> bool:
        refused: list[TocsinError] = []
        try:
            hand_over(self.link, messages, refused.append)
        except Exception as error:  # of a link that anybody may have written
            self._not_before = time.monotonic() + RETRY_S
            self._say_away(error)  # whether it is so the watch will find out
            return False
        self.sent += len(messages) - len(refused)
        self.dropped += len(refused)
        if refused:
            self._teller.once("refused", f"An event was refused: {refused[0]}")
        return True

    def _say_away(self, error: Exception) -> None:
        problem = error.problem if isinstance(error, TocsinError) else repr(error)
        self._teller.once(
            _AWAY, f"{problem}. Events wait in {self.spool.directory} and are sent when it is back."
        )

    def leave(self) -> None:
        """In a forked child: the file that the parent is sending is the parent's."""
        if self._other is not None:
            with suppress(OSError):
                self._other.leave()

    def close(self) -> None:
        """Leave the files to whoever comes next."""
        self._leave_other()
        self.spool.close()
