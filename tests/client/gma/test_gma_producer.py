"""A producer and its consumers on real sockets: rates, filters, errors, limits, goodbyes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping

import pytest
from gma_peers import PARAMETERS, PROTOCOL, RawPeer, subscribe_request, until

from tocsin.client.gma import Consumer, EventName, PerformanceEvent, Producer, Quantity, guest
from tocsin.client.gma import backlog as backlog_module
from tocsin.client.gma import demand as demand_module
from tocsin.client.gma import serving as serving_module
from tocsin.errors import BadEvent, BadFilter, BadSetting, BrokerRefused, CannotReachBroker

STAMP = "2000-11-09T21:51:45Z"


@pytest.fixture
def producer() -> Iterator[Producer]:
    with Producer(host="foo.gov") as running:
        yield running


@pytest.fixture
def consumer(producer: Producer) -> Iterator[Consumer]:
    with Consumer(producer.address) as running:
        yield running


def counting(producer: Producer, name: str = "Count", **options: object) -> list[Mapping]:
    """An offer whose events are numbered; returns the parameters of its calls."""
    calls: list[Mapping] = []

    def make(parameters: Mapping) -> dict[str, int]:
        calls.append(parameters)
        return {"N": len(calls)}

    producer.offer(name, make, **options)  # type: ignore[arg-type]
    return calls


def drained(subscription: object) -> list[PerformanceEvent]:
    found = []
    while (event := subscription.take(0)) is not None:  # type: ignore[attr-defined]
        found.append(event)
    return found


def test_two_consumers_with_different_periods_get_different_rates(producer: Producer) -> None:
    counting(producer)
    with Consumer(producer.address) as one, Consumer(producer.address) as other:
        fast, slow = one.subscribe("Count", period=0.05), other.subscribe("Count", period="250 ms")
        time.sleep(1.1)
        counts = len(drained(fast)), len(drained(slow))

    assert 15 <= counts[0] <= 23  # 23 beats, fewer on a machine that is busy
    assert 4 <= counts[1] <= 5


def test_the_first_event_comes_at_once(producer: Producer, consumer: Consumer) -> None:
    counting(producer)

    event = consumer.subscribe("Count", period="1h").take(5)

    assert event is not None
    assert (event["N"], event["HostName"]) == (1, "foo.gov")


def test_without_a_period_the_offer_has_its_own(producer: Producer, consumer: Consumer) -> None:
    counting(producer, period_s=0.05)
    subscription = consumer.subscribe("Count")

    assert [subscription.take(5)["N"] for _ in range(3)] == [1, 2, 3]  # type: ignore[index]


def test_the_names_of_what_is_offered_are_told(producer: Producer, consumer: Consumer) -> None:
    counting(producer, "UptimeCPULoad")
    producer.offer("{urn:lab}Temperature")

    assert consumer.event_names() == [
        EventName("UptimeCPULoad"),
        EventName("Temperature", "urn:lab"),
    ]


def test_a_producer_without_events_says_so(consumer: Consumer) -> None:
    with pytest.raises(BrokerRefused, match="no events"):
        consumer.event_names()


def test_the_ids_of_a_producer_are_its_own_on_all_connections(producer: Producer) -> None:
    producer.offer("Alarm")
    peers = [RawPeer.call(str(producer.address)) for _ in range(3)]
    replies = []
    for peer in peers:
        peer.say(subscribe_request("Alarm"))
        replies.append(peer.hear().partition("<SubscriptionID>")[2].partition("<")[0])
        peer.close()

    assert len(set(replies)) == 3


def test_a_query_gets_one_event_and_its_period_is_ignored(
    producer: Producer, consumer: Consumer
) -> None:
    calls = counting(producer, parameters=("Period", "Disk"))

    event = consumer.query("Count", Disk="sda", Period=Quantity(0, "sec"))

    assert event["N"] == 1
    assert calls == [{"Disk": "sda"}]


def test_parameters_come_to_the_maker_with_their_units(
    producer: Producer, consumer: Consumer
) -> None:
    calls = counting(producer, parameters=("Period", "Window", "Deep"))

    consumer.subscribe("Count", period=60, Window=Quantity(5, "min"), Deep=True).take(5)

    assert calls == [{"Period": Quantity(60, "sec"), "Window": Quantity(5, "min"), "Deep": True}]


def test_what_there_is_not_is_refused_with_what_there_is(
    producer: Producer, consumer: Consumer
) -> None:
    counting(producer, "UptimeCPULoad")

    for ask in (consumer.query, consumer.subscribe):
        with pytest.raises(BrokerRefused, match=r"no events Nope.*There are: UptimeCPULoad"):
            ask("Nope")
        with pytest.raises(BrokerRefused, match=r"no parameter 'Core'.*Period") as caught:
            ask("UptimeCPULoad", Core=3)
        assert caught.value.broker_code == "T213"


@pytest.mark.parametrize("period", ["0", "-1", "0.000000001", "soon"])
def test_a_period_that_cannot_be_is_refused_and_the_connection_stays(
    producer: Producer, period: str
) -> None:
    counting(producer)
    assert producer.address is not None
    peer = RawPeer.call(producer.address)

    peer.say(subscribe_request("Count", more=f'<Period units="sec">{period}</Period>'))
    refusal = peer.hear()
    peer.say(f'<EventNamesRequest xmlns="{PROTOCOL}" requestID="2"/>')
    names = peer.hear()
    peer.close()

    assert "<Return>Failure</Return>" in refusal
    assert "Period" in refusal
    assert 'name="Count"' in names


def test_a_filter_is_applied_by_the_producer(producer: Producer, consumer: Consumer) -> None:
    counting(producer, period_s=0.01)
    subscription = consumer.subscribe("Count", filter="N >= 3 and N != 4")

    assert [subscription.take(5)["N"] for _ in range(3)] == [3, 5, 6]  # type: ignore[index]
    with pytest.raises(BrokerRefused, match="passes the filter"):
        consumer.query("Count", filter="N < 0")
    with pytest.raises(BadFilter):
        consumer.subscribe("Count", filter="N >= = 3")


def test_a_producer_refuses_a_filter_that_it_cannot_read(producer: Producer) -> None:
    counting(producer)
    assert producer.address is not None
    peer = RawPeer.call(producer.address)
    request = subscribe_request("Count").replace(
        "</SubscribeRequest>",
        '<Filter xmlns="urn:tocsin:gma:1">N &gt;= =</Filter></SubscribeRequest>',
    )

    peer.say(request)

    assert "[T104]" in peer.hear()
    peer.close()


def test_what_fails_to_be_made_is_told_and_the_next_is_made(
    producer: Producer, consumer: Consumer
) -> None:
    calls = iter([ValueError("the sensor \x00 is off"), None])

    def make(parameters: Mapping) -> dict[str, int]:
        error = next(calls, None)
        if error is not None:
            raise error
        return {"N": 1}

    producer.offer("Sometimes", make, period_s=0.05)
    subscription = consumer.subscribe("Sometimes")

    event = subscription.take(5)

    assert event is not None
    assert event["N"] == 1
    assert (subscription.errors, subscription.error) == (1, "ValueError: the sensor \ufffd is off")


def test_a_query_for_what_fails_says_why(producer: Producer, consumer: Consumer) -> None:
    producer.offer("Never", lambda _: {"N": [1, 2]})  # type: ignore[dict-item, list-item]

    with pytest.raises(BrokerRefused, match="BadEvent: N is a list"):
        consumer.query("Never")


def test_a_call_may_make_several_events_or_none(producer: Producer, consumer: Consumer) -> None:
    whole = PerformanceEvent(EventName("Many"), STAMP)
    results = iter([[], [{"N": 1}, whole]])
    producer.offer("Many", lambda _: next(results, []), period_s=0.02)
    subscription = consumer.subscribe("Many")

    first, second = subscription.take(5), subscription.take(5)

    assert first is not None
    assert first["N"] == 1
    assert second == whole


def test_a_slow_offer_delays_no_other_and_is_called_once_at_a_time(
    producer: Producer, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demand_module, "MAKING_S_MAX", 0.1)
    monkeypatch.setattr(guest, "MAKING_S_MAX", 0.3)
    release = threading.Event()
    inside: list[int] = []

    def stuck(parameters: Mapping) -> dict[str, int]:
        inside.append(1)
        release.wait(20)
        return {"N": 1}

    producer.offer("Stuck", stuck)
    counting(producer, period_s=0.02)
    waiting = consumer.subscribe("Stuck", period=0.05)
    quick = consumer.subscribe("Count")

    assert [quick.take(5)["N"] for _ in range(5)] == [1, 2, 3, 4, 5]  # type: ignore[index]
    with pytest.raises(BrokerRefused, match="in the making"):
        consumer.query("Stuck")
    until(lambda: waiting.errors == 1)
    assert "Overdue" in (waiting.error or "")
    assert len(inside) == 1
    release.set()
    assert waiting.take(5) is not None


def test_those_who_wait_with_the_same_parameters_share_one_call(
    producer: Producer, consumer: Consumer
) -> None:
    began, release = threading.Event(), threading.Event()
    calls: list[Mapping] = []

    def make(parameters: Mapping) -> dict[str, int]:
        calls.append(parameters)
        began.set()
        release.wait(20)
        return {"N": len(calls)}

    producer.offer("Slow", make)
    first = consumer.subscribe("Slow", period=60)
    assert began.wait(5)
    others = [consumer.subscribe("Slow", period=60) for _ in range(5)]
    consumer.event_names()  # all of them wait by now
    release.set()

    assert first.take(5)["N"] == 1  # type: ignore[index]
    assert [each.take(5)["N"] for each in others] == [2] * 5  # type: ignore[index]
    assert len(calls) == 2


def test_what_is_emitted_reaches_all_who_subscribed_through_their_filters(
    producer: Producer, consumer: Consumer
) -> None:
    producer.offer("Alarm")
    every, some = consumer.subscribe("Alarm"), consumer.subscribe("Alarm", filter="Level > 2")
    rare = consumer.subscribe("Alarm", period="1h", filter="Level > 1")

    for level in range(5):
        producer.emit("Alarm", {"Level": level}, time=STAMP)

    events = [every.take(5) for _ in range(5)]
    assert [event["Level"] for event in events if event] == [0, 1, 2, 3, 4]
    assert {event.time for event in events if event} == {STAMP}
    assert [some.take(5)["Level"] for _ in range(2)] == [3, 4]  # type: ignore[index]
    # One in an hour: the first that passes.
    assert rare.take(5)["Level"] == 2  # type: ignore[index]
    assert drained(rare) == drained(some) == []


def test_a_query_for_what_is_emitted_gets_the_last(producer: Producer, consumer: Consumer) -> None:
    producer.offer("Alarm")
    with pytest.raises(BrokerRefused, match="has happened yet"):
        consumer.query("Alarm")

    producer.emit("Alarm", {"Level": 1})
    producer.emit("Alarm", {"Level": 2})
    producer.emit("News", {})

    assert consumer.query("Alarm")["Level"] == 2
    assert EventName("News") in consumer.event_names()


def test_what_cannot_be_emitted_raises_where_it_is_emitted(producer: Producer) -> None:
    with pytest.raises(BadEvent):
        producer.emit("Alarm", {"Level": None})  # type: ignore[dict-item]
    with pytest.raises(BadEvent, match="names no event"):
        producer.emit("no name", {})
    with pytest.raises(BadEvent, match="time stamp"):
        producer.emit("Alarm", {}, time="soon")


def test_a_name_is_offered_once(producer: Producer) -> None:
    producer.offer("Alarm")

    with pytest.raises(BadSetting, match="offered already"):
        producer.offer("Alarm")
    with pytest.raises(BadSetting, match="period_s"):
        producer.offer("Other", period_s=0)
    with pytest.raises(BadEvent):
        producer.offer("1st")


def test_a_producer_that_closes_ends_its_subscriptions(
    producer: Producer, consumer: Consumer
) -> None:
    producer.offer("Count")
    subscription = consumer.subscribe("Count")
    for number in (1, 2):
        producer.emit("Count", {"N": number})

    producer.close()

    until(lambda: subscription._intake.why)
    assert subscription.ended is None  # not before everything that came was taken
    assert [event["N"] for event in subscription] == [1, 2]
    assert "ended the subscription" in (subscription.ended or "")
    with pytest.raises(CannotReachBroker):
        consumer.event_names()


def test_the_goodbye_of_a_producer_is_an_unsubscribe_request(producer: Producer) -> None:
    producer.offer("Alarm")
    assert producer.address is not None
    peer = RawPeer.call(producer.address)
    peer.say(subscribe_request("Alarm", subscription="mine"))
    assert "Success" in peer.hear()

    threading.Thread(target=producer.close, daemon=True).start()
    goodbye = peer.hear()
    peer.say(
        f'<UnsubscribeReply xmlns="{PROTOCOL}" requestID="1"><Return>Success</Return>'
        "</UnsubscribeReply>"
    )

    assert goodbye.startswith("<UnsubscribeRequest")
    assert "<SubscriptionID>mine</SubscriptionID>" in goodbye
    assert peer.hear_end() == []
    peer.close()


def test_an_unsubscribed_consumer_gets_nothing_more(producer: Producer) -> None:
    calls = counting(producer, period_s=0.01)
    assert producer.address is not None
    peer = RawPeer.call(producer.address)
    peer.say(subscribe_request("Count"))
    reply = peer.hear()
    identity = reply.partition("<SubscriptionID>")[2].partition("<")[0]

    peer.say(
        f'<UnsubscribeRequest xmlns="{PROTOCOL}" requestID="2">'
        f"<SubscriptionID>{identity}</SubscriptionID></UnsubscribeRequest>"
    )
    while "UnsubscribeReply" not in (heard := peer.hear()):
        assert heard.startswith("<Event")
    made = len(calls)
    time.sleep(0.1)
    peer.say(f'<EventNamesRequest xmlns="{PROTOCOL}" requestID="3"/>')

    assert peer.hear().startswith("<EventNamesReply")
    assert len(calls) <= made + 1
    peer.close()


def test_a_lost_consumer_costs_nothing_more(producer: Producer) -> None:
    calls = counting(producer, period_s=0.01)
    assert producer.address is not None
    peer = RawPeer.call(producer.address)
    peer.say(subscribe_request("Count"))
    peer.hear()
    peer.close()

    def is_quiet() -> bool:
        before = len(calls)
        time.sleep(0.05)
        return len(calls) == before

    until(is_quiet)


def test_a_consumer_that_does_not_read_loses_its_oldest_events_and_is_told(
    producer: Producer, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog_module.Backlog.__init__, "__defaults__", (200_000,))
    producer.offer("Large")
    assert producer.address is not None
    peer = RawPeer.call(producer.address)
    peer.say(subscribe_request("Large"))
    peer.hear()

    count = 0
    while producer.dropped < 10:
        producer.emit("Large", {"N": count, "Text": "x" * 50_000})
        count += 1
        assert count < 2_000
    consumer.event_names()  # all of it has come to the loop that answers this
    dropped = producer.dropped
    producer.emit("Large", {"N": -1})

    heard: list[str] = []
    while not heard or "<N>-1</N>" not in heard[-1]:
        heard.append(peer.hear())
    told = [each for each in heard if "<Error>Lost</Error>" in each]
    numbers = [int(each.partition("<N>")[2].partition("<")[0]) for each in heard if "<N>" in each]
    peer.close()
    assert told
    assert "events were given up" in told[0]
    assert len(numbers) == count + 1 - producer.dropped
    assert producer.dropped >= dropped
    assert numbers[0] == 0
    assert numbers[-2] == count - 1  # the newest were kept


def test_a_consumer_that_never_reads_again_is_cut_off(
    producer: Producer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tocsin.client.gma.connection.STALLED_S_MAX", 0.3)
    producer.offer("Large")
    assert producer.address is not None
    peer = RawPeer.call(producer.address)
    peer.say(subscribe_request("Large"))
    peer.hear()

    for _ in range(200):
        producer.emit("Large", {"Text": "x" * 50_000})

    until(lambda: "it has not read for" in caplog.text)
    peer.close()


def test_there_is_room_for_so_many_connections_and_subscriptions(
    producer: Producer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving_module, "CONNECTIONS_MAX", 2)
    monkeypatch.setattr(serving_module, "SUBSCRIPTIONS_MAX", 1)
    producer.offer("Alarm")
    assert producer.address is not None
    one, two = RawPeer.call(producer.address), RawPeer.call(producer.address)
    one.say(subscribe_request("Alarm"))
    assert "Success" in one.hear()
    two.say(subscribe_request("Alarm"))
    assert "no room for more subscriptions" in two.hear()

    three = RawPeer.call(producer.address)

    assert three.hear_end() == []
    assert "turned a connection away" in caplog.text
    for peer in (one, two, three):
        peer.close()


def test_the_paper_s_own_messages_are_understood(producer: Producer) -> None:
    counting(producer, "UptimeCPULoad")
    assert producer.address is not None
    peer = RawPeer.call(producer.address)

    peer.say(
        f'<SubscribeRequest xmlns="{PROTOCOL}" requestID="1"><SubscriptionID>12</SubscriptionID>'
        f'<UptimeCPULoad xmlns="{PARAMETERS}"><Period units="sec">600</Period></UptimeCPULoad>'
        "</SubscribeRequest>"
    )

    assert peer.hear() == (
        f'<SubscribeReply xmlns="{PROTOCOL}" requestID="1"><Return>Success</Return>'
        "<SubscriptionID>1</SubscriptionID></SubscribeReply>"
    )
    assert peer.hear().startswith(f'<Event xmlns="{PROTOCOL}" subscriptionID="12"><UptimeCPULoad ')
    peer.close()


def test_a_hundred_subscriptions_need_no_hundred_threads(
    producer: Producer, consumer: Consumer
) -> None:
    counting(producer)
    before = threading.active_count()

    subscriptions = [consumer.subscribe("Count", period=60) for _ in range(100)]

    assert all(each.take(5) is not None for each in subscriptions)
    assert threading.active_count() <= before + 1  # the one that makes the events


def test_a_port_that_is_taken_is_told(producer: Producer) -> None:
    with pytest.raises(BadSetting, match="cannot listen"):
        Producer(producer.address)


def test_a_producer_that_does_not_listen_has_no_address() -> None:
    with Producer(None) as quiet:
        assert quiet.address is None
        with pytest.raises(BadSetting, match="does not listen"):
            quiet.register()


def test_closing_ends_serve_forever() -> None:
    producer = Producer()
    threading.Timer(0.1, producer.close).start()

    producer.serve_forever()
    producer.close()

    assert not [each for each in threading.enumerate() if each.name == "tocsin-producer"]
