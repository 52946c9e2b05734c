"""The fast path for plain event messages: what it takes, the parser takes, and reads the same."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from plain_messages import DECLARED, FORMS, PLAIN, takes_as_the_parser_does

from tocsin import safexml
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.messages import Element, PerformanceEvent
from tocsin.wire.gma.names import NAME_CHARS_MAX, PROTOCOL, EventName
from tocsin.wire.gma.plain import (
    ELEMENTS_MAX,
    name_of_plain,
    read_plain_content,
)
from tocsin.wire.gma.read import read, read_parsed
from tocsin.wire.gma.write import event_element, event_message, write
from wire.gma.drawn import event_messages
from wire.gma.paper_messages import EVENT, GRID_FORUM, LOAD, TIME, UPTIME

# What it takes


def test_what_we_write_for_the_paper_s_event_is_plain() -> None:
    assert takes_as_the_parser_does(write(m.EventMessage("1234", LOAD)))
    assert takes_as_the_parser_does(PLAIN)


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_the_event_is_plain_in_every_spelling_of_the_paper(form: bytes) -> None:
    assert takes_as_the_parser_does(form)


def test_the_paper_s_example_is_read_as_printed_and_its_event_mended() -> None:
    assert read_plain_content(EVENT.encode()) == (
        m.EventMessage("1234", LOAD),
        event_element(LOAD).encode(),
    )
    assert name_of_plain(event_element(LOAD).encode()) == UPTIME
    assert name_of_plain(event_element(LOAD).replace("/Events", "/Protocol").encode()) is None


def test_line_breaks_and_indentation_are_plain() -> None:
    spread = PLAIN.replace(b"><", b">\n  <").replace(b">\n  </Load", b"></Load")

    assert takes_as_the_parser_does(spread)


def test_the_time_stamp_may_stand_anywhere_in_the_event() -> None:
    stamp = f"<TimeStamp>{TIME}</TimeStamp>"
    bare = event_element(LOAD).replace(stamp, "")

    for place in ("<Load1>", "<Load5>", "<Load15>"):
        moved = event_message("1", bare.replace(place, stamp + place).encode())
        assert takes_as_the_parser_does(moved)
        assert read_parsed(moved)[0] == m.EventMessage("1", LOAD)


@pytest.mark.parametrize("day", ["2000-01-31", "2024-02-28", "2023-04-30", "1999-12-31"])
def test_every_day_but_a_leap_day_is_plain(day: str) -> None:
    assert takes_as_the_parser_does(PLAIN.replace(b"2000-11-09", day.encode()))


@given(message=event_messages)
def test_whatever_is_written_is_read_by_both_the_same(message: m.EventMessage) -> None:
    takes_as_the_parser_does(write(message))


# What it must leave to the parser


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"foo.gov<", b"foo\r\ngov<"),
        (b"foo.gov<", b"foo]]>gov<"),
        (b"foo.gov<", b"foo>gov<"),
        (b"foo.gov<", b"foo&amp;gov<"),
        (b"foo.gov<", b"<![CDATA[x]]><"),
        (b"foo.gov<", b"<!--x--><"),
        (b"foo.gov<", b"f\xc3\xb6\xc3\xb6<"),
        (b"foo.gov<", b"f\xff<"),
        (b"foo.gov<", b"f\x00<"),
        (b"foo.gov<", b"f\x1b<"),
        (b"foo.gov<", b"f\x7f<"),
        (b'units="degrees"', b'units=""'),
        (b'units="degrees"', b'units="a" units="b"'),
        (b'units="degrees"', b'accuracy="b" units="degrees"'),
        (b'units="degrees"', b'units="a\tb"'),
        (b'units="degrees"', b"units='degrees'"),
        (b'units="degrees"', b'other="x"'),
        (b'"1234"', b'""'),
        (b'"1234"', b'" "'),
        (b'"1234"', b'" 1"'),
        (b'"1234"', b'"' + b"1" * 257 + b'"'),
        (f"{GRID_FORUM}/Events".encode(), b""),
        (f"{GRID_FORUM}/Events".encode(), b"urn:tocsin:gma:1"),
        (f"{GRID_FORUM}/Events".encode(), b"http://www.w3.org/XML/1998/namespace"),
        (f"{GRID_FORUM}/Events".encode(), b"http://www.w3.org/2000/xmlns/"),
        (f"{GRID_FORUM}/Events".encode(), b"no uri"),
        (f"{GRID_FORUM}/Events".encode(), b"http://[a"),
        (f"{GRID_FORUM}/Events".encode(), b"urn:" + b"x" * 1_024),
        (b"UptimeCPULoad", b"a:b"),
        (b"UptimeCPULoad ", b"UptimeCPULoadEvent "),
        (
            f'UptimeCPULoad xmlns="{GRID_FORUM}/Events'.encode(),
            b'Error xmlns="' + PROTOCOL.encode(),
        ),
        (b'/Events"', b"/Events'"),
        (b"<Event xmlns", b"<Eventxmlns"),
        (b"<Event xmlns", b"<Event\x0bxmlns"),
        (b'"1234" requestID', b'"1234"requestID'),
        (b"<Load1>1.5<", b"<Load1>\r\n1.5<"),
        (b"<Load1>1.5<", b"<Load1>1.5\r<"),
        (b"<Load1>", b"\x0c<Load1>"),
        (b"Load15", b"a:Load15"),
        (b"Load15", b"L" * (NAME_CHARS_MAX + 1)),
        (b"Load15", b"1Load"),
        (b"Load15", b"TimeStamp"),
        (TIME.encode(), b"2023-02-29T00:00:00Z"),
        (TIME.encode(), b"0000-01-01T00:00:00Z"),
        (TIME.encode(), b" 2000-11-09T21:51:45Z"),
        (TIME.encode(), b"2000-11-09T21:51:45Zp"),
        (TIME.encode(), b"2000-11-09T21:51:45Za.5p.001"),
        (TIME.encode(), b"2000-11-09T21:51:45Zp1.a2"),
        (TIME.encode(), b"2000-11-09T21:51:45Zp1e-3"),
        (TIME.encode(), b"2000-11-09T21:51:45Zp-1"),
        (TIME.encode(), b"2000-11-09T21:51:45"),
        (b"<TimeStamp>", b'<TimeStamp units="s">'),
        (b'seq="7"', b'seq="-7"'),
        (b'seq="7"', b'seq="1234567890123456789"'),
        (b"</Event>", b"</Event><!---->"),
        (b"</Event>", b"</Event>x"),
        (b"<Event ", b"\xef\xbb\xbf<Event "),
        (b"<Event ", b" <Event "),
        *(
            (b"<Event ", declared + b"<Event ")
            for declared in (
                b'<?xml version="1.1"?>',
                b"<?xml version='1.0'?>",
                b'<?xml version="1.0" ?>',
                b'<?xml  version="1.0"?>',
                b'<?xml version = "1.0"?>',
                b'<?xml version="1.0" encoding="utf-16"?>',
                b'<?xml version="1.0" encoding="iso-8859-1"?>',
                b'<?xml version="1.0" encoding="US-ASCII"?>',
                b'<?xml version="1.0" standalone="yes"?>',
                b'<?xml encoding="UTF-8" version="1.0"?>',
                b'<?xml encoding="UTF-8"?>',
                b"<?xml?>",
                DECLARED + DECLARED,
                b"\n" + DECLARED,
                b"\xef\xbb\xbf" + DECLARED,
                DECLARED + b"<!---->",
                DECLARED + b"<!DOCTYPE Event>",
                DECLARED + b"x",
            )
        ),
        (b"</Load1>", b"</Load5>"),
    ],
)
def test_what_is_not_plain_is_left_to_the_parser(old: bytes, new: bytes) -> None:
    changed = PLAIN.replace(old, new)

    assert changed != PLAIN
    assert not takes_as_the_parser_does(changed)


def test_more_elements_than_an_event_may_have_are_left_to_the_parser() -> None:
    most = PerformanceEvent(UPTIME, TIME, (Element("x", 1),) * (ELEMENTS_MAX - 1))
    more = PerformanceEvent(UPTIME, TIME, (Element("x", 1),) * ELEMENTS_MAX)

    assert takes_as_the_parser_does(write(m.EventMessage("1", most)))
    assert not takes_as_the_parser_does(write(m.EventMessage("1", more)))
    assert name_of_plain(event_element(most).encode()) == UPTIME
    assert name_of_plain(event_element(more).encode()) is None


@given(namespace=st.text(st.characters(max_codepoint=127), min_size=1, max_size=20))
@example("urn:")
@example("a")
@example("http://user@host:99999999999/")
@example("http:///")
@example("file:c|/x")
@example("%zz")
@example("#a#b")
def test_a_namespace_is_taken_only_where_the_parser_takes_it(namespace: str) -> None:
    takes_as_the_parser_does(PLAIN.replace(f"{GRID_FORUM}/Events".encode(), namespace.encode()))


@given(text=st.text(max_size=12), units=st.text(max_size=6))
def test_texts_and_units_are_taken_only_as_the_parser_takes_them(text: str, units: str) -> None:
    data = PLAIN.replace(b"foo.gov<", text.encode("utf-8", "surrogatepass") + b"<")
    data = data.replace(b"degrees", units.encode("utf-8", "surrogatepass"))

    takes_as_the_parser_does(data)


def test_an_event_by_itself_is_plain_as_in_its_message() -> None:
    event = PerformanceEvent(EventName("T", "urn:lab"), TIME, (Element("v", 1.5, "m"),))

    assert name_of_plain(event_element(event).encode()) == event.name
    assert name_of_plain(b"<T/>") is None


@pytest.mark.parametrize("form", FORMS)
def test_a_plain_message_never_gets_to_the_parser(
    form: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(*_: object, **__: object) -> None:
        raise AssertionError("the parser was asked, which is right but slow")

    monkeypatch.setattr(safexml, "parse", parse)

    assert read(form)
