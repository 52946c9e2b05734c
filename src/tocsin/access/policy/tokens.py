"""Tokens: secrets that sign somebody in. Of a secret only its hash is kept.

The text of a token is `tcs_ID_SECRET`. The id finds it; the secret, of 32 random bytes, is compared
by its hash, in constant time. A slow hash would protect secrets that can be guessed; these cannot.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Set
from typing import Final

import msgspec

from tocsin.access.policy.rights import Right
from tocsin.event.subscription import Owner

PREFIX: Final = "tcs"
SECRET_BYTES: Final = 32
_TEXT: Final = re.compile(r"tcs_([0-9a-f]{24})_([A-Za-z0-9_-]{43})")


class Token(msgspec.Struct, frozen=True):
    """A token as it is kept."""

    id: str
    principal: str
    hash: bytes  # SHA-256 of the secret
    created_ns: int
    expires_ns: int | None = None
    groups: frozenset[str] = frozenset()
    rights: tuple[Right, ...] | None = None  # None: what the rules give to its principal
    is_bounded: bool = False  # its rights hold only where the rules give them to its principal too
    granted_by: str = ""
    made_with: str = ""  # by its principal: the key of the credential, with which it is over
    revoked_ns: int | None = None
    entity_id: str = ""  # of the key by which its principal signed in for it

    @property
    def key(self) -> str:
        return f"token/{self.id}"


def token_text(token_id: str, secret: str) -> str:
    """What its holder sends."""
    return f"{PREFIX}_{token_id}_{secret}"


def hash_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def parse_token(text: str) -> tuple[str, str] | None:
    """The id and the secret of a token's text; None for any other text."""
    found = _TEXT.fullmatch(text)
    return None if found is None else (found[1], found[2])


def is_secret(token: Token, secret: str) -> bool:
    return hmac.compare_digest(token.hash, hash_of(secret))


def reaches(tokens: Mapping[str, Token], credential: str, owner: Owner) -> bool:
    """Whether what was made in a principal's name is in reach of this credential of the principal.
    It may hold, or be sent, whatever it was made with had a right to. So a token with rights of its
    own reaches what one with the same rights made, for it is given away; and nothing else reaches
    what was made with rights that an administrator gave to a token."""
    if owner.credential == credential:
        return True
    mine, makers = _scoped(tokens, credential), _scoped(tokens, owner.credential)
    if mine is None:
        return makers is None or makers.is_bounded
    return (
        makers is not None
        and makers.principal == mine.principal
        and (makers.is_bounded or not mine.is_bounded)
        and _scope(makers) == _scope(mine)
    )


def _scoped(tokens: Mapping[str, Token], key: str) -> Token | None:
    """The token, if it has rights of its own."""
    token = _of_key(tokens, key)
    return token if token is not None and token.rights is not None else None


def is_over(tokens: Mapping[str, Token], revoked: Set[str], credential: str) -> bool:
    """Whether a credential is revoked or unknown, or was made with one that is. Its time is
    another question."""
    while token := _of_key(tokens, credential):
        if token.revoked_ns is not None:
            return True
        if not token.made_with:
            return False
        credential = token.made_with
    return credential.startswith("token/") or credential in revoked


def count_makers(tokens: Mapping[str, Token], credential: str) -> int:
    """How many tokens there are from this one to what the first of them was made with."""
    count = 0
    while token := _of_key(tokens, credential):
        credential, count = token.made_with, count + 1
    return count


def _of_key(tokens: Mapping[str, Token], key: str) -> Token | None:
    kind, _, token_id = key.partition("/")
    return tokens.get(token_id) if kind == "token" else None


def _scope(token: Token) -> list[Right]:
    """Its rights, whenever they end."""
    return [msgspec.structs.replace(each, expires_ns=None) for each in token.rights or ()]
