"""What the indexes find is what looking at every advertisement finds, in each language."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from catalog_samples import (
    NAMES,
    SECOND_NS,
    ask,
    ask_all,
    make_advertisement,
    open_catalog,
    open_searcher,
    scan,
    uuid_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.errors import BadTopicQuery
from tocsin.store.topics.search import Searcher
from tocsin.topics.descriptors import Descriptors
from tocsin.topics.queries.indexed import IndexedAdvertisement
from tocsin.topics.queries.query import Query

Sample = tuple[list[IndexedAdvertisement], Searcher]
COUNT = 150


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    random = Random(2_005)
    advertisements = [make_advertisement(random, number) for number in range(COUNT)]
    catalog = open_catalog(tmp_path_factory.mktemp("catalog"), advertisements)
    searcher = open_searcher(catalog)
    yield advertisements, searcher
    searcher.close()
    catalog.close()


labels = st.sets(st.sampled_from(("open", "members", "staff", "no such label")), min_size=1)
limits = st.integers(1, 40)
times = st.none() | st.integers(0, 10_100).map(lambda seconds: seconds * SECOND_NS)


@st.composite
def bounds(draw: st.DrawFn) -> dict[str, object]:
    """Mostly none."""
    found: dict[str, object] = {}
    if draw(st.booleans()):
        return found
    found["creator"] = draw(st.sampled_from(("", "creator1", "nobody")))
    found["institution"] = draw(st.sampled_from(("", "NCSA")))
    found["valid_at_ns"] = draw(times)
    for first, last in (
        ("created_from_ns", "created_until_ns"),
        ("expires_from_ns", "expires_until_ns"),
        ("duration_min_ns", "duration_max_ns"),
    ):
        low, high = draw(times), draw(times)
        if low is None or high is None or low <= high:
            found |= {first: low, last: high}
    return found


plain_words = "radar RADAR ohio ωμεγα strasse cafe wind 7 k rad* st* x y lead/radar university true"
phrases = ('"lead radar"', '"storm ohio"', '"wind 7"', '"power 5"')
words = st.sampled_from((*plain_words.split(), *phrases))
texts = st.lists(words, min_size=1, max_size=3).map(" ".join)

plain_pieces = r"""radar Ohio (?i)OHIO storm lead ^lead S$ =5 band <[a-z]+ x_y straße CAFÉ
    (?i)STRASSE (?i)ωΜΈΓΑ k (?i)k [a-d]+ a|b / . \. \d \b $ ^ &amp; \bwind\b =-?2 xmlns \x53"""
pieces = st.sampled_from(plain_pieces.split())
patterns = st.recursive(
    pieces,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        inner.map("({})".format),
        inner.map("(?:{})?".format),
        inner.map("(?:{})*".format),
        inner.map("(?:{})+".format),
        inner.map("(?P<n>{}){{1,2}}".format),
    ),
    max_leaves=4,
)

names = st.sampled_from((*NAMES, "missing"))
constants = st.sampled_from(
    (
        "'S'",
        "'X'",
        "'5'",
        "''",
        "5",
        "5.0",
        "-2.5",
        "40",
        "1e1",
        "0",
        "TRUE",
        "FALSE",
        "'Ohio valley'",
    )
)
numbers = st.recursive(
    st.one_of(names, st.sampled_from(("5", "2.5", "0", "1e308"))),
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(
        "({0[0]} {0[1]} {0[2]})".format
    ),
    max_leaves=3,
)
operators = st.sampled_from(("=", "<>", "!=", "<", "<=", ">", ">="))
likes = st.sampled_from(
    ("'S%'", "'%valley'", "'Ohio%'", "'_'", "'s\\%\\_%'", "'s!%%' ESCAPE '!'", "'%'")
)
conditions = st.one_of(
    st.tuples(names, operators, constants).map(" ".join),
    st.tuples(constants, operators, names).map(" ".join),
    st.tuples(names, operators, names).map(" ".join),
    st.tuples(numbers, operators, numbers).map(" ".join),
    st.tuples(names, st.sampled_from(("LIKE", "NOT LIKE")), likes).map(" ".join),
    names.map("{} IS NULL".format),
    names.map("{} IS NOT NULL".format),
    names.map("{} BETWEEN -3 AND 5".format),
    names.map("{} NOT BETWEEN 'A' AND 'T'".format),
    names.map("{} IN ('S', 'X', '5')".format),
    names.map("{} NOT IN (5, 40)".format),
    names,
)
predicates = st.recursive(
    conditions,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(" AND ".join),
        st.tuples(inner, inner).map(" OR ".join),
        inner.map("NOT ({})".format),
        inner.map("({})".format),
    ),
    max_leaves=5,
)

plain_steps = """instrument band site name d * @band @id @* text() . .. node() self::d
    ancestor::d following-sibling::band"""
steps = st.sampled_from(plain_steps.split())
paths = st.recursive(
    st.tuples(st.sampled_from(("", "/d/", "//", ".//")), steps).map("".join),
    lambda inner: st.one_of(
        st.tuples(inner, steps).map("/".join),
        st.tuples(inner, st.sampled_from(("@band = 'S'", "1", "band", "not(site)", ". = 'X'"))).map(
            "{0[0]}[{0[1]}]".format
        ),
    ),
    max_leaves=3,
)
truths = st.recursive(
    st.one_of(
        paths,
        st.tuples(
            paths, st.sampled_from(("=", "!=")), st.sampled_from(("'S'", "'X'", "'5'", "''"))
        ).map(" ".join),
        st.tuples(paths, st.sampled_from(("=", "<", ">=")), st.sampled_from(("5", "0"))).map(
            " ".join
        ),
        paths.map("contains({}, 'Ohio')".format),
        paths.map("starts-with({}, '')".format),
        paths.map("boolean({})".format),
        paths.map("count({})".format),
        st.tuples(paths, paths).map(" = ".join),
        st.tuples(paths, st.sampled_from(("true()", "false()"))).map(" = ".join),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("({0[0]}) and ({0[1]})".format),
        st.tuples(inner, inner).map("({0[0]}) or ({0[1]})".format),
        inner.map("not({})".format),
    ),
    max_leaves=3,
)

prefixes = st.sampled_from(
    ("lead", "lead/", "lead/radar/0", "Ωμ", "l", "nothing", "lead/\U0010ffff")
)
expressions = st.one_of(
    st.tuples(st.just("text"), texts),
    st.tuples(st.just("regex"), patterns),
    st.tuples(st.just("sql"), predicates),
    st.tuples(st.just("xpath"), truths),
    st.tuples(st.just("prefix"), prefixes),
    st.tuples(st.just("uuid"), st.integers(0, COUNT + 5).map(uuid_of)),
    st.just(("", "")),
)


def found_or_refused(searcher: Searcher, query: Query, seen: set[str]) -> list[str] | None:
    """None for an expression that is refused, as some are that hypothesis puts together."""
    try:
        return ask_all(searcher, query, seen)
    except BadTopicQuery:
        return None


@pytest.mark.parametrize(
    ("language", "expressions"),
    [
        ("text", texts),
        ("regex", patterns),
        ("sql", predicates),
        ("xpath", truths),
        ("prefix", prefixes),
        ("uuid", st.integers(0, COUNT + 5).map(uuid_of)),
        ("", st.just("")),
    ],
)
def test_an_indexed_search_finds_what_a_full_scan_finds(
    sample: Sample, language: str, expressions: st.SearchStrategy[str]
) -> None:
    advertisements, searcher = sample

    @settings(max_examples=400)
    @given(expression=expressions, seen=labels, limit=limits, within=bounds())
    def finds_the_same(expression: str, seen: set[str], limit: int, within: dict) -> None:
        query = Query(language=language, expression=expression, limit=limit, **within)
        found = found_or_refused(searcher, query, seen)
        if found is not None:
            assert len(found) == len(set(found))
            assert sorted(found) == scan(advertisements, query, seen)

    finds_the_same()


@pytest.mark.parametrize(
    ("language", "expression"),
    [
        ("text", "RADAR storm"),
        ("text", "rad* university"),
        ("text", '"lead radar"'),
        ("regex", "^lead/radar"),
        ("regex", "(?i)strasse|wind-[0-9]"),
        ("regex", "band=S$"),
        ("sql", "power >= 5 AND site IS NOT NULL"),
        ("sql", "site IN ('S', 'X') OR band LIKE 'Ohio%'"),
        ("sql", "power * 2 + 1 = 11 OR is_public"),
        ("sql", "NOT (power > 0)"),
        ("xpath", "//band[@id = 'S']"),
        ("xpath", "//site = 'Ohio' or //name = 'X'"),
        ("xpath", "count(//*) > 4"),
        ("prefix", "lead/radar/"),
        ("", ""),
    ],
)
def test_these_find_some_of_the_advertisements_and_not_all(
    sample: Sample, language: str, expression: str
) -> None:
    advertisements, searcher = sample
    everybody = {"open", "members", "staff"}
    query = Query(language=language, expression=expression)

    found = ask_all(searcher, query, everybody)

    assert 0 < len(found) < len(advertisements)
    assert sorted(found) == scan(advertisements, query, everybody)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 1_000_000),
    count=st.integers(0, 12),
    asked=expressions,
    seen=labels,
)
def test_a_search_of_any_catalog_finds_what_a_full_scan_finds(
    seed: int, count: int, asked: tuple[str, str], seen: set[str]
) -> None:
    random = Random(seed)
    advertisements = [make_advertisement(random, number) for number in range(count)]
    query = Query(language=asked[0], expression=asked[1], limit=5)
    with TemporaryDirectory() as directory:
        catalog = open_catalog(Path(directory), advertisements)
        searcher = open_searcher(catalog)
        found = found_or_refused(searcher, query, seen)
        searcher.close()
        catalog.close()

    assert found is None or sorted(found) == scan(advertisements, query, seen)


def bare(number: int, descriptors: Descriptors) -> IndexedAdvertisement:
    """With nothing to be found by but these."""
    return IndexedAdvertisement(
        uuid=uuid_of(number),
        version=1,
        topic="t",
        creator="anna",
        created_ns=0,
        expires_ns=2_000 * SECOND_NS,
        label="open",
        descriptors=descriptors,
        document=b"document",
    )


@pytest.mark.parametrize(
    ("language", "expression"),
    [
        ("sql", "a = 'S' OR b = 'S' OR power BETWEEN 1 AND 9"),
        ("sql", "a IN ('S', 'X') OR b LIKE 'S%'"),
        ("xpath", "//a = 'S' or //b = 'S' or //c"),
        ("regex", "radar|storm"),
    ],
)
def test_what_several_alternatives_lead_to_is_found_once(
    tmp_path: Path, language: str, expression: str
) -> None:
    described = Descriptors(
        text="radar storm",
        properties={"a": "S", "b": "S", "power": 5},
        xml="<d><a>S</a><b>S</b><c/></d>",
    )
    many = [bare(number, described) for number in range(100)]
    catalog = open_catalog(tmp_path, many)
    searcher = open_searcher(catalog)

    found = ask_all(searcher, Query(language=language, expression=expression, limit=7), {"open"})

    assert sorted(found) == [each.uuid for each in many]
    searcher.close()
    catalog.close()


def test_words_of_two_texts_are_no_phrase(tmp_path: Path) -> None:
    catalog = open_catalog(
        tmp_path,
        [
            bare(1, Descriptors(keywords=("Doppler", "radar"))),
            bare(2, Descriptors(text="a Doppler radar")),
            bare(3, Descriptors(xml="<d a='Doppler' b='radar'><e>Doppler</e>radar</d>")),
            bare(4, Descriptors(properties={"kind": "Doppler radar"})),
        ],
    )
    searcher = open_searcher(catalog)
    phrase = Query(language="text", expression='"doppler radar"')

    assert ask_all(searcher, phrase, {"open"}) == [uuid_of(2), uuid_of(4)]
    searcher.close()
    catalog.close()


@pytest.mark.parametrize("expression", ["$", "^", "t$", "\\b$", "", "x*$"])
def test_a_match_at_the_end_of_what_there_is_counts(tmp_path: Path, expression: str) -> None:
    catalog = open_catalog(tmp_path, [bare(number, Descriptors()) for number in range(3)])
    searcher = open_searcher(catalog)
    query = Query(language="regex", expression=expression or "(?:)")

    assert len(ask_all(searcher, query, {"open"})) == 3
    searcher.close()
    catalog.close()


def test_a_page_ends_at_the_limit_and_the_next_begins_there(sample: Sample) -> None:
    advertisements, searcher = sample
    wanted = scan(advertisements, Query(), {"open"})
    page = ask(searcher, Query(limit=3), {"open"})

    assert len(wanted) > 3
    assert [each.uuid for each in page.advertisements] == wanted[:3]
    assert page.next
    assert not page.partial

    following = ask(searcher, Query(limit=1_000, cursor=page.next), {"open"})
    assert [each.uuid for each in following.advertisements] == wanted[3:]
    assert not following.next


def test_an_advertisement_comes_with_the_document_that_was_given(sample: Sample) -> None:
    advertisements, searcher = sample
    given_ = next(each for each in advertisements if each.expires_ns > 1_100 * SECOND_NS)
    query = Query(language="uuid", expression=given_.uuid.upper())

    (found,) = ask(searcher, query, {given_.label}).advertisements

    assert (found.uuid, found.version, found.document) == (given_.uuid, 1, given_.document)


def test_what_has_expired_is_not_found_though_it_is_still_there(sample: Sample) -> None:
    advertisements, searcher = sample
    everybody = {"open", "members", "staff"}
    last_ns = max(each.expires_ns for each in advertisements)

    assert ask_all(searcher, Query(), everybody, now_ns=last_ns) == []
    assert len(ask_all(searcher, Query(), everybody, now_ns=last_ns - 1)) >= 1
