"""Matcher: the front of the index. Add filters, remove them, ask who wants an event.

A filter is stored as rows (`conjunction.py`). A row is found in one of five ways: it asks for a
topic and nothing else, and is looked up by the topic alone; it asks for everything; it asks that a
name be there, as profiles of concepts do, and is looked up by the name; it has other terms, and the
predicate index finds it; or it is a residual alone, and is asked of every event.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tocsin.event.event import Event, Value, content, context, visible
from tocsin.event.facets import facets
from tocsin.event.filter import Filter, XPath
from tocsin.event.filter_eval import Seen, passes
from tocsin.matching.attributes import Answers, Attribute, AttributeTable
from tocsin.matching.clusters import AttributeTerm
from tocsin.matching.conjunction import (
    ANY_VALUE,
    EXISTS,
    AttributeKey,
    Conjunction,
    conjunctions,
)
from tocsin.matching.predicate_index import FEW_ROWS_MAX, NUMBA_ROWS_MIN, PredicateIndex
from tocsin.matching.residuals import Residuals
from tocsin.matching.rows import Rows
from tocsin.matching.topic_trie import TopicTrie

# Together at most 2 MiB of numbers, and little else for topics that nobody wants.
KNOWN_TOPICS_MAX = 4_096
KNOWN_TOPIC_KEYS_MAX = 1 << 18

_EVERYTHING = 0  # among the numbers of topic patterns: the one that always fits
_NO_GUARD = 0


@dataclass(frozen=True, slots=True)
class _TopicHits:
    """What the topic alone decides: who wants it whatever else the event says, and which patterns
    the rows that ask for more can count on."""

    keys: list[int]
    answers: Answers


@dataclass(frozen=True, slots=True)
class Holdings:
    """How much of each thing a matcher keeps: what it costs grows with these."""

    keys: int
    rows: int  # distinct conjunctions
    attributes: int  # distinct things that rows ask about
    clusters: int
    residuals: int
    patterns: int  # distinct topic patterns


class Matcher:
    """Who wants this event? Equal, always, to asking `matches` of every filter in turn.

    `use_numba`: None compiles the fast kernel when there are enough rows to be worth it, True does
    it now, False never. The two sizes are where the kernels take over from each other. `stopwatch`
    tells nanoseconds, for those who would otherwise take too many of them.
    """

    def __init__(
        self,
        *,
        use_numba: bool | None = None,
        few_rows_max: int = FEW_ROWS_MAX,
        numba_rows_min: int = NUMBA_ROWS_MIN,
        stopwatch: Callable[[], int] = lambda: 0,
    ) -> None:
        self._stopwatch = stopwatch
        # Key -> its rows; of an open key with the number of filters that have each.
        self._rows_of: dict[int, int | tuple[int, ...] | dict[int, int]] = {}
        self._split_keys = 0  # how many keys may have several rows, and so may be found twice
        self._rows = Rows()
        self._attributes = AttributeTable()
        self._residuals = Residuals()
        self._guards: dict[int, int] = {}  # row -> its residual
        self._trie = TopicTrie()
        self._topic_rows: dict[int, int] = {}  # pattern -> the row that asks for nothing else
        self._named: dict[str, int] = {}  # a name -> the row that asks for nothing but it
        self._loose: dict[int, None] = {}  # rows that are a residual and nothing else
        self._index = PredicateIndex(
            use_numba=use_numba, few_rows_max=few_rows_max, numba_rows_min=numba_rows_min
        )
        self._rows_for_any_topic = 0  # of those in the index or loose
        self._known_topics: dict[str, _TopicHits] = {}
        self._known_topic_keys = 0
        self.gave_up: list[XPath] = []  # of the last event, what would have taken too long

    def __len__(self) -> int:
        return len(self._rows_of)

    def __contains__(self, key: int) -> bool:
        return key in self._rows_of

    def add(self, key: int, filter: Filter) -> None:
        """Remember that `key`, not negative and not yet here, wants what passes the filter."""
        assert key >= 0
        assert key not in self._rows_of, key
        rows: dict[int, None] = {}
        for conjunction in conjunctions(filter):
            row, is_new = self._row(conjunction)
            if row not in rows:
                rows[row] = None
                self._rows.join(row, key, is_new=is_new)
        self._split_keys += len(rows) > 1
        self._rows_of[key] = next(iter(rows)) if len(rows) == 1 else tuple(rows)

    def add_open(self, key: int) -> None:
        """Remember a key that wants nothing yet, and then whatever any of its filters lets pass:
        thousands, that come and go one by one by `extend` and `reduce`."""
        assert key >= 0
        assert key not in self._rows_of, key
        self._rows_of[key] = {}
        self._split_keys += 1

    def extend(self, key: int, filter: Filter) -> None:
        """One filter more for an open key."""
        rows = self._open_rows(key)
        for conjunction in conjunctions(filter):
            row, is_new = self._row(conjunction)
            if row not in rows:
                rows[row] = 0
                self._rows.join(row, key, is_new=is_new)
            rows[row] += 1

    def reduce(self, key: int, filter: Filter) -> None:
        """One filter less for an open key, which was given it."""
        rows = self._open_rows(key)
        for conjunction in conjunctions(filter):
            row, is_new = self._row(conjunction)
            assert not is_new
            rows[row] -= 1
            if not rows[row]:
                del rows[row]
                self._leave(row, key)

    def _open_rows(self, key: int) -> dict[int, int]:
        rows = self._rows_of[key]
        assert isinstance(rows, dict)
        return rows

    def remove(self, key: int) -> None:
        """Forget a key that is here."""
        rows = self._rows_of.pop(key)
        if isinstance(rows, int):
            rows = (rows,)
        self._split_keys -= len(rows) > 1 or isinstance(rows, dict)
        for row in rows:
            self._leave(row, key)

    def _leave(self, row: int, key: int) -> None:
        terms, guard = self._unpacked(self._rows.identity(row))
        self._forget_topics_if_decided_by(terms)
        if self._rows.leave(row, key):
            self._displace(row, terms, guard)
            self._rows.drop(row)
            self._release(terms, guard)

    def match(self, event: Event) -> list[int]:
        """The keys whose filters the event passes, ascending, each once."""
        hits = self._known_topics.get(event.topic)
        if hits is None:
            hits = self._look_up(event.topic)
        self.gave_up = []
        if not self._rows_for_any_topic and not hits.answers:
            return hits.keys.copy()
        values = self._values(event)
        answers = self._attributes.read(values) if len(self._index) else []
        answers.extend(hits.answers)
        found = self._index.find(answers)
        keys, others = self._rows.settled(found) if len(found) else ([], [])
        keys.extend(hits.keys)
        if self._named:
            self._add_named(values, keys)
        if others or self._loose:
            keys.extend(self._unsettled([*others, *self._loose], event, values))
        if self._split_keys:
            return sorted(set(keys))
        keys.sort()
        return keys

    def _add_named(self, values: Mapping[str, Value], keys: list[int]) -> None:
        """The lookup index of paper 004, figure 8."""
        named = self._named
        for name in values:
            row = named.get(name)
            if row is not None:
                keys.extend(self._rows.keys(row))

    def holdings(self) -> Holdings:
        """What is kept now."""
        return Holdings(
            keys=len(self._rows_of),
            rows=len(self._rows),
            attributes=len(self._attributes),
            clusters=self._index.cluster_count,
            residuals=len(self._residuals),
            patterns=len(self._trie),
        )

    def _look_up(self, topic: str) -> _TopicHits:
        keys: set[int] = set()
        answers: Answers = []
        for pattern in (_EVERYTHING, *self._trie.find(topic)):
            row = self._topic_rows.get(pattern)
            if row is not None:
                keys |= self._rows.keys(row)
            attribute = self._attributes.by_number[pattern]
            if attribute is not None and attribute.uses > (row is not None):
                answers.append((attribute, 1.0))
        hits = _TopicHits(sorted(keys), answers)
        self._know(topic, hits)
        return hits

    def _know(self, topic: str, hits: _TopicHits) -> None:
        """Keep the answer for the next event of the topic, within the limits."""
        size = len(hits.keys)
        if len(self._known_topics) >= KNOWN_TOPICS_MAX:
            self._forget_topics()
        if self._known_topic_keys + size > KNOWN_TOPIC_KEYS_MAX:
            self._forget_topics()
        if size <= KNOWN_TOPIC_KEYS_MAX:
            self._known_topics[topic] = hits
            self._known_topic_keys += size

    def _forget_topics(self) -> None:
        self._known_topics.clear()
        self._known_topic_keys = 0

    def _forget_topics_if_decided_by(self, terms: list[AttributeTerm]) -> None:
        if self._known_topics and (not terms or _asks_topic(terms)):
            self._forget_topics()

    def _values(self, event: Event) -> Mapping[str, Value]:
        """What the event says under the names that any stored filter asks for.

        The payload is opened only if one of them may be in it: a context attribute that is set
        hides a member of the same name.
        """
        beyond = self._attributes.names_beyond_context
        if beyond == len(self._attributes.names) and not len(self._residuals):
            return content(event) if beyond else {}
        if beyond or self._residuals.beyond_context:
            return visible(event)
        seen = context(event)
        for names in (self._attributes.names, self._residuals.names):
            for name in names:
                if name not in seen:
                    return visible(event)
        return seen

    def _unsettled(self, rows: list[int], event: Event, values: Mapping[str, Value]) -> list[int]:
        """The keys of rows that are shared, or have a residual that holds. Each is asked once."""
        keys: list[int] = []
        verdicts = {_NO_GUARD: True}
        opened: Seen | None = None
        for row in rows:
            guard = self._guards.get(row, _NO_GUARD)
            if guard not in verdicts:
                opened = opened or Seen(event, values, facets(values), self._stopwatch)
                verdicts[guard] = passes(self._residuals[guard], opened)
            if verdicts[guard]:
                keys.extend(self._rows.keys(row))
        self.gave_up = opened.gave_up if opened else []
        return keys

    def _row(self, conjunction: Conjunction) -> tuple[int, bool]:
        """The row for the conjunction, and whether it is a new one."""
        terms = [(self._acquire(key), lo, hi) for key, (lo, hi) in conjunction.region.items()]
        terms.sort(key=_number)
        residual = conjunction.residual
        guard = _NO_GUARD if residual is None else self._residuals.acquire(residual)
        self._forget_topics_if_decided_by(terms)
        identity = _packed(terms, guard)
        row = self._rows.find(identity)
        if row is not None:
            self._release(terms, guard)
            return row, False
        row = self._rows.new(identity, is_guarded=guard != _NO_GUARD)
        self._insert(row, terms, guard)
        return row, True

    def _insert(self, row: int, terms: list[AttributeTerm], guard: int) -> None:
        if guard != _NO_GUARD:
            self._guards[row] = guard
        elif not terms:
            self._topic_rows[_EVERYTHING] = row
            return
        elif len(terms) == 1 and _asks_topic(terms):
            self._topic_rows[terms[0][0].number] = row
            return
        elif _asks_name(terms):
            self._rows_for_any_topic += 1
            self._named[terms[0][0].key[0]] = row
            return
        self._rows_for_any_topic += not _asks_topic(terms)
        if terms:
            self._index.add(row, terms)
        else:
            self._loose[row] = None

    def _displace(self, row: int, terms: list[AttributeTerm], guard: int) -> None:
        if guard != _NO_GUARD:
            del self._guards[row]
        elif not terms:
            del self._topic_rows[_EVERYTHING]
            return
        elif len(terms) == 1 and _asks_topic(terms):
            del self._topic_rows[terms[0][0].number]
            return
        elif _asks_name(terms):
            self._rows_for_any_topic -= 1
            del self._named[terms[0][0].key[0]]
            return
        self._rows_for_any_topic -= not _asks_topic(terms)
        if terms:
            self._index.remove(row, terms)
        else:
            del self._loose[row]

    def _acquire(self, key: AttributeKey) -> Attribute:
        attribute = self._attributes.acquire(key)
        if attribute.is_topic and attribute.uses == 1:
            self._trie.add(_levels(key), attribute.number)
        return attribute

    def _release(self, terms: list[AttributeTerm], guard: int) -> None:
        for attribute, _, _ in terms:
            if self._attributes.release(attribute) and attribute.is_topic:
                self._trie.remove(_levels(attribute.key))
        if guard != _NO_GUARD:
            self._residuals.release(guard)

    def _unpacked(self, identity: bytes) -> tuple[list[AttributeTerm], int]:
        numbers = array("d", identity)
        terms: list[AttributeTerm] = []
        for place in range(1, len(numbers), 3):
            attribute = self._attributes.by_number[int(numbers[place])]
            assert attribute is not None
            terms.append((attribute, numbers[place + 1], numbers[place + 2]))
        return terms, int(numbers[0])


def _packed(terms: list[AttributeTerm], guard: int) -> bytes:
    """The same for two rows exactly if they ask for the same."""
    numbers: list[float] = [guard]
    for attribute, lo, hi in terms:
        numbers += (attribute.number, lo, hi)
    return array("d", numbers).tobytes()


def _asks_topic(terms: list[AttributeTerm]) -> bool:
    return any(attribute.is_topic for attribute, _, _ in terms)


def _asks_name(terms: list[AttributeTerm]) -> bool:
    """True if all that is asked is that some name be there."""
    return len(terms) == 1 and terms[0][0].key[1] == EXISTS and terms[0][1:] == ANY_VALUE


def _number(term: AttributeTerm) -> int:
    return term[0].number


def _levels(key: AttributeKey) -> tuple[str, ...]:
    return tuple(key[2].split("/")) if key[2] else ()
