"""A subscriber and a consumer of WS-BaseNotification for tests, by plain HTTP."""

from __future__ import annotations

import http.client
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, Queue
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from lxml import etree

from schemas import validator
from tocsin.wire.soap.addressing import (
    Addressing,
    EndpointReference,
    read_addressing,
    reference_headers,
    write_headers,
)
from tocsin.wire.soap.envelope import Envelope, http_headers, read_envelope, write_envelope
from tocsin.wire.soap.names import WSA2005, WSA200403, WSA200408
from tocsin.wire.wsn import messages as say
from tocsin.wire.wsn.operations import NOTIFY_ACTIONS
from tocsin.wire.wsn.read import read
from tocsin.wire.wsn.write import operation_names, write

ARRIVES_S = 10.0
SILENCE_S = 0.4


@dataclass(frozen=True, slots=True)
class Peer:
    """How somebody speaks: specification, SOAP and addressing."""

    spec: str
    soap: str
    wsa: str

    def __str__(self) -> str:
        return f"{self.spec}-soap{self.soap}-{self.wsa[-20:-11].strip('/') or 'none'}"


PEERS = (
    Peer("wsn13", "1.2", WSA2005),
    Peer("wsn13", "1.1", WSA200408),
    Peer("wsn12", "1.1", WSA200403),
    Peer("wsn12", "1.2", WSA2005),
    Peer("wsn10", "1.1", WSA2005),
)


class Refused(Exception):
    """A fault; `name` is that of the first element of its detail."""

    def __init__(self, status: int, fault: etree._Element) -> None:
        detail = fault.find("detail")
        detail = fault.find("{*}Detail") if detail is None else detail
        self.detail = None if detail is None or not len(detail) else detail[0]
        self.name = "" if self.detail is None else etree.QName(self.detail).localname
        self.status = status
        super().__init__(f"{status} {self.name} {''.join(fault.itertext())}")


def post(url: str, body: bytes, headers: list[tuple[str, str]]) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    try:
        connection.request("POST", parts.path, body, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def ask(peer: Peer, message: say.Request, to: EndpointReference) -> say.Message:
    """What the broker answers; held against the specification's schema."""
    action = operation_names(message, peer.spec).request_action
    header = write_headers(peer.wsa, action=action, message_id="urn:uuid:ask", to=to.address)
    header += reference_headers(to, peer.wsa)
    body = write_envelope(peer.soap, header=header, body=write(message, peer.spec, peer.wsa))
    status, answer = post(to.address, body, http_headers(peer.soap, action))
    envelope = read_envelope(answer)
    assert envelope.content is not None
    assert envelope.soap == peer.soap
    addressing = read_addressing(envelope)
    assert (addressing.wsa, addressing.relates_to) == (peer.wsa, "urn:uuid:ask")
    if etree.QName(envelope.content).localname == "Fault":
        if peer.spec != "wsn10":
            validator(peer.spec)(answer)
        raise Refused(status, envelope.content)
    assert status == 200
    if not isinstance(message, say.GetCurrentMessage):
        validator(peer.spec)(answer)
    assert addressing.action == _answer_action(message, peer.spec)
    return read(envelope)


def _answer_action(message: say.Request, spec: str) -> str:
    return operation_names(message, spec).response_action


def notify(peer: Peer, url: str, *found: say.NotificationMessage, message_id: str) -> int:
    """Publish by Notify; the HTTP status."""
    action = NOTIFY_ACTIONS[peer.spec]
    header = write_headers(peer.wsa, action=action, message_id=message_id)
    body = write(say.Notify(found), peer.spec, peer.wsa)
    envelope = write_envelope(peer.soap, header=header, body=body)
    return post(url, envelope, http_headers(peer.soap, action))[0]


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message that a consumer got."""

    raw: bytes
    http: dict[str, str]
    envelope: Envelope

    @property
    def addressing(self) -> Addressing:
        return read_addressing(self.envelope)

    @property
    def content(self) -> etree._Element:
        assert self.envelope.content is not None
        return self.envelope.content

    def notification(self) -> say.NotificationMessage:
        """The only message of a Notify."""
        found = read(self.envelope)
        assert isinstance(found, say.Notify)
        [message] = found.messages
        return message


class Consumer(ThreadingHTTPServer):
    """Takes notifications, and says nothing but that it did."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.arrived: Queue[Delivery] = Queue()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/consumer"

    def next(self) -> Delivery:
        return self.arrived.get(timeout=ARRIVES_S)

    def is_silent(self) -> bool:
        try:
            self.arrived.get(timeout=SILENCE_S)
        except Empty:
            return True
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Consumer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.arrived.put(Delivery(raw, headers, read_envelope(raw)))
        self.send_response(202)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass
