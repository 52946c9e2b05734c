"""Who creates topics and answers for them: an entity has a key that signs, a certificate of that
key, and a key that messages to it are sealed to."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tocsin.access.delegation.keys import PrivateKey, PublicKey, read_spki
from tocsin.access.sign_in.certificates import (
    TDN_USAGE,
    entity_id,
    readable,
)
from tocsin.errors import BadCredential
from tocsin.event.instant import NS_PER_S

NAME_CHARS_MAX: Final = 64  # what X.509 lets a common name have
SEALING_KEY_BYTES: Final = 32  # of X25519
ENTROPY_BYTES: Final = 96
SERIAL_BITS: Final = 159  # RFC 5280, section 4.1.2.2: 20 bytes and positive
SELF_SIGNED_DAYS: Final = 3_650
CERTIFICATE_BYTES_MAX: Final = 8 << 10  # with RSA of 8192 bits on both sides, some 4,000
CERTIFICATES_KEPT: Final = 1_024  # whose keys are remembered
BACKDATED: Final = timedelta(minutes=5)  # clocks differ

_P256_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


class Entity(msgspec.Struct, frozen=True):
    """What others know of an entity. Its id follows from its key, so nobody else can have it."""

    spki: bytes  # SubjectPublicKeyInfo, DER
    sealing_key: bytes  # X25519
    name: str = ""
    institution: str = ""

    @property
    def eid(self) -> str:
        return entity_id(self.spki)

    @property
    def key(self) -> PublicKey:
        """Raises BadCredential if it is none that can be used."""
        return read_spki(self.spki)


class Identity:
    """An entity with its private keys."""

    def __init__(
        self, signing: PrivateKey, sealing: X25519PrivateKey, certificate: bytes, entity: Entity
    ) -> None:
        self.signing = signing
        self.sealing = sealing
        self.certificate = certificate  # DER
        self.entity = entity
        self.eid = entity.eid

    @property
    def certificate_pem(self) -> bytes:
        return x509.load_der_x509_certificate(self.certificate).public_bytes(Encoding.PEM)

    @property
    def signing_pem(self) -> bytes:
        return _pem(self.signing.key)

    @property
    def sealing_pem(self) -> bytes:
        return _pem(self.sealing)


def read_identity(
    signing_pem: bytes, certificate_pem: bytes, sealing_pem: bytes, origin: str
) -> Identity:
    """The identity whose three files these are. Raises BadCredential, which names `origin`."""
    if len(certificate_pem) > CERTIFICATE_BYTES_MAX:
        raise _unusable(origin, f"the certificate has {len(certificate_pem)} bytes")
    with readable(f"the identity in {origin}"):
        signing = PrivateKey(load_pem_private_key(signing_pem, None))
        sealing = load_pem_private_key(sealing_pem, None)
        certificate = x509.load_pem_x509_certificate(certificate_pem)
        spki = certificate.public_key().public_bytes(
            Encoding.DER, PublicFormat.SubjectPublicKeyInfo
        )
        der = certificate.public_bytes(Encoding.DER)
    if not isinstance(sealing, X25519PrivateKey):
        raise _unusable(origin, "the sealing key is not an X25519 key")
    if spki != signing.public.spki:
        raise _unusable(origin, "the certificate is of another key")
    return identity(signing, sealing, der)


def identity(signing: PrivateKey, sealing: X25519PrivateKey, certificate: bytes) -> Identity:
    """Of keys and a certificate (DER), which says the name and the institution."""
    with readable("the certificate"):
        subject = x509.load_der_x509_certificate(certificate).subject
    entity = Entity(
        spki=signing.public.spki,
        sealing_key=sealing.public_key().public_bytes_raw(),
        name=_first(subject, NameOID.COMMON_NAME),
        institution=_first(subject, NameOID.ORGANIZATION_NAME),
    )
    return Identity(signing, sealing, certificate, entity)


def new_identity(
    entropy: bytes,
    now_ns: int,
    *,
    name: str,
    institution: str = "",
    kind: str = "p256",
    is_tdn: bool = False,
) -> Identity:
    """One whose keys follow from the entropy, with a certificate that it has signed itself.

    `kind` is p256 or ed25519. Raises BadCredential for a name that a certificate cannot have.
    """
    assert len(entropy) == ENTROPY_BYTES, "fresh chance, and enough of it"
    if kind == "ed25519":
        signing = PrivateKey(ed25519.Ed25519PrivateKey.from_private_bytes(entropy[:32]))
    else:
        assert kind == "p256", kind
        # 384 bits modulo one of 256: no secret is likelier than another by more than 2**-128.
        secret = int.from_bytes(entropy[:48]) % (_P256_ORDER - 1) + 1
        signing = PrivateKey(ec.derive_private_key(secret, ec.SECP256R1()))
    sealing = X25519PrivateKey.from_private_bytes(entropy[48:80])
    serial = int.from_bytes(hashlib.sha256(entropy[80:]).digest()) >> (256 - SERIAL_BITS)
    certificate = self_signed(
        signing, serial, now_ns, name=name, institution=institution, is_tdn=is_tdn
    )
    return identity(signing, sealing, certificate)


def self_signed(
    signing: PrivateKey,
    serial: int,
    now_ns: int,
    *,
    name: str,
    institution: str = "",
    is_tdn: bool = False,
) -> bytes:
    """A certificate (DER) for a site without an authority. Raises BadCredential."""
    for each, what in ((name, "name"), (institution, "institution")):
        if len(each) > NAME_CHARS_MAX or not each.isprintable():
            raise BadCredential(
                f"{each[:64]!r} cannot be the {what} of an entity",
                remedy=f"Use at most {NAME_CHARS_MAX} printable characters.",
            )
    if not name:
        raise BadCredential("an entity has no name", remedy="Give it one, as in alice.")
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if institution:
        attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, institution))
    subject = x509.Name(attributes)
    now = datetime.fromtimestamp(now_ns // NS_PER_S, UTC)
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH, *([TDN_USAGE] if is_tdn else [])]
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(signing.key.public_key())
        .serial_number(max(serial, 1))
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + timedelta(days=SELF_SIGNED_DAYS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    )
    if isinstance(signing.key, ed25519.Ed25519PrivateKey):
        made = builder.sign(signing.key, None)
    elif isinstance(signing.key, ec.EllipticCurvePrivateKey):
        made = builder.sign(signing.key, hashes.SHA256(), ecdsa_deterministic=True)
    else:
        made = builder.sign(signing.key, hashes.SHA256())
    return made.public_bytes(Encoding.DER)


@lru_cache(maxsize=CERTIFICATES_KEPT)
def certified_key(certificate: bytes) -> PublicKey:
    """The key that a certificate (DER) is of, believed or not. Raises BadCredential."""
    if len(certificate) > CERTIFICATE_BYTES_MAX:
        raise BadCredential(
            f"a certificate has {len(certificate)} bytes",
            remedy=f"Send the one of the entity alone, of at most {CERTIFICATE_BYTES_MAX} bytes.",
        )
    with readable("the certificate"):
        key = x509.load_der_x509_certificate(certificate).public_key()
        return read_spki(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


def certified_entity(certificate: bytes, sealing_key: bytes, now_ns: int) -> Entity:
    """The entity that a certificate (DER) names, believed or not. Raises BadCredential, also for
    one that is not valid now."""
    key = certified_key(certificate)
    with readable("the certificate"):
        found = x509.load_der_x509_certificate(certificate)
        now = datetime.fromtimestamp(now_ns // NS_PER_S, UTC)
        if not found.not_valid_before_utc <= now < found.not_valid_after_utc:
            raise BadCredential(
                "a certificate is not valid at this time",
                remedy="Have another one issued, or set the clock.",
            )
        subject = found.subject
    name = _first(subject, NameOID.COMMON_NAME)
    institution = _first(subject, NameOID.ORGANIZATION_NAME)
    return Entity(key.spki, sealing_key, name, institution)


def _first(subject: x509.Name, oid: x509.ObjectIdentifier) -> str:
    found = subject.get_attributes_for_oid(oid)
    return str(found[0].value) if found else ""


def _pem(key: object) -> bytes:
    assert isinstance(key, X25519PrivateKey) or hasattr(key, "private_bytes")
    made: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return made


def _unusable(origin: str, why: str) -> BadCredential:
    return BadCredential(
        f"the identity in {origin} cannot be used: {why}",
        remedy="Move the directory away to have a new identity made, or restore its files.",
    )
