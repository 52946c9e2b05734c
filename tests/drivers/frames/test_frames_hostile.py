"""Bad messages by the frames door: told by a reply, or by a closed connection and a line in the
log; and the broker is none the worse for it."""

from __future__ import annotations

import socket
import time

import pytest
from frames_peer import (
    PARAMETERS,
    PROTOCOL,
    Peer,
    answers,
    content,
    event,
    event_names,
    metric,
    new_name,
    noted,
    options,
    producing,
    publish,
    query,
    stored,
    subscribe,
    unsubscribe,
)

from served import Served

BOMB = (
    '<!DOCTYPE b [<!ENTITY a "aaaaaaaaaaaaaaaaaaaa">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 20}">' for n in range(8))
    + "]>"
)


@pytest.mark.parametrize(
    ("message", "reply", "reported"),
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
        (
            subscribe("A", extra=options(role="king")),
            "SubscribeReply",
            "the role 'king' is not known",
        ),
        (subscribe("A", extra=options(after="-1")), "SubscribeReply", "after is '-1'"),
        (unsubscribe("no-such"), "UnsubscribeReply", "there is no subscription no-such"),
        (subscribe("A", parameters="<P/>" * 10_000), "SubscribeReply", "A has 10000 elements"),
        (query("A", parameters="<P/>" * 10_000), "QueryReply", "A has 10000 elements"),
        (subscribe("A", parameters="<P><Q>1</Q></P>"), "SubscribeReply", "holds elements"),
    ],
)
def test_a_request_that_cannot_be_taken_is_refused_with_what_helps(
    broker: Served, message: str, reply: str, reported: str
) -> None:
    with Peer(broker.frames) as peer:
        refused = peer.ask(message)

        assert (refused.kind, refused.returned) == (reply, "Failure")
        assert reported in refused.detail
        assert refused.text("SubscriptionID") is None
        assert peer.ask(event_names()).returned == "Success"  # the connection stays


@pytest.mark.parametrize(
    ("period", "reported"),
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
def test_a_period_that_makes_no_sense_is_refused(
    broker: Served, period: str, reported: str
) -> None:
    with Peer(broker.frames) as peer:
        refused = peer.ask(subscribe(new_name(), parameters=period))

        assert (refused.kind, refused.returned) == ("SubscribeReply", "Failure")
        assert reported in refused.detail


@pytest.mark.parametrize(
    ("message", "reported"),
    [
        (event("no-such", content("A")), "'no-such', which does not exist"),
        (event("no-such", content("A"), "e1"), "'no-such', which does not exist"),
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
    broker: Served, message: str, reported: str
) -> None:
    with Peer(broker.frames) as peer:
        peer.send(message)

        assert peer.is_hung_up_on()
        assert reported in noted(broker, "peer=", peer)
    assert answers(broker)


@pytest.mark.parametrize(
    ("inner", "reported"),
    [
        ("<A/>", "has no TimeStamp"),
        ("", "neither an event nor an Error"),
        ("<A><TimeStamp>never</TimeStamp></A>", "'never' is not a time stamp"),
        ("<A><TimeStamp>2001-02-29T00:00:00Z</TimeStamp></A>", "is not a valid date"),
        (content("A") + content("B"), "Event holds A and B"),
        (content("A").replace("<Load1>", "<L/>" * 10_000 + "<Load1>"), "elements"),
    ],
)
def test_a_bad_event_without_a_number_ends_the_connection(
    broker: Served, inner: str, reported: str
) -> None:
    peer, own = producing(broker, new_name())
    with peer:
        peer.send(event(own, inner))

        assert peer.is_hung_up_on()
        assert reported in noted(broker, "T2", peer)


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
