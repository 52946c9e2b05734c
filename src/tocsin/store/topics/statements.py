"""Statements: a plan as SQL. What anybody wrote is a parameter of it, and never in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from tocsin.store.topics.rows import hash_of, match_grams, match_words
from tocsin.topics.queries.access_paths import (
    AccessPath,
    ByColumn,
    ByGrams,
    ByProperty,
    ByWords,
    ByXmlValue,
    Everything,
    Key,
    Range,
)
from tocsin.topics.queries.cursor import Position
from tocsin.topics.queries.plan import Plan
from tocsin.topics.queries.predicate_sql import SqlText

Form = Literal["lines", "xml"]
Parameter = str | float | int | bytes

_COLUMNS: Final[dict[str, str]] = {
    name: name
    for name in ("uuid", "topic", "creator", "institution", "created", "expires", "duration")
}
_KINDS: Final[dict[str, str]] = {name: name for name in ("number", "text", "flag")}
_FORMS: Final = {"lines": "f.lines", "xml": "f.xml", None: "NULL"}


class Statement:
    """SQL and its parameters, in the order in which they are added."""

    def __init__(self) -> None:
        self.text = ""
        self.parameters: list[Parameter] = []

    def add(self, text: str, *parameters: Parameter) -> None:
        self.text += text
        self.parameters += parameters


def select_slice(
    plan: Plan, position: Position, now_ns: int, size: int, form: Form | None
) -> Statement:
    """The next candidates of a path: key, number, whether the rest of the plan holds, and the
    form to evaluate where it does."""
    found = Statement()
    paths = plan.choices[position.choice]
    path = paths[position.path]
    found.add(f"SELECT c.key, c.advert, a.id, {_FORMS[form]} FROM (")
    _candidates(found, path, position, size)
    # Joined from the left, so that the last row says how far the search has come.
    found.add(") AS c LEFT JOIN adverts AS a ON a.id = c.advert AND a.expires > ?", now_ns)
    if plan.is_listing:
        found.add(" AND a.encrypted = 0")
    for bound in plan.bounds:
        if bound != path:
            _in_range(found, f"a.{_COLUMNS[bound.column]}", bound.range)
    if plan.words is not None and plan.words != path:
        expression = match_words(position.label, plan.words.terms)
        _in_full_text(found, "words", expression)
    for value in (each for each in plan.values if each != path):
        found.add(
            " AND EXISTS (SELECT 1 FROM xml_values WHERE label = ? AND hash = ? AND advert = a.id)",
            *(position.label, hash_of(value.value)),
        )
    if plan.predicate is not None:
        condition = SqlText()
        text = condition.condition(plan.predicate)
        found.add(f" AND {text}", *condition.parameters)
    for earlier in paths[: position.path]:  # what is there was found by that path
        _not_by(found, earlier, position.label)
    if form is not None:
        found.add(" LEFT JOIN forms AS f ON f.id = a.id")
    found.add(" ORDER BY c.key, c.advert")
    return found


def select_documents(label: int, adverts: Sequence[int]) -> Statement:
    """Number, UUID, version, checksum and document of each, as far as they are there and have the
    label: an index that is damaged must not show what is hidden."""
    found = Statement()
    found.add(
        "SELECT a.id, a.uuid, a.version, d.crc, d.document FROM adverts AS a "
        "JOIN documents AS d ON d.id = a.id WHERE a.label = ? "
        f"AND a.id IN ({', '.join('?' * len(adverts))})",
        *(label, *adverts),
    )
    return found


def select_label(name: str) -> Statement:
    found = Statement()
    found.add("SELECT no FROM labels WHERE name = ?", name)
    return found


def count_up_to(path: AccessPath, label: int, most: int) -> Statement:
    """How many candidates a path has, if they are not more than that."""
    found = Statement()
    found.add("SELECT count(*) FROM (")
    _candidates(found, path, Position(label), most)
    found.add(")")
    return found


def _candidates(found: Statement, path: AccessPath, after: Position, size: int) -> None:
    """Rows (key, advert) after the position, in the order of both."""
    label = after.label
    match path:
        case Everything():
            found.add("SELECT 0 AS key, id AS advert FROM adverts INDEXED BY adverts_label")
            found.add(" WHERE label = ? AND id > ? ORDER BY id", label, after.advert)
        case ByColumn(named, range):
            column = _COLUMNS[named]
            found.add(f"SELECT {column} AS key, id AS advert FROM adverts")
            found.add(f" INDEXED BY adverts_{column} WHERE label = ?", label)
            _from(found, column, "id", range, after)
        case ByProperty(name, kind, range):
            column = _KINDS[kind]
            found.add(f"SELECT {column} AS key, advert FROM properties")
            found.add(f" INDEXED BY properties_{column} WHERE label = ? AND name = ?", label, name)
            _from(found, column, "advert", range, after)
        case ByXmlValue(value):
            found.add("SELECT 0 AS key, advert FROM xml_values WHERE label = ? AND hash = ?")
            found.parameters += [label, hash_of(value)]
            found.add(" AND advert > ? ORDER BY advert", after.advert)
        case ByWords(terms):
            _from_full_text(found, "words", match_words(label, terms), after)
        case ByGrams(required):
            _from_full_text(found, "grams", match_grams(label, required), after)
    found.add(" LIMIT ?", size)


def _from(found: Statement, key: str, advert: str, range: Range, after: Position) -> None:
    _in_range(found, key, range)
    if after.key is not None:
        if range.is_one:
            found.add(f" AND {advert} > ?", after.advert)
        else:
            found.add(f" AND ({key}, {advert}) > (?, ?)", after.key, after.advert)
    found.add(f" ORDER BY {key}, {advert}")


def _from_full_text(found: Statement, table: str, expression: str, after: Position) -> None:
    found.add(f"SELECT 0 AS key, rowid AS advert FROM {table}")
    found.add(f" WHERE {table} MATCH ? AND rowid > ? ORDER BY rowid", expression, after.advert)


def _in_range(found: Statement, column: str, range: Range) -> None:
    if range.is_one and range.low is not None:
        found.add(f" AND {column} = ?", range.low)
        return
    found.add(f" AND {column} IS NOT NULL")
    if range.low is not None:
        found.add(f" AND {column} {'>' if range.is_low_open else '>='} ?", range.low)
    if range.high is not None:
        found.add(f" AND {column} {'<' if range.is_high_open else '<='} ?", range.high)


def _in_full_text(found: Statement, table: str, expression: str) -> None:
    found.add(f" AND EXISTS (SELECT 1 FROM {table} WHERE {table} MATCH ?", expression)
    found.add(" AND rowid = a.id)")


def _not_by(found: Statement, path: AccessPath, label: int) -> None:
    match path:
        case ByProperty(name, kind, range):
            found.add(" AND NOT EXISTS (SELECT 1 FROM properties WHERE advert = a.id AND name = ?")
            found.parameters.append(name)
            _in_range(found, _KINDS[kind], range)
            found.add(")")
        case ByXmlValue(value):
            found.add(
                " AND NOT EXISTS (SELECT 1 FROM xml_values WHERE label = ? AND hash = ?"
                " AND advert = a.id)",
                *(label, hash_of(value)),
            )
        case _:
            raise AssertionError(f"{path} has no alternatives")


def key_of(value: object) -> Key:
    assert isinstance(value, str | float | int)
    return value
