"""The plain producer and the plain consumer understand each other, and nothing but the paper."""

from __future__ import annotations

import itertools
import socket
import struct
import threading
from collections.abc import Iterator, Mapping

import pytest
from minimal_consumer import PlainArchive, PlainConsumer
from minimal_messages import (
    Content,
    Event,
    EventNamesReply,
    EventNamesRequest,
    Failed,
    Message,
    NotInThePaper,
    QueryReply,
    QueryRequest,
    SubscribeReply,
    SubscribeRequest,
    UnsubscribeReply,
    UnsubscribeRequest,
    Value,
)
from minimal_producer import EventName, Measure, PlainProducer
from minimal_wire import EVENTS, PARAMETERS, PROTOCOL, period_s, read, write

OWN = "urn:example:beamline"
LOADS = {"Load1": Value("1.5"), "Load5": Value("1.6", accuracy="+/-0.1"), "Load15": Value("1.3")}
STAMP = {"TimeStamp": Value("2000-11-09T21:51:45Z")}
LOAD = Content("UptimeCPULoad", EVENTS, {**LOADS, **STAMP})
ASKED = Content("UptimeCPULoad", PARAMETERS, {"Period": Value("600", units="sec")})


def load(parameters: Mapping[str, Value]) -> Mapping[str, Value]:
    return LOADS


def dark(parameters: Mapping[str, Value]) -> Mapping[str, Value]:
    raise RuntimeError("the shutter is closed")


@pytest.fixture
def producer() -> Iterator[PlainProducer]:
    measures: dict[str | EventName, Measure] = {
        "UptimeCPULoad": load,
        ("Current", OWN): load,
        "Dark": dark,
    }
    with PlainProducer(measures, every_s=0.05) as running:
        yield running


@pytest.fixture
def consumer(producer: PlainProducer) -> Iterator[PlainConsumer]:
    with PlainConsumer(producer.address) as connected:
        yield connected


@pytest.mark.parametrize(
    "message",
    [
        SubscribeRequest("1", "12", ASKED),
        SubscribeReply("1", True, subscription_id="99"),
        SubscribeReply("1", False, detail="no <such> event"),
        UnsubscribeRequest("9", "1234"),
        UnsubscribeReply("9", True),
        Event("1234", LOAD),
        Event("1234", None, "Failure", "no sensor"),
        QueryRequest("15", Content("UptimeCPULoad", EVENTS, {})),
        QueryReply("15", True, content=LOAD),
        EventNamesRequest("15"),
        EventNamesReply("15", True, names=(("UptimeCPULoad", EVENTS),)),
    ],
    ids=lambda message: type(message).__name__,
)
def test_what_is_written_is_read_as_the_same_message(message: Message) -> None:
    assert read(write(message)) == message


def test_a_subscribe_request_looks_as_in_the_paper() -> None:
    assert write(SubscribeRequest("1", "12", ASKED)).decode() == (
        f'<SubscribeRequest xmlns="{PROTOCOL}" requestID="1">'
        "<SubscriptionID>12</SubscriptionID>"
        f'<UptimeCPULoad xmlns="{PARAMETERS}"><Period units="sec">600</Period></UptimeCPULoad>'
        "</SubscribeRequest>"
    )


@pytest.mark.parametrize("namespace", [EVENTS, PROTOCOL])
def test_the_event_of_an_event_message_is_read_in_either_namespace(namespace: str) -> None:
    # The first is that of section 3.1, the second that of the example in 4.2.5.
    event = read(
        f'<Event xmlns="{PROTOCOL}" subscriptionID="1234"><UptimeCPULoad xmlns="{namespace}">'
        "<Load1>1.5</Load1><TimeStamp>2000-11-09T21:51:45Z</TimeStamp>"
        "</UptimeCPULoad></Event>".encode()
    )

    assert isinstance(event, Event)
    assert event.content is not None
    assert event.content.namespace == namespace
    assert event.content.text("Load1") == "1.5"


@pytest.mark.parametrize(
    "inside",
    [
        "<Goodbye xmlns='{p}' requestID='1'/>",
        "<EventNamesRequest requestID='1'/>",
        "<EventNamesRequest xmlns='{p}'/>",
        "<EventNamesRequest xmlns='{p}' requestID='1' priority='2'/>",
        "<UnsubscribeRequest xmlns='{p}' requestID='1'/>",
        "<UnsubscribeReply xmlns='{p}' requestID='1'><Return>Perhaps</Return></UnsubscribeReply>",
        "<SubscribeReply xmlns='{p}' requestID='1'><Return>Success</Return></SubscribeReply>",
        "<SubscribeRequest xmlns='{p}' requestID='1'><SubscriptionID>1</SubscriptionID>"
        "</SubscribeRequest>",
        "<QueryReply xmlns='{p}' requestID='1'><Return>Success</Return></QueryReply>",
        "<EventNamesReply xmlns='{p}' requestID='1'><Return>Success</Return></EventNamesReply>",
        "<Event xmlns='{p}' subscriptionID='1'/>",
        "<Event xmlns='{p}' subscriptionID='1'><A xmlns='{e}'><B>1</B></A></Event>",
        "<Event xmlns='{p}' subscriptionID='1'><A xmlns='{e}'><B><C>1</C></B>"
        "<TimeStamp>2000-11-09T21:51:45Z</TimeStamp></A></Event>",
        "<Event xmlns='{p}' subscriptionID='1'><ErrorDetail>why</ErrorDetail></Event>",
        "<Event xmlns='{p}'",
    ],
)
def test_what_the_paper_does_not_have_is_not_read(inside: str) -> None:
    with pytest.raises(NotInThePaper):
        read(inside.format(p=PROTOCOL, e=EVENTS).encode())


def test_a_period_is_in_seconds_or_minutes() -> None:
    def period(text: str, units: str | None) -> float | None:
        return period_s(Content("A", PARAMETERS, {"Period": Value(text, units)}))

    assert period("600", "sec") == 600
    assert period("10", "min") == 600
    assert period("0.5", None) == 0.5
    with pytest.raises(ValueError, match="fortnight"):
        period("1", "fortnight")
    with pytest.raises(ValueError, match="more than nothing"):
        period("0", "sec")


def test_a_consumer_learns_which_events_there_are(consumer: PlainConsumer) -> None:
    names = consumer.event_names()

    assert set(names) == {("UptimeCPULoad", EVENTS), ("Current", OWN), ("Dark", EVENTS)}


@pytest.mark.parametrize("written_in", [EVENTS, PARAMETERS])
def test_a_query_brings_one_event(consumer: PlainConsumer, written_in: str) -> None:
    event = consumer.query("UptimeCPULoad", written_in=written_in)

    assert event.values["Load5"] == LOADS["Load5"]


def test_an_event_of_ones_own_namespace_is_asked_for_in_it(consumer: PlainConsumer) -> None:
    assert consumer.query("Current", OWN).namespace == OWN
    with pytest.raises(Failed, match="no event Current"):
        consumer.query("Current")


def test_an_event_that_cannot_be_measured_is_an_error_in_its_place(
    consumer: PlainConsumer,
) -> None:
    with pytest.raises(Failed, match="shutter"):
        consumer.query("Dark")
    subscription = consumer.subscribe("Dark", period=("0.01", "sec"))
    for _ in range(2):
        with pytest.raises(Failed, match="shutter"):
            subscription.next_event()


def test_a_subscription_brings_events_until_the_consumer_ends_it(
    consumer: PlainConsumer, producer: PlainProducer
) -> None:
    subscription = consumer.subscribe("UptimeCPULoad", period=("0.01", "sec"))
    for _ in range(3):
        assert subscription.next_event().text("Load1") == "1.5"

    subscription.unsubscribe()

    assert subscription.ended.is_set()
    assert producer.served[subscription.producer_id or ""].ended.is_set()
    consumer.event_names()  # an Event after the goodbye would have ended the connection


def test_two_periods_on_one_connection_give_two_rates(consumer: PlainConsumer) -> None:
    slow = consumer.subscribe("UptimeCPULoad", period=("10", "min"))
    fast = consumer.subscribe("UptimeCPULoad", period=("0.01", "sec"))

    for _ in range(5):
        fast.next_event()

    assert slow.events.qsize() == 1


def test_a_producer_may_end_a_subscription(
    consumer: PlainConsumer, producer: PlainProducer
) -> None:
    subscription = consumer.subscribe("UptimeCPULoad", period=("0.01", "sec"))
    subscription.next_event()

    producer.served[subscription.producer_id or ""].unsubscribe()

    assert subscription.ended.wait(5)


def test_a_subscription_to_nothing_and_one_in_unknown_units_fail(consumer: PlainConsumer) -> None:
    with pytest.raises(Failed, match="no event Nothing"):
        consumer.subscribe("Nothing")
    with pytest.raises(Failed, match="fortnight"):
        consumer.subscribe("UptimeCPULoad", period=("1", "fortnight"))


def test_a_producer_initiates_a_subscription_and_ends_it(producer: PlainProducer) -> None:
    with PlainArchive() as archive:
        pushed = producer.push_to(archive.address, "UptimeCPULoad", period=("0.01", "sec"))
        subscription = archive.next_subscription()
        for _ in range(3):
            assert subscription.next_event().text("Load1") == "1.5"

        pushed.unsubscribe()

        assert subscription.ended.is_set()
        assert pushed.consumer_id == subscription.own_id
        assert pushed.own_id == subscription.producer_id


def test_an_archive_ends_or_refuses_what_a_producer_initiates(producer: PlainProducer) -> None:
    with PlainArchive(refuses=frozenset({"Dark"})) as archive:
        pushed = producer.push_to(archive.address, "UptimeCPULoad", period=("0.01", "sec"))
        archive.next_subscription().unsubscribe()

        assert pushed.ended.is_set()
        with pytest.raises(Failed, match="no Dark here"):
            producer.push_to(archive.address, "Dark")


def test_an_event_for_nobody_is_an_error_at_the_consumer() -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def blurt() -> None:
        connection, _ = listener.accept()
        body = write(Event("7", LOAD))
        connection.sendall(struct.pack("!I", len(body)) + body)
        connection.close()

    blurting = threading.Thread(target=blurt)
    blurting.start()
    consumer = PlainConsumer(f"127.0.0.1:{listener.getsockname()[1]}")
    assert consumer.conversation.ended.wait(5)
    blurting.join(5)
    listener.close()

    with pytest.raises(NotInThePaper, match="unknown subscription '7'"):
        consumer.close()


def test_where_the_network_cuts_a_frame_makes_no_difference(producer: PlainProducer) -> None:
    body = write(EventNamesRequest("1"))
    stream = struct.pack("!I", len(body)) + body
    host, _, port = producer.address.rpartition(":")

    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start, end in itertools.pairwise([0, 1, 3, 7, len(stream)]):
            connection.sendall(stream[start:end])
        size = struct.unpack("!I", connection.recv(4, socket.MSG_WAITALL))[0]
        reply = read(connection.recv(size, socket.MSG_WAITALL))

    assert isinstance(reply, EventNamesReply)
    assert reply.request_id == "1"
