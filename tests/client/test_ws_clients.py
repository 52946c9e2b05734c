"""WseClient and WsntClient against a real broker, in every version of everything they speak."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from served import served
from tocsin.client import WseClient, WsntClient
from tocsin.client.soap.client import SoapClient
from tocsin.errors import BadTopic, BadXml, CannotReachBroker, NotInSpecification, SoapRefused

ROOT = Path(__file__).parents[2]
ARRIVES_S = 10.0
SILENCE_S = 0.3
PAYLOAD = b'<s:sweep xmlns:s="urn:sweep" n="1">\n  <s:echo>7 &lt; 8</s:echo>\n</s:sweep>'

SPECS = {
    "wse04": (WseClient, "2004/08"),
    "wse11": (WseClient, "2011/03"),
    "wsn13": (WsntClient, "1.3"),
    "wsn12": (WsntClient, "1.2"),
    "wsn10": (WsntClient, "1.0"),
}
ADDRESSINGS = ("2003/03", "2004/03", "2004/08", "2005/08", "none")
SPEECHES = list(itertools.product(SPECS, ("1.1", "1.2"), ADDRESSINGS))


def client_of(broker, spec: str, **options) -> SoapClient:
    kind, version = SPECS[spec]
    return kind(broker.url, version=version, **options)


def subscriptions(broker) -> list[dict]:
    return broker.call("GET", "/subscriptions")[1]["subscriptions"]


@pytest.mark.parametrize(("spec", "soap", "addressing"), SPEECHES)
def test_a_subscription_lives_its_whole_life_in_every_version(
    broker, topic, spec, soap, addressing
) -> None:
    with client_of(broker, spec, soap=soap, addressing=addressing) as client:
        subscription = client.subscribe(topic)

        message_id = client.publish(PAYLOAD, topic=topic, producer="http://radar.example/7")
        message = subscription.take(ARRIVES_S)

        assert message is not None
        assert (message.payload, message.topic) == (PAYLOAD, topic)
        assert (message.id == message_id) is (addressing != "none")  # nobody told the broker
        assert PAYLOAD in message.envelope
        if spec != "wsn10":
            assert subscription.renew(7_200).remaining_s == pytest.approx(7_200, abs=5)
            assert subscription.status().remaining_s == pytest.approx(7_200, abs=5)
        subscription.unsubscribe()
        client.publish(PAYLOAD, topic=topic)
        assert subscription.take(0.05) is None
        assert list(subscription) == []


@pytest.mark.parametrize(("sender", "receiver"), list(itertools.product(SPECS, SPECS)))
def test_whoever_publishes_reaches_whoever_subscribes(broker, topic, sender, receiver) -> None:
    with client_of(broker, sender) as publisher, client_of(broker, receiver) as consumer:
        messages = consumer.subscribe(topic)

        message_id = publisher.publish(PAYLOAD, topic=topic)

        message = messages.take(ARRIVES_S)
        assert message is not None
        assert (message.payload, message.topic, message.id) == (PAYLOAD, topic, message_id)


@pytest.mark.parametrize("spec", SPECS)
def test_topic_and_content_must_both_fit(broker, topic, spec) -> None:
    with client_of(broker, spec) as client:
        wanted = client.subscribe(topic, "//w:n > 5", namespaces={"w": "urn:w"})

        client.publish('<n xmlns="urn:w">4</n>', topic=topic)
        client.publish('<n xmlns="urn:w">9</n>', topic=f"{topic}/other")
        client.publish('<n xmlns="urn:w">6</n>', topic=topic)

        message = wanted.take(ARRIVES_S)
        assert message is not None
        assert message.payload == b'<n xmlns="urn:w">6</n>'


@pytest.mark.parametrize("spec", ["wse04", "wse11", "wsn13", "wsn12"])
def test_patterns_and_several_topics(broker, topic, spec) -> None:
    with client_of(broker, spec) as client:
        below = client.subscribe(f"{topic}/*/radar/**")
        either = client.subscribe([f"{topic}/a", f"{topic}/b"])

        for place in ("ohio/gauge", "ohio/radar", "iowa/radar/7", "b", "c", "a"):
            client.publish("<n/>", topic=f"{topic}/{place}")

        found = [below.take(ARRIVES_S).topic, below.take(ARRIVES_S).topic]
        assert found == [f"{topic}/ohio/radar", f"{topic}/iowa/radar/7"]
        found = [either.take(ARRIVES_S).topic, either.take(ARRIVES_S).topic]
        assert found == [f"{topic}/b", f"{topic}/a"]


def test_topics_with_a_namespace_keep_it(broker, topic) -> None:
    names = {"w": "urn:weather"}
    with WsntClient(broker.url) as client:
        messages = client.subscribe(f"w:{topic}", dialect="concrete", namespaces=names)
        client.publish("<n/>", topic=f"v:{topic}", namespaces={"v": "urn:other"})
        client.publish("<n/>", topic=f"w:{topic}", namespaces=names)

        message = messages.take(ARRIVES_S)

        assert message is not None
        assert (message.topic, message.topic_name.namespace) == (topic, "urn:weather")


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("wse04", {"mode": "acked"}),
        ("wse04", {"mode": "events"}),
        ("wse11", {"raw": False}),
        ("wsn13", {"raw": True}),
        ("wsn12", {"raw": True}),
        ("wsn10", {"raw": True}),
    ],
)
def test_every_format_of_delivery_is_understood(broker, topic, spec, options) -> None:
    with client_of(broker, spec) as client:
        messages = client.subscribe(topic, **options)
        for number in range(3):
            client.publish(b"<n>%d</n>" % number, topic=topic, action="urn:counted")

        came = [messages.take(ARRIVES_S) for _ in range(3)]

        assert [message.payload for message in came] == [b"<n>%d</n>" % n for n in range(3)]
        time.sleep(SILENCE_S)
        assert messages.take(0.01) is None  # an acknowledged message does not come again


@pytest.mark.parametrize(("spec", "raw"), [("wse11", False), ("wsn13", True), ("wsn12", True)])
def test_every_format_of_publication_is_taken(broker, topic, spec, raw) -> None:
    with client_of(broker, spec) as client, WseClient(broker.url) as consumer:
        everything = consumer.subscribe("**", "/s:sweep", namespaces={"s": f"urn:{topic}"})
        payload = f'<s:sweep xmlns:s="urn:{topic}"/>'

        client.publish(payload, raw=raw, action="urn:swept")

        message = everything.take(ARRIVES_S)
        assert message is not None
        assert (message.payload, message.action) == (payload.encode(), "urn:swept")


def test_a_callback_is_called_in_order_and_a_failing_one_again(broker, topic) -> None:
    seen: list[bytes] = []
    done = threading.Event()

    def callback(message) -> None:
        if message.payload == b"<n>1</n>" and seen.count(b"<n>1</n>") == 0:
            seen.append(message.payload)
            raise RuntimeError("not now")
        seen.append(message.payload)
        if len(seen) == 4:
            done.set()

    with WsntClient(broker.url) as client:
        client.subscribe(topic, consumer=callback)
        for number in range(3):
            client.publish(b"<n>%d</n>" % number, topic=topic)
        assert done.wait(ARRIVES_S)

    assert seen == [b"<n>0</n>", b"<n>1</n>", b"<n>1</n>", b"<n>2</n>"]


def test_a_paused_subscription_is_silent_until_it_is_resumed(broker, topic) -> None:
    with WsntClient(broker.url) as client:
        messages = client.subscribe(topic)
        messages.pause()
        client.publish("<n/>", topic=topic)
        assert messages.take(SILENCE_S) is None

        messages.resume()

        assert messages.take(ARRIVES_S) is not None


def test_what_a_specification_lacks_is_said(broker, topic) -> None:
    with WseClient(broker.url) as wse, WsntClient(broker.url, version="1.0") as wsn10:
        messages = wse.subscribe(topic)
        with pytest.raises(NotInSpecification, match="WS-Eventing has no pausing"):
            messages.pause()
        with pytest.raises(NotInSpecification, match="no resuming"):
            messages.resume()
        with pytest.raises(NotInSpecification, match="current message"):
            wse.current_message(topic)
        with pytest.raises(NotInSpecification, match="wrapped"):
            wse.publish("<n/>", raw=False)
        with pytest.raises(NotInSpecification, match="no wildcards"):
            wsn10.subscribe(f"{topic}/*")
        with pytest.raises(NotInSpecification, match="delivery modes"):
            wsn10.subscribe(topic, mode="acked")
        with pytest.raises(NotInSpecification, match="status"):
            wsn10.subscribe(topic).status()


@pytest.mark.parametrize("version", ["1.3", "1.2", "1.0"])
def test_the_current_message_of_a_topic(broker, topic, version) -> None:
    with WsntClient(broker.url, version=version) as client:
        with pytest.raises(SoapRefused) as refused:
            client.current_message(topic)
        assert b"NoCurrentMessageOnTopicFault" in refused.value.detail or version == "1.0"

        client.publish("<n>1</n>", topic=topic)
        client.publish("<n>2</n>", topic=topic)

        assert client.current_message(topic).payload == b"<n>2</n>"


@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_a_fault_is_an_error_with_all_that_it_says(broker, soap) -> None:
    with WseClient(broker.url, soap=soap) as client:
        with pytest.raises(SoapRefused) as refused:
            client.subscribe(dialect="urn:no-dialect", topic="a")

        error = refused.value
        assert error.subcode is not None
        assert error.subcode[1] == "FilteringRequestedUnavailable"
        assert error.fault_code == ("Sender" if soap == "1.2" else "")
        assert error.reason
        assert error.status == (400 if soap == "1.2" else 500)
        assert not subscriptions(broker)


def test_ending_twice_tells_that_there_is_none(broker, topic) -> None:
    with WsntClient(broker.url) as client:
        messages = client.subscribe(topic)
        messages.unsubscribe()
        with pytest.raises(SoapRefused) as refused:
            messages.unsubscribe()

        assert refused.value.broker_code == "T302"


def test_bad_payloads_and_topics_are_refused_before_anything_is_sent() -> None:
    with WseClient("http://127.0.0.1:9/soap", patience_s=0) as client:
        with pytest.raises(BadXml, match="payload"):
            client.publish("no xml")
        with pytest.raises(BadTopic):
            client.publish("<n/>", topic="a//b")
        with pytest.raises(CannotReachBroker, match=r"127\.0\.0\.1:9"):
            client.publish("<n/>", topic="a/b")


@pytest.mark.parametrize("spec", ["wse04", "wse11", "wsn13", "wsn12"])
def test_a_lease_is_renewed_before_it_is_over(broker, topic, spec) -> None:
    with client_of(broker, spec) as client:
        messages = client.subscribe(topic, expires=1.0)
        time.sleep(2.2)

        client.publish("<n/>", topic=topic)

        assert messages.take(ARRIVES_S) is not None
        assert messages.ended is None


def test_without_renewing_a_subscription_expires(broker, topic) -> None:
    with WseClient(broker.url) as client:
        messages = client.subscribe(topic, expires="PT0.3S", renewing=False)
        time.sleep(0.8)

        with pytest.raises(SoapRefused):
            messages.status()


def test_the_end_of_a_subscription_ends_the_loop_with_its_reason(broker, topic) -> None:
    with WseClient(broker.url) as client:
        messages = client.subscribe(topic)
        [own] = [each for each in subscriptions(broker) if topic in str(each)]

        client.publish("<n/>", topic=topic)
        assert next(messages).payload == b"<n/>"
        broker.call("DELETE", f"/subscriptions/{own['id']}")

        assert list(messages) == []
        assert messages.ended is not None
        assert messages.ended.status == "SourceCancelling"


def test_a_subscription_that_the_broker_lost_ends_when_it_should_be_renewed(topic) -> None:
    with served() as broker, WsntClient(broker.url) as client:
        messages = client.subscribe(topic, expires=1.0)
        [own] = subscriptions(broker)
        broker.call("DELETE", f"/subscriptions/{own['id']}")

        assert list(messages) == []
        assert messages.ended is not None
        assert messages.ended.status == "NotRenewed"


EXITS = """
import os, sys
from tocsin.client import {kind}
client = {kind}(sys.argv[1])
subscription = client.subscribe(sys.argv[2], pull={pull})
print("subscribed", flush=True)
{end}
"""


@pytest.mark.parametrize(
    ("end", "code"), [("", 0), ("raise SystemExit(3)", 3), ("raise ValueError('x')", 1)]
)
@pytest.mark.parametrize("pull", [False, True])
@pytest.mark.parametrize("kind", ["WseClient", "WsntClient"])
def test_a_program_that_ends_leaves_no_subscription_behind(
    broker, topic, kind, pull, end, code
) -> None:
    before = subscriptions(broker)
    done = subprocess.run(
        [sys.executable, "-c", EXITS.format(kind=kind, pull=pull, end=end), broker.url, topic],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert (done.returncode, done.stdout) == (code, "subscribed\n")
    assert subscriptions(broker) == before


def test_closing_from_another_thread_ends_the_loop(broker, topic) -> None:
    client = WsntClient(broker.url)
    messages = client.subscribe(topic)
    threading.Timer(0.2, client.close).start()

    assert list(messages) == []
    client.close()  # twice is as good as once


def test_somebody_elses_address_can_be_subscribed(broker, topic) -> None:
    with WseClient(broker.url) as consumer, WsntClient(broker.url, version="1.2") as subscriber:
        inbox = consumer.listen()
        subscriber.subscribe(topic, consumer=inbox.address)

        subscriber.publish("<n/>", topic=topic)

        message = inbox.take(ARRIVES_S)
        assert message is not None
        assert (message.payload, message.topic) == (b"<n/>", topic)


def test_a_callback_may_close_its_own_client_and_its_message_counts_as_taken(broker, topic) -> None:
    client = WsntClient(broker.url)
    seen: list[bytes] = []
    closed = threading.Event()

    def callback(message) -> None:
        seen.append(message.payload)
        client.close()
        closed.set()

    client.subscribe(topic, consumer=callback)
    with WseClient(broker.url) as publisher:
        publisher.publish("<n/>", topic=topic)

    assert closed.wait(ARRIVES_S)
    time.sleep(SILENCE_S)
    assert seen == [b"<n/>"]
    assert not [each for each in subscriptions(broker) if topic in str(each)]


def test_who_listens_everywhere_is_reached_where_the_broker_can(broker, topic) -> None:
    with WseClient(broker.url, listen="0.0.0.0:0") as client:
        messages = client.subscribe(topic)
        assert messages.consumer is not None
        assert messages.consumer.address.startswith("http://127.0.0.1:")

        client.publish("<n/>", topic=topic)

        assert messages.take(ARRIVES_S) is not None


def test_no_thread_and_no_connection_outlives_its_client(broker, topic) -> None:
    before = set(threading.enumerate())
    for kind in (WseClient, WsntClient):
        with kind(broker.url) as client:
            messages = client.subscribe(topic, expires=5)
            client.publish("<n/>", topic=topic)
            assert messages.take(ARRIVES_S) is not None

    deadline = time.monotonic() + ARRIVES_S
    while set(threading.enumerate()) - before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not set(threading.enumerate()) - before
