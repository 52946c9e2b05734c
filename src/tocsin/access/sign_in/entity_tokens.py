"""Tokens of entities: who has proved to have a key is known by it, for a while.

Nothing is kept of such a token: it carries its entity and its end, and a code that only this broker
makes. So nobody fills a table by signing in often. Its holder may do what owners of topics have
granted to the key, and what rules say of the principal `entity-` with the id of the key.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import Final

from tocsin.access.session import Credential, CredentialKind, Principal, entity_principal
from tocsin.errors import NotSignedIn
from tocsin.event.instant import NS_PER_S

PREFIX: Final = "tce"
LIFETIME_NS: Final = 3_600 * NS_PER_S
SECRET_BYTES: Final = 32

_TEXT: Final = re.compile(r"(tce_([0-9a-f]{40})_([0-9a-f]{16}))_([A-Za-z0-9_-]{43})")


class EntityTokens:
    """Those of one broker, until it is started again: its secret is another one then."""

    kind = CredentialKind.ENTITY

    def __init__(self, secret: bytes) -> None:
        assert len(secret) == SECRET_BYTES
        self._secret = secret

    def issue(self, entity_id: str, now_ns: int) -> tuple[str, int]:
        """The token of who has proved to have the key, and when it ends."""
        expires_ns = now_ns + LIFETIME_NS
        said = f"{PREFIX}_{entity_id}_{expires_ns:016x}"
        return f"{said}_{self._code(said)}", expires_ns

    def looks_like(self, text: str) -> bool:
        return text.startswith(f"{PREFIX}_")

    def sign_in(self, text: str, now_ns: int) -> tuple[Principal, Credential]:
        """Raises NotSignedIn, whose __cause__ says why: that is for the audit log."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise _refused("it has not the form of an entity's token")
        if not hmac.compare_digest(found[4], self._code(found[1])):
            raise _refused("it is not of this broker, or of before its last start")
        entity_id, expires_ns = found[2], int(found[3], 16)
        if now_ns >= expires_ns:
            raise _refused("it has expired")
        credential = Credential(
            CredentialKind.ENTITY, f"{CredentialKind.ENTITY}/{entity_id}", expires_ns, entity_id
        )
        return Principal(entity_principal(entity_id)), credential

    def _code(self, said: str) -> str:
        code = hmac.digest(self._secret, said.encode("ascii"), hashlib.sha256)
        return base64.urlsafe_b64encode(code).rstrip(b"=").decode("ascii")


def _refused(why: str) -> NotSignedIn:
    error = NotSignedIn(
        "the entity's token is not valid",
        remedy="Sign in again with the key of the entity: POST /topics/sign-in.",
    )
    error.__cause__ = ValueError(why)
    return error
