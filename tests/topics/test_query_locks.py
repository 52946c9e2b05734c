"""A query does what its language says, and nothing else: no statement, no file, no hidden topic,
and no more time than it is given."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import apsw
import pytest
import re2
from catalog_samples import (
    SECOND_NS,
    ask,
    ask_all,
    evaluate_xpath,
    make_advertisement,
    open_catalog,
    open_searcher,
    scan,
    uuid_of,
)

from tocsin.errors import BadTopicQuery, TopicQueryTooCostly
from tocsin.store.topics import query_connection
from tocsin.store.topics.catalog import Catalog
from tocsin.store.topics.query_connection import QueryConnection, connect_for_queries
from tocsin.store.topics.rows import rows_of
from tocsin.topics.descriptors import Descriptors
from tocsin.topics.queries.grams import folded
from tocsin.topics.queries.indexed import IndexedAdvertisement
from tocsin.topics.queries.plan import XmlQuery, plan
from tocsin.topics.queries.query import Query

ADVERTISEMENTS = [make_advertisement(Random(number), number) for number in range(40)]

HOSTILE_SQL = (
    "1=1; DROP TABLE adverts",
    "band = 'S'; DELETE FROM adverts; --",
    "band = 'S'); DROP TABLE adverts; --",
    "' OR '1'='1",
    "band = '' OR 1=1 --'",
    "band = 'S' /* */ OR TRUE",
    "band = 'S' UNION SELECT document FROM documents",
    "band = (SELECT name FROM labels)",
    "band IN (SELECT uuid FROM adverts)",
    "EXISTS (SELECT 1 FROM adverts)",
    "(SELECT count(*) FROM adverts) > 0",
    "ATTACH DATABASE '/tmp/x' AS x",
    "PRAGMA table_info(adverts)",
    "load_extension('/tmp/x.so')",
    "readfile('/etc/passwd') LIKE '%'",
    "writefile('/tmp/x', 'x') > 0",
    "randomblob(1000000000) > 0",
    "zeroblob(1000000000) = 'x'",
    "band = char(83)",
    "hex(band) = '53'",
    "band = x'53'",
    "band COLLATE NOCASE = 's'",
    "band GLOB '*'",
    "band REGEXP '(a+)+$'",
    "band MATCH 'x'",
    "CASE WHEN TRUE THEN TRUE END",
    "CAST(band AS BLOB) = 'S'",
    "band = ?1",
    "band = :name OR band = @name",
    "band = $name",
    "a.label = 2",
    "adverts.label <> 0",
    "`label` = 2",
    "[label] = 2",
    "band = 'S' LIMIT 1000",
    "band = 'S' ORDER BY 1",
    "band || 'x' = 'Sx'",
    "band -> '$.a' = 1",
    "band = 'S'\0; DROP TABLE adverts",
    "band = 'S\ud800'",
    "band = 1e999",
    "power = 5 = 5",
    "NOT",
    "((((",
    "0x10 = 16",
    "-" * 400 + "1 = 1",
)
# Also odd, and answered: by what they mean as predicates on properties.
HARMLESS_SQL = (
    "1 = 1",
    "'a' = 'a' OR band = 'S'",
    "\"band\" = 'S'",
    "label <> 'x'",
    'rowid = 1 OR "a.label" = 2',
    '"x\' OR 1=1 --" IS NULL',
    "band = 'S''; DROP TABLE adverts; --'",
    "band LIKE '%''%' OR band IN ('''', 'S')",
    "band = '%s' OR band = '{}' OR band = '?'",
    "power / 0 = 1 OR power * 1e308 * 1e308 > 0",
)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    opened = open_catalog(tmp_path_factory.mktemp("catalog"), ADVERTISEMENTS)
    yield opened
    opened.close()


def contents(catalog: Catalog) -> list[object]:
    names = ("labels", "heads", "usage", "adverts", "documents", "forms", "properties")
    return [catalog.connection.execute(f"SELECT * FROM {name}").fetchall() for name in names]


# SQL


@pytest.mark.parametrize("hostile", HOSTILE_SQL)
def test_what_is_more_than_a_predicate_on_properties_is_refused(hostile: str) -> None:
    with pytest.raises(BadTopicQuery):
        plan(Query(language="sql", expression=hostile))


@pytest.mark.parametrize("odd", HARMLESS_SQL)
def test_an_odd_predicate_finds_what_it_says_among_what_may_be_seen(
    catalog: Catalog, odd: str
) -> None:
    before = contents(catalog)
    searcher = open_searcher(catalog)
    query = Query(language="sql", expression=odd)

    assert sorted(ask_all(searcher, query, {"open"})) == scan(ADVERTISEMENTS, query, {"open"})
    assert contents(catalog) == before
    searcher.close()


def test_a_pattern_of_like_takes_time_by_its_length_alone(tmp_path: Path) -> None:
    """By going back it would take longer than the universe has been there."""
    text = "a" * 256
    catalog = open_catalog(tmp_path, [described(1, properties={"band": text})])
    searcher = open_searcher(catalog)
    pattern = "%a" * 31 + "%b"

    query = Query(language="sql", expression=f"band LIKE '{pattern}' OR band LIKE '%_a%_a%'")
    assert len(ask_all(searcher, query, {"open"})) == 1
    searcher.close()
    catalog.close()


@pytest.fixture
def connection(catalog: Catalog) -> Iterator[QueryConnection]:
    """The second wall, without the first."""
    opened = connect_for_queries(catalog.path, lambda: 0)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM adverts",
        "DROP TABLE adverts",
        "INSERT INTO labels VALUES (9, 'x')",
        "UPDATE adverts SET label = 1",
        "CREATE TABLE x (y)",
        "CREATE TEMP TABLE x (y)",
        "ATTACH DATABASE ':memory:' AS x",
        "PRAGMA writable_schema=ON",
        "PRAGMA query_only=OFF",
        "VACUUM INTO '/tmp/tocsin-never-written'",
        "SELECT * FROM heads",
        "SELECT * FROM usage",
        "SELECT * FROM sqlite_schema",
        "SELECT load_extension('x')",
        "SELECT randomblob(10)",
        "SELECT fts5_source_id()",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
        "SELECT 1 UNION SELECT 2 UNION SELECT 3",
        "SELECT id FROM adverts WHERE " + "(" * 200 + "1" + ")" * 200 + " + 1" * 200,
        "SELECT id FROM adverts WHERE id = 1" + " " * 40_000,
        "BEGIN IMMEDIATE",
    ],
)
def test_a_connection_for_queries_refuses_all_but_a_search(
    connection: QueryConnection, statement: str
) -> None:
    with pytest.raises((apsw.AuthError, apsw.SQLError, apsw.ReadOnlyError, apsw.TooBigError)):
        connection.rows(statement, [])


def test_a_statement_that_takes_too_long_is_stopped(catalog: Catalog) -> None:
    clock_ns = iter(range(0, 10**15, SECOND_NS // 4))
    connection = connect_for_queries(catalog.path, lambda: next(clock_ns))
    pairs = ", ".join(f"adverts AS a{number}" for number in range(8))

    with pytest.raises(apsw.InterruptError):
        connection.rows(f"SELECT count(*) FROM {pairs}", [])

    assert len(connection.rows("SELECT id FROM adverts", [])) == len(ADVERTISEMENTS)
    connection.close()


def test_who_asked_for_what_takes_too_long_is_told(catalog: Catalog) -> None:
    """Each look at the clock is a second later, and a statement may take one."""
    clock_ns = iter(range(0, 10**15, 2 * SECOND_NS))
    searcher = open_searcher(catalog, stopwatch_ns=lambda: next(clock_ns))
    slow = Query(language="sql", expression=" OR ".join(["power * power = 7"] * 10))

    with pytest.raises(TopicQueryTooCostly):
        ask(searcher, slow, {"open", "members", "staff"})
    searcher.close()


# All languages


@pytest.mark.parametrize("language", ["text", "regex", "sql", "xpath", "xquery", "prefix", "uuid"])
@pytest.mark.parametrize(
    "expression",
    [
        "(" * 30_000 + ")" * 30_000,
        "x" * 8_193,
        "ä" * 4_097,
        "\ud800",
        "[" * 8_000,
        "not(" * 2_000,
    ],
)
def test_what_is_too_long_too_deep_or_no_text_is_refused(language: str, expression: str) -> None:
    with pytest.raises(BadTopicQuery):
        plan(Query(language=language, expression=expression))


@pytest.mark.parametrize(
    ("language", "expression"),
    [
        ("text", "!?"),
        ("text", '"radar'),
        ("text", "a " * 17),
        ("text", "x" * 257),
        ("text", "a*"),
        ("text", "aa* bb* cc* dd* ee*"),
        ("regex", "x" * 257),
        ("regex", "(a"),
        ("sql", "(" * 17 + "a = 1" + ")" * 17),
        ("sql", "a = 1 AND " * 64 + "a = 1"),
        ("sql", f"a LIKE '{'x' * 65}'"),
        ("sql", "a = 'x"),
        ("xpath", "x" * 513),
        ("xpath", "//a//b//c//d"),
        ("xpath", "$x"),
        ("xpath", "n:a"),
        ("xpath", "document('/etc/passwd')"),
        ("xpath", "re:test(., '(a+)+$')"),
        ("xpath", "//*[//*[//*]]"),
        ("xquery", "(" * 101 + "1" + ")" * 101),
        ("uuid", "not-a-uuid"),
        ("uuid", uuid_of(1) + "0"),
        ("", "something"),
        ("text", ""),
        ("datalog", "a :- b"),
    ],
)
def test_a_query_that_is_not_one_is_refused(language: str, expression: str) -> None:
    with pytest.raises(BadTopicQuery):
        plan(Query(language=language, expression=expression))


@pytest.mark.parametrize(
    "fields",
    [
        {"limit": 0},
        {"limit": 1_001},
        {"creator": "x" * 257},
        {"cursor": "x" * 1_025},
        {"created_from_ns": 2, "created_until_ns": 1},
        {"valid_at_ns": 1 << 63},
        {"namespaces": (("n", "urn:n"),)},
        {"language": "xpath", "expression": "a", "namespaces": (("a b", "urn:n"),)},
        {"language": "xpath", "expression": "a", "namespaces": (("n", "urn:n"),) * 17},
    ],
)
def test_a_field_that_makes_no_sense_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(BadTopicQuery):
        plan(Query(**fields))


def test_an_error_in_a_predicate_says_where() -> None:
    with pytest.raises(BadTopicQuery) as refused:
        plan(Query(language="sql", expression="band = 'S' AMD power > 5"))

    assert refused.value.pointed() == "band = 'S' AMD power > 5\n           ^"


# Regular expressions

HOSTILE_REGEX = (
    "(a?){1000}a{1000}",
    "(a{100}){100}",
    "((a{100}){100}){100}",
    r"\p{L}{500}" * 20,
    "(x+x+)+y{1000}",
    ".{1000}",
    r"(a)\1",
    "(?=a)b",
    "(?<!a)b",
    "(?R)",
    "[[:nothing:]]",
    r"\8",
    "a**",
)


@pytest.mark.parametrize("hostile", HOSTILE_REGEX)
def test_a_regular_expression_that_is_too_large_or_goes_back_is_refused(hostile: str) -> None:
    with pytest.raises(BadTopicQuery):
        plan(Query(language="regex", expression=hostile))


@pytest.mark.parametrize(
    "slow", ["(a+)+$", "(a|aa)+$", "(.*a){10}", "(a*)*b", "^(([a-z])+.)+[A-Z]$"]
)
def test_a_regular_expression_that_is_slow_elsewhere_is_answered(tmp_path: Path, slow: str) -> None:
    catalog = open_catalog(tmp_path, [described(1, text="a" * 2_000 + "!")])
    searcher = open_searcher(catalog)

    assert len(ask_all(searcher, Query(language="regex", expression=slow), {"open"})) <= 1
    searcher.close()
    catalog.close()


def test_expressions_about_the_whole_text_are_not_asked_of_several_at_once(
    tmp_path: Path,
) -> None:
    catalog = open_catalog(tmp_path, [described(number, text="end") for number in range(3)])
    searcher = open_searcher(catalog)
    everything = Query(language="regex", expression=r"\Alead")
    no_lines = Query(language="regex", expression="(?-m)^end")

    assert len(ask_all(searcher, everything, {"open"})) == 3
    assert ask_all(searcher, no_lines, {"open"}) == []
    searcher.close()
    catalog.close()


def test_characters_that_are_equal_without_case_are_equal_in_the_index() -> None:
    """For all of Unicode: RE2 and the index fold by different tables."""
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    cased = [
        each
        for each in characters
        if len({each, each.lower(), each.upper(), each.casefold()}) > 1 and each != "\n"
    ]
    text = "\n".join(cased).encode()

    for each in cased:
        for found in re2.compile(f"(?i){re2.escape(each)}").finditer(text):
            assert folded(found.group().decode()) == folded(each)


def test_a_search_says_how_far_it_came_when_its_time_is_up(catalog: Catalog) -> None:
    """A tenth of a second goes by at each look at the clock, and a page may take half of one."""
    clock_ns = iter(range(0, 10**15, SECOND_NS // 10))
    searcher = open_searcher(catalog, stopwatch_ns=lambda: next(clock_ns), budget_ns=SECOND_NS // 2)
    everybody = {"open", "members", "staff"}
    scanned = Query(language="regex", expression="w.n|S.$")

    page = ask(searcher, scanned, everybody)
    assert page.partial
    assert page.next
    assert sorted(ask_all(searcher, scanned, everybody)) == scan(ADVERTISEMENTS, scanned, everybody)
    searcher.close()


def test_a_page_has_no_more_bytes_than_fit_into_an_answer(tmp_path: Path) -> None:
    large = [described(number, document=b"x" * 90_000) for number in range(30)]
    catalog = open_catalog(tmp_path, large)
    searcher = open_searcher(catalog)

    page = ask(searcher, Query(limit=1_000), {"open"})

    assert 10 < len(page.advertisements) < 13
    assert not page.partial
    assert page.next
    rest = 0
    while page.next:
        page = ask(searcher, Query(limit=1_000, cursor=page.next), {"open"})
        rest += len(page.advertisements)
    assert 17 < rest < 20
    searcher.close()
    catalog.close()


# What may not be seen

QUERIES = (
    Query(),
    Query(creator="creator1"),
    Query(created_from_ns=5 * SECOND_NS),
    Query(language="uuid", expression=uuid_of(1)),
    Query(language="prefix", expression="lead"),
    Query(language="text", expression="radar"),
    Query(language="regex", expression="radar"),
    Query(language="regex", expression="r.d"),
    Query(language="sql", expression="band = 'S'"),
    Query(language="sql", expression="power * 2 > 1"),
    Query(language="xpath", expression="//band[@id = 'S']"),
    Query(language="xpath", expression="count(//*) > 2"),
)


@pytest.mark.parametrize("query", QUERIES)
def test_hidden_topics_change_neither_the_answer_nor_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: Query
) -> None:
    """Work is what SQLite does and what is evaluated. It is the same to the instruction, whether
    the hidden ones all match or none does."""
    monkeypatch.setattr(query_connection, "CLOCK_LOOKED_AT", 1)
    visible = [replaced(make_advertisement(Random(n), n), label="open") for n in range(60)]
    matching: list[IndexedAdvertisement] = []
    others: list[IndexedAdvertisement] = []
    for number, each in enumerate(visible):
        for label in ("secret", "more secret"):
            hidden = replaced(each, label=label, uuid=uuid_of(1_000 + len(matching)))
            matching.append(hidden)
            others.append(replaced(described(number), label=label, uuid=hidden.uuid, topic="x"))

    found = [
        work(tmp_path / name, [*hidden[:1], *visible, *hidden[1:]], query)
        for name, hidden in (("matching", matching), ("others", others))
    ]

    assert found[0] == found[1]


def work(
    directory: Path, advertisements: Sequence[IndexedAdvertisement], query: Query
) -> tuple[list[str], int, list[int]]:
    """What is found, the instructions that SQLite performed, and how many documents were evaluated
    at once."""
    evaluated: list[int] = []
    instructions = 0

    def evaluate(wanted: XmlQuery, documents: Sequence[bytes], until_ns: int) -> list[bool]:
        evaluated.append(len(documents))
        return evaluate_xpath(wanted, documents, until_ns)

    def stopwatch_ns() -> int:
        nonlocal instructions
        instructions += 1
        return 0

    catalog = open_catalog(directory, advertisements)
    searcher = open_searcher(catalog, evaluate, stopwatch_ns=stopwatch_ns)
    found = ask_all(searcher, query, {"open"})
    searcher.close()
    catalog.close()
    return found, instructions, evaluated


def test_a_cursor_tells_nothing_of_how_many_topics_are_hidden(tmp_path: Path) -> None:
    """Were it readable, the number of the last advertisement would be in it."""
    catalog = open_catalog(
        tmp_path,
        [described(n, label="open" if n % 100 == 0 else "secret") for n in range(500)],
    )
    searcher = open_searcher(catalog)
    cursors = [ask(searcher, Query(limit=limit), {"open"}).next.encode() for limit in (1, 2, 3, 4)]

    assert len({len(cursor) for cursor in cursors}) == 1
    assert len(set(cursors)) == 4
    searcher.close()
    catalog.close()


def described(
    number: int,
    *,
    label: str = "open",
    document: bytes = b"document",
    text: str = "",
    properties: dict[str, str] | None = None,
) -> IndexedAdvertisement:
    given = IndexedAdvertisement(
        uuid=uuid_of(number),
        version=1,
        topic=f"lead/{uuid_of(number)}",
        creator="anna",
        created_ns=0,
        expires_ns=10_000 * SECOND_NS,
        label=label,
        descriptors=Descriptors(text=text, properties=properties or {}),
        document=document,
    )
    rows_of(given)
    return given


def replaced(given: IndexedAdvertisement, **fields: object) -> IndexedAdvertisement:
    known = {name: getattr(given, name) for name in given.__struct_fields__}
    return IndexedAdvertisement(**known | fields)
