"""Message boxes: the paper's five steps by the clients, at the broker and at a box service."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time

import pytest

from tocsin.client import WseClient, WsntClient
from tocsin.errors import BadSetting

ARRIVES_S = 10.0
KINDS = [
    (WseClient, {"version": "2004/08"}),
    (WseClient, {"version": "2011/03"}),
    (WsntClient, {"version": "1.3"}),
    (WsntClient, {"version": "1.2"}),
    (WsntClient, {"version": "1.0"}),
]


@pytest.mark.parametrize("box_form", ["msgbox", "pullpoint"])
@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_what_is_published_waits_in_the_box(broker, topic, kind, options, box_form) -> None:
    with kind(broker.url, **options) as client:
        subscription = client.subscribe(topic, pull=True, box_form=box_form)
        for number in range(3):
            client.publish(b"<n>%d</n>" % number, topic=topic)

        came: list[bytes] = []
        while len(came) < 3:
            more = subscription.pull(wait_s=ARRIVES_S)
            assert more
            came += [message.payload for message in more]
            if box_form == "pullpoint":
                assert {message.topic for message in more} == {topic}

        assert came == [b"<n>0</n>", b"<n>1</n>", b"<n>2</n>"]
        assert subscription.pull() == []


def test_pulling_from_the_source_itself_as_ws_management_does(broker, topic) -> None:
    with WseClient(broker.url) as client:
        subscription = client.subscribe(topic, mode="pull")
        for number in range(5):
            client.publish(b"<n>%d</n>" % number, topic=topic)

        first = subscription.pull(2, wait_s=ARRIVES_S)
        rest = subscription.pull(wait_s=ARRIVES_S)

        assert [m.payload for m in first + rest] == [b"<n>%d</n>" % n for n in range(5)]
        assert subscription.pull(wait_s=0.1) == []


def test_a_loop_over_a_pulled_subscription(broker, topic) -> None:
    with WsntClient(broker.url) as client, client.subscribe(topic, pull=True) as messages:
        client.publish("<n>0</n>", topic=topic)
        assert next(messages).payload == b"<n>0</n>"
        client.publish("<n>1</n>", topic=topic)
        assert next(messages).payload == b"<n>1</n>"
        messages.close()
        assert list(messages) == []


@pytest.mark.parametrize("box_form", ["msgbox", "pullpoint"])
def test_the_box_is_destroyed_in_the_end(broker, topic, box_form) -> None:
    with WsntClient(broker.url) as client:
        subscription = client.subscribe(topic, pull=True, box_form=box_form)
        reference = subscription.consumer
        assert reference is not None
        subscription.close()

        with pytest.raises(Exception, match="box"):
            client.publish("<n/>", to=reference)


def test_a_pushed_subscription_cannot_be_pulled(broker, topic) -> None:
    with WseClient(broker.url) as client:
        with pytest.raises(BadSetting, match="pushed"):
            client.subscribe(topic).pull()
        with pytest.raises(BadSetting, match="either"):
            client.subscribe(topic, pull=True, consumer=print)


@pytest.fixture(scope="module")
def box_service():
    """`tocsin box serve`: boxes and no broker."""
    with tempfile.TemporaryDirectory() as directory:
        command = ["box", "serve", "--json", "--data", directory, "--http", "127.0.0.1:0"]
        process = subprocess.Popen(
            [sys.executable, "-m", "tocsin", *command],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            yield f"http://{json.loads(process.stdout.readline())['http']}"
        finally:
            process.terminate()
            process.communicate(timeout=20)


@pytest.mark.parametrize("kind", [WseClient, WsntClient])
def test_a_box_outside_the_firewall_is_named_by_its_url(broker, box_service, topic, kind) -> None:
    with kind(broker.url) as client:
        subscription = client.subscribe(topic, box=box_service)
        assert subscription.consumer is not None
        assert subscription.consumer.address.startswith(box_service)

        client.publish("<n/>", topic=topic)

        started = time.monotonic()
        assert [message.payload for message in subscription.pull(wait_s=ARRIVES_S)] == [b"<n/>"]
        assert time.monotonic() - started < ARRIVES_S
