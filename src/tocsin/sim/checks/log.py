"""LogCheck: sees every write to the log and every acknowledgement, and compares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from urllib.parse import quote

from tocsin.broker.commit.numbering import Applied
from tocsin.broker.effects import Accepted, Commit
from tocsin.broker.log import EventStore, LogReader
from tocsin.event.event import Event
from tocsin.event.stored import Append, Arrival, RepeatKey, Stored, repeat_key
from tocsin.event.subscription import SoapTerms
from tocsin.sim.workload import marker_of
from tocsin.sim.world import Violation

Key = tuple[str, str]

XML = "application/xml"
CLOCK_JUMP_NS = 86_400 * 1_000_000_000  # by more, times go back: the clock was set right again


class LogCheck:
    """What the log must hold: everything whose write was confirmed, once, in order."""

    def __init__(self, duplicates_window: int) -> None:
        self._window = duplicates_window
        self.events: dict[int, Event] = {}  # also those that the log has let go of since
        self.last = 0
        self.unreadable: set[int] = set()  # a bit of them is another than was written
        self.trimmed_to = 0
        self.trim_asked = 0  # the farthest trim that was begun, also if it failed
        self.acknowledged = 0
        self.on_stored: Callable[[Stored], None] = _ignore
        self.refused: dict[str, set[str]] = {}  # by marker: who had no right to publish it
        self._received_ns = 0
        self._seq_of: dict[RepeatKey, int] = {}
        self._named: set[Key] = set()  # the source and id of each, wherever it was published
        self._seqs_of: dict[str, list[int]] = {}  # by the marker in the data
        self._acknowledged: set[Key] = set()
        # Writes since the last one that was confirmed: one of them may be in the log. Also if the
        # disk was full: on a disk like the simulated one SQLite pads what it commits, and may have
        # had room for the whole transaction and not for the padding. Then a crash finds it.
        self._unconfirmed: list[Commit] = []
        # What a publisher does not try again; it may still be on its way, in no order.
        self.let_be: set[Key] = set()
        self._in_order: dict[str, int] = {}  # the last number of a source that sends in turn

    def promise_order(self, source: str) -> None:
        """This source, or publisher of markers, sends an event only when the one before is
        acknowledged."""
        self._in_order[source] = -1

    @property
    def is_confirmed(self) -> bool:
        """True if nothing was written since that the disk did not confirm."""
        return not self._unconfirmed

    def committing(self, commit: Commit) -> None:
        self.trim_asked = max(self.trim_asked, commit.change.trim_to)

    def writing(self, commit: Commit) -> None:
        self._unconfirmed.append(commit)

    def written(self, commit: Commit, applied: Applied, first_seq: int) -> None:
        self._unconfirmed.clear()
        if not self._is_all_of(commit.append, applied.events):
            raise Violation(f"an append was not applied as it was sent: {applied.events}")
        self._check_repeats(commit.append, applied.events)
        for stored in applied.events:
            self._add(stored)
        if applied.last_seq != self.last:
            raise Violation(f"the log says that it ends with {applied.last_seq}, not {self.last}")
        self._check_answers(commit.append, applied.answers)
        self.trimmed_to = first_seq - 1

    def _is_all_of(self, append: Append, stored: list[Stored]) -> bool:
        """True if these are the events of an append, in its order, but for repeats."""
        left = iter(stored)
        awaited = next(left, None)
        new: set[RepeatKey] = set()
        for event, key in _keyed(append):
            if awaited is not None and awaited.event == event and key not in new:
                new.add(key)
                awaited = next(left, None)
            elif key not in new and key not in self._seq_of:
                return False
        return awaited is None

    def _check_repeats(self, append: Append, stored: list[Stored]) -> None:
        """What was not stored again is known: it is within the window."""
        new = {repeat_key(each.event, each.arrival) for each in stored}
        for event, key in _keyed(append):
            if key in new:
                continue
            # The window is of events that can be read: after a restart nobody knows the others.
            numbers = range(self._seq_of[key] + 1, self.last + 1)
            if (since := sum(each not in self.unreadable for each in numbers)) >= self._window:
                raise Violation(
                    f"{event.source} {event.id} was taken for a repeat of what was stored "
                    f"{since} events before"
                )

    def _check_answers(self, append: Append, answers: list[Accepted]) -> None:
        """The events have their numbers by now: an answer tells the first and the last of them."""
        for place, (offer, accepted) in enumerate(zip(append.offers, answers, strict=True)):
            numbers = [self._seq_of[key] for _, key in _keyed_offer(append, place)]
            answer = (accepted.accepted, accepted.first, accepted.last)
            if answer != (len(offer), min(numbers, default=0), max(numbers, default=0)):
                raise Violation(f"an offer with the numbers {numbers} was answered with {accepted}")

    def _add(self, stored: Stored) -> None:
        event, seq = stored.event, stored.seq
        if seq != self.last + 1:
            raise Violation(f"event {seq} was stored after event {self.last}")
        # When all is trimmed, nothing is left to tell a restart what time it was.
        back_ns = self._received_ns - stored.received_ns
        if 0 < back_ns < CLOCK_JUMP_NS and self.trimmed_to < self.last:
            raise Violation(f"event {seq} was received before the event before it")
        self._received_ns = stored.received_ns
        key = repeat_key(event, stored.arrival)
        before = self._seq_of.get(key)
        # A restart remembers what the log still has; what was trimmed may be stored again.
        is_known = before not in self.unreadable
        if before and is_known and before > self.trimmed_to and seq - before <= self._window:
            raise Violation(f"{event.source} {event.id} was stored as {before} and as {seq}")
        is_own = stored.arrival is None  # a publisher at another broker may have the same source
        is_in_turn = event.source in self._in_order and (event.source, event.id) not in self.let_be
        if before is None and is_own and is_in_turn:
            self._check_turn(event.source, int(event.id))
        marker = marker_of(event.data)
        if marker is not None:
            publisher, _, number = marker.rpartition(" ")
            if publisher in self._in_order and marker not in self._seqs_of:
                self._check_turn(publisher, int(number))
            self._seqs_of.setdefault(marker, []).append(seq)
        self.events[seq] = event
        self._seq_of[key] = seq
        self._named.add((event.source, event.id))
        self.last = seq
        self.on_stored(stored)

    def _check_turn(self, publisher: str, number: int) -> None:
        if number < self._in_order[publisher]:
            raise Violation(f"{publisher} {number} was stored after a later one")
        self._in_order[publisher] = number

    def refuse(self, events: list[Event], publisher: str) -> None:
        """Somebody has no right to publish these."""
        for event in events:
            marker = marker_of(event.data)
            if marker is not None:
                self.refused.setdefault(marker, set()).add(publisher)

    def check_stored(self, marker: str, by: str) -> None:
        """An endpoint answers that it took the event with this marker."""
        if marker not in self._seqs_of:
            raise Violation(f"{marker} was acknowledged and is not in the log (by {by})")
        self._acknowledge(("", marker))

    def check_published(self, event: Event, first: int, by: str) -> None:
        """An endpoint answers that it took the event, and under which number."""
        seq = self._seq_of.get((event.source, event.id))
        if seq is None:
            raise Violation(
                f"{event.source} {event.id} was acknowledged and is not in the log (by {by})"
            )
        if seq != first:
            raise Violation(f"{event.source} {event.id} is event {seq}, and {first} by {by}")

    def check_stored_as(self, source: str, event_id: str, by: str) -> None:
        """An endpoint answers that it took the event that is stored under this id."""
        if (source, event_id) not in self._seq_of:
            raise Violation(f"{event_id} was acknowledged and is not in the log (by {by})")

    def check_forwarded(self, event: Event, soap: SoapTerms | None, host: str) -> None:
        """This broker answers that it took the event, which another one pushed into it."""
        by = "webhook" if soap is None else "SOAP"
        named = f"{host} took {event.source} {event.id} by {by} and"
        if soap is not None and event.datacontenttype == XML:
            self._check_payload(event, soap, named)
            return
        seq = self._seq_of.get((event.source, event.id))
        if seq is None:
            raise Violation(f"{named} has not stored it")
        stored = self.events[seq]
        if stored.topic != event.topic:
            raise Violation(f"{named} stored it on {stored.topic}, not {event.topic}")
        if (stored.type, stored.data) != (event.type, event.data):
            raise Violation(f"{named} stored it as {stored}")

    def _check_payload(self, event: Event, soap: SoapTerms, named: str) -> None:
        """XML goes as it is, with no more of the event than its topic and a message id."""
        same = [each for each in self.events.values() if each.data == event.data]
        if soap.wsa:
            # An id that is no URI is written as one.
            ids = {event.id, f"urn:tocsin:event:{quote(event.id, safe='')}"}
            same = [each for each in same if each.id in ids]
        if not same:
            raise Violation(f"{named} has not stored it")
        if all(each.topic != event.topic for each in same):
            raise Violation(f"{named} stored it on {same[0].topic}, not {event.topic}")

    def has(self, event: Event) -> bool:
        return self.has_key((event.source, event.id))

    def keys(self) -> Iterable[Key]:
        """The source and id of each event that was stored."""
        return self._named

    def has_key(self, key: Key) -> bool:
        return key in self._named

    def _acknowledge(self, key: Key) -> None:
        if key not in self._acknowledged:
            self._acknowledged.add(key)
            self.acknowledged += 1

    def acknowledge(
        self, events: list[Event], accepted: Accepted, arrivals: list[Arrival] | None = None
    ) -> None:
        """An acknowledgement leaves the broker: what it speaks of must be on disk by now."""
        for event, arrival in zip(events, arrivals or repeat(None), strict=False):
            seq = self._seq_of.get(repeat_key(event, arrival))
            if seq is None:
                raise Violation(f"{event.source} {event.id} was acknowledged and is not in the log")
            if not accepted.first <= seq <= accepted.last:
                raise Violation(
                    f"{event.source} {event.id} is event {seq} and was acknowledged as "
                    f"{accepted.first} to {accepted.last}"
                )
            self._acknowledge((event.source, event.id))

    def compare(self, store: EventStore, reader: LogReader) -> None:
        """After a start, and in the end: the log holds what it must, and nothing else."""
        unconfirmed, self._unconfirmed = self._unconfirmed, []
        trims = {self.trimmed_to, *(commit.change.trim_to for commit in unconfirmed)}
        if store.first_seq - 1 not in trims:
            raise Violation(f"the log begins with {store.first_seq}, trimmed to {trims}")
        if store.last_seq != self.last:
            self._adopt(unconfirmed, store, reader)
        self.trimmed_to = store.first_seq - 1
        self._compare_events(reader)

    def _adopt(self, unconfirmed: list[Commit], store: EventStore, reader: LogReader) -> None:
        """The log holds more or less than was confirmed: one whole append more is right."""
        more = reader.read(self.last, max(1, store.last_seq - self.last)).events
        if more and any(self._is_all_of(commit.append, more) for commit in unconfirmed):
            for stored in more:
                self._add(stored)
            return
        raise Violation(f"the log ends with {store.last_seq} and should with {self.last}")

    def _compare_events(self, reader: LogReader) -> None:
        page = reader.read(self.trimmed_to, max(1, self.last))
        self.check_unreadable(page.corrupt)
        found = {stored.seq: stored.event for stored in page.events}
        for seq in range(self.trimmed_to + 1, self.last + 1):
            if seq in self.unreadable:
                if seq in found:
                    raise Violation(f"event {seq} is damaged, and read as if it were sound")
            elif found.get(seq) != self.events[seq]:
                raise Violation(f"event {seq} is not in the log as it was written")

    def check_unreadable(self, sequences: list[int]) -> None:
        """The log says that it cannot read these."""
        if others := set(sequences) - self.unreadable:
            raise Violation(f"the log cannot read its events {sorted(others)}")


def _keyed(append: Append) -> Iterator[tuple[Event, RepeatKey]]:
    """The events of an append, each with what it is known by."""
    for place in range(len(append.offers)):
        yield from _keyed_offer(append, place)


def _keyed_offer(append: Append, place: int) -> Iterator[tuple[Event, RepeatKey]]:
    arrivals = append.arrivals.get(place) or repeat(None)
    for event, arrival in zip(append.offers[place], arrivals, strict=False):
        yield event, repeat_key(event, arrival)


def _ignore(_: object) -> None:
    """Until somebody looks at what is stored."""
