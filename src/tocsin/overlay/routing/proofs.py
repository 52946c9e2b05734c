"""Proofs: a broker shows that it is the one that was a neighbour before.

At the first contact each side gives the other a token, random and kept on both disks. From then on
whoever claims the id has to prove that it has the token: by a code over this connection's nonces,
so what was heard on one connection is worth nothing on another, and a token is sent once only.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from tocsin.errors import NeighbourNotProved


@dataclass(frozen=True, slots=True)
class End:
    """One end of a connection: its broker, and the nonce in its Hello."""

    broker: str
    nonce: str


def proof_of(token: str, prover: End, verifier: End, *, is_dialler: bool) -> str:
    """What the prover says in its Welcome; empty without a token.

    It names who dialled whom: who accepts a connection cannot use what it is told there to dial the
    verifier as the prover.
    """
    if not token:
        return ""
    ends = (prover, verifier) if is_dialler else (verifier, prover)
    words = [
        "tocsin link",
        prover.broker,
        *(word for end in ends for word in (end.broker, end.nonce)),
    ]
    return hmac.new(token.encode(), "\n".join(words).encode(), "sha256").hexdigest()


def is_proved(proof: str, token: str, prover: End, verifier: End, *, is_dialler: bool) -> bool:
    return hmac.compare_digest(
        proof.encode(), proof_of(token, prover, verifier, is_dialler=is_dialler).encode()
    )


def not_proved(neighbour: str, broker: str) -> NeighbourNotProved:
    return NeighbourNotProved(
        f"{neighbour} was a neighbour of {broker} before, and who connects now has not proved to "
        "be the same broker",
        remedy=f"If it is, and has lost its data: `tocsin overlay forget {neighbour}` at {broker}.",
    )
