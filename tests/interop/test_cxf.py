"""Apache CXF's WS-Notification, from its published artifacts: its client at our broker, our client
and our broker at its service.

Maven fetches the artifacts, which is why these tests are slow; a virtual machine runs the one
class of ours that moves CXF.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from interop.consumers import Consumer, Delivery, consumer
from interop.cxf_peer import HERE, java_with
from served import Served, served
from tocsin.client import WsntClient
from tocsin.wire.soap.names import TOPICS13

CLIENT_S = 120
ARRIVES_S = 20.0
SILENCE_S = 0.6
SIMPLE = f"{TOPICS13}/TopicExpression/Simple"  # the only dialect that CXF knows
STEPS = (
    "subscribed heard current renewed paused resumed unsubscribed unknown created pulled destroyed "
    "registered wanted deregistered done"
)
EVENT = b'<e:state xmlns:e="urn:example">%b</e:state>'


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def sink() -> Iterator[Consumer]:
    with consumer() as listening:
        yield listening


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs our class with CXF beside it."""
    return [*java_with("pom.xml", tmp_path_factory.mktemp("cxf")), str(HERE / "CxfPeer.java")]


@pytest.mark.slow
def test_cxf_s_client_does_everything_it_can_at_the_broker(broker: Served, java: list[str]) -> None:
    command = [*java, "client", f"{broker.url}/soap"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=CLIENT_S, check=False)

    assert done.stdout.split() == STEPS.split(), done.stderr[-3000:]
    assert done.returncode == 0


@pytest.fixture(scope="module")
def service(java: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address under which CXF serves a broker and a factory of pull points."""
    said = tmp_path_factory.mktemp("service") / "stderr"
    with said.open("wb") as errors:
        process = subprocess.Popen(
            [*java, "service"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )
    try:
        yield _address(process.stdout, said)
    finally:
        process.kill()
        process.communicate()


def _address(output: IO[bytes] | None, said: Path) -> str:
    assert output is not None
    for line in output:
        if line.startswith(b"serving "):
            return line.split()[1].decode()
    raise AssertionError(said.read_text()[-3000:])


def client_of(service: str) -> WsntClient:
    return WsntClient(f"{service}broker", version="1.3", soap="1.1")


def state(delivery: Delivery) -> str:
    [found] = delivery.content.iter("{urn:example}state")
    return str(found.text)


@pytest.mark.slow
def test_our_client_subscribes_publishes_pauses_and_leaves_at_cxf_s_service(service: str) -> None:
    with client_of(service) as client:
        subscription = client.subscribe("ours", dialect=SIMPLE)

        def is_received(text: bytes) -> bool:
            client.publish(EVENT % text, topic="ours")
            message = subscription.take(ARRIVES_S if text != b"unheard" else SILENCE_S)
            return message is not None and b">%b</" % text in message.payload

        assert is_received(b"one")
        subscription.renew(3_600)
        client.pause(subscription)
        assert not is_received(b"unheard")  # what comes meanwhile is dropped there
        client.resume(subscription)
        assert is_received(b"two")
        client.unsubscribe(subscription)


@pytest.mark.slow
def test_our_broker_delivers_into_cxf_s_and_cxf_s_into_ours(
    broker: Served, sink: Consumer, service: str
) -> None:
    """From a publisher of ours to a consumer of CXF's, and back again."""
    with WsntClient(broker.url, version="1.3", soap="1.1") as ours, client_of(service) as theirs:
        ours.subscribe("outward", consumer=f"{service}broker")
        theirs.subscribe("outward", consumer=f"{sink.url}/of-cxf", dialect=SIMPLE)
        theirs.subscribe("inward", consumer=f"{broker.url}/soap", dialect=SIMPLE)
        received = ours.subscribe("inward")

        broker.publish(
            {
                "datacontenttype": "application/xml",
                "topic": "outward",
                "data": (EVENT % b"there").decode(),
            }
        )
        delivery = sink.next()
        assert (delivery.path, state(delivery)) == ("/of-cxf", "there")

        theirs.publish(EVENT % b"back", topic="inward")
        message = received.take(ARRIVES_S)
        assert message is not None
        assert b">back</" in message.payload


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_an_offer_of_http_2_is_passed_over_and_the_body_is_read(
    broker: Served, framing: str
) -> None:
    """Java's own client, and so CXF, offers it with every first request (RFC 9110, 7.8)."""
    body = b'<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><x/></s:Body>'
    body += b"</s:Envelope>"
    framed = {
        "length": b"Content-Length: %d\r\n\r\n%b" % (len(body), body),
        "chunked": b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body),
    }[framing]
    head = (
        b"POST /soap HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/xml\r\n"
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n"
    )
    host, _, port = broker.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=ARRIVES_S) as opened:
        opened.sendall(head + framed)

        assert opened.recv(4_096).startswith(b"HTTP/1.1 202 ")
