"""Listing: the entries of the directory, indexed by event, host and kind.

A lapsed entry is never answered with; it stays until whoever holds the listing has removed it.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import msgspec

from tocsin.errors import BadFilter
from tocsin.event.event import Event, Value
from tocsin.event.facets import facets
from tocsin.event.filter import EVERYTHING, All, AnyOf, Filter, Not, TopicIs, TopicMatches, XPath
from tocsin.event.filter_eval import Seen, passes
from tocsin.wire.directory.entry import Entry, Identity, Kind
from tocsin.wire.gma.names import EventName


class Wanted(msgspec.Struct, frozen=True):
    """What somebody looks for; what is left out does not matter."""

    kind: Kind | None = None
    event: EventName | None = None
    local_name: str | None = None  # of an event, in whatever namespace
    host: str | None = None
    filter: Filter = EVERYTHING


class EntryPage(msgspec.Struct, frozen=True):
    """Some entries, by id, and the id to go on after; None at the end."""

    entries: list[Entry]
    next: str | None


class _Item:
    """An entry, and what filters see of it, worked out when the first one asks."""

    __slots__ = ("_seen", "entry")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self._seen: Seen | None = None

    @property
    def seen(self) -> Seen:
        if self._seen is None:
            values = comparable(self.entry)
            about = self.entry.registration
            event = Event(self.entry.id, about.address or about.host, about.kind)
            self._seen = Seen(event, values, facets(values))
        return self._seen


def comparable(entry: Entry) -> dict[str, Value]:
    """What a filter can ask of an entry, by name."""
    about = entry.registration
    members = {"id": entry.id, "kind": about.kind, "name": about.name, "host": about.host}
    address = {} if about.address is None else {"address": about.address}
    return {**about.attributes, **members, **address}


def check_filter(wanted: Filter) -> Filter:
    """The filter, if what it asks can be asked of an entry; else BadFilter."""
    match wanted:
        case All(parts) | AnyOf(parts):
            for part in parts:
                check_filter(part)
        case Not(part):
            check_filter(part)
        case TopicIs() | TopicMatches() | XPath():
            raise BadFilter(
                "topic and xpath ask about an event, and the directory has none",
                remedy="Ask for attributes, name, host, kind or address; for events use event=.",
            )
    return wanted


class Listing:
    """Entries by id, at most one for each identity."""

    def __init__(self) -> None:
        self._items: dict[str, _Item] = {}
        self._ids: list[str] = []  # in order, for pages
        self._by_identity: dict[Identity, str] = {}
        self._by_event: dict[EventName, set[str]] = {}
        self._by_local_name: dict[str, set[str]] = {}
        self._by_host: dict[str, set[str]] = {}
        self._by_kind: dict[Kind, set[str]] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Entry]:
        return (item.entry for item in self._items.values())

    def get(self, entry_id: str) -> Entry | None:
        item = self._items.get(entry_id)
        return None if item is None else item.entry

    def holder(self, identity: Identity) -> str | None:
        """The id of the entry with this identity."""
        return self._by_identity.get(identity)

    def put(self, entry: Entry) -> None:
        """List the entry, in place of those with the same id or the same identity."""
        self.remove(entry.id)
        if (other := self.holder(entry.registration.identity)) is not None:
            self.remove(other)
        self._items[entry.id] = _Item(entry)
        insort(self._ids, entry.id)
        self._by_identity[entry.registration.identity] = entry.id
        for index, key in self._places(entry):
            index.setdefault(key, set()).add(entry.id)

    def remove(self, entry_id: str) -> None:
        """List it no more, if it was listed."""
        item = self._items.pop(entry_id, None)
        if item is None:
            return
        entry = item.entry
        del self._ids[bisect_right(self._ids, entry_id) - 1]
        del self._by_identity[entry.registration.identity]
        for index, key in self._places(entry):
            ids = index[key]
            ids.discard(entry_id)
            if not ids:
                del index[key]

    def lapsed(self, now_ns: int) -> list[Entry]:
        """Those whose lease has ended."""
        return [entry for entry in self if not entry.is_live(now_ns)]

    def look_up(
        self,
        wanted: Wanted,
        now_ns: int,
        *,
        after: str = "",
        limit: int | None = None,
        looked_at_max: int | None = None,
    ) -> EntryPage:
        """Live entries that are wanted, in the order of their ids.

        It ends where it found `limit` of them, or where it has looked at `looked_at_max`.
        """
        found: list[Entry] = []
        candidates = self._candidates(wanted, after)
        for entry_id in candidates[:looked_at_max]:
            item = self._items[entry_id]
            if not item.entry.is_live(now_ns):
                continue
            if wanted.filter != EVERYTHING and not passes(wanted.filter, item.seen):
                continue
            if len(found) == limit:
                return EntryPage(found, found[-1].id)
            found.append(item.entry)
        if looked_at_max is not None and len(candidates) > looked_at_max:
            return EntryPage(found, candidates[looked_at_max - 1])
        return EntryPage(found, None)

    def _candidates(self, wanted: Wanted, after: str) -> Sequence[str]:
        """Ids of the entries that have the event, the host and the kind."""
        sets: list[set[str]] = []
        if wanted.event is not None:
            sets.append(self._by_event.get(wanted.event, set()))
        if wanted.local_name is not None:
            sets.append(self._by_local_name.get(wanted.local_name, set()))
        if wanted.host is not None:
            sets.append(self._by_host.get(wanted.host.lower(), set()))
        if wanted.kind is not None:
            sets.append(self._by_kind.get(wanted.kind, set()))
        if not sets:
            return _from(self._ids, after)
        common = set.intersection(*sorted(sets, key=len))
        return _from(sorted(common), after)

    def _places(self, entry: Entry) -> Iterator[tuple[dict[Any, set[str]], Hashable]]:
        about = entry.registration
        yield self._by_kind, about.kind
        yield self._by_host, about.host.lower()
        for offered in about.events:
            yield self._by_event, offered.name
        for local_name in {offered.name.local for offered in about.events}:
            yield self._by_local_name, local_name


def _from(ids: Sequence[str], after: str) -> Sequence[str]:
    return ids[bisect_right(ids, after) :]
