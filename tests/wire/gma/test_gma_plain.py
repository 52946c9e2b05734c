"""The fast path for plain event messages: what it takes, the parser takes, and reads the same."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tocsin import safexml
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.messages import Context, Element, PerformanceEvent
from tocsin.wire.gma.names import EVENTS, NAME_CHARS_MAX, PARAMETERS, PROTOCOL, EventName
from tocsin.wire.gma.plain import (
    ELEMENTS_MAX,
    Routed,
    name_of_plain,
    read_plain,
    read_plain_content,
    route,
)
from tocsin.wire.gma.read import read, read_parsed
from tocsin.wire.gma.write import event_element, event_message, write
from wire.gma.drawn import event_messages
from wire.gma.paper_messages import EVENT, GRID_FORUM, LOAD, LOADS, TIME, UPTIME

CONTEXT = Context(7, "e1", "gma://foo.gov", "gma/UptimeCPULoad/foo.gov")
PLAIN = write(
    m.EventMessage(
        "1234",
        PerformanceEvent(
            UPTIME,
            TIME,
            (*LOADS, Element("HostName", "foo.gov"), Element("T", -2, "degrees", "+/-5.0")),
        ),
        request_id="e1",
        context=CONTEXT,
    )
)

DECLARED = b'<?xml version="1.0" encoding="UTF-8"?>'
# The same event as others write it, all of which is plain, too.
FORMS = (
    PLAIN,
    DECLARED + b"\n" + PLAIN,
    EVENT.encode(),
    PLAIN.replace(b"/Events", b"/Protocol"),
    PLAIN.replace(b'/Events"', b'/EventParameters"'),
    PLAIN.replace(f' xmlns="{EVENTS}"'.encode(), b""),
    PLAIN.replace(b"UptimeCPULoad ", b"UptimeCPULoadEvent ").replace(b"Load>", b"LoadEvent>"),
    PLAIN.replace(b"><", b">\r\n  <"),
    PLAIN.replace(b" xmlns", b"\r\nxmlns", 2),
    PLAIN.replace(b"Z<", b"Zp.001a.5<"),
)


def takes_as_the_parser_does(data: bytes) -> bool:
    """True if the fast path took it; whatever it took is checked against the parser."""
    plain, routed = read_plain_content(data), route(data)
    assert read_plain(data) == (None if plain is None else plain[0])
    assert (plain is None) == (routed is None)
    if plain is None or routed is None:
        return False
    message, content = plain
    parsed = read_parsed(data)
    assert repr(parsed) == repr(plain), "repr tells 1, 1.0 and True apart"
    assert message.event is not None
    assert routed == Routed(
        message.subscription_id, message.event.name, content, message.request_id
    )
    assert name_of_plain(content) == message.event.name
    return True


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


# Messages put together of what is plain and what is nearly so

# For each place in the message what may stand there, and what may not.
SLOTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "declaration": (
        ("", '<?xml version="1.0"?>', DECLARED.decode(), DECLARED.decode().lower()),
        ("<?xml version='1.0'?>", '<?xml version="1.1"?>', "\ufeff", "<?pi?>", "<!---->"),
    ),
    "gap": ((" ", "\n", "\r\n", "  \t\r"), ("", "\x0c", "\xa0", "/")),
    "event": (
        (
            *(f'UptimeCPULoad{{gap}}xmlns="{each}"' for each in (EVENTS, PARAMETERS, PROTOCOL)),
            f'UptimeCPULoadEvent{{gap}}xmlns="{EVENTS}"',
            'UptimeCPULoadEvent{gap}xmlns="urn:lab"',
            "UptimeCPULoad",
            "Event",
        ),
        (
            'UptimeCPULoad{gap}xmlns=""',
            "UptimeCPULoad{gap}xmlns='urn:lab'",
            "UptimeCPULoad{gap}",
            'UptimeCPULoad{gap}xmlns="urn:a"{gap}xmlns="urn:b"',
            *("Error", "SubscriptionID", "p:UptimeCPULoad"),
        ),
    ),
    "space": (("", " ", "\n", "\r\n\t", "\r"), ("&#13;", "&#10;", "\x0c", "\x85", "<!---->", "x")),
    "text": (
        ("foo.gov", "1.5", " true\n", "", "a'b\"c"),
        ("a\rb", "\r\n", "]]>", "&gt;", "é", "\0"),
    ),
    "units": (("", ' units="m"', ' units="m" accuracy="1"'), (" units='m'", ' units="a\rb"')),
    "stamp": (
        (TIME, f"{TIME}p.001a.5", f"{TIME}r1a0.25", f"{TIME}a5", "2000-11-09T21:51:45.5+01:00p1"),
        (f"{TIME}p", f"{TIME}x1", f"{TIME}p1\r\n", "2000-11-09", f"{TIME}p1.", f"{TIME}a1p1"),
    ),
}
MESSAGE = (
    f'{{declaration}}{{space}}<Event{{gap}}xmlns="{PROTOCOL}"{{gap}}subscriptionID="1234">{{space}}'
    "<{event}>{space}<HostName{units}>{text}</HostName>{space}<TimeStamp>{stamp}</TimeStamp>"
    "{space}</{end}>{space}</Event>{space}"
)


def put_together(chosen: dict[str, str]) -> bytes:
    event = chosen["event"].format(gap=chosen["gap"])
    end = event.split("=")[0].removesuffix("xmlns").strip()
    leading = chosen["space"] if chosen["declaration"] else ""
    text = MESSAGE.replace("{declaration}{space}", chosen["declaration"] + leading)
    return text.format(**{**chosen, "event": event, "end": end}).encode()


@given(chosen=st.fixed_dictionaries({name: st.sampled_from(ok) for name, (ok, _) in SLOTS.items()}))
def test_every_choice_of_plain_parts_makes_a_plain_message(chosen: dict[str, str]) -> None:
    assert takes_as_the_parser_does(put_together(chosen))


@given(
    chosen=st.fixed_dictionaries(
        {name: st.sampled_from([*ok, *nearly]) for name, (ok, nearly) in SLOTS.items()}
    ),
    slot=st.sampled_from(sorted(SLOTS)),
    data=st.data(),
)
def test_a_part_that_is_nearly_plain_leaves_the_message_to_the_parser(
    chosen: dict[str, str], slot: str, data: st.DataObject
) -> None:
    chosen[slot] = data.draw(st.sampled_from(SLOTS[slot][1]))

    assert not takes_as_the_parser_does(put_together(chosen))


# Near misses, by the thousand

PIECES = (
    *("\r", "\n", "\t", " ", "]]>", ">", "<", "&amp;", "&#10;", "&", '"', "'", "\x7f", "\x0b", "/"),
    *("\x00", "é", "\x85", "\u2028", "\ufffe", "xmlns", 'xmlns=""', "xmlns:a='urn:a'", "a:", "-"),
    *("<!---->", "<?x?>", "<![CDATA[1]]>", "<x/>", "<x></x>", "<TimeStamp>", "</TimeStamp>", ":"),
    *("1", "0", ".5", "e5", "e999", "+", "true", "false", " true", "9999999999999999999", "_", "="),
    *(
        ' units="m"',
        ' accuracy=""',
        ' units="a" units="b"',
        "TimeStamp",
        "Error",
        "Event",
        "#",
        "%",
    ),
    *(
        "\r\n",
        "\n\r",
        "?>",
        "<?xml",
        'version="1.1"',
        ' encoding="utf-16"',
        ' standalone="yes"',
        "8",
    ),
    *(
        "p.001",
        "a.5",
        "Zp1",
        "r",
        "a",
        "UptimeCPULoadEvent",
        PROTOCOL,
        f' xmlns="{EVENTS}"',
        "\x0c",
    ),
    *("http://www.w3.org/2000/xmlns/", "urn:tocsin:gma:1", "\ud7ff", "[", "]", "{", "}", "\\", "^"),
)
HEAD_CHARS = 60  # where a declaration stands


def near_misses(seed: int, count: int) -> list[bytes]:
    """Plain messages with a few small changes each, and all those of one seed the same again."""
    random = Random(seed)
    found: list[bytes] = []
    for _ in range(count):
        text = random.choice(FORMS).decode()
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            at = random.randrange(random.choice((*(len(text),) * 5, HEAD_CHARS)) + 1)
            piece = random.choice(PIECES) if random.random() < 0.8 else chr(random.randrange(256))
            text = text[:at] + piece + text[at + random.choice((0, 0, 1, len(piece))) :]
        found.append(text.encode())
    return found


@pytest.mark.parametrize("seed", range(4))
def test_of_thousands_of_near_misses_none_is_read_otherwise_than_by_the_parser(seed: int) -> None:
    taken = sum(map(takes_as_the_parser_does, near_misses(seed, 20_000)))

    assert taken > 1_000, "enough of them are still plain for the comparison to mean something"


@pytest.mark.parametrize("seed", range(2))
def test_bits_that_flip_are_read_by_both_the_same(seed: int) -> None:
    random = Random(seed)
    taken = 0
    for _ in range(4_000):
        data = bytearray(random.choice(FORMS))
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        taken += takes_as_the_parser_does(bytes(data))

    assert taken > 400


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
