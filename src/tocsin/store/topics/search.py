"""A search: candidates slice by slice along an access path, until the page is full or time is up.

However little of what is looked at matches, a slice takes some milliseconds, so that the clock is
looked at in between and a page says how far it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

import apsw

from tocsin.errors import TopicQueryTooCostly
from tocsin.store.faults import UNREADABLE, reason
from tocsin.store.topics.query_connection import QueryConnection
from tocsin.store.topics.rows import checksum
from tocsin.store.topics.statements import (
    Form,
    Statement,
    count_up_to,
    key_of,
    select_documents,
    select_label,
    select_slice,
)
from tocsin.store.topics.tables import damaged
from tocsin.topics.queries import regex
from tocsin.topics.queries.cursor import Position, read_cursor, write_cursor
from tocsin.topics.queries.plan import Plan, XmlQuery
from tocsin.topics.queries.query import Found, Page, Query

BUDGET_NS: Final = 1_000_000_000  # of a page: who waits longer does not know whether we work
PAGE_BYTES_MAX: Final = 1 << 20  # one answer to one message; the first advertisement always fits
SLICE_MIN: Final = 32
SLICE_MAX: Final = 512  # of which each may have 16 kB to look at
SLICE_GROWTH: Final = 4
DOCUMENTS_AT_ONCE: Final = 16
COUNTED_MAX: Final = 128  # what has more candidates than this is not rare


class XmlEvaluator(Protocol):
    """Evaluates XPath and XQuery, in another process."""

    def __call__(self, wanted: XmlQuery, documents: Sequence[bytes], until_ns: int) -> list[bool]:
        """For each document whether it is found. Fewer if time is up. May raise
        TopicQueryTooCostly, BadTopicQuery and Busy."""
        ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """One advertisement that a path has; the form only where it matches as far as SQL can say."""

    key: str | float | int
    advert: int
    is_match: bool
    form: bytes


class Searcher:
    """Answers queries from one connection, one after the other."""

    def __init__(
        self,
        connection: QueryConnection,
        path: str,
        *,
        cursor_key: bytes,
        stopwatch_ns: Callable[[], int],
        evaluate: XmlEvaluator,
        budget_ns: int = BUDGET_NS,
    ) -> None:
        self._connection = connection
        self._path = path
        self._cursor_key = cursor_key
        self._stopwatch_ns = stopwatch_ns
        self._evaluate = evaluate
        self._budget_ns = budget_ns
        self.damaged = 0
        """Advertisements that were not as they were written, and left out."""

    def search(self, query: Query, plan: Plan, labels: frozenset[str], now_ns: int) -> Page:
        """A page of what is valid now and has one of the labels. BadTopicQuery for a cursor of
        another query."""
        start = read_cursor(self._cursor_key, query, labels)
        with self._readable():
            return self._page(query, plan, labels, start, now_ns)

    def close(self) -> None:
        self._connection.close()

    def _page(
        self,
        query: Query,
        plan: Plan,
        labels: frozenset[str],
        start: Position | None,
        now_ns: int,
    ) -> Page:
        until_ns = self._stopwatch_ns() + self._budget_ns
        adverts: list[Found] = []
        size = 0
        # The limit is looked at after each candidate, so that the page says exactly where it ends.
        for position, found in self._walk(plan, labels, start, now_ns, until_ns):
            if found is not None:
                size += len(found.document)
                adverts.append(found)
            is_full = len(adverts) == query.limit or size >= PAGE_BYTES_MAX
            if is_full or self._stopwatch_ns() > until_ns:
                cursor = write_cursor(self._cursor_key, query, labels, position)
                return Page(tuple(adverts), cursor, partial=not is_full)
        return Page(tuple(adverts))

    def _walk(
        self,
        plan: Plan,
        labels: frozenset[str],
        start: Position | None,
        now_ns: int,
        until_ns: int,
    ) -> Iterator[tuple[Position, Found | None]]:
        """Every advertisement that matches, and now and then how far the search came."""
        for label in self._numbers(labels):
            if start is not None and label < start.label:
                continue
            if start is not None and label == start.label:
                position = start
            else:
                position = Position(label, self._rarest(plan, label))
            while position.path < len(plan.choices[position.choice]):
                yield from self._walk_path(plan, position, now_ns, until_ns)
                position = Position(label, position.choice, position.path + 1)

    def _walk_path(
        self, plan: Plan, position: Position, now_ns: int, until_ns: int
    ) -> Iterator[tuple[Position, Found | None]]:
        size = SLICE_MIN
        while True:
            candidates = self._slice(plan, position, now_ns, size)
            judged = self._judge(plan, candidates, until_ns)
            matches = [
                candidate
                for candidate, is_match in zip(candidates, judged, strict=False)
                if is_match
            ]
            for start in range(0, len(matches), DOCUMENTS_AT_ONCE):
                some = matches[start : start + DOCUMENTS_AT_ONCE]
                documents = self._documents(position.label, [match.advert for match in some])
                for match in some:
                    if (found := documents.get(match.advert)) is not None:
                        yield _at(position, match), found
            if judged:
                position = _at(position, candidates[len(judged) - 1])
            yield position, None
            if len(judged) == len(candidates) and len(candidates) < size:
                return
            size = min(size * SLICE_GROWTH, SLICE_MAX)

    def _slice(self, plan: Plan, position: Position, now_ns: int, size: int) -> list[Candidate]:
        form: Form | None = None
        if plan.regex is not None or plan.xml is not None:
            form = "lines" if plan.regex is not None else "xml"
        rows = self._rows(select_slice(plan, position, now_ns, size, form))
        return [
            Candidate(key_of(key), _number(advert), match is not None, _bytes(text))
            for key, advert, match, text in rows
        ]

    def _judge(self, plan: Plan, candidates: list[Candidate], until_ns: int) -> list[bool]:
        """Which of them are found, in their order; fewer if time is up."""
        if plan.regex is None and plan.xml is None:
            return [candidate.is_match for candidate in candidates]
        at = [
            number
            for number, candidate in enumerate(candidates)
            if candidate.is_match and (candidate.form or plan.regex is not None)
        ]
        forms = [candidates[number].form for number in at]
        verdicts = self._verdicts(plan, forms, until_ns)
        judged = [False] * (len(candidates) if len(verdicts) == len(at) else at[len(verdicts)])
        for number, verdict in zip(at, verdicts, strict=False):
            judged[number] = verdict
        return judged

    def _verdicts(self, plan: Plan, forms: list[bytes], until_ns: int) -> list[bool]:
        if plan.xml is not None:
            return self._evaluate(plan.xml, forms, until_ns) if forms else []
        assert plan.regex is not None
        verdicts: list[bool] = []
        for some in regex.search(plan.regex, forms):
            verdicts += some
            if self._stopwatch_ns() > until_ns:
                break
        return verdicts

    def _documents(self, label: int, adverts: list[int]) -> dict[int, Found]:
        """Without those that were withdrawn meanwhile or are damaged."""
        documents: dict[int, Found] = {}
        for number, uuid, version, crc, document in self._rows(select_documents(label, adverts)):
            found = Found(str(uuid), _number(version), _bytes(document))
            if checksum(label, found.uuid, found.version, found.document) == crc:
                documents[_number(number)] = found
            else:
                self.damaged += 1
        return documents

    def _rarest(self, plan: Plan, label: int) -> int:
        """The choice with the fewest candidates, as far as they are worth counting."""
        if len(plan.choices) == 1:
            return 0
        counts: list[int] = []
        for choice in plan.choices:
            count = 0
            for path in choice:
                ((more,),) = self._rows(count_up_to(path, label, COUNTED_MAX))
                count += _number(more)
            counts.append(count)
            if count < SLICE_MIN:
                break
        return counts.index(min(counts))

    def _numbers(self, labels: frozenset[str]) -> list[int]:
        numbers: list[int] = []
        for label in labels:
            numbers += [_number(number) for (number,) in self._rows(select_label(label))]
        return sorted(numbers)

    def _rows(self, statement: Statement) -> list[tuple[object, ...]]:
        return self._connection.rows(statement.text, statement.parameters)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except apsw.InterruptError:
            raise TopicQueryTooCostly(
                "the query took too long to look up", remedy="Ask for something less common."
            ) from None
        except UNREADABLE as error:
            raise damaged(self._path, reason(error)) from error


def _at(position: Position, candidate: Candidate) -> Position:
    return Position(position.label, position.choice, position.path, candidate.key, candidate.advert)


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else b""
