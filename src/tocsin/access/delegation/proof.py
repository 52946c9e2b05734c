"""Proof of possession: whoever presents a grant, or signs in as an entity, signs what a broker has
just drawn. A proof is for one purpose, one broker, one nonce and one grant."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

import msgspec

from tocsin.access.delegation import statements
from tocsin.access.delegation.keys import PrivateKey, PublicKey, base64url
from tocsin.access.sign_in.jws import BadToken, decoded
from tocsin.errors import BadSignedStatement, Busy, ProofRefused
from tocsin.event.instant import NS_PER_S

PROOF_KIND: Final = "tocsin-proof+jws"
SIGN_IN: Final = "sign-in"
PRESENT_GRANT: Final = "present-grant"
NONCE_LIFETIME_NS: Final = 120 * NS_PER_S
USED_MAX: Final = 20_000  # nonces that were used and have not ended: some 2 MiB
SECRET_BYTES: Final = 32
CHANCE_BYTES: Final = 16

_TIME_BYTES: Final = 8
_TAG_BYTES: Final = 16
_NONCE_BYTES: Final = _TIME_BYTES + CHANCE_BYTES + _TAG_BYTES
_REMEDY: Final = "Ask the broker for a nonce and sign it with the key of the entity."


class Proof(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is signed, under the short names of JWTs."""

    op: str  # the purpose
    aud: str  # the broker
    nonce: str
    ath: str = ""  # the hash of the last grant of a chain


class Nonces:
    """Nonces of one broker. Who asks for one costs no memory: it carries its time and a code that
    only this broker can make. Those that were used are remembered until they end."""

    def __init__(self, secret: bytes) -> None:
        assert len(secret) == SECRET_BYTES
        self._secret = secret
        self._used: dict[bytes, int] = {}  # and when each ends, the oldest use first

    def issue(self, chance: bytes, now_ns: int) -> str:
        assert len(chance) == CHANCE_BYTES
        content = now_ns.to_bytes(_TIME_BYTES) + chance
        return base64url(content + self._tag(content))

    def check(self, nonce: str, now_ns: int) -> None:
        """Raise ProofRefused for one that is not ours, has ended, or was used."""
        self._ends_ns(nonce, now_ns)

    def use(self, nonce: str, now_ns: int) -> None:
        """Take it, so that nobody can again. Raises ProofRefused, and Busy if too many were."""
        ends_ns = self._ends_ns(nonce, now_ns)
        while self._used and self._used[oldest := next(iter(self._used))] <= now_ns:
            del self._used[oldest]
        if len(self._used) >= USED_MAX:
            raise Busy(
                f"{USED_MAX} entities have signed in within {NONCE_LIFETIME_NS // NS_PER_S} s",
                remedy="Try again in two minutes.",
            )
        self._used[_bytes(nonce)] = ends_ns

    def _ends_ns(self, nonce: str, now_ns: int) -> int:
        content = _bytes(nonce)
        if len(content) != _NONCE_BYTES:
            raise _refused("its nonce is not of this broker")
        content, tag = content[:-_TAG_BYTES], content[-_TAG_BYTES:]
        if not hmac.compare_digest(tag, self._tag(content)):
            raise _refused("its nonce is not of this broker")
        issued_ns = int.from_bytes(content[:_TIME_BYTES])
        if not issued_ns <= now_ns < issued_ns + NONCE_LIFETIME_NS:
            raise _refused("its nonce is too old")
        if content + tag in self._used:
            raise _refused("its nonce was used already")
        return issued_ns + NONCE_LIFETIME_NS

    def _tag(self, content: bytes) -> bytes:
        return hmac.digest(self._secret, content, hashlib.sha256)[:_TAG_BYTES]


def prove(key: PrivateKey, purpose: str, audience: str, nonce: str, grant_hash: str = "") -> str:
    return statements.sign(PROOF_KIND, Proof(purpose, audience, nonce, grant_hash), key)


def check_proof(
    text: str,
    key: PublicKey,
    purpose: str,
    audience: str,
    nonces: Nonces,
    now_ns: int,
    grant_hash: str = "",
) -> None:
    """Raise ProofRefused unless the key has signed this, now and for the first time."""
    try:
        proof = statements.verified(PROOF_KIND, text, Proof, key)
    except BadSignedStatement as error:
        raise _refused(error.problem) from None
    if proof.op != purpose:
        raise _refused(f"it is for the purpose {proof.op[:40]!r}, not {purpose!r}")
    if proof.aud != audience:
        raise _refused(f"it is for {proof.aud[:80]!r}, and this is {audience!r}")
    if proof.ath != grant_hash:
        raise _refused("it is about another grant")
    nonces.use(proof.nonce, now_ns)


def _bytes(nonce: str) -> bytes:
    try:
        return decoded(nonce[: 2 * _NONCE_BYTES], "nonce")
    except (BadToken, ValueError):
        raise _refused("its nonce is not of this broker") from None


def _refused(why: str) -> ProofRefused:
    return ProofRefused(f"the proof of possession is refused: {why}", remedy=_REMEDY)
