"""A consumer without HTTP: it subscribes, is sent events and ends it, all by SOAP.TCP."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from served import Served, served
from tocsin.wire.dime import Decoder, envelope_message, read_envelope_message
from tocsin.wire.soap.addressing import read_addressing
from tocsin.wire.soap.envelope import Envelope, read_envelope, write_envelope
from tocsin.wire.soap.names import WSA200408, WSE04

WAIT_S = 20.0


class Talk:
    """DIME messages on one socket."""

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened
        self._decoder = Decoder()
        opened.settimeout(WAIT_S)

    def send(self, envelope: bytes) -> None:
        self._socket.sendall(envelope_message("1.1", envelope))

    def read(self) -> Envelope:
        while (message := self._decoder.next_message()) is None:
            data = self._socket.recv(1 << 16)
            assert data, "hung up"
            self._decoder.receive(data)
        return read_envelope(read_envelope_message(message)[1])


@pytest.fixture
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def broker_side(broker: Served) -> Iterator[Talk]:
    host, _, port = broker.soap_tcp.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=WAIT_S) as opened:
        yield Talk(opened)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(WAIT_S)
        yield listening


def asked(operation: str, to: str, content: str) -> bytes:
    header = (
        f'<a:Action xmlns:a="{WSA200408}">{WSE04}/{operation}</a:Action>'
        f'<a:MessageID xmlns:a="{WSA200408}">urn:uuid:{operation}</a:MessageID>'
        f'<a:To xmlns:a="{WSA200408}">{to}</a:To>'
    )
    body = f'<w:{operation} xmlns:w="{WSE04}" xmlns:a="{WSA200408}">{content}</w:{operation}>'
    return write_envelope("1.1", header=header.encode(), body=body.encode())


def test_a_consumer_lives_by_soap_tcp_alone(
    broker: Served, broker_side: Talk, listener: socket.socket
) -> None:
    own = f"soap.tcp://127.0.0.1:{listener.getsockname()[1]}/consumer"
    address = f"soap.tcp://{broker.soap_tcp}/soap"
    delivery = f"<w:Delivery><w:NotifyTo><a:Address>{own}</a:Address></w:NotifyTo></w:Delivery>"
    broker_side.send(asked("Subscribe", address, f"{delivery}<w:Expires>PT1H</w:Expires>"))

    subscribed = broker_side.read()

    assert read_addressing(subscribed).relates_to == "urn:uuid:Subscribe"
    manager = subscribed.body.findtext(f".//{{{WSE04}}}SubscriptionManager/{{{WSA200408}}}Address")
    assert manager is not None, subscribed.raw
    assert manager.startswith(f"soap.tcp://{broker.soap_tcp}/soap/subscriptions/")

    broker.publish({"topic": "a", "datacontenttype": "application/xml", "data": "<n>1</n>"})
    consumer_side, _ = listener.accept()
    with consumer_side:
        notified = Talk(consumer_side).read()
        assert b"<n>1</n>" in notified.raw
        assert read_addressing(notified).to == own

        broker_side.send(asked("Unsubscribe", manager, ""))
        ended = broker_side.read()
        assert read_addressing(ended).relates_to == "urn:uuid:Unsubscribe"
        assert b"Fault" not in ended.raw
        broker.publish({"topic": "a", "datacontenttype": "application/xml", "data": "<n>2</n>"})
        consumer_side.settimeout(0.5)
        with pytest.raises(TimeoutError):
            consumer_side.recv(1)
