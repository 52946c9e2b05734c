"""A consumer of notifications for real and for recorded clients: it takes whatever comes."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lxml import etree

from tocsin.wire.soap.addressing import Addressing, read_addressing, write_headers
from tocsin.wire.soap.envelope import Envelope, read_envelope, write_envelope
from tocsin.wire.soap.names import WSMAN_URI

ARRIVES_S = 15.0
SILENCE_S = 0.4


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message that arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def envelope(self) -> Envelope:
        return read_envelope(self.body)

    @property
    def addressing(self) -> Addressing:
        return read_addressing(self.envelope)

    @property
    def content(self) -> etree._Element:
        content = self.envelope.content
        assert content is not None
        return content


class Consumer(ThreadingHTTPServer):
    """Listens on a free port and keeps what it is sent, in order."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.arrived: queue.Queue[Delivery] = queue.Queue()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def next(self) -> Delivery:
        return self.arrived.get(timeout=ARRIVES_S)

    def is_silent(self) -> bool:
        with contextlib.suppress(queue.Empty):
            self.arrived.get(timeout=SILENCE_S)
            return False
        return True


def acknowledgement(delivery: Delivery) -> bytes:
    """What a consumer of WS-Management says when it was asked to (DSP0226, PushWithAck)."""
    said = delivery.addressing
    header = write_headers(said.wsa, action=f"{WSMAN_URI}/Ack", relates_to=said.message_id)
    return write_envelope(delivery.envelope.soap, header=header)


class _Handler(BaseHTTPRequestHandler):
    server: Consumer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        length = self.headers["content-length"]
        body = self._chunks() if length is None else self.rfile.read(int(length))
        names = {name.lower(): value for name, value in self.headers.items()}
        delivery = Delivery(self.path, names, body)
        self.server.arrived.put(delivery)
        answer = acknowledgement(delivery) if b"AckRequested" in body else b""
        self.send_response(200 if answer else 202)
        if answer:
            self.send_header("content-type", "application/soap+xml; charset=utf-8")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _chunks(self) -> bytes:
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def log_message(self, format: str, *args: object) -> None:
        """A test's output is the test's."""


@contextlib.contextmanager
def consumer() -> Iterator[Consumer]:
    listening = Consumer()
    threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield listening
    finally:
        listening.shutdown()
        listening.server_close()
