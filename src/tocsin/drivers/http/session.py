"""Who sent a request. Publishes, exchanges and REST handlers all ask here, once a request."""

from __future__ import annotations

from typing import Protocol

import msgspec

from tocsin.access.session import Session
from tocsin.access.sign_in.guarded_sign_in import GuardedSignIn
from tocsin.drivers.http.request import Headers
from tocsin.drivers.listeners.connection_quotas import ConnectionQuotas

ENDPOINT = "http"
WEBSOCKET = "websocket"
SOAP = "soap"
COOKIE = "tocsin_token"
SCOPE_KEY = "tocsin.session"  # where the scope of an ASGI request has it


class Server(Protocol):
    """What signs clients in; nothing where everybody may do everything."""

    @property
    def sign_in(self) -> GuardedSignIn | None: ...

    @property
    def quotas(self) -> ConnectionQuotas | None: ...


class Connected(Protocol):
    """A connection, as far as it says who is at its other end."""

    @property
    def server(self) -> Server: ...

    session: Session
    """For requests without a credential. Made once, when the connection is."""

    signed_in: tuple[bytes, Session]
    """The last credential in a header, and the session that it is for."""


def session_of(connection: Connected, headers: Headers) -> Session:
    """The session of a request with these headers. Raises NotSignedIn for a credential that is not
    valid, and QuotaReached if its address has to wait after many of those, or if its holder has too
    many connections.

    It depends on nothing but the two, so no caller gets the session of another. What was found for
    a header is kept with the connection; whether it is still valid, each decision asks.
    """
    sign_in = connection.server.sign_in
    if sign_in is None:
        return connection.session
    credential = headers.get(b"authorization") or _of_cookie(headers)
    if credential is None:
        return connection.session
    if connection.signed_in[0] == credential:
        return connection.signed_in[1]
    principal, shown = sign_in.by_header(credential, connection.session)
    session = msgspec.structs.replace(connection.session, principal=principal, credential=shown)
    if connection.server.quotas is not None:
        connection.server.quotas.connected(connection, session)
    connection.signed_in = credential, session
    return session


def _of_cookie(headers: Headers) -> bytes | None:
    """What a browser sends after `/login`, as the header that a program sends."""
    for part in headers.get(b"cookie", b"").split(b";"):
        name, _, value = part.strip().partition(b"=")
        if name == COOKIE.encode():
            return b"Bearer " + value.strip(b'"')
    return None


def socket_session(connection: Connected, headers: Headers) -> Session:
    """The same, for a WebSocket that such a request opened."""
    return msgspec.structs.replace(session_of(connection, headers), endpoint=WEBSOCKET)


def soap_session(connection: Connected, headers: Headers) -> Session:
    """The same, for a SOAP message in such a request."""
    return msgspec.structs.replace(session_of(connection, headers), endpoint=SOAP)
