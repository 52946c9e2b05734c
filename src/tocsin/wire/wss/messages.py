"""What a Security header says."""

from __future__ import annotations

import msgspec
from lxml import etree

Element = etree._Element


class UsernameToken(msgspec.Struct, frozen=True):
    """A name with a password in clear."""

    element: Element
    name: str
    password: str
    nonce: bytes | None = None
    created_ns: int | None = None


class Timestamp(msgspec.Struct, frozen=True):
    """When the message was made, and when it is to be forgotten."""

    element: Element
    created_ns: int
    expires_ns: int | None = None


class Reference(msgspec.Struct, frozen=True):
    """One part of the message that a signature covers. The prefixes are those whose declarations
    the signature covers even where no name has them."""

    target: Element
    prefixes: tuple[str, ...] = ()


class Signature(msgspec.Struct, frozen=True):
    """A signature that has the right form. Whether it is valid, `verification.py` says."""

    element: Element
    signed_info: bytes  # in its canonical form, without comments
    method: str
    certificate: bytes  # DER, of whoever says that he signed
    references: tuple[Reference, ...]


class SecurityHeader(msgspec.Struct, frozen=True):
    """The one that is meant for whoever receives the message."""

    element: Element
    username: UsernameToken | None = None
    timestamp: Timestamp | None = None
    signature: Signature | None = None
