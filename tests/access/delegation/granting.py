"""An owner, some holders, and what they sign for each other."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from tocsin.access.decision import Action
from tocsin.access.delegation import statements
from tocsin.access.delegation.chain import (
    GRANT_KIND,
    Terms,
    TopicOwner,
    first_link,
    next_link,
)
from tocsin.access.delegation.keys import PrivateKey, jwk

NS = 10**9
NOW_NS = 1_790_000_000 * NS
HOUR_NS = 3_600 * NS
UUID = "0123abcd-4567-870c-89ab-0123456789ab"
TOPIC = f"lab/{UUID}"
BOTH = frozenset({Action.PUBLISH, Action.SUBSCRIBE})


def key(seed: str) -> PrivateKey:
    secret = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:31]) + 1
    return PrivateKey(ec.derive_private_key(secret, ec.SECP256R1()))


OWNER, ALICE, BOB, CAROL, DAVE, MALLORY = map(key, ("o", "a", "b", "c", "d", "m"))
OWNED = TopicOwner(UUID, TOPIC, OWNER.public)


def id(seed: str) -> str:
    return hashlib.sha256(seed.encode()).hexdigest()[:32]


def terms(**changed: Any) -> Terms:
    """For an hour around now, for everything, to be passed on twice."""
    made: dict[str, Any] = {
        "operations": BOTH,
        "begins_ns": NOW_NS - HOUR_NS,
        "expires_ns": NOW_NS + HOUR_NS,
        "prefix": "",
        "depth": 2,
    }
    return Terms(**made | changed)


def granted(to: PrivateKey = ALICE, **changed: Any) -> tuple[str, ...]:
    """A chain of one link."""
    return (first_link(OWNED, OWNER, to.public, terms(**changed), id("1")),)


def passed_on(
    chain: Sequence[str], by: PrivateKey = ALICE, to: PrivateKey = BOB, **changed: Any
) -> tuple[str, ...]:
    return next_link(
        chain, OWNED, by, to.public, terms(**{"depth": 1} | changed), id(str(len(chain) + 1))
    )


def claims(to: PrivateKey, **changed: Any) -> dict[str, Any]:
    """What a link says, to be made wrong."""
    return {
        "top": UUID,
        "ops": ["publish", "subscribe"],
        "pfx": "",
        "nbf": (NOW_NS - HOUR_NS) // NS,
        "exp": (NOW_NS + HOUR_NS) // NS,
        "dep": 2,
        "jti": id("1"),
        "cnf": {"jwk": jwk(to.public)},
        "prf": "",
    } | changed


def forged(
    by: PrivateKey,
    to: PrivateKey,
    after: Sequence[str] = (),
    kind: str = GRANT_KIND,
    **changed: Any,
) -> tuple[str, ...]:
    """A chain whose last link is signed without asking whether it may be."""
    said = claims(to, prf=statements.digest(after[-1]) if after else "", jti=id(str(len(after))))
    if after:
        said["dep"] = 2 - len(after)
    return (*after, statements.sign(kind, said | changed, by))
