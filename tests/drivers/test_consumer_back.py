"""A consumer that was away connects to the broker, and has its events at once."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from served import Served, served

DELAY_S = 60  # before a sink that was not reached is tried again, if nobody connects
PATIENCE_S = 10.0
AT_ONCE_S = 5.0  # far less than the delay, and enough for a machine that is busy


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served(env={"TOCSIN_DELIVERY__FIRST_DELAY_S": str(2 * DELAY_S)}) as running:
        yield running


@pytest.fixture
def talk(broker: Served) -> Iterator[http.client.HTTPConnection]:
    """A connection that stays open: to look must not be to connect."""
    connection = http.client.HTTPConnection(broker.address, timeout=PATIENCE_S)
    yield connection
    connection.close()


def ask(talk: http.client.HTTPConnection, method: str, path: str, body: object = None) -> object:
    data = None if body is None else json.dumps(body)
    kind = "cloudevents+json" if path == "/events" else "json"
    talk.request(method, path, data, {"content-type": f"application/{kind}"})
    answer = talk.getresponse()
    text = answer.read()
    assert answer.status < 300, text
    return json.loads(text) if text else None


class Sink(HTTPServer):
    """Takes every event; `taken` is set by the first."""

    def __init__(self, port: int) -> None:
        self.taken = taken = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(204)
                self.end_headers()
                taken.set()

            def log_message(self, *_: object) -> None: ...

        super().__init__(("127.0.0.1", port), Handler)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def subscribe_in_vain(talk: http.client.HTTPConnection, host: str, port: int) -> str:
    """A subscription whose sink was tried once, and is not there."""
    wanted = {"sink": f"http://{host}:{port}/", "filters": [{"exact": {"type": f"t{port}"}}]}
    made = ask(talk, "POST", "/subscriptions", wanted)
    assert isinstance(made, dict)
    event = {"specversion": "1.0", "id": f"{port}", "source": "/s", "type": f"t{port}"}
    ask(talk, "POST", "/events", event)
    path = f"/subscriptions/{made['id']}"
    until_s = time.monotonic() + PATIENCE_S
    while "unreachable" not in json.dumps(ask(talk, "GET", path)):
        assert time.monotonic() < until_s
        time.sleep(0.02)
    return path


@pytest.mark.parametrize(
    ("listener", "host"),
    [
        ("address", "127.0.0.1"),
        ("address", "localhost"),
        ("soap_tcp", "127.0.0.1"),
        ("frames", "127.0.0.1"),
    ],
)
def test_whoever_connects_from_the_sinks_address_has_it_tried_at_once(
    broker: Served, talk: http.client.HTTPConnection, listener: str, host: str
) -> None:
    port = free_port()
    path = subscribe_in_vain(talk, host, port)
    sink = Sink(port)
    try:
        assert not sink.taken.wait(1.1), "tried though nobody connected"
        ours, _, at = getattr(broker, listener).rpartition(":")
        with socket.create_connection((ours, int(at))):
            assert sink.taken.wait(AT_ONCE_S)
    finally:
        sink.shutdown()
        sink.server_close()
        ask(talk, "DELETE", path)
