"""Signatures by the certificates of a site."""

from __future__ import annotations

from lxml import etree

from tocsin.access.session import Session
from tocsin.access.sign_in.sign_in import SignedIn
from tocsin.services.soap.message_sign_in import CertificateCheck
from tocsin.wire.soap.envelope import Envelope
from tocsin.wire.wss.messages import SecurityHeader
from tocsin.wire.wss.verification import verified_parts

Element = etree._Element


class SiteSignatures:
    """Those that somebody whom the site knows has made."""

    def __init__(
        self, certificates: CertificateCheck, signatures: frozenset[str], digests: frozenset[str]
    ) -> None:
        self._certificates = certificates
        self._signatures = signatures
        self._digests = digests

    def signer(
        self, envelope: Envelope, header: SecurityHeader, session: Session, now_ns: int
    ) -> tuple[SignedIn, frozenset[Element]]:
        """Who has signed, and which elements of the message."""
        assert header.signature is not None
        # First: it says whether the key is one that may be used at all.
        found = self._certificates.signer(header.signature.certificate, session)
        parts = verified_parts(
            envelope, header, now_ns, signatures=self._signatures, digests=self._digests
        )
        return found, parts
