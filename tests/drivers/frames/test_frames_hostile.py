"""Bad input by the frames door: told by a reply, or by a closed connection and a line in the log;
and the broker is none the worse for it."""

from __future__ import annotations

import random
import socket
import ssl
import time
from collections.abc import Iterator

import pytest
from frames_peer import (
    EVENTS,
    PARAMETERS,
    PROTOCOL,
    Peer,
    complaints,
    content,
    event,
    event_names,
    framed,
    metric,
    new_name,
    noted,
    options,
    producing,
    publish,
    query,
    resident_bytes,
    stored,
    subscribe,
    unsubscribe,
)

from served import Served, served

SEED = 20011105
FUZZED = 2_000
DEADLINE_S = 0.5
MB = 1 << 20
BOMB = (
    '<!DOCTYPE b [<!ENTITY a "aaaaaaaaaaaaaaaaaaaa">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 20}">' for n in range(8))
    + "]>"
)


@pytest.fixture(scope="module")
def strict() -> Iterator[Served]:
    """A broker with little patience and little room."""
    limits = {
        "TOCSIN_FRAMES__MESSAGE_DEADLINE_S": str(DEADLINE_S),
        "TOCSIN_FRAMES__BYTES_PER_S_MIN": "1000000",
        "TOCSIN_FRAMES__IDLE_S": "1.5",
        "TOCSIN_FRAMES__MESSAGE_BYTES_MAX": "100000",
        "TOCSIN_FRAMES__SUBSCRIPTIONS_MAX": "5",
    }
    with served("--soap-tcp", "off", env=limits) as running:
        yield running
        assert complaints(running) == []


def answers(broker: Served) -> bool:
    """True if the broker serves others as if nothing had happened."""
    with Peer(broker.frames) as peer:
        return peer.ask(event_names()).returned == "Success"


# Frames


@pytest.mark.parametrize("length", [2**31, 2**32 - 1, 4 * MB + 1])
def test_a_length_that_cannot_be_ends_the_connection_before_anything_is_kept(
    broker: Served, length: int
) -> None:
    with Peer(broker.frames) as peer:
        peer.raw(length.to_bytes(4, "big") + b"<Event")

        assert peer.is_hung_up_on()
        assert f"a frame of {length} bytes was announced" in noted(broker, "announced", peer)
    assert answers(broker)


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"\0\0\0\0", "a frame of length 0 came"),
        (b"\0\0\0\x03<a>", "the message is not well-formed"),
        (b"\0\0\0\x03abc", "the message is not well-formed"),
        (framed(b"\xff\xfe\xfd not UTF-8"), "not in the encoding it says"),
        (framed(b"<a>\xff</a>"), "Invalid bytes in character encoding"),
        (framed(b"\0" * 100), "the message is not well-formed"),
        (framed("<Hello/>"), "there is no message 'Hello'"),
    ],
)
def test_what_is_no_message_ends_the_connection_with_the_reason_in_the_log(
    broker: Served, sent: bytes, told: str
) -> None:
    with Peer(broker.frames) as peer:
        peer.raw(sent)

        assert peer.is_hung_up_on()
        assert "remedy=" in noted(broker, told, peer)
    assert answers(broker)


@pytest.mark.parametrize("came", [b"\0", b"\0\0\0", b"\0\0\x01\0", b"\0\0\x01\0<Event"])
def test_a_length_whose_message_never_comes_is_waited_for_only_so_long(
    strict: Served, came: bytes
) -> None:
    with Peer(strict.frames) as peer:
        began = time.monotonic()
        peer.raw(came)

        assert peer.is_hung_up_on()
        assert DEADLINE_S / 2 <= time.monotonic() - began < DEADLINE_S + 3
        assert f"only {len(came)} bytes came in time" in noted(strict, "in time", peer)


def test_a_message_that_comes_byte_by_byte_has_no_more_time_than_others(strict: Served) -> None:
    with Peer(strict.frames) as peer:
        peer.raw((1_000).to_bytes(4, "big"))
        for _ in range(40):
            peer.raw(b" ")
            if not peer.hears_nothing(0.05):
                break

        assert peer.is_hung_up_on()
        assert noted(strict, "came in time", peer)


def test_what_a_peer_sends_cannot_forge_a_line_of_the_log(broker: Served) -> None:
    with Peer(broker.frames) as peer:
        peer.send('<a xmlns="not a URI &#10;forged"')

        assert peer.is_hung_up_on()
        assert "not a URI \ufffdforged" in noted(broker, "not well-formed", peer)
    assert not [line for line in broker.said().splitlines() if line.startswith("forged")]


def test_who_says_nothing_at_all_is_hung_up_on_and_who_subscribed_is_not(strict: Served) -> None:
    with Peer(strict.frames) as idle, Peer(strict.frames) as subscribed:
        subscribed.open(subscribe(new_name()))

        assert idle.is_hung_up_on()
        assert noted(strict, "silent for frames.idle_s", idle)
        assert subscribed.hears_nothing(0.5)


def test_a_message_cut_at_any_byte_is_no_message_and_harms_nobody(broker: Served) -> None:
    name = new_name()
    inner = f'<{name} xmlns="{EVENTS}"><TimeStamp>2000-11-09T21:51:45Z</TimeStamp></{name}>'
    begun = framed(subscribe(name, extra=options(role="producer")))
    # The id is the broker's to choose; any will do to be cut.
    message = framed(event("1", inner))

    for cut in range(1, len(message)):
        with Peer(broker.frames) as peer:
            peer.raw(begun + message[:cut])

    with Peer(broker.frames) as peer:
        peer.raw(begun + message[:-1])
        peer.socket.shutdown(socket.SHUT_WR)
        assert peer.hears("SubscribeReply").returned == "Success"
        assert peer.is_hung_up_on()
        told = noted(broker, "hung up within a message", peer)
        assert f"{len(message) - 1} bytes had come" in told
    assert stored(broker, name) == []
    assert answers(broker)


def test_where_the_stream_is_cut_makes_no_difference(broker: Served) -> None:
    name = new_name()
    stream = framed(subscribe(name)) + framed(query(name)) + framed(event_names("last"))
    with Peer(broker.frames) as peer:
        for at in range(0, len(stream), 7):
            peer.raw(stream[at : at + 7])
            time.sleep(0.0005)

        kinds = [peer.take().kind for _ in range(3)]

    assert kinds == ["SubscribeReply", "QueryReply", "EventNamesReply"]


def test_what_came_before_a_bad_frame_is_stored_and_answered(broker: Served) -> None:
    name = new_name()
    peer, own = producing(broker, name, nonce=f"run-{name}")
    with peer:
        events = [framed(event(own, content(name), f"e{n}")) for n in range(20)]
        peer.raw(b"".join(events) + b"\0\0\0\0")

        assert [peer.hears("EventReply").returned for _ in range(20)] == ["Success"] * 20
        assert peer.is_hung_up_on()
    assert len(stored(broker, name)) == 20


def test_a_peer_that_resets_its_connection_loses_nothing_it_had_sent_before(
    broker: Served,
) -> None:
    name = new_name()
    peer, own = producing(broker, name)
    peer.send(*(event(own, content(name)) for _ in range(200)), event_names())
    assert peer.take().kind == "EventNamesReply"
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    peer.socket.close()

    assert len(stored(broker, name)) == 200
    assert answers(broker)


@pytest.mark.parametrize("door", ["frames", "archive"])
def test_http_spoken_to_the_port_for_frames_is_told_so(broker: Served, door: str) -> None:
    with Peer(getattr(broker, door)) as peer:
        peer.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")

        assert peer.is_hung_up_on()
        assert "HTTP came where frames" in noted(broker, "each door has its own", peer)


def test_tls_spoken_to_the_plain_port_is_told_so(broker: Served) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        Peer(broker.frames, ssl._create_unverified_context())

    assert "TLS came where frames" in noted(broker, "TLS came")


# Messages


@pytest.mark.parametrize(
    ("message", "reply", "told"),
    [
        (
            subscribe("A").replace(PROTOCOL, "urn:other"),
            "SubscribeReply",
            "SubscribeRequest is in the namespace 'urn:other'",
        ),
        (subscribe("A").replace(f' xmlns="{PROTOCOL}"', ""), "SubscribeReply", PROTOCOL),
        (query("A").replace(PROTOCOL, PARAMETERS), "QueryReply", PROTOCOL),
        (
            subscribe("A").replace("<SubscriptionID>12</SubscriptionID>", ""),
            "SubscribeReply",
            "SubscribeRequest has no SubscriptionID",
        ),
        (
            f'<SubscribeRequest xmlns="{PROTOCOL}" requestID="1"><SubscriptionID>1</SubscriptionID>'
            "</SubscribeRequest>",
            "SubscribeReply",
            "does not say which events",
        ),
        (f'<QueryRequest xmlns="{PROTOCOL}" requestID="1"/>', "QueryReply", "which events"),
        (
            f'<UnsubscribeRequest xmlns="{PROTOCOL}" requestID="1"/>',
            "UnsubscribeReply",
            "has no SubscriptionID",
        ),
        (
            subscribe("A", own="x" * 300),
            "SubscribeReply",
            "a SubscriptionID has 300 characters",
        ),
        (
            subscribe("A", extra="<B/>"),
            "SubscribeReply",
            "SubscribeRequest holds A and B",
        ),
        (subscribe("A", extra=options(role="king")), "SubscribeReply", "the role 'king' is none"),
        (subscribe("A", extra=options(after="-1")), "SubscribeReply", "after is '-1'"),
        (unsubscribe("no-such"), "UnsubscribeReply", "there is no subscription no-such"),
        (subscribe("A", parameters="<P/>" * 10_000), "SubscribeReply", "A has 10000 elements"),
        (query("A", parameters="<P/>" * 10_000), "QueryReply", "A has 10000 elements"),
        (subscribe("A", parameters="<P><Q>1</Q></P>"), "SubscribeReply", "holds elements"),
    ],
)
def test_a_request_that_cannot_be_taken_is_refused_with_what_helps(
    broker: Served, message: str, reply: str, told: str
) -> None:
    with Peer(broker.frames) as peer:
        refused = peer.ask(message)

        assert (refused.kind, refused.returned) == (reply, "Failure")
        assert told in refused.detail
        assert refused.text("SubscriptionID") is None
        assert peer.ask(event_names()).returned == "Success"  # the connection stays


@pytest.mark.parametrize(
    ("period", "told"),
    [
        ("<Period>0</Period>", "the Period is 0 seconds"),
        ("<Period>-1</Period>", "the Period is -1 seconds"),
        ('<Period units="ns">1</Period>', "the Period is 1e-09 seconds"),
        ('<Period units="days">1000</Period>', "at most a year"),
        ("<Period>soon</Period>", "the Period is 'soon'"),
        ("<Period/>", "the Period is ''"),
        ('<Period units="furlong">1</Period>', "units are ms, sec, min, hour"),
        ("<Period>1</Period><Period>2</Period>", "Send one"),
        ("<Period><A/></Period>", "the Period is"),
        ("<Period>1e400</Period>", "the Period is '1e400'"),
    ],
)
def test_a_period_that_makes_no_sense_is_refused(broker: Served, period: str, told: str) -> None:
    with Peer(broker.frames) as peer:
        refused = peer.ask(subscribe(new_name(), parameters=period))

        assert (refused.kind, refused.returned) == ("SubscribeReply", "Failure")
        assert told in refused.detail


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (event("no-such", content("A")), "'no-such', which there is not"),
        (event("no-such", content("A"), "e1"), "'no-such', which there is not"),
        (
            f'<UnsubscribeReply xmlns="{PROTOCOL}" requestID="4"><Return>Success</Return>'
            "</UnsubscribeReply>",
            "a UnsubscribeReply came to no request ('4')",
        ),
        (
            f'<SubscribeReply xmlns="{PROTOCOL}" requestID="1"><Return>Success</Return>'
            "<SubscriptionID>7</SubscriptionID></SubscribeReply>",
            "a SubscribeReply came to no request ('1')",
        ),
        (
            f'<EventReply xmlns="{PROTOCOL}" requestID="e1"><Return>Success</Return></EventReply>',
            "a EventReply came to no request",
        ),
        (f'<EventNamesRequest xmlns="{PROTOCOL}"/>', "EventNamesRequest has no requestID"),
        (subscribe("A").replace(' requestID="1"', ""), "SubscribeRequest has no requestID"),
        (BOMB + event_names(), "document type"),
        (f'{BOMB}<Event xmlns="{PROTOCOL}">&i;</Event>', "document type"),
        ("<a>" * 10_000, "depth"),
        (event("1", "<A>" * 500 + "</A>" * 500), "depth"),
    ],
)
def test_what_has_no_reply_is_told_in_the_log_and_ends_the_connection(
    broker: Served, message: str, told: str
) -> None:
    with Peer(broker.frames) as peer:
        peer.send(message)

        assert peer.is_hung_up_on()
        assert told in noted(broker, "peer=", peer)
    assert answers(broker)


@pytest.mark.parametrize(
    ("inner", "told"),
    [
        ("<A/>", "has no TimeStamp"),
        ("", "neither an event nor an Error"),
        ("<A><TimeStamp>never</TimeStamp></A>", "'never' is no time stamp"),
        ("<A><TimeStamp>2001-02-29T00:00:00Z</TimeStamp></A>", "is no day"),
        (content("A") + content("B"), "Event holds A and B"),
        (content("A").replace("<Load1>", "<L/>" * 10_000 + "<Load1>"), "elements"),
    ],
)
def test_a_bad_event_without_a_number_ends_the_connection(
    broker: Served, inner: str, told: str
) -> None:
    peer, own = producing(broker, new_name())
    with peer:
        peer.send(event(own, inner))

        assert peer.is_hung_up_on()
        assert told in noted(broker, "T2", peer)


def test_ten_thousand_elements_in_a_numbered_event_are_refused_by_its_reply(
    broker: Served,
) -> None:
    name = new_name()
    peer, own = producing(broker, name, nonce=f"run-{name}")
    with peer:
        many = content(name).replace("<Load1>", "<L>1</L>" * 10_000 + "<Load1>")
        reply = peer.ask(event(own, many, "e1"))

        assert (reply.kind, reply.returned) == ("EventReply", "Failure")
        assert "Send at most 1000" in reply.detail
    assert stored(broker, name) == []


def test_an_id_that_is_in_use_is_refused_until_it_is_free(broker: Served) -> None:
    name = new_name()
    with Peer(broker.frames) as peer:
        own = peer.open(subscribe(name, request="1", own="12")).subscription
        refused = peer.ask(subscribe(name, request="2", own="12"))
        assert refused.detail == "SubscriptionID 12 is in use; end it first"

        peer.ask(unsubscribe(own))

        peer.open(subscribe(name, request="3", own="12"))


def test_an_event_for_an_ended_subscription_is_let_pass(broker: Served) -> None:
    name = new_name()
    peer, own = producing(broker, name)
    with peer:
        peer.ask(unsubscribe(own))

        peer.send(event(own, content(name)))  # it may have been on its way

        assert peer.ask(event_names()).returned == "Success"
    assert stored(broker, name) == []


def test_more_subscriptions_than_one_connection_may_have_are_refused(strict: Served) -> None:
    with Peer(strict.frames) as peer:
        for number in range(5):
            peer.open(subscribe("A", str(number), str(number)))

        refused = peer.ask(subscribe("A", "5", "5"))

        assert (refused.returned, refused.detail) == ("Failure", "5 subscriptions are open already")


def test_subscriptions_of_peers_that_leave_in_the_midst_leave_nothing(broker: Served) -> None:
    publish(broker, "Other", content("Other"))  # so that queries have to look into the log
    before = metric(broker, "streams_open")
    for _ in range(5):
        peer = Peer(broker.frames)
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        asks = [query("NoSuchEvent", str(n)) for n in range(200)]
        peer.send(*asks, *(subscribe("A", f"s{n}", f"s{n}") for n in range(20)))
        assert peer.take() is not None  # the broker has read all, and is at work on it
        peer.socket.close()

    deadline = time.monotonic() + 10
    while metric(broker, "frames_open") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert metric(broker, "streams_open") == before


# Whatever else there may be


def seeds() -> list[bytes]:
    """Good messages, to be spoiled."""
    found = [
        subscribe("UptimeCPULoad", parameters='<Period units="sec">600</Period>'),
        subscribe("A", extra=options(role="producer", acknowledge="fuzz")),
        unsubscribe("1"),
        query("UptimeCPULoad"),
        event_names(),
        event("1", content("UptimeCPULoad")),
        event("2", content("A"), "e1"),
        event("1", "<Error>E</Error><ErrorDetail>d</ErrorDetail>"),
    ]
    return [each.encode() for each in found]


def spoiled(chance: random.Random, good: list[bytes]) -> bytes:
    """A message with some bytes changed, cut out, doubled, or mixed with another."""
    data = bytearray(chance.choice(good))
    for _ in range(chance.randint(1, 4)):
        at, to = sorted(chance.randrange(len(data) + 1) for _ in range(2))
        match chance.randrange(6):
            case 0:
                data[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del data[at : min(to, at + 40)]
            case 2:
                data[at:at] = data[at : min(to, at + 200)]
            case 3:
                other = chance.choice(good)
                data[at:at] = other[chance.randrange(len(other)) :]
            case 4:
                data[at:at] = chance.choice([b"\xff", b"&x;", b"<", b"]]>", b"\0", b"xmlns=''"])
            case _:
                data = data.replace(chance.choice([b"1", b'"', b">", b"e"]), b"", 1)
        data = data or bytearray(b" ")
    return bytes(data)


def test_two_thousand_spoiled_messages_find_no_failure_of_ours_and_leave_nothing(
    broker: Served,
) -> None:
    chance = random.Random(SEED)
    good = seeds()
    before = resident_bytes(broker)

    sent = 0
    while sent < FUZZED:
        with Peer(broker.frames if chance.random() < 0.8 else broker.archive) as peer:
            for _ in range(chance.randint(1, 40)):
                begin = [chance.choice(good)] if chance.random() < 0.3 else []
                try:
                    peer.send(*begin, spoiled(chance, good))
                except ConnectionError:
                    break
                sent += 1

    assert answers(broker), f"seed {SEED}"
    assert complaints(broker) == []
    assert resident_bytes(broker) - before < 30 * MB
