"""A publisher on demand for tests: it can be subscribed to, and notes whatever is asked of it.

Also how a publisher registers at a broker, and asks for properties there.
"""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from lxml import etree
from notification_peers import Peer, Refused, post

from schemas import missing, validator
from tocsin.wire.soap.addressing import (
    EndpointReference,
    read_addressing,
    reference_headers,
    write_headers,
)
from tocsin.wire.soap.envelope import Envelope, http_headers, read_envelope, write_envelope
from tocsin.wire.soap.fault import SoapFault, write_fault
from tocsin.wire.wsn import messages as say
from tocsin.wire.wsn.faults import Faults
from tocsin.wire.wsn.operations import REQUESTS
from tocsin.wire.wsn.read import read
from tocsin.wire.wsn.write import operation_names, write
from tocsin.wire.wsn_brokered import messages as brokered
from tocsin.wire.wsn_brokered.read import read as read_brokered
from tocsin.wire.wsn_brokered.write import write as write_brokered

PATIENCE_S = 5.0  # as long as Apache CXF's own tests wait


class Publisher(ThreadingHTTPServer):
    """Answers Subscribe, Renew, Pause, Resume and Unsubscribe."""

    daemon_threads = True

    def __init__(self, port: int = 0, *, pauses: bool = True, lease_s: float | None = None) -> None:
        self.asked: list[tuple[str, str]] = []  # what, and at which path
        self.subscribed: dict[str, say.Subscribe] = {}  # by path
        self.paused: set[str] = set()
        self.pauses = pauses
        self.lease_s = lease_s
        self.envelopes: list[Envelope] = []
        super().__init__(("127.0.0.1", port), _Handler)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/publisher"

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def waits_for(self, *wanted: str) -> None:
        """Until these were asked, in this order and nothing else; since the last such wait."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and len(self.asked) < len(wanted):
            time.sleep(0.02)
        asked = [what for what, _ in self.asked]
        assert asked == list(wanted), asked
        self.asked.clear()

    def is_left_alone(self, seconds: float = 1.5) -> bool:
        time.sleep(seconds)
        return not self.asked

    @property
    def is_flowing(self) -> list[bool]:
        """For each subscription, in the order of subscribing, whether it is not paused."""
        return [path not in self.paused for path in self.subscribed]

    def answer(self, path: str, envelope: Envelope) -> say.Response | SoapFault:
        assert envelope.content is not None
        message = read(envelope)
        spec, _ = REQUESTS[etree.QName(envelope.content).namespace, _name(envelope)]
        faults = Faults(spec, time.time_ns())
        self.asked.append((type(message).__name__, path))
        self.envelopes.append(envelope)
        if isinstance(message, say.Subscribe):
            mine = f"/publisher/subscription{len(self.envelopes)}"
            self.subscribed[mine] = message
            reference = EndpointReference(
                self.url.replace("/publisher", mine),
                message.consumer.wsa,
                parameters=(b'<k:key xmlns:k="urn:key">7</k:key>',),
            )
            return say.SubscribeResponse(reference, time.time_ns(), self._ends_ns())
        if path not in self.subscribed:
            return faults.fault("ResourceUnknownFault", "there is no such subscription")
        return self._about(path, message, faults)

    def _about(self, path: str, message: say.Message, faults: Faults) -> say.Response | SoapFault:
        match message:
            case say.PauseSubscription() if not self.pauses:
                return SoapFault("Sender", "no such operation here")
            case say.PauseSubscription():
                self.paused.add(path)
                return say.PauseSubscriptionResponse()
            case say.ResumeSubscription():
                self.paused.discard(path)
                return say.ResumeSubscriptionResponse()
            case say.Renew():
                return say.RenewResponse(self._ends_ns() or say.NEVER, time.time_ns())
            case say.Unsubscribe():
                del self.subscribed[path]
                return say.UnsubscribeResponse()
        return faults.fault("ResourceUnknownFault", "what is this?")

    def _ends_ns(self) -> int | None:
        return None if self.lease_s is None else time.time_ns() + int(self.lease_s * 10**9)

    def forget(self) -> None:
        """As if it had been restarted."""
        self.subscribed.clear()
        self.paused.clear()

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


def _name(envelope: Envelope) -> str:
    assert envelope.content is not None
    return etree.QName(envelope.content).localname


class _Handler(BaseHTTPRequestHandler):
    server: Publisher
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        envelope = read_envelope(raw)
        addressing = read_addressing(envelope)
        assert envelope.content is not None
        spec, _ = REQUESTS[etree.QName(envelope.content).namespace, _name(envelope)]
        if missing(spec) is None:  # a test is skipped by its own thread only
            validator(spec)(raw)
        if self.path != "/publisher":
            assert b"urn:key" in raw, "references are echoed"
        said = self.server.answer(self.path, envelope)
        if isinstance(said, SoapFault):
            status, body = 500, write_fault(said, envelope.soap)
        else:
            status, body = 200, write(said, spec, addressing.wsa)
        header = write_headers(addressing.wsa, action="urn:x", relates_to=addressing.message_id)
        answer = write_envelope(envelope.soap, header=header, body=body)
        self.send_response(status)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        pass


def exchange(
    peer: Peer, action: str, body: bytes, to: EndpointReference, *, judge: bool = True
) -> Envelope:
    """One question to the broker and its answer, which is held against the schema."""
    header = write_headers(peer.wsa, action=action, message_id="urn:uuid:1", to=to.address)
    header += reference_headers(to, peer.wsa)
    message = write_envelope(peer.soap, header=header, body=body)
    status, answer = post(to.address, message, http_headers(peer.soap, action))
    envelope = read_envelope(answer)
    assert envelope.content is not None
    assert read_addressing(envelope).relates_to == "urn:uuid:1"
    if judge:
        validator(peer.spec)(answer)
    if etree.QName(envelope.content).localname == "Fault":
        raise Refused(status, envelope.content)
    assert status == 200
    return envelope


def answer_to(peer: Peer, message: brokered.Message, to: EndpointReference) -> brokered.Message:
    """What the broker answers to a message of WS-BrokeredNotification."""
    name = type(message).__name__
    action = brokered.request_action(peer.spec, name)
    body = write_brokered(message, peer.spec, peer.wsa)
    # The schema of brokered notification 1.2 was never published with the others.
    envelope = exchange(peer, action, body, to, judge=peer.spec == "wsn13")
    assert envelope.content is not None
    assert read_addressing(envelope).action == brokered.response_action(peer.spec, name)
    return read_brokered(envelope)


def asks(peer: Peer, message: say.Request, to: EndpointReference) -> say.Message:
    """What the broker answers to a message of WS-BaseNotification."""
    body = write(message, peer.spec, peer.wsa)
    envelope = exchange(peer, operation_names(message, peer.spec).request_action, body, to)
    assert envelope.content is not None
    return read(envelope)
