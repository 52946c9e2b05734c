"""Consuming through the client from a real broker, in each of the three ways."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from itertools import islice

import pytest

from served import served
from tocsin.client import AsyncConsumer, AsyncPublisher, Consumer, Publisher
from tocsin.client.incoming.push import Listener
from tocsin.client.transport.connection import Connection
from tocsin.errors import BadSetting, BrokerRefused, CannotReachBroker

WAYS = ["stream", "box", "push"]


def listing(broker, path: str, member: str, text: str) -> list:
    _, page = broker.call("GET", f"/{path}?limit=1000")
    return [one for one in page[member] if text in str(one["filters"])]


def publish_when_asked(broker, topic: str, count: int) -> threading.Timer:
    def publish() -> None:
        with Publisher(broker.url) as publisher:
            publisher.publish_many((topic, number) for number in range(count))

    timer = threading.Timer(0.4, publish)
    timer.start()
    return timer


@pytest.mark.parametrize("consumer", [Consumer, AsyncConsumer])
@pytest.mark.parametrize("via", ["sse", "ws", ""])
def test_a_way_that_there_is_not_is_refused(consumer, via) -> None:
    with pytest.raises(BadSetting, match="stream, box, push"):
        consumer("a", via=via)


@pytest.mark.parametrize("via", WAYS)
def test_events_come_in_order_whichever_way(broker, topic, via) -> None:
    with Consumer(topic, via=via, broker=broker.url, timeout_s=10) as events:
        publishing = publish_when_asked(broker, topic, 50)
        got = list(islice(events, 50))
    publishing.join()

    assert [event.data for event in got] == list(range(50))
    assert [event.seq for event in got] == sorted(event.seq for event in got)
    assert got[0].topic == topic


@pytest.mark.parametrize("via", WAYS)
def test_nothing_is_left_behind_at_the_broker_or_here(broker, topic, via) -> None:
    before = set(threading.enumerate())

    with Consumer(topic, via=via, broker=broker.url, timeout_s=0.3) as events:
        assert list(events) == []

    assert listing(broker, "subscriptions", "subscriptions", topic) == []
    assert listing(broker, "boxes", "boxes", topic) == []
    # Not how many: a thread of an earlier test may end meanwhile.
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("via", WAYS)
def test_a_consumer_can_start_in_the_past(broker, topic, via) -> None:
    with Publisher(broker.url) as publisher:
        first = publisher.publish(topic, "old")
        publisher.publish(topic, "new")

    with Consumer(topic, via=via, broker=broker.url, after=first, timeout_s=10) as events:
        assert next(events).data == "new"


def test_a_filter_is_the_same_language_everywhere(broker, topic) -> None:
    with Publisher(broker.url) as publisher:
        publisher.publish(topic, {"load5": 4})
        publisher.publish(topic, {"load5": 6})

    wanted = f"topic {topic} and load5 >= 5"
    with Consumer(wanted, broker=broker.url, after=0, timeout_s=10) as events:
        assert next(events).data == {"load5": 6}


@pytest.mark.parametrize("via", WAYS)
def test_a_bad_filter_is_reported_with_its_place(broker, via) -> None:
    with pytest.raises(BrokerRefused) as refused:
        next(Consumer("load5 >>= 5", via=via, broker=broker.url))

    assert refused.value.broker_code == "T104"
    assert refused.value.pointed.endswith("^")


@pytest.mark.parametrize("via", WAYS)
def test_a_broker_that_is_not_there_is_reported_at_once(via) -> None:
    began = time.monotonic()
    with pytest.raises(CannotReachBroker):
        next(Consumer("a/b", via=via, broker="http://127.0.0.1:9"))

    assert time.monotonic() - began < 5


def consume_badly(box: str, broker) -> None:
    with Consumer(via="box", box=box, broker=broker.url, timeout_s=10) as events:
        for event in events:
            print(1 / event.data)


def test_a_box_keeps_what_was_not_finished_and_forgets_what_was(broker, topic) -> None:
    with Publisher(broker.url) as publisher:
        _, box = broker.call("POST", "/boxes", {"filters": [{"topic": topic}]})
        publisher.publish_many((topic, number) for number in range(3))

    with pytest.raises(ZeroDivisionError):
        consume_badly(box["id"], broker)
    with Consumer(via="box", box=box["id"], broker=broker.url, timeout_s=0.5) as events:
        assert events.box == box["id"]
        assert [event.data for event in events] == [0, 1, 2]
    with Consumer(via="box", box=box["id"], broker=broker.url, timeout_s=0.3) as events:
        assert list(events) == []


@pytest.mark.parametrize("via", WAYS)
def test_closing_from_another_thread_ends_the_iteration_soon(broker, topic, via) -> None:
    events = Consumer(topic, via=via, broker=broker.url)
    closing = threading.Timer(0.4, events.close)
    began = time.monotonic()
    closing.start()

    assert list(events) == []
    closing.join()
    assert time.monotonic() - began < 3
    assert listing(broker, "subscriptions", "subscriptions", topic) == []
    assert listing(broker, "boxes", "boxes", topic) == []


def test_a_stream_resumes_where_it_was_without_a_gap_or_a_repeat(topic) -> None:
    with served() as broker, Consumer(topic, broker=broker.url, after=0, timeout_s=20) as events:
        with Publisher(broker.url) as publisher:
            publisher.publish_many((topic, number) for number in range(5))
            got = [next(events).data for _ in range(3)]
            broker.kill()
            broker.start()
            publisher.publish_many((topic, number) for number in range(5, 10))
        got += [next(events).data for _ in range(7)]

    assert got == list(range(10))


def test_a_pushed_event_is_answered_only_when_it_was_taken() -> None:
    listener = Listener("127.0.0.1", 0)
    body = b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data":1}'
    with Connection(f"http://127.0.0.1:{listener.port}") as sender:
        kind = [("Content-Type", "application/cloudevents+json")]
        answers = []

        def send() -> None:
            answers.append(sender.request("POST", "/", body=body, headers=kind).status)

        sending = threading.Thread(target=send)
        sending.start()
        sending.join(0.5)
        assert answers == []

        event = listener.arrivals.take(5)
        sending.join(5)
        assert event is not None
        assert answers == [204]
    listener.close()


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (b"OPTIONS / HTTP/1.1\r\nWebHook-Request-Origin: me\r\n\r\n", b"200"),
        (b"GET / HTTP/1.1\r\n\r\n", b"405"),
        (b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nno", b"400"),
        (b"garbage\r\n\r\n", b"400"),
    ],
)
def test_a_listener_answers_whatever_comes(request_text: bytes, status: bytes) -> None:
    listener = Listener("127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", listener.port), 5) as sender:
        sender.sendall(request_text)
        answer = sender.recv(10_000)
    listener.close()

    assert answer.split(b" ")[1] == status
    if status == b"200":
        assert b"WebHook-Allowed-Origin: me\r\n" in answer


@pytest.mark.parametrize("via", WAYS)
def test_async_events_come_in_order_whichever_way(broker, topic, via) -> None:
    async def consume() -> list:
        got = []
        async with AsyncConsumer(topic, via=via, broker=broker.url, after=0) as events:
            async with AsyncPublisher(broker.url) as publisher:
                await publisher.publish_many((topic, number) for number in range(30))
            async for event in events:
                got.append(event.data)
                if len(got) == 30:
                    return got
        return got

    assert asyncio.run(asyncio.wait_for(consume(), 20)) == list(range(30))
    assert listing(broker, "subscriptions", "subscriptions", topic) == []
    assert listing(broker, "boxes", "boxes", topic) == []


@pytest.mark.parametrize("via", WAYS)
def test_an_async_consumer_can_be_cancelled_while_it_waits(broker, topic, via) -> None:
    async def consume() -> None:
        async with AsyncConsumer(topic, via=via, broker=broker.url) as events:
            async for event in events:
                raise AssertionError(event)

    async def cancelled() -> None:
        task = asyncio.create_task(consume())
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancelled(), 20))
    assert listing(broker, "subscriptions", "subscriptions", topic) == []
    assert listing(broker, "boxes", "boxes", topic) == []


@pytest.mark.parametrize(("via", "path"), [("box", "boxes"), ("push", "subscriptions")])
def test_what_is_kept_for_a_consumer_expires_unless_it_is_renewed(
    broker, topic, via, path, monkeypatch
) -> None:
    monkeypatch.setattr("tocsin.client.incoming.box.RENEW_AFTER_S", 0.0)
    with Consumer(topic, via=via, broker=broker.url, timeout_s=0.3) as events:
        (made,) = listing(broker, path, path, topic)
        assert list(events) == []
        (renewed,) = listing(broker, path, path, topic)

    assert made["created"] < made["expires"] < renewed["expires"]


def test_a_stream_that_goes_silent_is_given_up_and_asked_for_again(monkeypatch) -> None:
    monkeypatch.setattr("tocsin.client.incoming.reconnecting_stream.STREAM_IDLE_S", 0.1)
    monkeypatch.setattr("tocsin.client.incoming.reconnecting_stream.POLL_S", 0.05)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: here\n\n"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(10)
        events = Consumer("a", broker=f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=5)
        reading = threading.Thread(target=lambda: list(events))
        reading.start()
        opened = []
        for _ in range(2):
            opened.append(silent.accept()[0])
            opened[-1].recv(10_000)
            opened[-1].sendall(head)
        events.close()
        reading.join(5)
        for each in opened:
            each.close()

    assert not reading.is_alive()


@pytest.mark.parametrize("via", WAYS)
def test_closing_from_another_task_ends_the_iteration(broker, topic, via) -> None:
    async def consume() -> list:
        events = AsyncConsumer(topic, via=via, broker=broker.url)
        closing = asyncio.get_running_loop().call_later(
            0.4, lambda: asyncio.ensure_future(events.close())
        )
        got = [event async for event in events]
        closing.cancel()
        return got

    assert asyncio.run(asyncio.wait_for(consume(), 15)) == []
