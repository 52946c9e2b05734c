"""Messages that are cut, damaged, forged or far too large: refused with words, quickly, and with
nothing but our own errors. A request that can be recognised gets the reply that says why."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadMessage, BadXml, TocsinError
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.plain import ELEMENTS_MAX, read_plain, route
from tocsin.wire.gma.read import NESTING_MAX, read, read_content
from tocsin.wire.gma.write import write
from wire.gma.drawn import messages
from wire.gma.paper_messages import EXAMPLES, GRID_FORUM, LOAD, TIME

PROTOCOL = f"{GRID_FORUM}/Protocol"
EVENTS = f"{GRID_FORUM}/Events"
READ_S_MAX = 1.0  # of one message, on a busy machine; it takes milliseconds


def refusal(text: str | bytes) -> BadMessage:
    with pytest.raises(BadMessage) as caught:
        read(text.encode() if isinstance(text, str) else text)
    assert len(str(caught.value)) < 1_000, "it is for a person to read"
    return caught.value


def request(kind: str, content: str, *, attributes: str = 'requestID="7"') -> str:
    return f'<{kind} xmlns="{PROTOCOL}" {attributes}>{content}</{kind}>'


def event(content: str, *, attributes: str = 'subscriptionID="7" requestID="e1"') -> str:
    return request("Event", content, attributes=attributes)


PARAMETERS = f'<UptimeCPULoad xmlns="{GRID_FORUM}/EventParameters"/>'
SUBSCRIPTION_ID = "<SubscriptionID>12</SubscriptionID>"
STAMP = f"<TimeStamp>{TIME}</TimeStamp>"
LONG = "1" * 257


# Cut and damaged


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_message_cut_at_any_byte_is_refused(example: str) -> None:
    text, meant = EXAMPLES[example]
    for data in (text.encode().rstrip(), write(meant)):
        for end in range(len(data)):
            with pytest.raises(TocsinError):
                read(data[:end])


def _damaged(seed: int, count: int) -> Iterator[bytes]:
    """The paper's messages with bits flipped, bytes lost and pieces of each other in them."""
    random = Random(seed)
    sound = [data.encode() for data, _ in EXAMPLES.values()]
    sound += [write(meant) for _, meant in EXAMPLES.values()]
    for _ in range(count):
        data = bytearray(random.choice(sound))
        for _ in range(random.randrange(1, 4)):
            at = random.randrange(len(data) + 1)
            match random.randrange(4):
                case 0 if at < len(data):
                    data[at] ^= 1 << random.randrange(8)
                case 1:
                    del data[at : at + random.randrange(1, 20)]
                case 2:
                    other = random.choice(sound)
                    start = random.randrange(len(other))
                    data[at:at] = other[start : start + random.randrange(1, 80)]
                case _:
                    data[at:at] = random.choice((b"<", b">", b"&", b'"', b"\0", b"\xff", b"<a>"))
        yield bytes(data)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_messages_raise_nothing_but_our_errors(seed: int) -> None:
    outcomes = {True: 0, False: 0}
    for data in _damaged(seed, 10_000):
        try:
            message = read_content(data)[0]
        except TocsinError:
            outcomes[False] += 1
        else:
            outcomes[True] += 1
            assert read(write(message)) == message

    assert min(outcomes.values()) > 100, "some are still read, and most are refused"


@given(message=messages, data=st.data())
def test_any_message_with_a_byte_changed_raises_nothing_but_our_errors(
    message: m.Message, data: st.DataObject
) -> None:
    written = bytearray(write(message))
    written[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_content(bytes(written))
    except TocsinError as error:
        reported = str(error)
        assert reported


@given(
    data=st.binary(max_size=60) | st.text("<>/&=\"' EventxmlnsabID19", max_size=60).map(str.encode)
)
def test_any_bytes_raise_nothing_but_our_errors(data: bytes) -> None:
    assert route(data) is None
    with pytest.raises(TocsinError):
        read(data)


# Wrong and missing parts


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        (request("SubscribeRequest", PARAMETERS), m.SubscribeReply),
        (request("SubscribeRequest", SUBSCRIPTION_ID), m.SubscribeReply),
        (request("SubscribeRequest", f"<SubscriptionID/>{PARAMETERS}"), m.SubscribeReply),
        (request("SubscribeRequest", SUBSCRIPTION_ID + PARAMETERS * 2), m.SubscribeReply),
        (request("SubscribeRequest", SUBSCRIPTION_ID * 2 + PARAMETERS), m.SubscribeReply),
        (
            request("SubscribeRequest", f"<SubscriptionID><a/></SubscriptionID>{PARAMETERS}"),
            m.SubscribeReply,
        ),
        (
            request("SubscribeRequest", f"<SubscriptionID>{LONG}</SubscriptionID>{PARAMETERS}"),
            m.SubscribeReply,
        ),
        (request("UnsubscribeRequest", ""), m.UnsubscribeReply),
        (request("QueryRequest", ""), m.QueryReply),
        (request("QueryRequest", PARAMETERS * 2), m.QueryReply),
        (event(""), m.EventReply),
        (event("<ErrorDetail>why</ErrorDetail>"), m.EventReply),
        (event(f'<T xmlns="{EVENTS}"/>'), m.EventReply),
        (event(f'<T xmlns="{EVENTS}">{STAMP}{STAMP}</T>'), m.EventReply),
        (event(f'<T xmlns="{EVENTS}"><TimeStamp>soon</TimeStamp></T>'), m.EventReply),
        (event(f'<T xmlns="{EVENTS}"><TimeStamp><a/></TimeStamp></T>'), m.EventReply),
        (event(f'<T xmlns="{EVENTS}"><v>{STAMP}</v></T>'), m.EventReply),
        (event(f'<T xmlns="{EVENTS}">{STAMP}</T><U xmlns="{EVENTS}">{STAMP}</U>'), m.EventReply),
        (
            event(f'<T xmlns="{EVENTS}">{STAMP}</T>', attributes='requestID="e1"'),
            m.EventReply,
        ),
    ],
)
def test_a_request_with_a_part_wrong_or_missing_gets_a_reply_that_says_so(
    text: str, reply: type
) -> None:
    error = refusal(text)

    assert isinstance(error.refusal, reply)
    assert error.refusal.returned == "Failure"
    assert error.refusal.request_id in ("7", "e1")
    assert error.refusal.detail == str(error)
    assert read(write(error.refusal)) == error.refusal


@pytest.mark.parametrize(
    "text",
    [
        request("SubscribeRequest", SUBSCRIPTION_ID + PARAMETERS, attributes=""),
        request("SubscribeRequest", SUBSCRIPTION_ID + PARAMETERS, attributes='requestID=" "'),
        request("QueryRequest", PARAMETERS, attributes=f'requestID="{LONG}"'),
        request("EventNamesRequest", "", attributes=""),
        event(f'<T xmlns="{EVENTS}"/>', attributes='subscriptionID="1"'),
        event(f'<T xmlns="{EVENTS}">{STAMP}</T>', attributes=f'subscriptionID="{LONG}"'),
        event(f'<T xmlns="{EVENTS}">{STAMP}</T>', attributes='subscriptionID="1" requestID=""'),
        request("SubscribeReply", "<SubscriptionID>1</SubscriptionID>"),
        request("SubscribeReply", "<Return/>"),
        request("SubscribeReply", "<Return>Success</Return><SubscriptionID/>"),
        request("UnsubscribeReply", "<ReturnDetail>x</ReturnDetail>"),
        request("QueryReply", f'<T xmlns="{EVENTS}">{STAMP}</T>'),
        request("QueryReply", f'<Return>Success</Return><T xmlns="{EVENTS}"/>'),
        request("EventNamesReply", "<Return>Success</Return><Event namespace='urn:x'/>"),
        request("EventReply", "<Return><a/></Return>"),
        request("Nonsense", ""),
        "<html/>",
    ],
)
def test_where_nobody_can_be_replied_to_there_is_no_refusal(text: str) -> None:
    assert refusal(text).refusal is None


@pytest.mark.parametrize("namespace", ["", "urn:else", EVENTS, f"{PROTOCOL}/", PROTOCOL.upper()])
def test_a_message_of_another_namespace_is_refused(namespace: str) -> None:
    text = request("QueryRequest", PARAMETERS).replace(f'"{PROTOCOL}"', f'"{namespace}"', 1)

    error = refusal(text)

    assert PROTOCOL in str(error)
    assert isinstance(error.refusal, m.QueryReply)


@pytest.mark.parametrize(
    "options",
    [
        'role="both"',
        'after="-1"',
        'after="x"',
        'after="٣"',
        f'after="{"1" * 19}"',
        'acknowledge=""',
    ],
)
def test_options_that_say_nothing_sensible_are_refused(options: str) -> None:
    extension = f'<Options xmlns="urn:tocsin:gma:1" {options}/>'

    error = refusal(request("SubscribeRequest", SUBSCRIPTION_ID + PARAMETERS + extension))

    assert isinstance(error.refusal, m.SubscribeReply)


def test_a_filter_of_elements_is_refused() -> None:
    extension = '<Filter xmlns="urn:tocsin:gma:1"><a/></Filter>'

    error = refusal(request("QueryRequest", PARAMETERS + extension))

    assert isinstance(error.refusal, m.QueryReply)


@pytest.mark.parametrize("seq", ["", "-1", "1.5", "9" * 19, "x"])
def test_a_context_without_a_place_in_the_log_is_refused(seq: str) -> None:
    context = f'<Context xmlns="urn:tocsin:gma:1" seq="{seq}" id="" source="" topic=""/>'
    sound = write(m.EventMessage("1", LOAD)).decode()

    refusal(sound.replace("</Event>", f"{context}</Event>"))


# Too large, too deep, too clever

BOMB = (
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    + "".join(
        f'<!ENTITY {new} "{f"&{old};" * 10}">'
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + "]>"
)
SOUND = write(m.EventMessage("1", LOAD)).decode()
FIELD = "<Load1>1.5</Load1>"
MANY_ATTRIBUTES = "".join(f" a{number}='1'" for number in range(100_000))
MANY_NAMESPACES = "".join(f" xmlns:a{number}='urn:{number}'" for number in range(100_000))


@pytest.mark.parametrize(
    "data",
    [
        (BOMB + SOUND.replace("1.5", "&i;")).encode(),
        (BOMB + SOUND.replace('subscriptionID="1"', 'subscriptionID="&i;"')).encode(),
        ("<!DOCTYPE Event>" + SOUND).encode(),
        ('<!DOCTYPE Event SYSTEM "file:///etc/passwd">' + SOUND).encode(),
        ("<!DOCTYPE Event>" + SOUND).encode("utf-16"),
        SOUND.replace("1.5", "&i;").encode(),
        SOUND.replace("1.5", "\xff").encode("latin-1"),
        SOUND.replace("1.5", "\xe4").encode("utf-16")[:-1],
        SOUND.encode("utf-16")[:-1],
        b"<?xml version='1.0' encoding='ebcdic-cp-us'?>" + SOUND.encode(),
        SOUND.replace("1.5", "\ud800").encode("utf-8", "surrogatepass"),
        SOUND.replace("1.5", "\0").encode(),
        SOUND.replace(FIELD, "<a>" * NESTING_MAX + "</a>" * NESTING_MAX).encode(),
        SOUND.replace(FIELD, "<a>" * 100_000 + "</a>" * 100_000).encode(),
        SOUND.replace(FIELD, "<a>" * 100_000).encode(),
        SOUND.replace(FIELD, FIELD * 10_000).encode(),
        SOUND.replace(FIELD, "<a/>" * 10_000).encode(),
        SOUND.replace(FIELD, f"<b>{FIELD * ELEMENTS_MAX}</b>").encode(),
        SOUND.replace("<Load1>", f"<Load1{MANY_ATTRIBUTES}>").encode(),
        SOUND.replace("<Load1>", f"<Load1{MANY_NAMESPACES}>").encode(),
        SOUND.replace("<Load1>", f"<{'L' * 300}>").replace("</Load1>", f"</{'L' * 300}>").encode(),
        SOUND.replace("Load1>", f"{'L' * 100_000}>").encode(),
        SOUND.replace("UptimeCPULoad", "U" * 300).encode(),
        SOUND.replace("<Load1>", f'<Load1 units="{"u" * 257}">').encode(),
        SOUND.replace("<Load1>", f'<Load1 accuracy="{"u" * 900_000}">').encode(),
        SOUND.replace(EVENTS, f"urn:{'x' * 2_000}").encode(),
        SOUND.replace('"1"', f'"{"1" * 1_000_000}"').encode(),
        SOUND.replace("UptimeCPULoad", "Error").replace(EVENTS, PROTOCOL).encode(),
        SOUND.replace(EVENTS, "urn:tocsin:gma:1").encode(),
        SOUND.replace(EVENTS, "no uri").encode(),
        SOUND.replace("<Load1>", '<Load1 units="a" units="b">').encode(),
        SOUND.replace("<Load1>", "<a:Load1>").replace("</Load1>", "</a:Load1>").encode(),
        (SOUND + SOUND).encode(),
        b"",
        b"<a>",
        b" " * 1_000_000,
        b"<" * 1_000_000,
        b"&" * 1_000_000,
        b"<Event " + b"a" * 1_000_000,
        b"\0" * 1_000,
    ],
    ids=range(40),
)
def test_what_is_made_to_hurt_is_refused_quickly(data: bytes) -> None:
    start = time.process_time()
    assert read_plain(data) is None
    with pytest.raises((BadMessage, BadXml)) as caught:
        read_content(data)

    assert time.process_time() - start < READ_S_MAX
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize(
    "inside",
    [
        "<a>" + "x" * 900_000 + "</a>",
        "<a>1</a>" * 900,
        " " * 900_000,
        "<a" + ' note="' + "u" * 900_000 + '">1</a>',
        "<a>" + "1" * 100_000 + "</a>",
        "<a>" + "1." * 100_000 + "</a>",
        "<a>" + " " * 100_000 + "</a>",
        "<a>0." + "0" * 100_000 + "</a>",
        "<a>1e" + "9" * 100_000 + "</a>",
        "<a> </a>\n" * 900 + "\n" * 100_000,
    ],
    ids=range(10),
)
def test_a_large_message_within_the_limits_is_read_quickly(inside: str) -> None:
    data = SOUND.replace(FIELD, inside).encode()

    start = time.process_time()
    message = read(data)

    assert time.process_time() - start < READ_S_MAX
    assert isinstance(message, m.EventMessage)
    start = time.process_time()
    with pytest.raises(TocsinError):
        read(data[:-1])
    assert time.process_time() - start < READ_S_MAX


def test_the_most_names_that_a_reply_may_list_are_read_and_no_more() -> None:
    listed = "<Event name='a' namespace='urn:x'/>"
    head, tail = request("EventNamesReply", "<Return>Success</Return>|").split("|")

    reply = read(f"{head}{listed * 10_000}{tail}".encode())
    error = refusal(f"{head}{listed * 100_001}{tail}")

    assert isinstance(reply, m.EventNamesReply)
    assert len(reply.names) == 10_000
    assert "100000" in str(error)


def test_names_of_strangers_are_not_remembered_at_any_length() -> None:
    def speak(number: int) -> None:
        namespace = f"urn:{number}:{'x' * 200_000}"
        for text in (
            f'<Event xmlns="{namespace}" subscriptionID="1"/>',
            SOUND.replace(EVENTS, namespace),
            SOUND.replace("<Load1>", f'<Load1 xmlns="{namespace}">'),
            SOUND.replace("<Load1>", f'<Load1 units="{namespace}">'),
        ):
            with pytest.raises(TocsinError):
                read_content(text.encode())

    speak(0)
    tracemalloc.start()
    for number in range(1, 20):
        speak(number)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert kept < 1_000_000, "of some 15 MB that were said"


def test_a_long_detail_is_cut_and_the_reply_taken() -> None:
    text = request(
        "UnsubscribeReply", f"<Return>Success</Return><ReturnDetail>{'x' * 9_999}</ReturnDetail>"
    )

    reply = read(text.encode())

    assert isinstance(reply, m.UnsubscribeReply)
    assert reply.detail == "x" * 4_096
