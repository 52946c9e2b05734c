"""The Security header of a message, read. Everything that is not known is refused: what is not
understood might be what the sender relied on."""

from __future__ import annotations

from typing import Final

from lxml import etree

from tocsin.wire.soap.envelope import Envelope, blocks, elements, is_reference, split
from tocsin.wire.soap.names import ROLE_NEXT, ROLE_ULTIMATE, SOAP_NAMESPACES, WSSE
from tocsin.wire.wss.faults import security_fault
from tocsin.wire.wss.messages import SecurityHeader, Timestamp, UsernameToken
from tocsin.wire.wss.names import DS, PASSWORD_DIGEST, PASSWORD_TEXT, SECURITY, WSU
from tocsin.wire.wss.signature import read_signature
from tocsin.wire.wss.values import binary_value, by_name, text_value, time_value

Element = etree._Element

NAME_CHARS_MAX: Final = 256
NONCE_BYTES_MAX: Final = 256

_USERNAME: Final = (WSSE, "UsernameToken")
_TIMESTAMP: Final = (WSU, "Timestamp")
_BINARY: Final = (WSSE, "BinarySecurityToken")
_SIGNATURE: Final = (DS, "Signature")
_KNOWN: Final = frozenset({_USERNAME, _TIMESTAMP, _BINARY, _SIGNATURE})
_OF_USERNAME: Final = frozenset(
    {(WSSE, "Username"), (WSSE, "Password"), (WSSE, "Nonce"), (WSU, "Created")}
)
_OF_TIMESTAMP: Final = frozenset({(WSU, "Created"), (WSU, "Expires")})


def security_element(envelope: Envelope) -> Element | None:
    """The Security header for us, if there is one. Those for others are theirs to read, and what
    somebody gave out in a reference, and is echoed, is nobody's own words."""
    if envelope.header is None:
        return None
    soap = SOAP_NAMESPACES[envelope.soap]
    role = f"{{{soap}}}{'actor' if envelope.soap == '1.1' else 'role'}"
    found = [
        block
        for block in blocks(envelope)
        if block.tag == SECURITY
        and block.get(role, "").strip() in ROLE_NEXT | ROLE_ULTIMATE
        and not is_reference(block)
    ]
    if len(found) > 1:
        raise security_fault(
            "InvalidSecurity",
            f"there are {len(found)} Security headers for this receiver",
            "Send one; name another actor for those of others.",
        )
    return found[0] if found else None


def read_security(
    envelope: Envelope, *, signatures: frozenset[str], digests: frozenset[str]
) -> SecurityHeader | None:
    """The header for us, if there is one; a SoapFault for one that cannot be taken. Signatures may
    have these algorithms."""
    element = security_element(envelope)
    if element is None:
        return None
    found: dict[tuple[str, str], Element] = {}
    for child in elements(element):
        key = split(child.tag)
        if key not in _KNOWN:
            raise security_fault(
                "UnsupportedSecurityToken",
                f"the Security header has {key[1][:80]!r}, which is not supported",
                "Sign in with a UsernameToken or an X.509 signature.",
            )
        if key in found:
            raise security_fault(
                "InvalidSecurity", f"the Security header has two {key[1]}", "Send one."
            )
        found[key] = child
    username, timestamp = found.get(_USERNAME), found.get(_TIMESTAMP)
    signature, token = found.get(_SIGNATURE), found.get(_BINARY)
    if token is not None and signature is None:
        raise security_fault(
            "InvalidSecurity",
            "there is a certificate and no signature: everybody can send a certificate",
            "Sign the message with its key.",
        )
    return SecurityHeader(
        element,
        None if username is None else _username(username),
        None if timestamp is None else _timestamp(timestamp),
        None
        if signature is None
        else read_signature(envelope, element, signature, token, signatures, digests),
    )


def _username(element: Element) -> UsernameToken:
    found = by_name(element, _OF_USERNAME)
    name = found.get((WSSE, "Username"))
    text = "" if name is None else text_value(name, chars_max=NAME_CHARS_MAX)
    if not text:
        raise security_fault(
            "InvalidSecurityToken", "the UsernameToken has no name", "Send wsse:Username."
        )
    nonce, created = found.get((WSSE, "Nonce")), found.get((WSU, "Created"))
    return UsernameToken(
        element,
        text,
        _password(found.get((WSSE, "Password"))),
        None if nonce is None else _nonce(nonce),
        None if created is None else time_value(created),
    )


def _password(element: Element | None) -> str:
    kind = PASSWORD_TEXT if element is None else element.get("Type", PASSWORD_TEXT)
    if kind == PASSWORD_DIGEST:
        raise security_fault(
            "UnsupportedSecurityToken",
            "a PasswordDigest cannot be checked: only a hash of each token is kept here",
            "Send the token as PasswordText over TLS, or sign with a certificate.",
        )
    if kind != PASSWORD_TEXT:
        raise security_fault(
            "UnsupportedSecurityToken",
            f"the type of the password is {kind[:200]!r}",
            "Send it as PasswordText.",
        )
    text = "" if element is None else text_value(element)
    if not text:
        raise security_fault(
            "InvalidSecurityToken", "the UsernameToken has no password", "Send a token of yours."
        )
    return text


def _nonce(element: Element) -> bytes:
    found = binary_value(element)
    if len(found) > NONCE_BYTES_MAX:
        raise security_fault(
            "InvalidSecurityToken",
            f"the nonce has {len(found)} bytes",
            f"At most {NONCE_BYTES_MAX}; 16 are enough.",
        )
    return found


def _timestamp(element: Element) -> Timestamp:
    found = by_name(element, _OF_TIMESTAMP, "InvalidSecurity")
    created, expires = found.get((WSU, "Created")), found.get((WSU, "Expires"))
    if created is None:
        raise security_fault(
            "InvalidSecurity", "the Timestamp does not say when it was made", "Send wsu:Created."
        )
    created_ns = time_value(created)
    expires_ns = None if expires is None else time_value(expires)
    if expires_ns is not None and expires_ns <= created_ns:
        raise security_fault(
            "InvalidSecurity", "the Timestamp ends before it begins", "Send a later wsu:Expires."
        )
    return Timestamp(element, created_ns, expires_ns)
