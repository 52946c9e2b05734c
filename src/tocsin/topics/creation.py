"""Creating a topic (paper 003, sections 5 and 8): what the creator asks, what the node makes of it,
and what the creator checks.

The node keeps nothing. What it draws follows from its secret and the request, so that a request
that comes twice has one answer: an answer that was lost is asked for again, and nothing is left
over.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tocsin.access.delegation import statements
from tocsin.access.sign_in.certificates import Authorities, Usage, verified
from tocsin.errors import BadCredential, CreationRefused, TocsinError
from tocsin.topics.advertisement import (
    REQUEST_KIND,
    SALT_BYTES,
    TOPIC_KIND,
    Advertisement,
    CreationRequest,
    Schema,
    SignedAdvertisement,
    TopicStatement,
    advertisement,
    check_request,
    digest,
    read_request,
    topic_uuid,
    verify,
)
from tocsin.topics.descriptors import Descriptors
from tocsin.topics.envelope import Sealed, decoded, open_sealed, seal
from tocsin.topics.identity import Identity, certified_entity
from tocsin.topics.introduction import KnownTdn, check_fresh
from tocsin.topics.private import (
    AnyAdvertisement,
    EncryptedAdvertisement,
    encrypt,
    open_key,
    read_signed,
    verify_private,
)
from tocsin.topics.synopsis import AnySynopsis, place
from tocsin.topics.trust import TrustedTdns

CREATE: Final = "topic-creation"  # of sealed messages
CREATED: Final = "topic-creation-answer"
REFUSAL_KIND: Final = "tocsin-topic-refusal+jws"
SECRET_BYTES: Final = 32
REASON_CHARS_MAX: Final = 500


class Wanted(msgspec.Struct, frozen=True):
    """What somebody wants a topic to be."""

    synopsis: AnySynopsis
    descriptors: Descriptors
    lifetime_ns: int
    schema: Schema | None = None
    is_private: bool = False


class Pending(msgspec.Struct, frozen=True):
    """What a creator keeps until it has the answer."""

    request: str
    nonce: str
    reply_key: X25519PrivateKey
    tdn: str


class CreationRules(msgspec.Struct, frozen=True):
    """Which creators a node serves, beside its policy."""

    authorities: Authorities
    accepts_self_signed: bool  # in open mode
    revoked: frozenset[str] = frozenset()  # keys of credentials
    lifetime_ns_max: int = 366 * 86_400 * 10**9


class _Message(msgspec.Struct, frozen=True):
    request: str
    certificate: bytes  # DER, of the creator
    previous: SignedAdvertisement | None = None


class _Refusal(msgspec.Struct, frozen=True):
    nonce: str
    reason: str
    remedy: str


class _Refused(msgspec.Struct, frozen=True, tag_field="form", tag="refused"):
    jws: str


_ANSWERS: Final[Any] = SignedAdvertisement | EncryptedAdvertisement | _Refused


# The creator asks.


def request_creation(
    identity: Identity,
    wanted: Wanted,
    tdn: KnownTdn,
    nonce: str,
    reply_key: X25519PrivateKey,
    now_ns: int,
    previous: tuple[SignedAdvertisement, Advertisement] | None = None,
) -> tuple[Sealed, Pending]:
    """The sealed request to a node, and what is needed for its answer. With `previous` it is for
    the next version of a topic that there is."""
    request = CreationRequest(
        nonce=nonce,
        tdn=tdn.tdn,
        requested_ns=now_ns,
        creator=identity.entity,
        reply_key=reply_key.public_key().public_bytes_raw(),
        lifetime_ns=wanted.lifetime_ns,
        synopsis=wanted.synopsis,
        descriptors=wanted.descriptors,
        schema=wanted.schema,
        version=1 if previous is None else previous[1].version + 1,
        previous="" if previous is None else previous[1].hash,
        is_private=wanted.is_private,
    )
    signed = statements.sign(REQUEST_KIND, request, identity.signing)
    message = _Message(signed, identity.certificate, None if previous is None else previous[0])
    sealed = seal(CREATE, msgspec.json.encode(message), tdn.sealing_key, tdn.tdn, nonce)
    return sealed, Pending(signed, nonce, reply_key, tdn.tdn)


# The node answers.


class Asked(msgspec.Struct, frozen=True):
    """A request that a node has opened, and that is signed by the key that it names."""

    request: CreationRequest
    signed: str
    certificate: bytes
    previous: SignedAdvertisement | None


def read_creation(
    sealed: Sealed, tdn: Identity, keys: list[X25519PrivateKey], now_ns: int
) -> Asked:
    """What somebody asks this node for. Raises CannotOpen, BadSignedStatement, BadCredential,
    BadAdvertisement or CreationRefused: then there is nobody to answer."""
    message = decoded(open_sealed(sealed, CREATE, keys, tdn.eid, sealed.nonce), _Message)
    request = read_request(message.request)
    if request.tdn != tdn.eid or request.nonce != sealed.nonce:
        raise _no("the request is for another node, or was sealed by somebody else")
    check_fresh(request.requested_ns, now_ns)
    return Asked(request, message.request, message.certificate, message.previous)


def create(
    asked: Asked,
    tdn: Identity,
    secret: bytes,
    rules: CreationRules,
    trusted: TrustedTdns,
    now_ns: int,
) -> AnyAdvertisement:
    """The advertisement of the topic. Raises CreationRefused, or what else is wrong with the
    creator, with what it wants or with the version before: that can be answered."""
    request = asked.request
    _check_creator(request, asked.certificate, rules, now_ns)
    check_request(request)
    if request.lifetime_ns > rules.lifetime_ns_max:
        raise _no(
            f"this node advertises topics for at most {rules.lifetime_ns_max // 86_400_000_000_000}"
            " days"
        )
    origin, salt, uuid = _origin(asked, tdn, secret, trusted, now_ns)
    expires_ns = request.requested_ns + request.lifetime_ns
    # Nobody believes the node after its certificate has ended.
    expires_ns = min(expires_ns, trusted.check(tdn.certificate, now_ns).expires_ns)
    synopsis = place(request.synopsis, uuid)
    statement = TopicStatement(
        uuid=uuid,
        salt=salt,
        origin=origin,
        tdn=tdn.eid,
        version=request.version,
        created_ns=request.requested_ns,
        expires_ns=expires_ns,
        synopsis=synopsis,
        request=asked.signed,
        digest=digest(asked.signed, synopsis),
    )
    jws = statements.sign(TOPIC_KIND, statement, tdn.signing)
    signed = SignedAdvertisement(jws, tdn.certificate, asked.certificate)
    if not request.is_private:
        return signed
    # Of what it encrypts, and not of the request: a request that comes twice may find the node with
    # a new certificate, and one key must never encrypt two texts.
    key = _drawn(secret, b"content key", msgspec.json.encode(signed))
    return encrypt(signed, advertisement(statement, request, jws), tdn, key)


def answer(asked: Asked, made: AnyAdvertisement | TocsinError, tdn: Identity) -> Sealed:
    """What was made, or why nothing was, sealed to the creator."""
    content: AnyAdvertisement | _Refused
    if isinstance(made, TocsinError):
        reason = f"{made.problem[:REASON_CHARS_MAX]} [{made.code}]"
        refusal = _Refusal(asked.request.nonce, reason, made.remedy[:REASON_CHARS_MAX])
        content = _Refused(statements.sign(REFUSAL_KIND, refusal, tdn.signing))
    else:
        content = made
    encoded = msgspec.json.encode(content)
    request = asked.request
    return seal(CREATED, encoded, request.reply_key, request.creator.eid, request.nonce)


# The creator checks.


def read_creation_answer(
    sealed: Sealed,
    pending: Pending,
    identity: Identity,
    tdn: KnownTdn,
    trusted: TrustedTdns,
    now_ns: int,
) -> tuple[AnyAdvertisement, Advertisement]:
    """The advertisement that was asked for, as it is to be advertised and as it can be read.

    Raises CreationRefused if the node refused; CannotOpen, BadAdvertisement and others if the
    answer does not hold.
    """
    keys = [pending.reply_key]
    content = open_sealed(sealed, CREATED, keys, identity.eid, pending.nonce)
    found: AnyAdvertisement | _Refused = decoded(content, _ANSWERS)
    match found:
        case _Refused(jws):
            key = trusted.check(tdn.certificate, now_ns).key
            refusal = statements.verified(REFUSAL_KIND, jws, _Refusal, key)
            if refusal.nonce != pending.nonce:
                raise _no("the node answered another request")
            raise CreationRefused(refusal.reason, remedy=refusal.remedy)
        case EncryptedAdvertisement():
            _signed, made = read_private(found, identity, trusted, now_ns)
        case SignedAdvertisement():
            made = verify(found, trusted, now_ns)
    if made.request != pending.request or made.tdn != pending.tdn:
        raise _no("the node advertised something else than what it was asked for")
    return found, made


def read_private(
    encrypted: EncryptedAdvertisement, identity: Identity, trusted: TrustedTdns, now_ns: int
) -> tuple[SignedAdvertisement, Advertisement]:
    """What an encrypted advertisement says, to its creator. Raises CannotOpen to others."""
    topic = verify_private(encrypted, trusted, now_ns)
    key = open_key(topic.key, topic.uuid, identity.eid, identity.sealing)
    return read_signed(topic, key, trusted, now_ns)


def _check_creator(
    request: CreationRequest, certificate: bytes, rules: CreationRules, now_ns: int
) -> None:
    """Whether the creator is who it says: an entity of the site, with the name of its certificate.

    Raises CreationRefused or BadCredential.
    """
    entity = certified_entity(certificate, request.creator.sealing_key, now_ns)
    if entity.spki != request.creator.spki:
        raise _no("the certificate that came with it is of another key than the creator's")
    if entity != request.creator:
        raise _no(
            f"the creator says that it is {request.creator.name[:40]!r} of "
            f"{request.creator.institution[:40]!r}, and its certificate says {entity.name!r} of "
            f"{entity.institution!r}"
        )
    try:
        known = verified(certificate, rules.authorities, now_ns, Usage.CLIENT)
    except BadCredential:
        if rules.accepts_self_signed:
            return
        raise
    if known.credential.key in rules.revoked:
        raise _no("the certificate of the creator is revoked")


def _origin(
    asked: Asked, tdn: Identity, secret: bytes, trusted: TrustedTdns, now_ns: int
) -> tuple[str, bytes, str]:
    """Who made the UUID and by which salt, and the UUID: those of the version before, if any."""
    request = asked.request
    if not request.previous:
        salt = _drawn(secret, b"salt", asked.signed.encode("ascii"))
        return tdn.eid, salt, topic_uuid(tdn.eid, request.creator.key.thumbprint, salt)
    if asked.previous is None:
        raise _no("the version before did not come with the request")
    before = verify(asked.previous, trusted, now_ns)
    if before.hash != request.previous or before.version + 1 != request.version:
        raise _no("the version that came with the request is not the one before")
    if before.creator.spki != request.creator.spki:
        raise _no(f"the topic {before.uuid} is that of {before.creator.eid}")
    if place(request.synopsis, before.uuid).topic != before.topic:
        raise _no(f"a new version stays on its topic, {before.topic}")
    return before.origin, before.salt, before.uuid


def _drawn(secret: bytes, what: bytes, of: bytes) -> bytes:
    """What nobody else can know, and always the same for one request."""
    assert len(secret) == SECRET_BYTES == SALT_BYTES
    return hmac.digest(secret, what + b"\0" + of, hashlib.sha256)


def _no(why: str) -> CreationRefused:
    return CreationRefused(why, remedy="Change the request, or ask another topic discovery node.")
