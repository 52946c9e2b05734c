"""Whether a signature is valid, by signxml (docs/adr/0028-ws-security.md)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from lxml import etree
from signxml.algorithms import DigestAlgorithm, SignatureMethod
from signxml.exceptions import SignXMLException
from signxml.verifier import SignatureConfiguration, XMLVerifier

from tocsin import safexml
from tocsin.event.instant import NS_PER_S
from tocsin.wire.soap.envelope import Envelope
from tocsin.wire.soap.names import SOAP_NAMESPACES
from tocsin.wire.wss.faults import security_fault
from tocsin.wire.wss.messages import SecurityHeader
from tocsin.wire.wss.names import SECURITY
from tocsin.wire.wss.values import canonical

Element = etree._Element

# The verifier copies the whole message for each reference: 16 MB take some 0.7 s.
COPIED_BYTES_MAX: Final = 16 << 20
_FAILURES: Final = (
    SignXMLException,
    InvalidSignature,
    UnsupportedAlgorithm,
    RuntimeError,
    etree.LxmlError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    OverflowError,
)


def verified_parts(
    envelope: Envelope,
    header: SecurityHeader,
    now_ns: int,
    *,
    signatures: frozenset[str],
    digests: frozenset[str],
) -> frozenset[Element]:
    """The elements that the key of the signature's certificate has signed, as they stand in the
    message; a SoapFault if it has not. Whose certificate it is, the caller has to know."""
    signature = header.signature
    assert signature is not None
    copied = len(envelope.raw) * len(signature.references)
    if copied > COPIED_BYTES_MAX:
        raise security_fault(
            "InvalidSecurity",
            f"{len(signature.references)} parts are signed of a message with "
            f"{len(envelope.raw)} bytes",
            f"Sign fewer parts, or send less: one times the other is at most {COPIED_BYTES_MAX}.",
        )
    config = SignatureConfiguration(
        location=_location(envelope, header.element),
        expect_references=True,
        signature_methods=frozenset(map(SignatureMethod, signatures)),
        digest_algorithms=frozenset(map(DigestAlgorithm, digests)),
        verification_time=datetime.fromtimestamp(now_ns // NS_PER_S, UTC),
    )
    root = envelope.body.getparent()
    try:
        results = XMLVerifier().verify(
            root,
            x509_cert=x509.load_der_x509_certificate(signature.certificate),
            # Its schema refuses the InclusiveNamespaces of Apache WSS4J. `signature.py` has read
            # the whole signature, more strictly than a schema would.
            validate_schema=False,
            parser=safexml.parser_of_parsed(len(envelope.raw)),
            id_attribute="Id",
            expect_config=config,
        )
    except _FAILURES:
        # How it failed says something of the key and the message to whoever tries.
        raise _invalid() from None
    assert isinstance(results, list)
    if len(results) != len(signature.references):
        raise _invalid()
    for reference, result in zip(signature.references, results, strict=True):
        if result.signed_data != canonical(reference.target, reference.prefixes):
            raise _invalid()  # it has verified another element than the one that is read
    return frozenset(reference.target for reference in signature.references)


def _location(envelope: Envelope, security: Element) -> str:
    """The path of the one Security header among several, and no other."""
    assert envelope.header is not None
    soap = SOAP_NAMESPACES[envelope.soap]
    same = [each for each in envelope.header if each.tag == SECURITY]
    return f"./{{{soap}}}Header/{SECURITY}[{same.index(security) + 1}]/"


def _invalid() -> Exception:
    return security_fault(
        "FailedCheck", "the signature is not valid", "Sign the message as it is sent."
    )
