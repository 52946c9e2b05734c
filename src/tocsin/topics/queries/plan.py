"""A query as what the catalog does: where to look, what must hold there, and what to evaluate."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tocsin.errors import BadTopicQuery
from tocsin.topics.queries.access_paths import (
    AccessPath,
    ByColumn,
    ByGrams,
    ByWords,
    ByXmlValue,
    Column,
    Everything,
    Range,
    beginning_with,
)
from tocsin.topics.queries.predicate_parser import parse_predicate
from tocsin.topics.queries.predicate_paths import predicate_paths
from tocsin.topics.queries.predicate_tree import Predicate
from tocsin.topics.queries.query import Query, check_query
from tocsin.topics.queries.regex import Regex, compile_regex
from tocsin.topics.queries.requirement import NOTHING, AllOf, Requirement, Text, choices
from tocsin.topics.queries.words import parse_text_query
from tocsin.topics.queries.xpath import check_xpath
from tocsin.topics.queries.xquery import check_xquery

VALUES_MAX: Final = 16  # of XML, that are looked at for one candidate
ALTERNATIVES_MAX: Final = 8
PREFIX_CHARS_MAX: Final = 1_024

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class XPathQuery:
    expression: str
    namespaces: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class XQueryQuery:
    expression: str


XmlQuery = XPathQuery | XQueryQuery


@dataclass(frozen=True, slots=True)
class Plan:
    """`choices` are ways to find all candidates, of which one is enough; each is a row of access
    paths that are taken one after the other. The rest must hold for each candidate."""

    choices: tuple[tuple[AccessPath, ...], ...]
    bounds: tuple[ByColumn, ...] = ()
    words: ByWords | None = None
    predicate: Predicate | None = None
    values: tuple[ByXmlValue, ...] = ()
    regex: Regex | None = None
    xml: XmlQuery | None = None
    is_listing: bool = True
    """Whether advertisements that are encrypted are left out: they are found by their UUID and
    their creator alone."""


def plan(query: Query) -> Plan:
    """BadTopicQuery if it is not accepted, with the reason."""
    check_query(query)
    bounds = tuple(_bounds(query))
    found: list[tuple[AccessPath, ...]] = [(each,) for each in bounds]
    is_listing = not query.creator
    match query.language:
        case "text":
            words = ByWords(parse_text_query(query.expression))
            return Plan((*found, (words,)), bounds, words=words, is_listing=is_listing)
        case "regex":
            regex = compile_regex(query.expression)
            if regex.required != NOTHING:
                found.append((ByGrams(regex.required),))
            return Plan(_or_scan(found), bounds, regex=regex, is_listing=is_listing)
        case "sql":
            predicate = parse_predicate(query.expression)
            found += predicate_paths(predicate)
            return Plan(_or_scan(found), bounds, predicate=predicate, is_listing=is_listing)
        case "xpath":
            required = check_xpath(query.expression, query.namespaces)
            return _of_xml(XPathQuery(query.expression, query.namespaces), required, found, bounds)
        case "xquery":
            required = check_xquery(query.expression)
            return _of_xml(XQueryQuery(query.expression), required, found, bounds)
        case "prefix":
            if len(query.expression) > PREFIX_CHARS_MAX:
                raise BadTopicQuery(
                    f"the prefix has {len(query.expression)} characters",
                    remedy=f"No topic has more than {PREFIX_CHARS_MAX}.",
                )
            topics = ByColumn("topic", beginning_with(query.expression))
            return Plan((*found, (topics,)), (*bounds, topics), is_listing=is_listing)
        case "uuid":
            uuid = query.expression.lower()
            if not _UUID.fullmatch(uuid):
                raise BadTopicQuery(
                    f"{query.expression[:60]!a} is not a UUID", remedy="Write it with its hyphens."
                )
            one = ByColumn("uuid", Range.exactly(uuid))
            return Plan(((one,),), (*bounds, one), is_listing=False)
    return Plan(_or_scan(found), bounds, is_listing=is_listing)


def _of_xml(
    wanted: XmlQuery,
    required: Requirement,
    found: list[tuple[AccessPath, ...]],
    bounds: tuple[ByColumn, ...],
) -> Plan:
    parts = required.parts if isinstance(required, AllOf) else (required,)
    values = tuple(ByXmlValue(part.text) for part in parts if isinstance(part, Text))
    for choice in choices(required):
        if len(choice) <= ALTERNATIVES_MAX:
            found.append(tuple(map(ByXmlValue, choice)))
    return Plan(_or_scan(found), bounds, values=values[:VALUES_MAX], xml=wanted)


def _or_scan(found: list[tuple[AccessPath, ...]]) -> tuple[tuple[AccessPath, ...], ...]:
    return tuple(found) or ((Everything(),),)


def _bounds(query: Query) -> Iterable[ByColumn]:
    names: tuple[tuple[Column, str], ...] = (
        ("creator", query.creator),
        ("institution", query.institution),
    )
    for column, name in names:
        if name:
            yield ByColumn(column, Range.exactly(name))
    ranges: tuple[tuple[Column, int | None, int | None, bool], ...] = (
        ("created", query.created_from_ns, query.created_until_ns, False),
        ("expires", query.expires_from_ns, query.expires_until_ns, False),
        ("duration", query.duration_min_ns, query.duration_max_ns, False),
        ("created", None, query.valid_at_ns, False),
        ("expires", query.valid_at_ns, None, True),
    )
    for column, low, high, is_low_open in ranges:
        if low is not None or high is not None:
            yield ByColumn(column, Range(low, high, is_low_open=is_low_open))
