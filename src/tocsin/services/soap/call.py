"""A SOAP message on its way in and its answer on the way out, whatever carried them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tocsin.access.session import Session
from tocsin.errors import TocsinError
from tocsin.services.mailbox.receipt import Receipt


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


@dataclass(frozen=True, slots=True)
class SoapAnswer:
    """What goes back: an envelope, or an empty body where nothing is to be said."""

    status: int
    content_type: str
    body: bytes
    receipt: Receipt | None = None  # the transport says whether it arrived


Answer = Callable[[SoapCall], Awaitable[SoapAnswer]]
"""Who answers calls. It raises nothing: what goes wrong is a fault in the answer."""
