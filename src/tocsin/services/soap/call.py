"""One SOAP call: the message as it came, as a service reads it, and the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from tocsin.access.session import Session
from tocsin.errors import TocsinError
from tocsin.services.soap.delivery_receipt import DeliveryReceipt
from tocsin.wire.soap.addressing import Addressing, Versions
from tocsin.wire.soap.envelope import Envelope


@dataclass(frozen=True, slots=True)
class SoapCall:
    """One envelope as it arrived."""

    body: bytes
    content_type: str
    soap_action: str
    path: str
    query: str
    base: str  # "http://host:port" or "soap.tcp://host:port": the start of addresses we hand out
    session: Session  # who sent it, and by which listener
    refused: TocsinError | None = None  # what the transport found wrong with it already
    is_private: bool = False  # it came by TLS or from this machine: nobody on the way can read it


@dataclass(frozen=True, slots=True)
class SoapAnswer:
    """What goes back: an envelope, or an empty body where nothing is to be said."""

    status: int
    content_type: str
    body: bytes
    receipt: DeliveryReceipt | None = None  # the transport says whether it arrived


Answer = Callable[[SoapCall], Awaitable[SoapAnswer]]
"""Who answers calls. It raises nothing: what goes wrong is a fault in the answer."""


@dataclass(frozen=True, slots=True)
class Request:
    """One message, read as far as every service needs it."""

    call: SoapCall
    envelope: Envelope
    addressing: Addressing
    versions: Versions
    name: tuple[str, str]  # the namespace and local name of its content
    resource: str | None  # what it is about: the id in the path, or in a header that we gave out
    kind: str = ""  # of that path: subscriptions, boxes, registrations, or none of these
    is_notification: bool = False  # no specification knows the body

    @property
    def session(self) -> Session:
        """Who asks."""
        return self.call.session

    def address(self, kind: str, resource_id: str) -> str:
        """Where a thing of ours is reached by whoever sent this: /soap/KIND/ID."""
        return f"{self.call.base}/soap/{kind}/{resource_id}"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: the body's content, and the action that names it.

    `one_way`: nothing is said but that it was taken; the transport's own word for that is enough.
    """

    body: bytes = b""
    action: str = ""
    headers: bytes = b""
    one_way: bool = False
    receipt: DeliveryReceipt | None = None  # if it took something out of a box


ACCEPTED = Reply(one_way=True)

Handler = Callable[[Request], Awaitable[Reply]]
Handlers = Mapping[tuple[str, str], Handler]
"""By the namespace and local name of the body's element."""
