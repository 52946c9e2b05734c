"""WS-Management's command-line client, openwsman's `wsman`: recorded, and live where it is
installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from interop.consumers import Consumer, consumer
from interop.recordings import recording
from served import Served, served
from tocsin.wire.soap.addressing import header_text
from tocsin.wire.soap.envelope import read_envelope
from tocsin.wire.soap.names import WSMAN

RESOURCE = "http://schemas.dmtf.org/wbem/wscim/1/*"
CLIENT_S = 60
WSMAN_CLIENT = shutil.which("wsman")
live = pytest.mark.skipif(WSMAN_CLIENT is None, reason="wsmancli is not installed")


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def sink() -> Iterator[Consumer]:
    with consumer() as listening:
        yield listening


def wsman(broker: Served, *words: str) -> str:
    assert WSMAN_CLIENT is not None
    host, _, port = broker.address.rpartition(":")
    asked = [WSMAN_CLIENT, *words, "-h", host, "-P", port, "-u", "me", "-p", "secret"]
    done = subprocess.run(
        [*asked, "-y", "basic", "--non-interactive"],
        capture_output=True,
        text=True,
        timeout=CLIENT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_recorded_identify_is_answered(broker: Served) -> None:
    answer = recording("openwsman_281_01_Identify").send(broker)

    assert (answer.status, answer.name) == (200, "IdentifyResponse")
    assert answer.text("ProtocolVersion") == WSMAN


def test_a_recorded_subscription_with_bookmarks_gets_them(broker: Served, sink: Consumer) -> None:
    asked = recording("wsmancli_281_02_Subscribe").to_consumer(sink.url)

    answer = asked.send(broker)
    broker.publish({"datacontenttype": "application/xml", "data": "<a/>"})

    assert (answer.status, answer.name) == (200, "SubscribeResponse")
    assert header_text(read_envelope(sink.next().body), WSMAN, "Bookmark")


@live
def test_wsman_identifies_us(broker: Served) -> None:
    reported = wsman(broker, "identify")

    assert "ProductVendor>Tocsin<" in reported


@live
@pytest.mark.parametrize("mode", ["push", "pushwithack", "events"])
def test_wsman_subscribes_with_bookmarks_and_unsubscribes(
    broker: Served, sink: Consumer, mode: str
) -> None:
    reported = wsman(broker, "subscribe", RESOURCE, "-Z", sink.url, "-G", mode, "-r", "600", "-l")
    broker.publish({"datacontenttype": "application/xml", "data": "<a/>"})
    received = sink.next()
    made = re.search(r"Identifier>([^<]+)<", reported)
    assert made is not None, reported

    wsman(broker, "unsubscribe", RESOURCE, "-i", made[1])

    assert header_text(read_envelope(received.body), WSMAN, "Bookmark")
