"""Statements that an entity signs: a compact JWS over JSON in one form, whose header names the kind
of statement, so that a signature of one kind never passes for another."""

from __future__ import annotations

import hashlib
from typing import Final, TypeVar

import msgspec

from tocsin.access.delegation.keys import PrivateKey, PublicKey, base64url
from tocsin.access.sign_in import jws
from tocsin.access.sign_in.jws import Signed
from tocsin.errors import BadSignedStatement
from tocsin.wire import strict_json

STATEMENT_CHARS_MAX: Final = 8 << 10

_Statement = TypeVar("_Statement")

_REMEDY: Final = "Have it made again by whoever signs it."


def canonical(value: object) -> bytes:
    """JSON with sorted keys and no spaces: one value is always the same bytes."""
    return msgspec.json.encode(value, order="sorted")


def digest(content: str | bytes) -> str:
    """By which a statement names another: SHA-256 in base64url."""
    content = content.encode("utf-8") if isinstance(content, str) else content
    return base64url(hashlib.sha256(content).digest())


def sign(kind: str, statement: object, key: PrivateKey) -> str:
    """The statement as a compact JWS."""
    header = canonical({"alg": key.algorithm, "typ": kind})
    signed = f"{base64url(header)}.{base64url(canonical(statement))}"
    return f"{signed}.{base64url(key.sign(signed.encode('ascii')))}"


def parse(kind: str, text: str, size_max: int = STATEMENT_CHARS_MAX) -> Signed:
    """The parts of a statement of this kind, of which nothing is checked but the form.

    Raises BadSignedStatement.
    """
    try:
        found = jws.parse(text, size_max)
    except jws.BadToken as error:
        raise _refused(kind, str(error)) from None
    if found.typ != kind:
        raise _refused(kind, f"its header names the type {jws.shown(found.typ)}")
    return found


def payload(text: str) -> bytes:
    """What is said in a statement that was parsed before."""
    return jws.decoded(text.split(".", 2)[1], "payload")


def check(kind: str, signed: Signed, key: PublicKey) -> None:
    """Raise BadSignedStatement unless the key has signed it."""
    try:
        jws.check_signature(signed, key.verification)
    except jws.BadToken:
        raise _refused(kind, f"it is not signed by the key of {key.eid}") from None


def content(kind: str, signed: Signed, type: type[_Statement]) -> _Statement:
    """What the statement says. Raises BadSignedStatement if that is not of the type."""
    try:
        strict_json.check(signed.payload)
        return msgspec.json.decode(signed.payload, type=type)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise _refused(kind, f"its content cannot be read: {error!s:.200}") from None


def verified(
    kind: str,
    text: str,
    type: type[_Statement],
    key: PublicKey,
    size_max: int = STATEMENT_CHARS_MAX,
) -> _Statement:
    """What the key has signed. Raises BadSignedStatement."""
    signed = parse(kind, text, size_max)
    check(kind, signed, key)
    return content(kind, signed, type)


def _refused(kind: str, why: str) -> BadSignedStatement:
    what = kind.removesuffix("+jws").removeprefix("tocsin-").replace("-", " ")
    return BadSignedStatement(f"the signed {what} cannot be used: {why}", remedy=_REMEDY)
