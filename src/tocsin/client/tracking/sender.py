"""Sender: sends messages over the link while it is up, else writes them to the spool.

What waits in the spool goes first, so that messages arrive in the order in which they happened.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event

from tocsin.client.blackboard.link import Link
from tocsin.client.tracking import spool_file
from tocsin.client.tracking.log_once import LogOnce
from tocsin.client.tracking.profile import ProfileFilter, profile_filter
from tocsin.client.tracking.spool import (
    BATCH_MESSAGES_MAX,
    Spool,
    publish_each,
    remember_profile,
    remembered_profile,
)
from tocsin.client.tracking.spool_file import SpoolFile
from tocsin.errors import TocsinError
from tocsin.wire.blackboard.messages import Message, Profile

RETRY_S = 1.0  # after a failed request; the watch on the profile mostly knows sooner
_UNREACHABLE = "unreachable"


class Sender:
    """`profile_received` and `link_lost` are called by the profile watch's thread, all else by the
    sender's."""

    def __init__(self, link: Link, spool: Spool, log: LogOnce, identity: frozenset[str]) -> None:
        self.link = link
        self._identity = identity
        self.spool = spool
        self.settled = Event()  # it is known whether the broker can be reached
        self.is_stopped = False  # no more requests: what is left goes to the spool
        self.filter: ProfileFilter | None = None
        self.sent = self.filtered = self.spooled = self.dropped = 0
        self._former: ProfileFilter | None = None
        self._log = log
        self._reachable = False
        self._not_before = 0.0
        self._orphans: list[Path] = []
        self._other: SpoolFile | None = None

    def profile_received(self, profile: Profile) -> None:
        """The broker can be reached, and this is its aggregate profile."""
        current = profile_filter(profile, self._identity)
        if not self._reachable:
            # Subscribers that a broker lost with its connections come back a little later than we
            # do. What was kept for them meanwhile is not thrown away for that.
            self._former = self.filter or self._remembered()
            self._orphans = self.spool.others()
            self._log.reset(_UNREACHABLE)
        self.filter = current
        self._not_before = 0.0
        self._reachable = True
        if self.link.is_remote:
            remember_profile(self.spool.directory, self.spool.broker, profile)
        self.settled.set()

    def link_lost(self, error: Exception) -> None:
        """The broker cannot be reached; meanwhile the last known profile says what to measure."""
        self._reachable = False
        if self.filter is None:
            self.filter = self._remembered()
        self.settled.set()
        self._log_unreachable(error)

    def _remembered(self) -> ProfileFilter | None:
        profile = remembered_profile(self.spool.directory, self.spool.broker)
        return None if profile is None else profile_filter(profile, self._identity)

    @property
    def is_up(self) -> bool:
        return self._reachable and not self.is_stopped and time.monotonic() >= self._not_before

    def send(self, messages: Sequence[Message]) -> None:
        """Send them, or write them to the spool."""
        current = self.filter
        if not messages:
            return
        if self.spool.has_more or current is None or not self.is_up:
            self.write_to_spool(messages)
            return
        worth = [part for message in messages if (part := current.apply(message)) is not None]
        if self._send(worth):
            self.filtered += len(messages) - len(worth)
        else:
            self.write_to_spool(messages)

    def write_to_spool(self, messages: Sequence[Message]) -> None:
        """Write them to the spool; if that fails they are lost, and the log says so."""
        try:
            self.spool.append(messages)
            self.spooled += len(messages)
        except OSError as error:
            self.dropped += len(messages)
            self._log.warn("spool", f"Events are lost, the spool cannot take them: {error}.")

    def catch_up(self, *, with_orphans: bool) -> bool:
        """Send one batch of what waits, our own first. True if there may be more to send."""
        if not self.is_up or self.filter is None:
            return False
        if self.spool.has_more:
            return self._send_front(self.spool)
        if not with_orphans:
            return False
        return self._send_orphans()

    def _send_front(self, source: Spool | SpoolFile) -> bool:
        try:
            if isinstance(source, Spool):
                messages, place = source.front()
            else:
                messages, place = source.front(BATCH_MESSAGES_MAX)
            current = self.filter
            assert current is not None
            if self._former is not None:
                current = current | self._former
            worth = [part for message in messages if (part := current.apply(message)) is not None]
            if not self._send(worth):
                return False
            self.filtered += len(messages) - len(worth)
            source.release(place)
        except OSError as error:
            self._log.warn("spool read", f"The spool cannot be read: {error}.")
            self._not_before = time.monotonic() + RETRY_S
            return False
        return True

    def _send_orphans(self) -> bool:
        """What other processes could not send, a batch at a time."""
        while self._other is None:
            if not self._orphans:
                return False
            self._other = spool_file.take(self._orphans.pop(0))
            if self._other is not None and self._other.broker != self.spool.broker:
                self._close_other()
        is_sent = not self._other.has_more or self._send_front(self._other)
        if not is_sent or not self._other.has_more:
            self._close_other()
        return is_sent

    def _close_other(self) -> None:
        other, self._other = self._other, None
        if other is not None:
            try:
                other.close()
            except OSError as error:
                self._log.warn("spool read", f"The spool cannot be written: {error}.")

    def _send(self, messages: Sequence[Message]) -> bool:
        refused: list[TocsinError] = []
        try:
            publish_each(self.link, messages, refused.append)
        except Exception as error:  # of a link that anybody may have written
            self._not_before = time.monotonic() + RETRY_S
            self._log_unreachable(error)  # the profile watch finds out whether it is
            return False
        self.sent += len(messages) - len(refused)
        self.dropped += len(refused)
        if refused:
            self._log.warn("refused", f"An event was refused: {refused[0]}")
        return True

    def _log_unreachable(self, error: Exception) -> None:
        problem = error.problem if isinstance(error, TocsinError) else repr(error)
        self._log.warn(
            _UNREACHABLE,
            f"{problem}. Events wait in {self.spool.directory} and are sent when it is back.",
        )

    def abandon(self) -> None:
        """In a forked child: the file that the parent is sending is the parent's."""
        if self._other is not None:
            with suppress(OSError):
                self._other.abandon()

    def close(self) -> None:
        """Leave the files to whoever comes next."""
        self._close_other()
        self.spool.close()
