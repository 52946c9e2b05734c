"""Advertisements of topics: what a topic discovery node signs, and how anybody checks it.

The UUID of a topic follows from the key of its creator, so that not even a node that lies can make
an advertisement of an existing topic for somebody else. The creator's own request is inside, so
that it cannot make up one that the creator never asked for.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from tocsin.access.delegation import statements
from tocsin.access.delegation.chain import TopicOwner
from tocsin.access.delegation.keys import read_spki
from tocsin.access.delegation.protected import MARK
from tocsin.errors import AdvertisementEnded, BadAdvertisement, TocsinError
from tocsin.event.instant import LATEST_NS
from tocsin.topics.descriptors import Descriptors, check_descriptors
from tocsin.topics.envelope import is_eid, is_nonce
from tocsin.topics.identity import Entity, certified_key
from tocsin.topics.synopsis import AnySynopsis, check_placeholder, place
from tocsin.topics.trust import TrustedTdns

REQUEST_KIND: Final = "tocsin-topic-request+jws"
TOPIC_KIND: Final = "tocsin-topic+jws"
REQUEST_CHARS_MAX: Final = 40 << 10
TOPIC_CHARS_MAX: Final = 64 << 10
SALT_BYTES: Final = 32
VERSION_MAX: Final = 1_000_000
SCHEMA_BYTES_MAX: Final = 8 << 10
LIFETIME_NS_MAX: Final = 10 * 365 * 86_400 * 10**9
CLOCK_SKEW_NS: Final = 300 * 10**9  # clocks of a site differ


class Schema(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the payloads of the topic's events have to be."""

    kind: str  # of the language, as in json-schema
    text: str
    is_enforced: bool = False


class CreationRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a creator asks a topic discovery node for, and signs."""

    nonce: str  # drawn for this request: 32 digits of base 16
    tdn: str  # the node that is asked, and no other may answer
    requested_ns: int
    creator: Entity
    reply_key: bytes  # X25519, made for this request: what the answer is sealed to
    lifetime_ns: int
    synopsis: AnySynopsis  # without a UUID
    descriptors: Descriptors = Descriptors()
    schema: Schema | None = None
    version: int = 1
    previous: str = ""  # digest of the advertisement of the version before
    is_private: bool = False  # the advertisement is to be encrypted to its creator


class TopicStatement(msgspec.Struct, frozen=True, kw_only=True):
    """What the node adds to the request, and signs with it."""

    uuid: str
    salt: bytes
    origin: str  # the node that drew the salt
    tdn: str  # the one that signs
    version: int
    created_ns: int
    expires_ns: int
    synopsis: AnySynopsis
    request: str  # the creator's own, signed
    digest: str


class SignedAdvertisement(msgspec.Struct, frozen=True, tag_field="form", tag="open"):
    """An advertisement as it travels. The certificates are believed only as far as they lead to
    what the receiver trusts."""

    jws: str
    tdn_certificate: bytes  # DER
    creator_certificate: bytes  # DER


class Advertisement(msgspec.Struct, frozen=True, kw_only=True):
    """An advertisement that was checked."""

    uuid: str
    version: int
    salt: bytes
    origin: str
    tdn: str
    creator: Entity
    synopsis: AnySynopsis
    descriptors: Descriptors
    schema: Schema | None
    created_ns: int
    expires_ns: int
    digest: str  # of the request and the synopsis
    previous: str
    request: str  # the creator's own, signed
    hash: str  # of the JWS: by which later versions name it

    @property
    def topic(self) -> str:
        return self.synopsis.topic

    @property
    def owner(self) -> TopicOwner:
        """What chains of grants start from."""
        return TopicOwner(self.uuid, self.topic, self.creator.key)


def topic_uuid(tdn: str, creator_thumbprint: bytes, salt: bytes) -> str:
    """The UUID (version 8, RFC 9562) of a topic: 110 bits of a hash of who made it for whom."""
    assert is_eid(tdn)
    assert len(creator_thumbprint) == 32
    assert len(salt) == SALT_BYTES
    parts = (b"tocsin topic", tdn.encode("ascii"), creator_thumbprint, salt)
    free = int.from_bytes(hashlib.sha256(b"\0".join(parts)).digest()) >> 146
    first, last = f"{free >> 62:012x}", f"{free & (1 << 62) - 1 | 1 << 63:016x}"
    return f"{first[:8]}-{first[8:]}{MARK}{last[:4]}-{last[4:]}"


def digest(request: str, synopsis: AnySynopsis) -> str:
    """Of the request and the synopsis with its UUID (paper 003, section 8, step 5)."""
    return statements.digest(statements.payload(request) + b"\0" + statements.canonical(synopsis))


def read_request(text: str) -> CreationRequest:
    """A request that its creator has signed, and to which an answer can be sealed; whether a node
    may do what it asks for, `check_request` says. Raises BadSignedStatement, BadCredential or
    BadAdvertisement."""
    signed = statements.parse(REQUEST_KIND, text, REQUEST_CHARS_MAX)
    request = statements.content(REQUEST_KIND, signed, CreationRequest)
    statements.check(REQUEST_KIND, signed, request.creator.key)
    if not is_nonce(request.nonce) or not is_eid(request.tdn):
        raise _refused("the nonce or the id of the node in the request is malformed")
    if len(request.reply_key) != 32 or len(request.creator.sealing_key) != 32:
        raise _refused("a sealing key in the request does not have 32 bytes")
    return request


def check_request(request: CreationRequest) -> None:
    """Raise BadAdvertisement, BadDescriptors or BadSynopsis if nothing can be made of it."""
    if not 0 < request.lifetime_ns <= LIFETIME_NS_MAX:
        raise _refused("the lifetime in the request is zero, negative or over ten years")
    if not 0 <= request.requested_ns <= LATEST_NS - LIFETIME_NS_MAX:
        raise _refused("the time of the request is impossible")
    if not 1 <= request.version <= VERSION_MAX or (request.version > 1) != bool(request.previous):
        raise _refused("a first version has no earlier one, and every later version names one")
    if request.schema is not None and len(request.schema.text.encode()) > SCHEMA_BYTES_MAX:
        raise _refused(f"the schema has more than {SCHEMA_BYTES_MAX} bytes")
    check_descriptors(request.descriptors)
    check_placeholder(request.synopsis)


def verify(signed: SignedAdvertisement, trusted: TrustedTdns, now_ns: int) -> Advertisement:
    """The advertisement, if everything in it holds; whether it is still valid, `check_valid` says.

    Raises BadAdvertisement, BadSignedStatement, BadCredential, BadSynopsis or BadDescriptors.
    """
    tdn = trusted.check(signed.tdn_certificate, now_ns)
    found = statements.verified(TOPIC_KIND, signed.jws, TopicStatement, tdn.key, TOPIC_CHARS_MAX)
    if found.tdn != tdn.key.eid:
        raise _refused(f"it names the node {found.tdn[:64]!r} and is signed by {tdn.key.eid}")
    request = read_request(found.request)
    check_request(request)
    if certified_key(signed.creator_certificate).spki != request.creator.spki:
        raise _refused("the certificate that came with it is not that of the creator's key")
    _check_made(found, request)
    return advertisement(found, request, signed.jws)


def advertisement(found: TopicStatement, request: CreationRequest, jws: str) -> Advertisement:
    """Of parts that were checked."""
    return Advertisement(
        uuid=found.uuid,
        version=found.version,
        salt=found.salt,
        origin=found.origin,
        tdn=found.tdn,
        creator=request.creator,
        synopsis=found.synopsis,
        descriptors=request.descriptors,
        schema=request.schema,
        created_ns=found.created_ns,
        expires_ns=found.expires_ns,
        digest=found.digest,
        previous=request.previous,
        request=found.request,
        hash=statements.digest(jws),
    )


def check_valid(advertisement: Advertisement, now_ns: int) -> None:
    """Raise AdvertisementEnded if it has expired."""
    if now_ns >= advertisement.expires_ns:
        raise AdvertisementEnded(
            f"the advertisement of the topic {advertisement.uuid} has expired",
            remedy=f"Its creator {advertisement.creator.eid} can advertise a new version.",
        )


def _check_made(found: TopicStatement, request: CreationRequest) -> None:
    """Whether the node made of the request what it may."""
    if request.tdn != found.tdn:
        raise _refused(f"the creator asked the node {request.tdn}, and another one answered")
    if not is_eid(found.origin) or len(found.salt) != SALT_BYTES:
        raise _refused("its salt or the id of its first node is malformed")
    if found.version == 1 and found.origin != found.tdn:
        raise _refused("a first version has its UUID from the node that signs it")
    creator = read_spki(request.creator.spki)
    if found.uuid != topic_uuid(found.origin, creator.thumbprint, found.salt):
        raise _refused(f"the UUID {found.uuid[:40]!r} was not made for the creator {creator.eid}")
    if found.version != request.version:
        raise _refused(f"the creator asked for version {request.version}, not {found.version}")
    placed = statements.canonical(place(request.synopsis, found.uuid))
    if statements.canonical(found.synopsis) != placed:
        raise _refused("its synopsis is not the one that the creator asked for, with the UUID")
    if found.digest != digest(found.request, found.synopsis):
        raise _refused("its digest is not that of the request and the synopsis")
    if not 0 <= found.created_ns < found.expires_ns:
        raise _refused("it ends before it begins")
    if found.expires_ns > request.requested_ns + request.lifetime_ns + CLOCK_SKEW_NS:
        raise _refused("it ends later than the creator asked for")


def _refused(why: str) -> TocsinError:
    return BadAdvertisement(
        f"an advertisement does not hold: {why}",
        remedy="Do not use the topic; ask its creator for an advertisement that does.",
    )
