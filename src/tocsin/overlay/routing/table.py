"""RoutingTable: entries and the neighbour each comes from. The SRT and the PRT are one of these.

What came from each neighbour is kept apart, whether it is connected or not. From that follows
which neighbour an entry comes from (the one behind which its origin is) and to which it goes, by
rules that look at the present alone: so the order in which things happened leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import nsmallest
from itertools import islice
from operator import attrgetter

from tocsin.event.filter import Filter
from tocsin.overlay.routing.cover_index import CoverIndex, Entry, entry_of
from tocsin.overlay.routing.effects import EntryKey

UNCOVERED_AT_ONCE = 1_000  # entries: some 80 ms
OWN = ""  # the hop of what was made at this broker
Row = tuple[str, Filter]
"""The text of a filter, and the filter."""
Before = tuple[str, str] | None
"""The hop and the filter's text that an entry had; None for one that was not there."""


class RoutingTable:
    """Advertisements or subscriptions by origin and id.

    `way_to` names the neighbour behind which a broker is, or None. `changed` collects the entries
    that may have to be sent or withdrawn, with what they were before, until somebody takes them.
    """

    def __init__(
        self,
        way_to: Callable[[str], str | None],
        is_only_way: Callable[[str, str], bool],
        *,
        covering: bool,
    ) -> None:
        """`is_only_way`: if a neighbour is the only one behind which a broker is."""
        self._way_to = way_to
        self._is_only_way = is_only_way
        self._covering = covering
        self._received: dict[str, dict[EntryKey, Row]] = {OWN: {}}
        self._senders: dict[EntryKey, dict[str, None]] = {}
        self._contested: dict[EntryKey, None] = {}  # that came from more than one
        self._index = CoverIndex()
        self._live: set[str] = {OWN}  # hops whose entries may stand for others
        self.entries: dict[EntryKey, Entry] = {}
        self.changed: dict[EntryKey, Before] = {}
        # Filters that neighbours say from now on, or no longer, until somebody takes them.
        self.changed_filters: dict[str, list[Filter]] = {}
        self.by_hop: dict[str, dict[EntryKey, Entry]] = {}
        self._by_origin: dict[str, dict[EntryKey, Entry]] = {}  # those that may cover others
        # They cover so many that these are looked at bit by bit. What was sent of one is withdrawn
        # when that is done.
        self.leaving: dict[EntryKey, Entry] = {}
        self.withheld: dict[EntryKey, None] = {}  # until no cycle is left
        self.bytes_of: dict[str, int] = {}  # of what came from each neighbour
        self.bytes_total = 0  # of all that

    def __len__(self) -> int:
        return len(self._senders)

    def rows_from(self, hop: str) -> dict[EntryKey, Row]:
        """What came from this neighbour."""
        return self._received.get(hop, {})

    def text_from(self, hop: str, key: EntryKey) -> str | None:
        row = self._received.get(hop, {}).get(key)
        return None if row is None else row[0]

    def put(self, hop: str, key: EntryKey, text: str, wanted: Filter) -> None:
        """The neighbour says this entry, or says it anew with another filter."""
        known = self.text_from(hop, key)
        rows = self._received.setdefault(hop, {})
        anew = self.changed_filters.setdefault(hop, [])
        if key in rows:
            anew.append(rows[key][1])
        anew.append(wanted)
        rows[key] = (text, wanted)
        self._count(hop, size_of(key, text) - (0 if known is None else size_of(key, known)))
        by = self._senders.setdefault(key, {})
        by[hop] = None
        if len(by) > 1:
            self._contested[key] = None
        self._choose(key)

    def take(self, hop: str, key: EntryKey) -> None:
        """The neighbour does not say it any more."""
        rows = self._received.get(hop, {})
        if key not in rows:
            return
        text, wanted = rows.pop(key)
        self._count(hop, -size_of(key, text))
        self.changed_filters.setdefault(hop, []).append(wanted)
        if hop != OWN and not rows:
            del self._received[hop]
        by = self._senders[key]
        del by[hop]
        if len(by) < 2:
            self._contested.pop(key, None)
        if not by:
            del self._senders[key]
        self._choose(key)

    def _count(self, hop: str, more: int) -> None:
        if hop == OWN:
            return
        self.bytes_total += more
        self.bytes_of[hop] = self.bytes_of.get(hop, 0) + more
        if not self.bytes_of[hop]:
            del self.bytes_of[hop]

    def set_live(self, hop: str, *, is_live: bool) -> None:
        """A neighbour is connected, or not any more. What is kept for one that is away stands for
        no entry of others: those would wait for it too."""
        if is_live == (hop in self._live):
            return
        self._live ^= {hop}
        self._file_again(self.by_hop.get(hop, {}).values())

    def ways_changed(self, brokers: Iterable[str]) -> None:
        """These brokers are behind other neighbours, or one more, or none."""
        known = (self._by_origin.get(broker, {}) for broker in brokers)
        self._file_again(entry for entries in known for entry in entries.values())

    def _file_again(self, entries: Iterable[Entry]) -> None:
        """Those of them that stand for others from now on, or no longer."""
        if not self._covering:
            return
        changed = [
            each
            for each in entries
            if each.inner is not None and each.is_filed != self._may_cover(each)
        ]
        gone = [each for each in changed if each.is_filed]
        for entry in gone:  # all of them first: else each would stand in for the one before
            self._unfile(entry)
        for entry in gone:
            self._uncover(entry.covers.values())
        for entry in changed:
            if self._may_cover(entry):
                self._offer_cover(entry)

    def _may_cover(self, entry: Entry) -> bool:
        """An entry of a broker that is on its way to another place stands for nobody: it is not
        sent to that broker once it is there, and neither would be what it stands for."""
        hop = entry.hop
        return hop == OWN or (hop in self._live and self._is_only_way(hop, entry.key[0]))

    def choose_again(self) -> None:
        """Where brokers are has changed."""
        for key in list(self._contested):
            self._choose(key)

    def take_changed_filters(self) -> dict[str, list[Filter]]:
        hops, self.changed_filters = self.changed_filters, {}
        return hops

    def take_changed(self) -> dict[EntryKey, Before]:
        changed, self.changed = self.changed, {}
        return changed

    def mark_withheld(self) -> None:
        """What was not withdrawn because there was a cycle is to be looked at again."""
        self.look_again(self.withheld)
        self.withheld.clear()

    def look_again(self, keys: Iterable[EntryKey]) -> None:
        """What was sent of these may have to go."""
        for key in keys:
            entry = self.entries.get(key)
            self.changed.setdefault(key, None if entry is None else (entry.hop, entry.text))

    def _choose(self, key: EntryKey) -> None:
        entry = self.entries.get(key)
        by = self._senders.get(key)
        if by is None:
            if entry is not None:
                self._remove(entry)
            return
        hop = self._hop(key, by, entry)
        text, wanted = self._received[hop][key]
        if entry is not None:
            if entry.hop == hop and entry.text == text:
                return
            self._remove(entry)
        fresh = entry_of(key, text, wanted, hop)
        if entry is not None and entry.text == text:
            fresh.reached = entry.reached
        self._add(fresh)

    def _hop(self, key: EntryKey, by: dict[str, None], entry: Entry | None) -> str:
        if OWN in by:
            return OWN
        way = self._way_to(key[0])
        if way is not None and way in by:
            return way
        return entry.hop if entry is not None and entry.hop in by else min(by)

    def _add(self, entry: Entry) -> None:
        if (before := self.leaving.pop(entry.key, None)) is not None:
            self._uncover(before.covers.values())
            if before.text == entry.text:  # it was never withdrawn: nobody says anew where it holds
                entry.reached = {**entry.reached, **before.reached}
        self.entries[entry.key] = entry
        self.by_hop.setdefault(entry.hop, {})[entry.key] = entry
        self.changed.setdefault(entry.key, None)
        if not self._covering or entry.inner is None:
            return
        self._by_origin.setdefault(entry.key[0], {})[entry.key] = entry
        self._find_covers(entry)
        if self._may_cover(entry):
            self._offer_cover(entry)

    def _offer_cover(self, entry: Entry) -> None:
        """From now on it stands for others."""
        for narrow in self._index.covered(entry):
            if entry.hop not in narrow.covered_by:
                self._index.unpost(narrow)
                self._set_cover(narrow, entry)
                self._post(narrow)
        self._index.file(entry)
        entry.is_filed = True

    def _unfile(self, entry: Entry) -> None:
        self._index.unfile(entry)
        entry.is_filed = False

    def _remove(self, entry: Entry) -> None:
        del self.entries[entry.key]
        at_hop = self.by_hop[entry.hop]
        del at_hop[entry.key]
        if not at_hop:
            del self.by_hop[entry.hop]
        self._mark(entry)
        if not self._covering or entry.inner is None:
            return
        at_origin = self._by_origin[entry.key[0]]
        del at_origin[entry.key]
        if not at_origin:
            del self._by_origin[entry.key[0]]
        self._unfile(entry)
        self._index.unpost(entry)
        for wide in entry.covered_by.values():
            wide.covers.pop(entry.key, None)
        if len(entry.covers) > UNCOVERED_AT_ONCE:
            self.leaving[entry.key] = entry
        else:
            self._uncover(entry.covers.values())

    def uncover_some(self, most: int) -> None:
        """Go on with entries that left, and stand for more than could be looked at in one turn."""
        for key, entry in list(self.leaving.items()):
            some = list(islice(entry.covers.values(), most))
            self._uncover(some)
            most -= len(some)
            if not entry.covers:
                del self.leaving[key]
                self.changed.setdefault(key, None)
            if most <= 0:
                return

    def uncover_all(self) -> None:
        """Before a neighbour is told of everything: it is not told of what has left."""
        self.uncover_some(sum(len(entry.covers) for entry in self.leaving.values()) + 1)

    def _uncover(self, covered: Iterable[Entry]) -> None:
        """What covers these does not stand for them any more."""
        for narrow in list(covered):
            self._index.unpost(narrow)
            for wide in narrow.covered_by.values():
                wide.covers.pop(narrow.key, None)
            narrow.covered_by.clear()
            self._mark(narrow)
            self._find_covers(narrow)

    def _find_covers(self, entry: Entry) -> None:
        for wide in self._index.covering(entry):
            if wide.hop not in entry.covered_by:
                self._set_cover(entry, wide)
                if entry.goes_nowhere:
                    return
        self._post(entry)

    def _set_cover(self, narrow: Entry, wide: Entry) -> None:
        narrow.covered_by[wide.hop] = wide
        wide.covers[narrow.key] = narrow
        self._mark(narrow)

    def _post(self, entry: Entry) -> None:
        """What goes nowhere already cannot be covered any more than that."""
        if not entry.goes_nowhere:
            self._index.post(entry)

    def _mark(self, entry: Entry) -> None:
        self.changed.setdefault(entry.key, (entry.hop, entry.text))

    def rows(self, most: int | None = None) -> list[Entry]:
        """The first entries in the order of their keys, or all."""
        if most is None:
            return sorted(self.entries.values(), key=_key)
        return nsmallest(most, self.entries.values(), key=_key)


_key = attrgetter("key")


def size_of(key: EntryKey, text: str) -> int:
    """About how many bytes the entry has as it is sent; at least one."""
    return len(key[0]) + len(key[1]) + len(text)
