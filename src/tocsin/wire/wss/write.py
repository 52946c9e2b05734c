"""Security headers for messages that we send: a name and a password, or a signature of everything
that a receiver acts on."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding
from lxml import etree

from tocsin import safexml
from tocsin.event.instant import rfc3339
from tocsin.wire.soap.envelope import split
from tocsin.wire.soap.fault import escaped
from tocsin.wire.soap.names import WSSE
from tocsin.wire.wss.names import (
    BASE64,
    DS,
    ECDSA_SHA256,
    EXCLUSIVE,
    ID,
    PASSWORD_TEXT,
    RSA_SHA256,
    SECURITY,
    SHA256,
    WSU,
    X509_V3,
)
from tocsin.wire.wss.values import canonical

Element = etree._Element
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

LIFETIME_NS: Final = 300 * 10**9


def username_token(name: str, password: str) -> bytes:
    """The element, which anybody who sees it can use: it is for TLS alone."""
    return (
        b'<o:UsernameToken xmlns:o="%b"><o:Username>%b</o:Username><o:Password Type="%b">%b'
        b"</o:Password></o:UsernameToken>"
    ) % (WSSE.encode(), escaped(name), PASSWORD_TEXT.encode(), escaped(password))


def timestamp(created_ns: int, lifetime_ns: int = LIFETIME_NS) -> bytes:
    return b'<u:Timestamp xmlns:u="%b"><u:Created>%b</u:Created><u:Expires>%b</u:Expires>%b' % (
        WSU.encode(),
        rfc3339(created_ns).encode(),
        rfc3339(created_ns + lifetime_ns).encode(),
        b"</u:Timestamp>",
    )


def with_security(message: bytes, content: Sequence[bytes]) -> Element:
    """The envelope with these elements in a Security header that has to be understood."""
    root = safexml.parse(message, what="the message")
    soap = split(root.tag)[0]
    header = root.find(f"{{{soap}}}Header")
    if header is None:
        header = etree.Element(f"{{{soap}}}Header")
        root.insert(0, header)
    security = etree.SubElement(header, SECURITY, nsmap={"o": WSSE, "u": WSU})
    security.set(f"{{{soap}}}mustUnderstand", "1")
    security.extend(safexml.parse(each) for each in content)
    return root


def signed(
    message: bytes,
    key: PrivateKey,
    certificate: x509.Certificate,
    now_ns: int,
    new_id: Callable[[], str],
) -> bytes:
    """The message with a signature over its Body, all header blocks and a Timestamp."""
    root = with_security(message, [_binary_token(certificate, new_id()), timestamp(now_ns)])
    security = root.find(f"*/{SECURITY}")
    body = root.find("{*}Body")
    assert security is not None
    assert body is not None
    header = security.getparent()
    assert header is not None
    targets = [body, security[1], *(block for block in header if block is not security)]
    for target in targets:
        if target.get(ID) is None:
            target.set(ID, f"id-{new_id()}")
    signature = _signature(targets, key, security[0].get(ID, ""))
    security.append(signature)
    return etree.tostring(root)


def _binary_token(certificate: x509.Certificate, token_id: str) -> bytes:
    return (
        b'<o:BinarySecurityToken xmlns:o="%b" xmlns:u="%b" u:Id="X509-%b" EncodingType="%b" '
        b'ValueType="%b">%b</o:BinarySecurityToken>'
    ) % (
        WSSE.encode(),
        WSU.encode(),
        token_id.encode(),
        BASE64.encode(),
        X509_V3.encode(),
        base64.b64encode(certificate.public_bytes(Encoding.DER)),
    )


def _signature(targets: Sequence[Element], key: PrivateKey, token_id: str) -> Element:
    method = RSA_SHA256 if isinstance(key, rsa.RSAPrivateKey) else ECDSA_SHA256
    signature = etree.Element(f"{{{DS}}}Signature", nsmap={"d": DS})
    info = etree.SubElement(signature, f"{{{DS}}}SignedInfo")
    _child(info, "CanonicalizationMethod", EXCLUSIVE)
    _child(info, "SignatureMethod", method)
    for target in targets:
        _refer(info, target)
    value = etree.SubElement(signature, f"{{{DS}}}SignatureValue")
    value.text = base64.b64encode(_sign(key, canonical(info))).decode()
    named = etree.SubElement(
        etree.SubElement(signature, f"{{{DS}}}KeyInfo"), f"{{{WSSE}}}SecurityTokenReference"
    )
    etree.SubElement(named, f"{{{WSSE}}}Reference", URI=f"#{token_id}", ValueType=X509_V3)
    return signature


def _refer(info: Element, target: Element) -> None:
    reference = etree.SubElement(info, f"{{{DS}}}Reference", URI=f"#{target.get(ID)}")
    transform = _child(etree.SubElement(reference, f"{{{DS}}}Transforms"), "Transform", EXCLUSIVE)
    # A prefix may stand in a text alone, as in a topic: then only this has it signed.
    parent = target.getparent()
    around = {} if parent is None else parent.nsmap
    prefixes = [prefix or "#default" for prefix in around if prefix != target.prefix]
    if prefixes:
        etree.SubElement(
            transform,
            f"{{{EXCLUSIVE}}}InclusiveNamespaces",
            PrefixList=" ".join(prefixes),
            nsmap={"c": EXCLUSIVE},
        )
    _child(reference, "DigestMethod", SHA256)
    digest = hashlib.sha256(canonical(target, prefixes)).digest()
    etree.SubElement(reference, f"{{{DS}}}DigestValue").text = base64.b64encode(digest).decode()


def _child(parent: Element, name: str, algorithm: str) -> Element:
    return etree.SubElement(parent, f"{{{DS}}}{name}", Algorithm=algorithm)


def _sign(key: PrivateKey, data: bytes) -> bytes:
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(data, padding.PKCS1v15(), hashes.SHA256())
    r, s = utils.decode_dss_signature(key.sign(data, ec.ECDSA(hashes.SHA256())))
    size = (key.key_size + 7) // 8  # XML Signature has both numbers one after the other
    return r.to_bytes(size, "big") + s.to_bytes(size, "big")
