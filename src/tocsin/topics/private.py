"""Advertisements that are encrypted (paper 003, section 10 d): everybody may keep one and see whose
it is, and those whom the creator gave the key can read it."""

from __future__ import annotations

from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tocsin.access.delegation import statements
from tocsin.access.delegation.protected import is_topic_uuid
from tocsin.errors import BadAdvertisement, CannotOpen
from tocsin.topics.advertisement import (
    VERSION_MAX,
    Advertisement,
    SignedAdvertisement,
    verify,
)
from tocsin.topics.envelope import Sealed, decoded, is_eid, open_sealed, seal
from tocsin.topics.identity import Entity, Identity
from tocsin.topics.trust import TrustedTdns

PRIVATE_KIND: Final = "tocsin-private-topic+jws"
PRIVATE_CHARS_MAX: Final = 192 << 10  # base64 twice over an advertisement of the largest size
KEY_BYTES: Final = 32
CONTENT_KEY: Final = "content-key"  # of the sealed message

_NONCE: Final = bytes(12)  # each key encrypts one text


class PrivateStatement(msgspec.Struct, frozen=True, kw_only=True):
    """What anybody may know of a private topic, signed by its node."""

    uuid: str
    version: int
    tdn: str
    creator: str  # EID
    created_ns: int
    expires_ns: int
    ciphertext: bytes  # of the advertisement, AES-256-GCM
    key: Sealed  # the key of it, for the creator


class EncryptedAdvertisement(msgspec.Struct, frozen=True, tag_field="form", tag="encrypted"):
    """As it travels."""

    jws: str
    tdn_certificate: bytes  # DER


AnyAdvertisement = SignedAdvertisement | EncryptedAdvertisement


class PrivateTopic(msgspec.Struct, frozen=True, kw_only=True):
    """An encrypted advertisement that was checked, as far as that can be without its key."""

    uuid: str
    version: int
    tdn: str
    creator: str
    created_ns: int
    expires_ns: int
    ciphertext: bytes
    key: Sealed
    hash: str


def encrypt(
    signed: SignedAdvertisement, advertised: Advertisement, tdn: Identity, key: bytes
) -> EncryptedAdvertisement:
    """By the node that made it. The key must encrypt nothing else."""
    assert len(key) == KEY_BYTES
    about = _about(advertised.uuid, advertised.version, tdn.eid, advertised.creator.eid)
    statement = PrivateStatement(
        uuid=advertised.uuid,
        version=advertised.version,
        tdn=tdn.eid,
        creator=advertised.creator.eid,
        created_ns=advertised.created_ns,
        expires_ns=advertised.expires_ns,
        ciphertext=AESGCM(key).encrypt(_NONCE, msgspec.json.encode(signed), about),
        key=share_key(key, advertised.uuid, advertised.creator),
    )
    jws = statements.sign(PRIVATE_KIND, statement, tdn.signing)
    return EncryptedAdvertisement(jws, tdn.certificate)


def verify_private(
    encrypted: EncryptedAdvertisement, trusted: TrustedTdns, now_ns: int
) -> PrivateTopic:
    """Raises BadAdvertisement or BadSignedStatement."""
    key = trusted.check(encrypted.tdn_certificate, now_ns).key
    found = statements.verified(
        PRIVATE_KIND, encrypted.jws, PrivateStatement, key, PRIVATE_CHARS_MAX
    )
    if found.tdn != key.eid:
        raise _refused(f"it names the node {found.tdn[:40]!r} and is signed by {key.eid}")
    if not is_topic_uuid(found.uuid) or not is_eid(found.creator):
        raise _refused("its UUID or creator is malformed")
    if not 1 <= found.version <= VERSION_MAX or not 0 <= found.created_ns < found.expires_ns:
        raise _refused("its version or times are impossible")
    return PrivateTopic(
        uuid=found.uuid,
        version=found.version,
        tdn=found.tdn,
        creator=found.creator,
        created_ns=found.created_ns,
        expires_ns=found.expires_ns,
        ciphertext=found.ciphertext,
        key=found.key,
        hash=statements.digest(encrypted.jws),
    )


def share_key(key: bytes, uuid: str, to: Entity) -> Sealed:
    """The key of a private topic for an entity: the owner may give it to whom it wants."""
    return seal(CONTENT_KEY, key, to.sealing_key, to.eid, _key_nonce(uuid))


def open_key(sealed: Sealed, uuid: str, eid: str, sealing: X25519PrivateKey) -> bytes:
    """Raises CannotOpen."""
    key = open_sealed(sealed, CONTENT_KEY, [sealing], eid, _key_nonce(uuid))
    if len(key) != KEY_BYTES:
        raise CannotOpen("what was sealed is not a key", remedy="Ask the owner for it again.")
    return key


def decrypt(topic: PrivateTopic, key: bytes) -> SignedAdvertisement:
    """The advertisement inside, of which nothing is checked yet. Raises CannotOpen."""
    about = _about(topic.uuid, topic.version, topic.tdn, topic.creator)
    try:
        content = AESGCM(key).decrypt(_NONCE, topic.ciphertext, about)
    except (InvalidTag, ValueError):
        raise CannotOpen(
            f"the advertisement of the private topic {topic.uuid} has another key",
            remedy=f"Ask its creator, {topic.creator}, for the key of this version.",
        ) from None
    return decoded(content, SignedAdvertisement)


def read_signed(
    topic: PrivateTopic, key: bytes, trusted: TrustedTdns, now_ns: int
) -> tuple[SignedAdvertisement, Advertisement]:
    """What is inside, for whoever has the key. Raises CannotOpen, BadAdvertisement and whatever
    else an advertisement may be refused by."""
    signed = decrypt(topic, key)
    inside = verify(signed, trusted, now_ns)
    says = (topic.uuid, topic.version, topic.tdn, topic.creator, topic.expires_ns)
    has = (inside.uuid, inside.version, inside.tdn, inside.creator.eid, inside.expires_ns)
    if says != has:
        raise _refused("it is of another topic than the one that it says")
    return signed, inside


def _about(uuid: str, version: int, tdn: str, creator: str) -> bytes:
    return f"{uuid} {version} {tdn} {creator}".encode("ascii")


def _key_nonce(uuid: str) -> str:
    return uuid.replace("-", "")


def _refused(why: str) -> BadAdvertisement:
    return BadAdvertisement(
        f"an encrypted advertisement does not hold: {why}",
        remedy="Do not use it; ask its creator for one that does.",
    )
