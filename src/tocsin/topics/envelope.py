"""Sealing: a message that only its recipient can read, by HPKE (RFC 9180) with X25519.

Sealing says nothing of the sender, so what is sealed is signed inside. It is bound to the kind of
message, to the recipient and to the nonce of one request: sealed for another, it does not open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from tocsin.access.sign_in.certificates import ENTITY_ID_CHARS
from tocsin.errors import BadCredential, CannotOpen, TooLarge

SEALED_BYTES_MAX: Final = 1 << 20  # an answer with 100 advertisements has some 400 kB
NONCE_CHARS: Final = 32

_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
_EID: Final = re.compile(rf"[0-9a-f]{{{ENTITY_ID_CHARS}}}")
_NONCE: Final = re.compile(rf"[0-9a-f]{{{NONCE_CHARS}}}")
_KEY_BYTES: Final = 32

_Message = TypeVar("_Message")


class Sealed(msgspec.Struct, frozen=True):
    """A sealed message, and what anybody may know of it."""

    kind: str
    recipient: str  # EID
    nonce: str
    content: bytes


def is_eid(text: str) -> bool:
    return _EID.fullmatch(text) is not None


def is_nonce(text: str) -> bool:
    return _NONCE.fullmatch(text) is not None


def seal(kind: str, content: bytes, to: bytes, recipient: str, nonce: str) -> Sealed:
    """Sealed to an X25519 key. Raises BadCredential for one that is none, and TooLarge."""
    if len(content) > SEALED_BYTES_MAX:
        raise TooLarge(
            f"a message of {len(content)} bytes is not sealed",
            remedy=f"Ask for less: at most {SEALED_BYTES_MAX} bytes are one message.",
        )
    try:
        if len(to) != _KEY_BYTES:
            raise ValueError
        key = X25519PublicKey.from_public_bytes(to)
        sealed = _SUITE.encrypt(content, key, info=_info(kind, recipient, nonce))
    except ValueError:  # of few points, what is sealed could be read by everybody
        raise BadCredential(
            "nothing can be sealed to the key", remedy="Make another X25519 key."
        ) from None
    return Sealed(kind, recipient, nonce, sealed)


def open_sealed(
    sealed: Sealed, kind: str, keys: Iterable[X25519PrivateKey], recipient: str, nonce: str
) -> bytes:
    """The content of a message of this kind for this recipient and request, by whichever of its
    keys it was sealed to. Raises CannotOpen."""
    if len(sealed.content) > 2 * SEALED_BYTES_MAX:
        raise _cannot(f"it has {len(sealed.content)} bytes")
    if (sealed.kind, sealed.recipient, sealed.nonce) != (kind, recipient, nonce):
        raise _cannot("it is for another recipient or request, or of another kind")
    info = _info(kind, recipient, nonce)
    for key in keys:
        try:
            return _SUITE.decrypt(sealed.content, key, info=info)
        except (InvalidTag, ValueError):
            continue
    raise _cannot("it was sealed to another key, or changed on the way")


def decoded(content: bytes, type: type[_Message]) -> _Message:
    """What was sealed. Raises CannotOpen."""
    try:
        return msgspec.json.decode(content, type=type)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise CannotOpen(
            f"what was in a sealed message cannot be read: {error!s:.200}",
            remedy="Ask again, or ask another node.",
        ) from None


def _info(kind: str, recipient: str, nonce: str) -> bytes:
    if not _EID.fullmatch(recipient) or not _NONCE.fullmatch(nonce):
        raise _cannot("its recipient or nonce is malformed")
    return b"\0".join(each.encode("utf-8") for each in (kind, recipient, nonce))


def _cannot(why: str) -> CannotOpen:
    return CannotOpen(
        f"a sealed message cannot be opened: {why}", remedy="Ask again, with a new nonce."
    )
