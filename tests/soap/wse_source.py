"""A real broker as an event source, a real consumer, and a client that is only envelopes."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from served import Served
from tocsin.wire.soap.addressing import EndpointReference, reference_headers, write_headers
from tocsin.wire.soap.envelope import Envelope, http_headers, read_envelope, split, write_envelope
from tocsin.wire.soap.names import WSA2005
from tocsin.wire.wse.messages import Message, Subscribe, SubscribeResponse
from tocsin.wire.wse.read import read
from tocsin.wire.wse.write import action, write

PATIENCE_S = 10.0
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Received:
    """One message that a consumer got."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def envelope(self) -> Envelope:
        return read_envelope(self.body)


class Consumer:
    """Listens for notifications, and answers all of them alike."""

    def __init__(self) -> None:
        self.received: queue.Queue[Received] = queue.Queue()
        self.answer: tuple[int, bytes] = (202, b"")
        consumer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                names = {name.lower(): value for name, value in self.headers.items()}
                consumer.received.put(Received(self.path, names, body))
                status, content = consumer.answer
                self.send_response(status)
                self.send_header("content-type", "application/soap+xml")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def next(self) -> Received:
        return self.received.get(timeout=PATIENCE_S)

    def is_silent(self, seconds: float = 0.5) -> bool:
        try:
            self.received.get(timeout=seconds)
        except queue.Empty:
            return True
        return False


@contextlib.contextmanager
def consumer() -> Iterator[Consumer]:
    listening = Consumer()
    try:
        yield listening
    finally:
        listening.server.shutdown()
        listening.server.server_close()


@dataclass(frozen=True, slots=True)
class Answer:
    """What the broker said."""

    status: int
    body: bytes

    @property
    def envelope(self) -> Envelope:
        return read_envelope(self.body)

    @property
    def message(self) -> Message | None:
        return read(self.envelope)

    @property
    def action(self) -> str:
        assert self.envelope.header is not None
        found = [block.text for block in self.envelope.header if split(block.tag)[1] == "Action"]
        return str(found[0])

    @property
    def subcode(self) -> str:
        """The local name of the fault's most particular code; empty if it is no fault."""
        content = self.envelope.content
        assert content is not None
        if split(content.tag)[1] != "Fault":
            return ""
        values = [e for e in content.iter() if split(e.tag)[1] in ("Value", "faultcode")]
        return (values[-1].text or "").rpartition(":")[2]


@dataclass(frozen=True, slots=True)
class Client:
    """Speaks one combination of versions to a broker."""

    broker: Served
    spec: str = "wse04"
    soap: str = "1.2"
    wsa: str = WSA2005
    path: str = "/soap"

    def post(self, body: bytes, *, path: str = "", headers: dict[str, str]) -> Answer:
        host, _, port = self.broker.address.rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        try:
            connection.request("POST", path or self.path, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read())
        finally:
            connection.close()

    def ask(
        self, message: Message, *, to: EndpointReference | None = None, path: str = ""
    ) -> Answer:
        """Send a message: to the broker, or to the address and with the headers of a reference."""
        header = write_headers(
            self.wsa, action=action(message), message_id=f"urn:example:{next(_numbers)}"
        )
        if to is not None:
            header += reference_headers(to, self.wsa)
            path = path or to.address.removeprefix(self.broker.url)
        body = write_envelope(self.soap, header=header, body=write(message, self.wsa))
        return self.post(body, path=path, headers=dict(http_headers(self.soap, action(message))))

    def subscribe(self, sink: EndpointReference | str | None, **more: object) -> SubscribeResponse:
        """A subscription that must succeed."""
        if isinstance(sink, str):
            sink = EndpointReference(sink, self.wsa)
        asked = replace(Subscribe(self.spec, sink, expires="PT1H"), **more)  # type: ignore[arg-type]
        answer = self.ask(asked)
        message = answer.message
        assert isinstance(message, SubscribeResponse), answer.body
        return message


def publish(broker: Served, *payloads: str, **members: object) -> None:
    broker.publish(
        *({"datacontenttype": "application/xml", "data": text, **members} for text in payloads)
    )


def subscriptions(broker: Served) -> int:
    """How many there are, boxes included."""
    return sum(int(broker.call("GET", path)[1]["total"]) for path in ("/subscriptions", "/boxes"))
