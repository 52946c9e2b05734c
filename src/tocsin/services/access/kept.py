"""How a token is kept: its rights as they are written."""

from __future__ import annotations

import msgspec

from tocsin.access.policy.rights import read_right, write_right
from tocsin.access.policy.tokens import Token


class KeptToken(msgspec.Struct, frozen=True, omit_defaults=True):
    """A token in the state of services."""

    id: str
    principal: str
    hash: bytes
    created_ns: int
    expires_ns: int | None = None
    groups: tuple[str, ...] = ()
    rights: list[dict[str, object]] | None = None
    is_bounded: bool = False
    granted_by: str = ""
    made_with: str = ""
    revoked_ns: int | None = None


_decode = msgspec.json.Decoder(KeptToken).decode


def write_token(token: Token) -> bytes:
    rights = None if token.rights is None else [write_right(each) for each in token.rights]
    kept = KeptToken(
        id=token.id,
        principal=token.principal,
        hash=token.hash,
        created_ns=token.created_ns,
        expires_ns=token.expires_ns,
        groups=tuple(sorted(token.groups)),
        rights=rights,
        is_bounded=token.is_bounded,
        granted_by=token.granted_by,
        made_with=token.made_with,
        revoked_ns=token.revoked_ns,
    )
    return msgspec.json.encode(kept)


def read_token(value: bytes) -> Token:
    kept = _decode(value)
    rights = None if kept.rights is None else tuple(read_right(each, 0) for each in kept.rights)
    return Token(
        id=kept.id,
        principal=kept.principal,
        hash=kept.hash,
        created_ns=kept.created_ns,
        expires_ns=kept.expires_ns,
        groups=frozenset(kept.groups),
        rights=rights,
        is_bounded=kept.is_bounded,
        granted_by=kept.granted_by,
        made_with=kept.made_with,
        revoked_ns=kept.revoked_ns,
    )
