"""A topic discovery node, creators, and the steps between them, in memory and at one time."""

from __future__ import annotations

import hashlib
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tocsin.access.delegation import statements
from tocsin.access.sign_in.certificates import Authorities
from tocsin.topics.advertisement import (
    TOPIC_KIND,
    Advertisement,
    SignedAdvertisement,
    TopicStatement,
)
from tocsin.topics.creation import (
    Asked,
    CreationRules,
    Pending,
    Wanted,
    answer,
    create,
    read_creation,
    read_creation_answer,
    request_creation,
)
from tocsin.topics.descriptors import Descriptors
from tocsin.topics.identity import ENTROPY_BYTES, Identity, new_identity
from tocsin.topics.introduction import KnownTdn
from tocsin.topics.private import AnyAdvertisement
from tocsin.topics.synopsis import StringSynopsis
from tocsin.topics.trust import TrustedTdns

NS = 10**9
NOW_NS = 1_790_000_000 * NS
DAY_NS = 86_400 * NS


def chance(seed: str, size: int = 32) -> bytes:
    return hashlib.shake_256(seed.encode()).digest(size)


def nonce(seed: str) -> str:
    return chance(seed, 16).hex()


def reply_key(seed: str) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(chance(seed))


def identity(name: str, **how: Any) -> Identity:
    return new_identity(chance(name, ENTROPY_BYTES), NOW_NS, name=name, **how)


TDN = identity("tdn-1", is_tdn=True)
OTHER_TDN = identity("tdn-2", is_tdn=True)
ALICE, MALLORY = identity("alice", institution="CGL"), identity("mallory")
SECRET = chance("secret of tdn-1")
SEALING = reply_key("sealing of tdn-1")
TRUSTED = TrustedTdns(Authorities(), frozenset({TDN.eid, OTHER_TDN.eid}))
OPEN = CreationRules(Authorities(), accepts_self_signed=True)


def known(tdn: Identity = TDN) -> KnownTdn:
    """As an entity knows it that has asked for it."""
    public = SEALING.public_key().public_bytes_raw()
    return KnownTdn(tdn.eid, public, NOW_NS + DAY_NS, tdn.entity.name, "", tdn.certificate)


def wanted(**changed: Any) -> Wanted:
    made: dict[str, Any] = {
        "synopsis": StringSynopsis(path="lab/radar"),
        "descriptors": Descriptors(
            paths=("weather/radar",), text="Radar of the lab", keywords=("radar",),
            properties={"band": "X", "height_m": 12.5}, xml="<radar><band>X</band></radar>",
        ),
        "lifetime_ns": 30 * DAY_NS,
    }  # fmt: skip
    return Wanted(**made | changed)


def asked(
    creator: Identity = ALICE,
    tdn: Identity = TDN,
    previous: tuple[SignedAdvertisement, Advertisement] | None = None,
    seed: str = "1",
    **changed: Any,
) -> tuple[Asked, Pending]:
    """A request as the node has read it."""
    sealed, pending = request_creation(
        creator, wanted(**changed), known(tdn), nonce(seed), reply_key(seed), NOW_NS, previous
    )
    return read_creation(sealed, tdn, [SEALING], NOW_NS), pending


def created(
    creator: Identity = ALICE,
    tdn: Identity = TDN,
    secret: bytes = SECRET,
    trusted: TrustedTdns = TRUSTED,
    rules: CreationRules = OPEN,
    **how: Any,
) -> tuple[AnyAdvertisement, Advertisement]:
    """An advertisement that its creator has accepted."""
    request, pending = asked(creator, tdn, **how)
    made = create(request, tdn, secret, rules, trusted, NOW_NS)
    sealed = answer(request, made, tdn)
    return read_creation_answer(sealed, pending, creator, known(tdn), trusted, NOW_NS)


def opened(**how: Any) -> tuple[SignedAdvertisement, Advertisement]:
    """One that is not encrypted."""
    signed, made = created(**how)
    assert isinstance(signed, SignedAdvertisement)
    return signed, made


def said(signed: SignedAdvertisement) -> TopicStatement:
    """What a node signed, without checking it."""
    parts = statements.parse(TOPIC_KIND, signed.jws, 64 << 10)
    return statements.content(TOPIC_KIND, parts, TopicStatement)


def lied(by: Identity, statement: TopicStatement, creator: Identity = ALICE) -> SignedAdvertisement:
    """An advertisement as a node signs it that does not keep to the rules."""
    jws = statements.sign(TOPIC_KIND, statement, by.signing)
    return SignedAdvertisement(jws, by.certificate, creator.certificate)
