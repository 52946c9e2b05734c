"""Intake: from what publishers send to the next commit. Many share one; a repeat is not stored."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import msgspec

from tocsin.broker.delivery.follower import event_weight
from tocsin.broker.delivery.retry import NS_PER_S
from tocsin.broker.effects import Accepted, Reply, Token
from tocsin.broker.options import BrokerOptions
from tocsin.errors import Busy, TocsinError
from tocsin.event.event import Event
from tocsin.event.stored import Stored


class Offer(msgspec.Struct, eq=False):
    """What one publisher sent in one request: all of it is stored, or none."""

    events: list[Event]
    token: Token
    bytes: int


class Intake:
    """Offers wait here, in the order they came, while a commit is under way."""

    def __init__(self, options: BrokerOptions) -> None:
        self._options = options
        self._offers: deque[Offer] = deque()
        self._events = 0
        self._bytes = 0
        # Source and id of recent events. Exact, not hashed: a collision here would acknowledge an
        # event and lose it.
        self._recent: dict[tuple[str, str], int] = {}
        # The same keys: a dict that loses its oldest looks at all the places they left, each time.
        self._oldest_first: deque[tuple[str, str]] = deque()
        self._received_ns = 0
        self._before_jump_ns = 0  # the last time before one that was far ahead of it
        self._refusal: Callable[[], TocsinError] | None = None

    def refuse(self, why: Callable[[], TocsinError] | None) -> None:
        """Answer every publisher with this from now on; None to take events again."""
        self._refusal = why

    def __bool__(self) -> bool:
        return bool(self._offers)

    def remember(self, keys: Iterable[tuple[str, str, int]], received_ns: int) -> None:
        """Take up the window again after a restart, oldest first, and the last event's time."""
        self._received_ns = received_ns
        for source, event_id, seq in keys:
            self._recent[source, event_id] = seq
        self._oldest_first.extend(self._recent)

    def offer(self, events: list[Event], token: Token) -> None:
        """Queue what a publisher sent. Busy if too much waits already."""
        if self._refusal is not None:
            raise self._refusal()
        size = sum(map(event_weight, events))
        options = self._options
        if self._offers and (
            self._events + len(events) > options.intake_events_max
            or self._bytes + size > options.intake_bytes_max
        ):
            raise Busy(
                f"{self._events} events are already waiting for the disk",
                remedy="Nothing was stored. Send it again in a second.",
            )
        self._offers.append(Offer(events, token, size))
        self._events += len(events)
        self._bytes += size

    def take(self, head: int, now_ns: int) -> tuple[list[Stored], int, list[Reply]]:
        """The events of the next commit, numbered from `head` on, about how many bytes they are,
        and what to answer then."""
        stored: list[Stored] = []
        promised: list[Reply] = []
        size = 0
        options = self._options
        recent = self._recent
        seq = head
        # The log is searched by time, so time does not go back in it, unless what came before was
        # stamped by a clock that was far ahead.
        received_ns = self._stamp_ns(now_ns) if self._offers else 0
        while self._offers and len(stored) < options.batch_events_max:
            if size + self._offers[0].bytes > options.batch_bytes_max and stored:
                break
            offer = self._offers.popleft()
            size += offer.bytes
            self._events -= len(offer.events)
            self._bytes -= offer.bytes
            first = last = duplicates = 0
            for event in offer.events:
                key = (event.source, event.id)
                known = recent.get(key)
                if known is None:
                    seq += 1
                    known = recent[key] = seq
                    self._oldest_first.append(key)
                    stored.append(Stored(seq, received_ns, event))
                else:
                    duplicates += 1
                if known > last:
                    last = known
                if not first or known < first:
                    first = known
            accepted = Accepted(len(offer.events), first, last, duplicates)
            promised.append(Reply(offer.token, accepted))
        return stored, size, promised

    def _stamp_ns(self, now_ns: int) -> int:
        jump_ns = int(self._options.clock_jump_s * NS_PER_S)
        if now_ns - self._received_ns > jump_ns:
            self._before_jump_ns = self._received_ns
        is_back = self._received_ns - now_ns > jump_ns
        self._received_ns = max(now_ns, self._before_jump_ns if is_back else self._received_ns)
        return self._received_ns

    def forget_old(self) -> None:
        """Keep to the window. After a commit, not before: one that fails must not push out what
        the window still has to know."""
        while len(self._recent) > self._options.duplicates_window:
            del self._recent[self._oldest_first.popleft()]

    def undo(self, stored: list[Stored]) -> None:
        """The commit failed: these were not stored, so a repeat of them is none."""
        for _ in stored:
            del self._recent[self._oldest_first.pop()]

    def turn_away(self) -> list[Token]:
        """Everybody still waiting, because there will be no further commit."""
        tokens = [offer.token for offer in self._offers]
        self._offers.clear()
        self._events = self._bytes = 0
        return tokens
