"""The consumer that a client brings along: notifications of every format in, acknowledgements out.

Each inbox has a path of its own. What a sender is answered is in its own SOAP and addressing
version.
"""

from __future__ import annotations

import secrets
import socket
from threading import Lock
from typing import Final

from tocsin.client.soap.faults import is_fault
from tocsin.client.soap.inbox import Callback, Inbox, MessageIterator
from tocsin.client.soap.message import Ended, Message
from tocsin.client.soap.notifications import messages
from tocsin.client.transport.address import locate
from tocsin.client.transport.arrivals import Taken
from tocsin.client.transport.http_listener import RETRY_SOON, HttpAnswer, HttpListener
from tocsin.errors import BadSetting, TocsinError
from tocsin.wire.soap.addressing import Addressing, read_addressing, write_headers
from tocsin.wire.soap.envelope import (
    Envelope,
    blocks,
    content_type,
    read_envelope,
    split,
    write_envelope,
)
from tocsin.wire.soap.fault import SoapFault, fault_action, fault_of, http_status, write_fault
from tocsin.wire.soap.multipart import envelope_in
from tocsin.wire.soap.names import WSE04, WSE11, WSMAN
from tocsin.wire.wse.messages import ACK_ACTION
from tocsin.wire.wse.read import read_end

_ANYWHERE: Final = frozenset({"0.0.0.0", "::", ""})
_ACCEPTED: Final = HttpAnswer(202)
_LATER: Final = HttpAnswer(503, headers=RETRY_SOON)


class ConsumerListener:
    """One listener with an inbox for each subscription."""

    def __init__(self, listen: str, advertise: str | None, producer: str) -> None:
        host, port = _host_and_port(listen)
        self._lock = Lock()
        self._inboxes: dict[str, Inbox] = {}
        self._listener = HttpListener(host, port, self._answer)
        own = host if host not in _ANYWHERE else _own_address(producer)
        shown = f"[{own}]" if ":" in own else own
        self._start = (advertise or f"http://{shown}:{self._listener.port}").rstrip("/")

    def open(self, callback: Callback | None) -> tuple[str, Inbox]:
        """A new inbox, and the address by which it is reached."""
        path, inbox = f"/{secrets.token_hex(12)}", Inbox(callback)
        with self._lock:
            self._inboxes[path] = inbox
        return f"{self._start}{path}", inbox

    def shut(self, inbox: Inbox) -> None:
        """Take nothing more for an inbox."""
        inbox.close()
        with self._lock:
            self._inboxes = {path: box for path, box in self._inboxes.items() if box is not inbox}

    def close(self) -> None:
        """Take nothing more at all."""
        for inbox in list(self._inboxes.values()):
            inbox.close()
        self._listener.close()

    def _answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> HttpAnswer:
        if method != "POST":
            return HttpAnswer(405, headers=(("Allow", "POST"),))
        # A proxy, or the address that was advertised, may have put something before the path.
        inbox = self._inboxes.get("/" + path.rstrip("/").rpartition("/")[2])
        if inbox is None:
            return HttpAnswer(404)
        soap = "1.2" if "soap+xml" in headers.get("content-type", "") else "1.1"
        addressing = Addressing()
        try:
            envelope = read_envelope(envelope_in(body, headers.get("content-type", "")))
            soap = envelope.soap
            addressing = read_addressing(envelope)
            return _deliver(inbox, envelope, addressing)
        except SoapFault as fault:
            return _fault_answer(fault, soap, addressing)
        except TocsinError as error:
            return _fault_answer(fault_of(error), soap, addressing)


class ConsumerEndpoint(MessageIterator):
    """An address that takes notifications without a subscription."""

    def __init__(self, listener: ConsumerListener, address: str, inbox: Inbox) -> None:
        self.address = address
        self._listener = listener
        self._inbox = inbox

    def take(self, timeout_s: float) -> Message | None:
        return self._inbox.take(timeout_s)

    @property
    def is_over(self) -> bool:
        return self._inbox.is_over

    def close(self) -> None:
        self._listener.shut(self._inbox)


def _deliver(inbox: Inbox, envelope: Envelope, addressing: Addressing) -> HttpAnswer:
    content = envelope.content
    if is_fault(envelope):
        return _ACCEPTED  # a fault in answer to nothing of ours
    if content is not None and split(content.tag) in _ENDS:
        end = read_end(envelope)
        inbox.end(Ended(end.status, end.reason))
        return _ACCEPTED
    came = messages(envelope, addressing)
    taken = inbox.deliver(came) if came else Taken.YES
    if taken is Taken.GONE:
        return HttpAnswer(404)
    if taken is Taken.LATER:
        return _LATER
    if any(split(block.tag) == (WSMAN, "AckRequested") for block in blocks(envelope)):
        header = write_headers(addressing.wsa, action=ACK_ACTION, relates_to=addressing.message_id)
        return _xml_answer(200, envelope.soap, write_envelope(envelope.soap, header=header))
    return _ACCEPTED


_ENDS: Final = frozenset({(WSE04, "SubscriptionEnd"), (WSE11, "SubscriptionEnd")})


def _fault_answer(fault: SoapFault, soap: str, addressing: Addressing) -> HttpAnswer:
    action = fault_action(fault, addressing.wsa)
    header = write_headers(addressing.wsa, action=action, relates_to=addressing.message_id)
    body = write_envelope(soap, header=header, body=write_fault(fault, soap))
    return _xml_answer(http_status(fault, soap), soap, body)


def _xml_answer(status: int, soap: str, body: bytes) -> HttpAnswer:
    return HttpAnswer(status, body, (("Content-Type", content_type(soap)),))


def _host_and_port(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65_535:
        raise BadSetting(
            f"{listen!r} is not an address to listen on",
            remedy="Write HOST:PORT, as in 127.0.0.1:0.",
        )
    return host.strip("[]"), int(port)


def _own_address(producer: str) -> str:
    """The address of this machine as the producer's side sees it: that of the way there."""
    address, _ = locate(producer)
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address.host, address.port))  # sends nothing
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
