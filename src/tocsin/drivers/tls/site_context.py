"""Who is at the other end of a TLS connection, by the certificate that it has shown.

A context knows by whom its peers are known, so whoever has a connection can ask for its session.
"""

from __future__ import annotations

import ssl
from typing import Protocol

import msgspec

from tocsin.access.session import Session
from tocsin.access.sign_in.sign_in import SignedIn
from tocsin.errors import NotSignedIn, TocsinError


class Peers(Protocol):
    """Those that the site has given certificates."""

    def is_of_site(self, der: bytes) -> bool:
        """True if an authority of the site has signed it."""

    def sign_in(self, der: bytes, *, is_server: bool) -> SignedIn:
        """Who has this certificate, which TLS has verified. Raises BadCredential."""

    def refused(self, session: Session, why: str) -> None:
        """Told of each that is refused: the peer itself does not learn why."""


class SiteContext(ssl.SSLContext):
    """A TLS context whose peers may be known to the site by their certificates."""

    peers: Peers | None = None


def certificate_session(session: Session, ssl_object: object) -> Session:
    """The session of whoever is at the other end of a connection: the one given, with the principal
    of the certificate that was shown, if one was. Raises NotSignedIn for one that is refused.

    `ssl_object`: that of the transport, or None without TLS. At the other end of a connection that
    we have made, a certificate was believed for its host; it is somebody's only if the site has
    signed it.
    """
    if not isinstance(ssl_object, ssl.SSLObject | ssl.SSLSocket):
        return session
    context = ssl_object.context
    if not isinstance(context, SiteContext) or context.peers is None:
        return session
    der = ssl_object.getpeercert(binary_form=True)
    if der is None:
        return session
    peers, is_server = context.peers, not ssl_object.server_side
    try:
        if is_server and not peers.is_of_site(der):
            return session
        principal, credential = peers.sign_in(der, is_server=is_server)
    except TocsinError as error:
        peers.refused(session, error.problem)
        raise NotSignedIn(
            "the certificate is not accepted",
            remedy="Use a valid one of the site; the broker's log says what is wrong with this.",
        ) from None
    return msgspec.structs.replace(session, principal=principal, credential=credential)
