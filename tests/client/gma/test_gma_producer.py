"""A producer and its consumers on real sockets: rates, filters, errors, limits, goodbyes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise

import pytest
from gma_peers import PROTOCOL, RawPeer, counting, subscribe_request

from tocsin.client.gma import (
    Consumer,
    EventName,
    PerformanceEvent,
    Producer,
    Quantity,
    consumer_peers,
)
from tocsin.client.gma import offers as demand_module
from tocsin.errors import BadEvent, BadFilter, BadSetting, BrokerRefused
from waiting import wait_until

STAMP = "2000-11-09T21:51:45Z"


@pytest.fixture
def producer() -> Iterator[Producer]:
    with Producer(host="foo.gov") as running:
        yield running


@pytest.fixture
def consumer(producer: Producer) -> Iterator[Consumer]:
    with Consumer(producer.address) as running:
        yield running


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


def test_the_names_of_what_is_offered_are_reported(producer: Producer, consumer: Consumer) -> None:
    counting(producer, "UptimeCPULoad")
    producer.offer("{urn:lab}Temperature")

    assert consumer.event_names() == [
        EventName("UptimeCPULoad"),
        EventName("Temperature", "urn:lab"),
    ]


def test_a_producer_without_events_says_so(consumer: Consumer) -> None:
    with pytest.raises(BrokerRefused, match="no events"):
        consumer.event_names()


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


def test_what_fails_to_be_made_is_reported_and_the_next_is_made(
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


def test_a_maker_that_wants_to_exit_ends_nothing(producer: Producer, consumer: Consumer) -> None:
    calls = iter([SystemExit("enough")])

    def make(parameters: Mapping) -> dict[str, int]:
        for error in calls:
            raise error
        return {"N": 1}

    producer.offer("Exit", make)

    with pytest.raises(BrokerRefused, match="SystemExit: enough"):
        consumer.query("Exit")
    assert consumer.query("Exit")["N"] == 1


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


def test_what_a_call_makes_may_be_any_sequence_but_a_text(
    producer: Producer, consumer: Consumer
) -> None:
    producer.offer("Pair", lambda _: ({"N": 1}, {"N": 2}))
    producer.offer("Text", lambda _: "12")  # type: ignore[arg-type, return-value]
    pair = consumer.subscribe("Pair")

    assert [pair.take(5)["N"] for _ in range(2)] == [1, 2]  # type: ignore[index]
    with pytest.raises(BrokerRefused, match="a str was made"):
        consumer.query("Text")


def test_calls_that_take_longer_than_the_period_do_not_pile_up(
    producer: Producer, consumer: Consumer
) -> None:
    began: list[float] = []

    def make(parameters: object) -> dict[str, int]:
        began.append(time.monotonic())
        time.sleep(0.1)
        return {"N": len(began)}

    producer.offer("Slow", make)
    subscription = consumer.subscribe("Slow", period=0.01)
    for _ in range(5):
        assert subscription.take(5) is not None
    subscription.unsubscribe()
    count = len(began)
    time.sleep(0.3)

    assert len(began) <= count + 1
    assert min(after - before for before, after in pairwise(began)) >= 0.1


def test_a_slow_offer_delays_no_other_and_is_called_once_at_a_time(
    producer: Producer, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demand_module, "MAKING_S_MAX", 0.1)
    monkeypatch.setattr(consumer_peers, "MAKING_S_MAX", 0.3)
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
    with pytest.raises(BrokerRefused, match="in preparation"):
        consumer.query("Stuck")
    wait_until(lambda: waiting.errors == 1)
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
    with pytest.raises(BadEvent, match="'no name' cannot be the name"):
        producer.emit("no name", {})
    with pytest.raises(BadEvent, match="'a b' cannot be the name"):
        producer.emit("Alarm", {"a b": 1})
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
