"""What producers and consumers do by the frames door, each from the first to the last message."""

from __future__ import annotations

import time

import pytest
from frames_peer import (
    EVENTS,
    PROTOCOL,
    Peer,
    content,
    event,
    event_names,
    filtered,
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

from served import Served, served

OUR_EVENTS = "urn:tocsin:gma:events:1"

# A consumer subscribes


def test_a_consumer_gets_events_under_its_own_id_as_they_were_sent(broker: Served) -> None:
    name = new_name()
    with Peer(broker.frames) as consumer:
        reply = consumer.open(subscribe(name, request="1", own="mine"))
        assert reply.request == "1"
        assert reply.options == {}  # nothing was asked for that is not in the paper
        publish(broker, name, content(name, 1.6), content(name, 2.5))

        first, second = consumer.hears("Event"), consumer.hears("Event")

    assert first.data == event("mine", content(name, 1.6)).encode()
    assert second.value("Load5") == "2.5"


def test_the_paper_s_own_messages_are_understood(broker: Served) -> None:
    inner = content("UptimeCPULoad").replace(EVENTS, PROTOCOL)  # as in its section 4.2.5
    parameters = '<Period units="sec">600</Period>'
    with Peer(broker.frames) as consumer, Peer(broker.frames) as producer:
        consumer.open(subscribe("UptimeCPULoad", parameters=parameters))
        own = producer.open(subscribe("UptimeCPULoadEvent")).subscription
        producer.send(event(own, inner))
        got = consumer.hears("Event")
        asked = consumer.ask(query("UptimeCPULoad"))

    assert got.subscription == "12"
    assert got.content.tag == f"{{{EVENTS}}}UptimeCPULoad"
    assert got.value("Load15") == "1.3"
    assert (asked.kind, asked.request, asked.returned) == ("QueryReply", "15", "Success")
    assert asked.value("TimeStamp") == "2000-11-09T21:51:45Z"


def test_only_events_of_the_asked_name_come(broker: Served) -> None:
    name, other = new_name(), new_name()
    with Peer(broker.frames) as consumer:
        consumer.open(subscribe(name))
        publish(broker, other, content(other))
        publish(broker, name, content(name))

        assert consumer.hears("Event").content.tag == f"{{{EVENTS}}}{name}"
        assert consumer.hears_nothing()


def test_events_of_anybody_s_namespace_can_be_asked_for(broker: Served) -> None:
    name = new_name("Temperature")
    inner = (
        f'<l:{name} xmlns:l="urn:lab"><l:Degrees units="C" accuracy="+/-0.5">21.5</l:Degrees>'
        f"<l:TimeStamp>2024-02-29T00:00:00.125+01:00</l:TimeStamp></l:{name}>"
    )
    with Peer(broker.frames) as consumer:
        consumer.open(subscribe(name, namespace="urn:lab"))
        publish(broker, name, inner)
        got = consumer.hears("Event")

    assert got.content.tag == f"{{urn:lab}}{name}"
    degrees = got.content[0]
    assert (degrees.tag, degrees.text) == ("{urn:lab}Degrees", "21.5")
    assert degrees.attrib == {"units": "C", "accuracy": "+/-0.5"}
    (kept,) = stored(broker, name, "urn:lab")
    assert kept["time"] == "2024-02-29T00:00:00.125+01:00"


def test_a_filter_lets_through_what_it_names(broker: Served) -> None:
    name = new_name()
    with Peer(broker.frames) as consumer, Peer(broker.frames) as everybody:
        reply = consumer.open(subscribe(name, extra=filtered("Load5 >= 5.0")))
        assert reply.options == {"filtered": "true"}
        everybody.open(subscribe(name))
        publish(broker, name, *(content(name, load5) for load5 in (4.9, 5.0, 1.0, 7.25)))

        assert [consumer.hears("Event").value("Load5") for _ in range(2)] == ["5.0", "7.25"]
        assert consumer.hears_nothing()
        everything = [everybody.hears("Event").value("Load5") for _ in range(4)]
        assert everything == ["4.9", "5.0", "1.0", "7.25"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Load5 >> 5", "at character 7"),
        ("Load5 >=", "at character 9"),
        ("(Load5 >= 5", "at character"),
        ("Load5 >= 5 and", "at character"),
        ("Load5 >= 5 " * 2_000, "characters"),
    ],
)
def test_a_filter_that_cannot_be_read_is_refused_and_its_place_named(
    broker: Served, text: str, place: str
) -> None:
    name = new_name()
    with Peer(broker.frames) as consumer:
        refused = consumer.ask(subscribe(name, extra=filtered(text)))
        assert (refused.kind, refused.returned) == ("SubscribeReply", "Failure")
        assert place in refused.detail
        assert refused.text("SubscriptionID") is None
        asked = consumer.ask(query(name, extra=filtered(text)))
        assert (asked.kind, asked.returned) == ("QueryReply", "Failure")
        assert place in asked.detail

        consumer.open(subscribe(name, request="2"))  # the id is free again


def test_parameters_besides_the_period_say_what_an_element_must_be(broker: Served) -> None:
    name = new_name()
    with Peer(broker.frames) as consumer:
        parameters = "<HostName>bar.gov</HostName><Load5>2</Load5>"
        reply = consumer.open(subscribe(name, parameters=parameters))
        narrowed, _, none_yet = reply.detail.partition("; ")
        assert narrowed == "only events whose HostName is bar.gov and Load5 is 2"
        assert none_yet == f"no event {name} has arrived since the broker started"
        publish(
            broker,
            name,
            content(name, 2.0, "foo.gov"),
            content(name, 2.5, "bar.gov"),
            content(name, 2.0, "bar.gov"),
        )

        got = consumer.hears("Event")
        assert (got.value("HostName"), got.value("Load5")) == ("bar.gov", "2.0")
        assert consumer.hears_nothing()


def test_a_period_thins_the_events_of_each_source_by_itself(broker: Served) -> None:
    name = new_name()
    with Peer(broker.frames) as slow, Peer(broker.frames) as fast:
        slow.open(subscribe(name, parameters='<Period units="min">1</Period>'))
        fast.open(subscribe(name, parameters='<Period units="ms">10</Period>'))
        for number in range(3):
            for host in ("a", "b"):
                publish(broker, name, content(name, number, host))
            time.sleep(0.02)

        assert [slow.hears("Event").value("HostName") for _ in range(2)] == ["a", "b"]
        assert slow.hears_nothing()
        received = [fast.hears("Event") for _ in range(6)]
        assert [(e.value("HostName"), e.value("Load5")) for e in received] == [
            ("a", "0"), ("b", "0"), ("a", "1"), ("b", "1"), ("a", "2"), ("b", "2"),
        ]  # fmt: skip


def test_two_subscriptions_of_one_connection_know_nothing_of_each_other(broker: Served) -> None:
    one, two = new_name(), new_name()
    with Peer(broker.frames) as consumer:
        first = consumer.open(subscribe(one, request="1", own="a"))
        second = consumer.open(subscribe(two, request="2", own="b"))
        assert first.subscription != second.subscription
        publish(broker, two, content(two))
        assert consumer.hears("Event").subscription == "b"

        assert consumer.ask(unsubscribe(second.subscription)).returned == "Success"
        publish(broker, two, content(two))
        publish(broker, one, content(one))

        assert consumer.hears("Event").subscription == "a"
        assert consumer.hears_nothing()


def test_after_its_goodbye_a_consumer_gets_nothing(broker: Served) -> None:
    name = new_name()
    with Peer(broker.frames) as consumer:
        own = consumer.open(subscribe(name)).subscription

        reply = consumer.ask(unsubscribe(own, request="9"))

        assert (reply.kind, reply.request, reply.returned) == ("UnsubscribeReply", "9", "Success")
        publish(broker, name, content(name))
        assert consumer.hears_nothing()
        again = consumer.ask(unsubscribe(own, request="10"))
        assert (again.returned, again.detail) == ("Success", "it has ended already")
        consumer.open(subscribe(name, request="11", own="12"))  # its id may be used again


def test_a_broker_that_stops_says_goodbye_to_consumers_and_producers() -> None:
    with served("--soap-tcp", "off") as broker:
        peer = Peer(broker.frames)
        peer.open(subscribe("A", request="1", own="consuming"))
        peer.open(subscribe("B", request="2", own="producing", extra=options(role="producer")))
        assert broker.stop() == 0

        goodbyes = [peer.hears("UnsubscribeRequest") for _ in range(2)]

        assert {said.subscription for said in goodbyes} == {"consuming", "producing"}
        assert len({said.request for said in goodbyes}) == 2
        assert peer.take() is None
        peer.socket.close()


# A producer subscribes


def test_a_producer_s_events_are_kept_with_name_host_time_and_units(broker: Served) -> None:
    name = new_name()
    inner = (
        f'<{name} xmlns="{EVENTS}"><Load5 units="procs" accuracy="+/-0.1">7.5</Load5>'
        "<Up>true</Up><Users>3</Users><HostName>node7.example</HostName>"
        f"<TimeStamp>2000-11-09T21:51:45.5Z</TimeStamp></{name}>"
    )
    publish(broker, name, inner)

    (kept,) = stored(broker, name)
    assert kept["source"] == "gma://node7.example"
    assert kept["subject"] == "node7.example"
    assert kept["topic"] == f"gma/{name}/node7.example"
    assert kept["time"] == "2000-11-09T21:51:45.5Z"
    assert kept["datacontenttype"] == "application/xml"
    assert kept["data"] == inner


@pytest.mark.parametrize("role", ["", options(role="producer")])
def test_who_sends_an_event_is_a_producer_and_is_sent_none(broker: Served, role: str) -> None:
    name = new_name()
    with Peer(broker.frames) as producer:
        own = producer.open(subscribe(name, extra=role)).subscription
        producer.send(event(own, content(name)), event_names())

        assert producer.take().kind == "EventNamesReply"  # all before it is on disk
        publish(broker, name, content(name))
        assert producer.hears_nothing()
    assert len(stored(broker, name)) == 2


def test_who_does_not_say_what_it_is_gets_events_until_it_sends_one(broker: Served) -> None:
    name = new_name()
    with Peer(broker.frames) as peer:
        own = peer.open(subscribe(name)).subscription
        publish(broker, name, content(name, 1.0))
        assert peer.hears("Event").value("Load5") == "1.0"

        peer.send(event(own, content(name, 2.0)), event_names())

        assert peer.take().kind == "EventNamesReply"
        publish(broker, name, content(name, 3.0))
        assert peer.hears_nothing()
        assert len(stored(broker, name)) == 3


def test_a_consumer_that_says_so_may_not_send_events(broker: Served) -> None:
    name = new_name()
    with Peer(broker.frames) as consumer:
        own = consumer.open(subscribe(name, extra=options(role="consumer"))).subscription
        consumer.send(event(own, content(name)))

        assert consumer.is_hung_up_on()
        assert noted(broker, "the consumer of the subscription", consumer)
    assert stored(broker, name) == []


def test_a_producer_ends_its_subscription_and_may_begin_another(broker: Served) -> None:
    name = new_name()
    with Peer(broker.frames) as producer:
        own = producer.open(subscribe(name, extra=options(role="producer"))).subscription
        producer.send(event(own, content(name)))
        assert producer.ask(unsubscribe(own)).returned == "Success"
        again = producer.open(subscribe(name, request="2", extra=options(role="producer")))

        producer.send(event(again.subscription, content(name)))

        assert producer.ask(event_names()).kind == "EventNamesReply"
    assert len(stored(broker, name)) == 2


def test_at_the_archive_s_door_everybody_is_a_producer(broker: Served) -> None:
    name = new_name()
    with Peer(broker.archive) as producer:
        own = producer.open(subscribe(name)).subscription
        publish(broker, name, content(name, 1.0))
        assert producer.hears_nothing()

        producer.send(event(own, content(name, 2.0)))

        refused = producer.ask(query(name))
        assert (refused.returned, refused.detail) == (
            "Failure", "this is a consumer: it has no events to give",
        )  # fmt: skip
        refused = producer.ask(subscribe(name, "7", "7", extra=options(role="consumer")))
        assert (refused.returned, refused.detail) == ("Failure", "both sides would be the consumer")
        assert producer.hears_nothing(0.05)
    assert len(stored(broker, name)) == 2


def test_what_a_producer_says_in_place_of_an_event_is_kept(broker: Served) -> None:
    name = new_name()
    peer, own = producing(broker, name)
    with peer, Peer(broker.frames) as consumer:
        consumer.open(subscribe("ProducerError", namespace=OUR_EVENTS, own="errors"))
        reported = "<Error>NoSensor</Error><ErrorDetail>uptime: not found</ErrorDetail>"
        peer.send(event(own, reported), event_names())
        assert peer.take().kind == "EventNamesReply"

        got = consumer.hears("Event")

    assert got.content.tag == f"{{{OUR_EVENTS}}}ProducerError"
    assert got.value("EventName") == name
    assert got.value("Error") == "NoSensor"
    assert got.value("ErrorDetail") == "uptime: not found"
    assert stored(broker, "ProducerError", OUR_EVENTS)[-1]["source"] == "gma://127.0.0.1"
