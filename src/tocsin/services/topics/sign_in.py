"""EntitySignIn: who proves to have a key gets a token for a while, by which the broker knows it.

A client that shows its certificate on its connections needs none of this.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from tocsin.access.delegation.keys import read_spki
from tocsin.access.delegation.proof import CHANCE_BYTES, SIGN_IN, Nonces, check_proof
from tocsin.access.sign_in.entity_tokens import EntityTokens


class Challenge(msgspec.Struct, frozen=True):
    """What a proof has to name."""

    nonce: str
    audience: str


class EntityProof(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The key, as SubjectPublicKeyInfo in DER, and a proof of it."""

    key: bytes
    proof: str


class EntityToken(msgspec.Struct, frozen=True):
    """What signs the entity in, until `expires_ns`."""

    entity_id: str
    token: str
    expires_ns: int


class EntitySignIn:
    """At one broker, whose name in proofs is `audience`."""

    def __init__(
        self,
        tokens: EntityTokens,
        audience: str,
        secret: bytes,
        new_id: Callable[[], str],
        now_ns: Callable[[], int],
    ) -> None:
        self.audience = audience
        self._tokens = tokens
        self._nonces = Nonces(secret)
        self._new_id = new_id
        self._now_ns = now_ns

    def challenge(self) -> Challenge:
        """Nothing is kept for who asks."""
        chance = hashlib.sha256(self._new_id().encode()).digest()[:CHANCE_BYTES]
        return Challenge(self._nonces.issue(chance, self._now_ns()), self.audience)

    def sign_in(self, shown: EntityProof) -> EntityToken:
        """Raises ProofRefused, or BadCredential for a key that cannot be used."""
        key, now_ns = read_spki(shown.key), self._now_ns()
        check_proof(shown.proof, key, SIGN_IN, self.audience, self._nonces, now_ns)
        token, expires_ns = self._tokens.issue(key.eid, now_ns)
        return EntityToken(key.eid, token, expires_ns)
