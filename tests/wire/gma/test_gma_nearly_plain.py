"""Messages that are nearly plain: none is read otherwise than by the parser."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_messages import DECLARED, FORMS, takes_as_the_parser_does

from tocsin.wire.gma.names import EVENTS, PARAMETERS, PROTOCOL
from wire.gma.paper_messages import TIME

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
