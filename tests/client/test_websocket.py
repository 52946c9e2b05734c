"""The WebSocket client of a broker: what arrives is read, whenever it arrives."""

from __future__ import annotations

import socket
import threading

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, TextMessage

from tocsin.client.transport.address import broker_address
from tocsin.client.transport.websocket import WebSocket


def answer_in_one_write(listener: socket.socket) -> None:
    """Accept a WebSocket and send two texts, all in the same segment."""
    connection, _ = listener.accept()
    protocol = WSConnection(ConnectionType.SERVER)
    protocol.receive_data(connection.recv(65_536))
    list(protocol.events())
    accepted = protocol.send(AcceptConnection(subprotocol="cloudevents.json"))
    connection.sendall(
        accepted + protocol.send(TextMessage("one")) + protocol.send(TextMessage("two"))
    )
    connection.recv(1)
    connection.close()


def test_texts_that_come_with_the_end_of_the_handshake_are_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=answer_in_one_write, args=(listener,), daemon=True)
        server.start()
        address = broker_address(f"http://127.0.0.1:{listener.getsockname()[1]}")

        client = WebSocket(address, "/events/socket", "cloudevents.json")
        texts = client.read(5.0)
        client.close()
        server.join(5.0)

    assert texts == ["one", "two"]
