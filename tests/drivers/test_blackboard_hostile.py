"""What may go wrong around the blackboard's lists: haste, and a broker that is stopped."""

from __future__ import annotations

import http.server
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from served import Served, served


class Publisher:
    """A publisher that is told profiles, with a real server."""

    def __init__(self) -> None:
        self.reported: list[dict[str, Any]] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", "0"))
                outer.reported.append(json.loads(self.rfile.read(length)))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def broker() -> Iterator[Served]:
    with served(env={"TOCSIN_MONITOR__ENABLED": "false"}) as broker:
        yield broker


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    publisher = Publisher()
    yield publisher
    publisher.close()


def register(broker: Served, address: str) -> str:
    status, reported = broker.call("POST", "/blackboard/publishers", {"address": address})
    assert status == 201, reported
    found: str = reported["id"]
    return found


def read_along(broker: Served, concept: str) -> socket.socket:
    """A reader of the stream, once it is in the aggregate profile."""
    host, _, port = broker.address.rpartition(":")
    reader = socket.create_connection((host, int(port)))
    target = f"/blackboard/stream?concepts={concept}"
    reader.sendall(f"GET {target} HTTP/1.1\r\nHost: {broker.address}\r\n\r\n".encode())
    assert reader.recv(12) == b"HTTP/1.1 200"
    return reader


def test_who_registers_many_times_at_once_is_on_the_list_once(
    broker: Served, publisher: Publisher
) -> None:
    with ThreadPoolExecutor(16) as many:
        ids = set(many.map(lambda _: register(broker, publisher.url), range(16)))

    assert len(ids) == 1
    _, listed = broker.call("GET", "/blackboard/publishers")
    assert [each["id"] for each in listed["publishers"]] == list(ids)

    broker.call("DELETE", f"/blackboard/publishers/{ids.pop()}")

    assert broker.call("GET", "/blackboard/publishers")[1] == {"publishers": []}


def test_a_broker_that_stops_does_not_tell_publishers_that_its_readers_left(
    broker: Served, publisher: Publisher
) -> None:
    register(broker, publisher.url)
    with read_along(broker, "GpuPower"):
        deadline = time.monotonic() + 15
        while not publisher.reported and time.monotonic() < deadline:
            time.sleep(0.01)

        assert broker.stop() == 0

    assert [reported["concepts"] for reported in publisher.reported] == [["GpuPower"]]
