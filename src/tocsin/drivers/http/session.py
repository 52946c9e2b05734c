"""Who sent a request. Publishes, exchanges and REST handlers all ask here, once a request."""

from __future__ import annotations

from typing import Protocol

import msgspec

from tocsin.access.session import Session
from tocsin.drivers.http.request import Headers

ENDPOINT = "http"
WEBSOCKET = "websocket"
SOAP = "soap"
SCOPE_KEY = "tocsin.session"  # where the scope of an ASGI request has it


class Connected(Protocol):
    """A connection, as far as it says who is at its other end."""

    session: Session
    """For requests without a credential. Made once, when the connection is."""


def session_of(connection: Connected, headers: Headers) -> Session:
    """The session of a request with these headers.

    It depends on nothing but the two, so no caller gets the session of another. A credential in
    the headers will change its principal; none is read yet.
    """
    return connection.session


def socket_session(connection: Connected, headers: Headers) -> Session:
    """The same, for a WebSocket that such a request opened."""
    return msgspec.structs.replace(session_of(connection, headers), endpoint=WEBSOCKET)


def soap_session(connection: Connected, headers: Headers) -> Session:
    """The same, for a SOAP message in such a request."""
    return msgspec.structs.replace(session_of(connection, headers), endpoint=SOAP)
