"""XPath filters: what they mean, what is refused, and that each is asked once."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from event.written_filters import write_filters
from tocsin.errors import BadFilter
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.event import Event
from tocsin.event.filter import All, AnyOf, Filter, Operator, Predicate, XPath
from tocsin.event.filter_eval import matches, passes, seen
from tocsin.event.filter_text import format_filter, parse_filter
from tocsin.event.xpath import NAMESPACES_MAX, check_xpath
from tocsin.event.xpath_documents import TOPICS
from tocsin.event.xpath_syntax import (
    EXPRESSION_CHARS_MAX,
    EXPRESSION_DEPTH_MAX,
    EXPRESSION_PARTS_MAX,
)

WSA = "http://schemas.xmlsoap.org/ws/2004/08/addressing"
SOAP12 = "http://www.w3.org/2003/05/soap-envelope"
SOAP11 = "http://schemas.xmlsoap.org/soap/envelope/"


def event(data: bytes | None = b"<c><b><a>1</a></b></c>", **more: object) -> Event:
    fields: dict[str, object] = {"id": "m1", "source": "s", "type": "urn:t", "topic": "lead/ohio"}
    fields |= {"datacontenttype": "application/xml", "data": data, **more}
    return Event(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("/c/b/a", True),
        ("/c/b/a[text()=1]", True),
        ("/c/b/a[text()=2]", False),
        ("/a/b/c", False),
        ("b/a", True),  # the context node is the root element
        ("count(//*) = 3", True),
        ("'text'", True),
        ("0", False),
        ("3", True),  # a number is true, not a position
        ("not(//z)", True),
        ("//z = false()", True),  # though there is no z
        ("//a = 1 and //z", False),
        ("//a or //z", True),
        ("(//z | //a)[1] > 0", True),
        ("* * * div * mod 2 = 0", False),
        ("//*[local-name() = 'a']", True),
        ("/c//a[../../b]", True),
        ("id('x')", False),
        (" //a\n", True),
    ],
)
def test_an_expression_is_asked_about_the_payload(expression: str, holds: bool) -> None:
    assert matches(check_xpath(XPath(expression)), event()) is holds


def test_prefixes_are_bound_by_the_filter_and_not_by_the_message() -> None:
    namespaced = event(b'<q:a xmlns:q="urn:x"/>')

    assert matches(XPath("/p:a", (("p", "urn:x"),)), namespaced)
    assert not matches(XPath("/q:a", (("q", "urn:y"),)), namespaced)
    assert not matches(XPath("/a"), namespaced)


def test_an_event_that_is_not_xml_is_asked_in_the_cloudevents_format() -> None:
    sent = event(b'{"load": 7}', datacontenttype="application/json")

    assert matches(XPath("/ce:event/ce:type = 'urn:t'"), sent)
    assert matches(XPath("contains(//ce:data, 'load')"), sent)
    assert not matches(XPath("//load"), sent)


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("/s:Envelope/s:Body/c/b/a", True),
        ("/s:Envelope/s:Header/w:Action = 'urn:t'", True),
        ("//w:MessageID = 'm1'", True),
        ("/c/b/a", True),
        ("//s:Body/z", False),
        ("not(/c)", False),  # true of the envelope, which nobody means
        ("/s:Envelope/s:Header/*[local-name()='Topic'] = 'lead/ohio'", True),
    ],
)
@pytest.mark.parametrize(("soap", "uri"), [("1.1", SOAP11), ("1.2", SOAP12)])
def test_an_expression_may_be_about_the_envelope(
    expression: str, holds: bool, soap: str, uri: str
) -> None:
    wanted = XPath(expression, (("s", uri), ("w", WSA)), "envelope", soap, WSA)

    assert matches(check_xpath(wanted), event()) is holds


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("t:lead/ohio", True),
        ("t:lead//.", True),
        ("/w:TopicSet/t:lead/ohio", True),
        ("/t:lead/ohio", True),
        ("//ohio[@w:topic = 'true']", True),
        ("t:lead", False),  # that is another topic, above
        ("lead/ohio", False),
        ("//ohio/child::*", False),
    ],
)
def test_an_expression_may_be_about_the_topic(expression: str, holds: bool) -> None:
    wanted = XPath(expression, (("t", "urn:topics"), ("w", TOPICS)), "topic")

    assert matches(wanted, event(extensions={"topicns": "urn:topics"})) is holds
    sent = {"wstopic": "x=urn:topics x:lead/ohio"}
    assert matches(wanted, event(extensions=sent)) is holds


@pytest.mark.parametrize("topic", ["", "7/up", "a b/c"])
def test_a_topic_that_cannot_be_elements_never_matches(topic: str) -> None:
    assert not matches(XPath("//*", on="topic"), event(topic=topic))
    assert not matches(XPath("//*", on="topic"), event(extensions={"topicns": "no { uri"}))


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("", "ends too early"),
        ("//", "ends too early"),
        ("a[", "ends too early"),
        ("a]", "']'"),
        ("a b", "'b'"),
        ("a ! b", "'!'"),
        ("p:a", "'p' is bound to no namespace"),
        ("p:*", "'p' is bound to no namespace"),
        ("$x", "variable $x"),
        ("//a and foo(1)", "no function foo()"),
        ("re:test(a, 'b')", "no function re:test()"),
        ("document('file:///')", "no function document()"),
        ("contains(a)", "does not take 1 arguments"),
        ("count('x')", "takes a set of nodes"),
        ("'a' | b", "joined with |"),
        ("'a'/b", "predicates and steps"),
        ("away::b", "no axis 'away'"),
        ("a" * (EXPRESSION_CHARS_MAX + 1), "characters"),
        ("(" * (EXPRESSION_DEPTH_MAX + 1) + "1" + ")" * (EXPRESSION_DEPTH_MAX + 1), "nested"),
        ("|".join("a" for _ in range(EXPRESSION_PARTS_MAX + 1)), "parts"),
        ("//a" * 40, "too long"),
        ("//a[following::a[following::a[following::a]]]", "too long"),
        ("1) or (1", "')'"),
        ("1]/x[1", "']'"),
        ("a\ud800", "not valid XPath"),
        ("a\x00", "not valid XPath"),
    ],
)
def test_what_is_wrong_with_an_expression_is_said(expression: str, problem: str) -> None:
    with pytest.raises(BadFilter) as caught:
        check_xpath(XPath(expression))

    assert problem in caught.value.problem
    assert caught.value.remedy


def test_prefixes_that_cannot_be_are_refused() -> None:
    too_many = tuple((f"p{n}", "urn:x") for n in range(NAMESPACES_MAX + 1))
    for namespaces in (too_many, (("", "u"),), (("1x", "u"),), (("p", ""),), (("p", "\x00"),)):
        with pytest.raises(BadFilter):
            check_xpath(XPath("a", namespaces))


def test_an_expression_is_evaluated_once_however_many_filters_have_it() -> None:
    leaf = XPath("//a")
    opened = seen(event())
    filters: list[Filter] = [leaf, All((leaf, leaf)), AnyOf((Predicate("x", Operator.EQ, 1), leaf))]

    assert all(passes(each, opened) for each in filters)
    assert opened.inquiry.evaluations == 1


def test_an_expression_whose_names_are_not_there_is_not_evaluated() -> None:
    opened = seen(event())
    for expression in ("/c/b/z", "//a[@z]", "//a[z = 1]", "//a and //z", "2 < //z"):
        assert not passes(XPath(expression), opened)
    assert opened.inquiry.evaluations == 0

    assert passes(XPath("//a or //z"), opened)
    assert passes(XPath("not(//z)"), opened)
    assert opened.inquiry.evaluations == 2


names = st.sampled_from(["p", "q", "soap"])
xpaths = st.builds(
    XPath,
    st.sampled_from(["//a", "a = 'it''s'".replace("''", '"'), "/a[b='\\ \n']", "'x'=\"'\""]),
    st.dictionaries(names, st.sampled_from(["urn:x", "http://x/y?a=b&c='d'"])).map(
        lambda bound: tuple(sorted(bound.items()))
    ),
    st.sampled_from(["payload", "envelope"]),
    st.sampled_from(["1.1", "1.2"]),
    st.sampled_from(["", WSA]),
)


@given(xpaths)
def test_a_filter_comes_back_from_text_and_from_json(wanted: XPath) -> None:
    try:
        check_xpath(wanted)
    except BadFilter:
        return

    assert parse_filter(format_filter(wanted)) == wanted
    assert parse_filter(format_filter(All((wanted, XPath("a"))))) == All((wanted, XPath("a")))
    assert read_filters(write_filters(wanted)) == wanted


def test_an_attribute_may_still_be_called_xpath() -> None:
    assert parse_filter("xpath = 5") == Predicate("xpath", Operator.EQ, 5)
    with pytest.raises(BadFilter, match="no function nope"):
        parse_filter("a = 1 and xpath 'nope()'")


WORDS = """
/ // a b * @ :: child:: ancestor:: following:: . .. [ ] ( ) | or and = != < + - div mod 1 .5
'x' "y" text() node() last() position() count( not( string( contains( , concat( $v p: ce:
id('x') namespace:: processing-instruction('x') é
"""
words = st.sampled_from(WORDS.split())


@given(st.lists(words, max_size=12).map(" ".join) | st.lists(words, max_size=12).map("".join))
def test_any_text_is_refused_or_can_be_asked(expression: str) -> None:
    for on in ("payload", "envelope", "topic"):
        try:
            wanted = check_xpath(XPath(expression, on=on))
        except BadFilter:
            continue
        opened = seen(event())
        passes(wanted, opened)
        assert opened.gave_up == []


@given(st.text(max_size=20))
def test_any_characters_are_refused_or_can_be_asked(expression: str) -> None:
    with suppress(BadFilter):
        matches(check_xpath(XPath(expression)), event())
