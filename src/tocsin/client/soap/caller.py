"""One request, and what came of it: what both clients ask a service with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from uuid import uuid4

from tocsin.client.soap.connection_pool import ConnectionPool
from tocsin.client.soap.faults import fault_error, is_fault
from tocsin.client.soap.security import Security
from tocsin.client.transport.address import Address
from tocsin.errors import BadXml, BrokerRefused
from tocsin.wire.soap.addressing import (
    EndpointReference,
    Versions,
    anonymous,
    reference_headers,
    write_headers,
)
from tocsin.wire.soap.envelope import Envelope, http_headers, read_envelope, write_envelope
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.multipart import envelope_in


@dataclass(frozen=True, slots=True)
class SoapRequest:
    """A request without its envelope. `repeatable`: asked twice it does what it does once."""

    action: str
    body: bytes
    repeatable: bool = False


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an answer may take, and for how long a call is tried again."""

    answer_s: float = 30.0
    again_s: float = 10.0


class Caller:
    """Asks services in one SOAP and one addressing version."""

    def __init__(
        self,
        versions: Versions,
        patience: Patience,
        home: Address | None = None,
        security: Security | None = None,
    ) -> None:
        self.versions = versions
        self.patience = patience
        self.pool = ConnectionPool(home, security)

    def call(
        self, request: SoapRequest, to: EndpointReference, *, patience: Patience | None = None
    ) -> Envelope | None:
        """The answer, None if it is empty; SoapRefused if it is a fault."""
        wsa = self.versions.wsa
        header = write_headers(
            wsa,
            action=request.action,
            message_id=new_message_id(),
            to=to.address,
            reply_to=anonymous(wsa) if wsa else None,
        )
        body = write_envelope(
            self.versions.soap, header=header + reference_headers(to, wsa), body=request.body
        )
        return self.send(
            to.address, body, request.action, repeatable=request.repeatable, patience=patience
        )

    def send(
        self,
        url: str,
        envelope: bytes,
        action: str,
        *,
        repeatable: bool,
        patience: Patience | None = None,
    ) -> Envelope | None:
        """Post an envelope; its answer, as of `ask`."""
        allowed = patience or self.patience
        response = self.pool.post(
            url,
            envelope,
            http_headers(self.versions.soap, action),
            timeout_s=allowed.answer_s,
            patience_s=allowed.again_s,
            repeatable=repeatable,
        )
        answer = None
        if response.body.strip():
            try:
                declared = response.headers.get("content-type", "")
                answer = read_envelope(envelope_in(response.body, declared))
            except (BadXml, SoapFault):
                if response.status < 300 and not _is_xml(response.headers):
                    return None  # a plain consumer's way to say that it is well
                raise _not_soap(url, response.status, response.body) from None
        if answer is not None and is_fault(answer):
            raise fault_error(answer, response.status)
        if response.status >= 300:
            raise _not_soap(url, response.status, response.body)
        return answer


T = TypeVar("T")


def read_answer(answer: Envelope | None, url: str, read: Callable[[Envelope], T]) -> T:
    """What a reader finds in an answer that must be there."""
    if answer is None:
        raise bad_answer(url, "is empty")
    try:
        return read(answer)
    except SoapFault as fault:
        raise bad_answer(url, f"cannot be read: {fault.reason}") from None


def bad_answer(url: str, problem: str) -> BrokerRefused:
    """An answer that is none."""
    return BrokerRefused(
        f"the answer of {url[:200]} {problem}",
        remedy="Check that the address is that of the right service.",
    )


def new_message_id() -> str:
    """An id for a message that has none."""
    return f"urn:uuid:{uuid4()}"


def _is_xml(headers: dict[str, str]) -> bool:
    return "xml" in headers.get("content-type", "xml").lower()


def _not_soap(url: str, status: int, body: bytes) -> BrokerRefused:
    excerpt = body[:200].decode("utf-8", "replace").strip()
    return BrokerRefused(
        f"{url[:200]} answered with HTTP {status}" + (f": {excerpt}" if excerpt else ""),
        remedy="Check that the address is that of the Web service itself, path included.",
        status=status,
    )
