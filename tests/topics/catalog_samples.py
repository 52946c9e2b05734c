"""Advertisements for the tests of the catalog, and what a query finds by looking at each of them.

The full scan evaluates everything by itself: a predicate by its tree, a regular expression line by
line, an XPath on the whole document.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random

import re2
from lxml import etree

from tocsin.event.cesql.like import compile_like
from tocsin.event.facets import FLAG, NUMBER, TEXT, facets
from tocsin.safexml import parse
from tocsin.store.topics.catalog import Catalog
from tocsin.store.topics.query_connection import connect_for_queries
from tocsin.store.topics.rows import rows_of
from tocsin.store.topics.search import Searcher, XmlEvaluator
from tocsin.topics.descriptors import Descriptors
from tocsin.topics.queries import predicate_tree as tree
from tocsin.topics.queries.indexed import IndexedAdvertisement, Outcome
from tocsin.topics.queries.plan import XmlQuery, XPathQuery, plan
from tocsin.topics.queries.predicate_parser import parse_predicate
from tocsin.topics.queries.query import Page, Query
from tocsin.topics.queries.words import parse_text_query, words_of

SECOND_NS = 10**9
NOW_NS = 1_000 * SECOND_NS
CURSOR_KEY = b"k" * 64

WORDS = ("radar", "Ohio", "Ωμέγα", "storm", "straße", "CAFÉ", "wind-7", "K", "lead/radar", "x_y")
NAMES = ("band", "power", "site", "is_public")
VALUES = ("S", "X", "5", "5.0", 5, -2.5, 40, True, False, "true", "", "Ohio valley", "s%_\\")
ELEMENTS = ("instrument", "band", "site", "name")


def make_advertisement(random: Random, number: int) -> IndexedAdvertisement:
    """One with few words and values, so that queries find some of many."""
    created_ns = random.randrange(20) * SECOND_NS
    return IndexedAdvertisement(
        uuid=uuid_of(number),
        version=1,
        topic=f"{random.choice(('lead', 'lead/radar', 'Ωμέγα', 'lab'))}/{uuid_of(number)}",
        creator=f"creator{random.randrange(4)}",
        creator_name=random.choice(("Anna Ohio", "Bob", "")),
        institution=random.choice(("Indiana University", "NCSA", "")),
        created_ns=created_ns,
        expires_ns=created_ns + random.choice((500, 1_500, 2_000, 9_000)) * SECOND_NS,
        label=random.choice(("open", "members", "staff")),
        descriptors=make_descriptors(random),
        document=b"document %d" % number,
    )


def make_descriptors(random: Random) -> Descriptors:
    return Descriptors(
        paths=tuple(random.sample(("lead/radar", "a/b c", "Ohio/Radar/1"), random.randrange(3))),
        text=random.choice((" ", "\n")).join(random.choices(WORDS, k=random.randrange(7))),
        keywords=tuple(random.sample(("storm", "Radar", "wind speed"), random.randrange(3))),
        properties={
            name: random.choice(VALUES) for name in random.sample(NAMES, random.randrange(5))
        },
        xml=make_xml(random) if random.random() < 0.7 else "",
    )


def make_xml(random: Random, depth: int = 0) -> str:
    name = random.choice(ELEMENTS) if depth else "d"
    attributes = "".join(
        f' {each}="{random.choice(("S", "X", "5", ""))}"'
        for each in random.sample(("id", "band"), random.randrange(3))
    )
    parts = [
        make_xml(random, depth + 1)
        if depth < 3 and random.random() < 0.5
        else random.choice(("S", "X", " ", "Ohio", "<![CDATA[S]]>", "<!-- S -->", "5", "&amp;"))
        for _ in range(random.randrange(4))
    ]
    namespace = ' xmlns:n="urn:n"' if not depth else ""
    return f"<{name}{namespace}{attributes}>{''.join(parts)}</{name}>"


def uuid_of(number: int) -> str:
    return f"{number:08x}-0000-870c-8000-000000000000"


def open_catalog(directory: Path, advertisements: Iterable[IndexedAdvertisement] = ()) -> Catalog:
    """One that does not wait for the disk."""
    catalog = Catalog.open(directory, synchronous="OFF")
    rows = [rows_of(each) for each in advertisements]
    assert set(catalog.put(rows, now_ns=0)) <= {Outcome.STORED}
    return catalog


def open_searcher(
    catalog: Catalog,
    evaluate: XmlEvaluator | None = None,
    *,
    budget_ns: int = 60 * SECOND_NS,
    stopwatch_ns: Callable[[], int] = time.monotonic_ns,
) -> Searcher:
    return Searcher(
        connect_for_queries(catalog.path, stopwatch_ns),
        catalog.path,
        cursor_key=CURSOR_KEY,
        stopwatch_ns=stopwatch_ns,
        evaluate=evaluate or evaluate_xpath,
        budget_ns=budget_ns,
    )


def evaluate_xpath(wanted: XmlQuery, documents: Sequence[bytes], until_ns: int) -> list[bool]:
    assert isinstance(wanted, XPathQuery)
    return [xpath_holds(wanted.expression, wanted.namespaces, each) for each in documents]


def xpath_holds(expression: str, namespaces: tuple[tuple[str, str], ...], document: bytes) -> bool:
    compiled = etree.XPath(f"boolean({expression}\n)", namespaces=dict(namespaces), regexp=False)
    return compiled(parse(document)) is True


def ask(searcher: Searcher, query: Query, labels: Iterable[str], now_ns: int = NOW_NS) -> Page:
    return searcher.search(query, plan(query), frozenset(labels), now_ns)


def ask_all(
    searcher: Searcher, query: Query, labels: Iterable[str], now_ns: int = NOW_NS
) -> list[str]:
    """The UUIDs of all pages."""
    found: list[str] = []
    while True:
        page = ask(searcher, query, labels, now_ns)
        found += [each.uuid for each in page.advertisements]
        if not page.next:
            return found
        assert page.partial or len(page.advertisements) == query.limit
        query = Query(**{**_fields(query), "cursor": page.next})


def scan(
    advertisements: Iterable[IndexedAdvertisement],
    query: Query,
    labels: Iterable[str],
    now_ns: int = NOW_NS,
) -> list[str]:
    """The UUIDs of those that the query finds."""
    visible = frozenset(labels)
    return sorted(
        each.uuid
        for each in advertisements
        if each.label in visible
        and each.expires_ns > now_ns
        and in_bounds(each, query)
        and holds(each, query)
    )


def in_bounds(given: IndexedAdvertisement, query: Query) -> bool:
    duration_ns = given.expires_ns - given.created_ns
    valid_at_ns = query.valid_at_ns
    return (
        query.creator in ("", given.creator)
        and query.institution in ("", given.institution)
        and _between(query.created_from_ns, given.created_ns, query.created_until_ns)
        and _between(query.expires_from_ns, given.expires_ns, query.expires_until_ns)
        and _between(query.duration_min_ns, duration_ns, query.duration_max_ns)
        and (valid_at_ns is None or given.created_ns <= valid_at_ns < given.expires_ns)
    )


def holds(given: IndexedAdvertisement, query: Query) -> bool:
    match query.language:
        case "text":
            return text_holds(given, query.expression)
        case "regex":
            return regex_holds(given, query.expression)
        case "sql":
            return value_of(parse_predicate(query.expression), given) is True
        case "xpath":
            xml = given.descriptors.xml.encode()
            return bool(xml) and xpath_holds(query.expression, query.namespaces, xml)
        case "prefix":
            return given.topic.startswith(query.expression)
        case "uuid":
            return given.uuid == query.expression
    return not query.language


def texts_of(given: IndexedAdvertisement) -> list[str]:
    described = given.descriptors
    found = [given.topic, given.creator_name, given.institution, described.text]
    found += [*described.paths, *described.keywords]
    found += [f"{name} {shown(value)}" for name, value in described.properties.items()]
    if described.xml:
        root = parse(described.xml.encode())
        found += [str(each) for each in root.xpath("//text()")]
        found += [str(each) for each in root.xpath("//@*")]
    return found


def text_holds(given: IndexedAdvertisement, expression: str) -> bool:
    texts = [words_of(text) for text in texts_of(given)]
    return all(
        any(
            follows(words[at : at + len(term.words)], term.words, is_prefix=term.is_prefix)
            for words in texts
            for at in range(len(words) - len(term.words) + 1)
        )
        for term in parse_text_query(expression)
    )


def follows(words: list[str], wanted: tuple[str, ...], *, is_prefix: bool) -> bool:
    last = words[-1].startswith(wanted[-1]) if is_prefix else words[-1] == wanted[-1]
    return last and tuple(words[:-1]) == wanted[:-1]


def regex_holds(given: IndexedAdvertisement, expression: str) -> bool:
    options = re2.Options()
    options.log_errors = False
    compiled = re2.compile(expression, options)
    return any(compiled.search(line) for line in lines_of(given))


def lines_of(given: IndexedAdvertisement) -> list[str]:
    described = given.descriptors
    found = [given.topic, *described.paths, *described.text.splitlines(), *described.keywords]
    found += [f"{name}={shown(value)}" for name, value in described.properties.items()]
    if described.xml:
        found += etree.tostring(parse(described.xml.encode()), encoding="unicode").splitlines()
    return [line for line in found if line]


def shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# A predicate by its tree, in logic of three values: None is unknown.


def value_of(wanted: tree.Predicate, given: IndexedAdvertisement) -> bool | None:
    properties = given.descriptors.properties
    match wanted:
        case tree.And(operands):
            found = [value_of(each, given) for each in operands]
            return False if False in found else None if None in found else True
        case tree.Or(operands):
            found = [value_of(each, given) for each in operands]
            return True if True in found else None if None in found else False
        case tree.Not(operand):
            inner = value_of(operand, given)
            return None if inner is None else not inner
        case tree.Flag(name):
            flag = of_kind(tree.Property(name), FLAG, given)
            return None if flag is None else bool(flag)
        case tree.Missing(name):
            return name not in properties
        case tree.Likeness(property_, pattern):
            text = of_kind(property_, TEXT, given)
            return None if text is None else compile_like(pattern)(str(text))
        case tree.Membership(value, constants):
            each = [tree.Comparison("=", value, constant) for constant in constants]
            return value_of(tree.Or(tuple(each)), given)
        case tree.Comparison(operator, left, right):
            for kind in (NUMBER, TEXT, FLAG) if operator in ("=", "<>") else (NUMBER, TEXT):
                one, other = of_kind(left, kind, given), of_kind(right, kind, given)
                if one is not None and other is not None:
                    return compared(operator, one, other)
            return None


def compared(operator: str, one: object, other: object) -> bool:
    assert type(one) is type(other)
    match operator:
        case "=":
            return one == other
        case "<>":
            return one != other
    assert isinstance(one, float | str)
    assert isinstance(other, float | str)
    smaller, equal = one < other, one == other  # type: ignore[operator]
    return {"<": smaller, "<=": smaller or equal, ">": not smaller and not equal}.get(
        operator, not smaller
    )


def of_kind(value: tree.Value, kind: str, given: IndexedAdvertisement) -> object:
    match value:
        case tree.Property(name):
            properties = given.descriptors.properties
            if name not in properties:
                return None
            return facets({name: properties[name]}).get((name, kind))
        case tree.Constant(constant):
            kinds = {bool: FLAG, str: TEXT, float: NUMBER}
            return constant if kinds[type(constant)] == kind else None
    if kind != NUMBER:
        return None
    found = calculated(value, given)
    return None if found is None or math.isnan(found) else found


def calculated(value: tree.Value, given: IndexedAdvertisement) -> float | None:
    match value:
        case tree.Negative(operand):
            inner = calculated(operand, given)
            return None if inner is None else -inner
        case tree.Arithmetic(operator, left, right):
            one, other = calculated(left, given), calculated(right, given)
            if one is None or other is None or (operator == "/" and other == 0):
                return None
            match operator:
                case "+":
                    found = one + other
                case "-":
                    found = one - other
                case "*":
                    found = one * other
                case _:
                    found = one / other
            return None if math.isnan(found) else found
    number = of_kind(value, NUMBER, given)
    assert isinstance(number, float | None)
    return number


def _between(low: int | None, value: int, high: int | None) -> bool:
    return (low is None or low <= value) and (high is None or value <= high)


def _fields(query: Query) -> dict[str, object]:
    return {name: getattr(query, name) for name in query.__struct_fields__}
