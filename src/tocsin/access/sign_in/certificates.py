"""Certificates: who it is that shows one, and which ones sign nobody in.

A certificate is signed by one of the site's authorities itself: what a client sends beside its own
is not used. So its issuer is known, and with it the key by which it can be revoked.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    PolicyBuilder,
    Store,
    VerificationError,
)

from tocsin.access.policy.rights import check_name
from tocsin.access.session import Credential, CredentialKind, Principal, is_reserved
from tocsin.errors import BadCredential, TocsinError
from tocsin.event.instant import LATEST_NS, NS_PER_S, datetime_ns

CERTIFICATE_BYTES_MAX: Final = 64 << 10
AUTHORITIES_MAX: Final = 200
GROUPS_MAX: Final = 64
RSA_BITS_MIN: Final = 2_048
RSA_BITS_MAX: Final = 8_192  # a signature by a longer one takes long to verify
CURVES: Final = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
HASHES: Final = frozenset({"sha256", "sha384", "sha512"})
KEY_ID_CHARS: Final = 32  # of a SHA-256: 128 bits
ENTITY_ID_CHARS: Final = 40  # 160 bits: nobody finds a second key with this id

# Who may answer questions about topics. 2.25 is the arc of UUIDs, which needs no registration; this
# one is of version 5, of the URL "tocsin:topic-discovery-node".
TDN_USAGE: Final = x509.ObjectIdentifier("2.25.334124119130921722482758159424178368852")

_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class Usage(StrEnum):
    """What a certificate may be for, as its extended key usage says."""

    CLIENT = "client"
    SERVER = "server"
    TDN = "tdn"  # it may answer questions about topics


_USAGES: Final = {
    ExtendedKeyUsageOID.CLIENT_AUTH: Usage.CLIENT,
    ExtendedKeyUsageOID.SERVER_AUTH: Usage.SERVER,
    TDN_USAGE: Usage.TDN,
}
_OF_TLS: Final = frozenset({Usage.CLIENT, Usage.SERVER})


class Identity(msgspec.Struct, frozen=True):
    """Who a certificate is for, and what is kept of it."""

    principal: Principal
    credential: Credential
    usages: frozenset[Usage]
    begins_ns: int

    @property
    def entity_id(self) -> str:
        """It follows from its key, so nobody else can have it."""
        return self.credential.entity_id

    @property
    def expires_ns(self) -> int:
        assert self.credential.expires_ns is not None, "each certificate has an end"
        return self.credential.expires_ns


class Authority(msgspec.Struct, frozen=True):
    """One that signs certificates of the site's clients."""

    certificate: x509.Certificate
    key_id: str

    @property
    def name(self) -> str:
        return self.certificate.subject.rfc4514_string()


class Authorities:
    """Those of one site."""

    def __init__(self, authorities: Iterable[Authority] = ()) -> None:
        self.all = tuple(authorities)

    @property
    def pem(self) -> str:
        """All of them."""
        return "".join(
            each.certificate.public_bytes(Encoding.PEM).decode("ascii") for each in self.all
        )

    @classmethod
    def read(cls, pem: bytes, origin: str) -> Authorities:
        """Those of a file, whose name is `origin`. Raises BadCredential."""
        blocks = _PEM.findall(pem)
        if not blocks or len(blocks) > AUTHORITIES_MAX:
            raise BadCredential(
                f"{origin} holds {len(blocks)} certificates of authorities",
                remedy=f"Name a PEM file with 1 to {AUTHORITIES_MAX} of them.",
            )
        found = []
        for block in blocks:
            with readable(origin):
                found.append(_authority(x509.load_pem_x509_certificate(block), origin))
        return cls(found)

    def has_signed(self, der: bytes) -> bool:
        """True if one of them has. Raises BadCredential for what is not a certificate."""
        certificate = _load(der)
        return any(_has_signed(each, certificate) for each in self.all)

    def issuer_of(self, certificate: x509.Certificate, now: datetime) -> Authority:
        """The one that has signed it, and is valid now. Raises BadCredential."""
        for authority in self.all:
            if _has_signed(authority, certificate):
                _check_dates(authority.certificate, now, "its authority")
                return authority
        raise BadCredential(
            "it is signed by none of the authorities",
            remedy="certificates.client_ca has to hold the authority that signs it directly.",
        )


def identity_of(
    der: bytes, authorities: Authorities, now_ns: int, usage: Usage = Usage.CLIENT
) -> Identity:
    """Who shows this certificate, of which TLS has checked the rest: that the peer has its key,
    and what the extensions of its authority say. Raises BadCredential."""
    return _identity(_load(der), authorities, now_ns, usage)


def verified(
    der: bytes, authorities: Authorities, now_ns: int, usage: Usage = Usage.CLIENT
) -> Identity:
    """The same, for a certificate that came without TLS: everything is checked here but whether
    the sender has its key. Raises BadCredential."""
    certificate = _load(der)
    identity = _identity(certificate, authorities, now_ns, usage)
    policy = PolicyBuilder().store(Store([each.certificate for each in authorities.all]))
    policy = policy.time(_moment(now_ns)).max_chain_depth(0)
    policy = policy.extension_policies(
        ca_policy=ExtensionPolicy.webpki_defaults_ca(), ee_policy=_leaf_policy()
    )
    try:
        policy.build_client_verifier().verify(certificate, [])
    except VerificationError as error:
        raise _refused(f"its chain is not valid: {str(error)[:200]}") from None
    return identity


def entity_id(spki: bytes) -> str:
    """The id of whoever has the key of this SubjectPublicKeyInfo (DER)."""
    return hashlib.sha256(spki).hexdigest()[:ENTITY_ID_CHARS]


def key_id(certificate: x509.Certificate) -> str:
    """By which the key of an authority is known here. What a certificate says of the key of its
    issuer is not used: an authority can write there what it likes."""
    return hashlib.sha256(_spki(certificate)).hexdigest()[:KEY_ID_CHARS]


def credential_key(issuer_key_id: str, serial: int) -> str:
    """The key by which a certificate is revoked."""
    return f"{CredentialKind.CERTIFICATE}/{issuer_key_id}/{serial:x}"


def usages_of(certificate: x509.Certificate) -> frozenset[Usage]:
    """What it may be used for. Without the extension, for both sides of TLS and nothing else."""
    try:
        named = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return _OF_TLS
    found = {_USAGES[each] for each in named if each in _USAGES}
    if ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in named:
        found |= _OF_TLS
    return frozenset(found)


@contextmanager
def readable(what: str) -> Iterator[None]:
    """What the library cannot read, it says by many kinds of errors."""
    try:
        yield
    except TocsinError:
        raise
    except (
        ValueError,  # of what is no DER, and of what is in it
        TypeError,
        OverflowError,
        UnsupportedAlgorithm,
        x509.DuplicateExtension,
        x509.UnsupportedGeneralNameType,
        x509.InvalidVersion,
    ) as error:
        raise BadCredential(
            f"{what} cannot be read: {str(error)[:200] or type(error).__name__}",
            remedy="It has to be an X.509 certificate or list in the PEM or DER form.",
        ) from None


def check_key(key: object, whose: str) -> None:
    """Raise BadCredential for a key of a kind that is too weak, or that not everybody can verify.
    TLS and the library that verifies chains look at those of authorities alone."""
    if isinstance(key, ed25519.Ed25519PublicKey) or (
        isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, CURVES)
    ):
        return
    if isinstance(key, rsa.RSAPublicKey) and RSA_BITS_MIN <= key.key_size <= RSA_BITS_MAX:
        return
    if isinstance(key, ec.EllipticCurvePublicKey):
        kind = key.curve.name
    else:
        size = getattr(key, "key_size", "")
        kind = f"{type(key).__name__.removesuffix('PublicKey')} {size}".rstrip()
    raise BadCredential(
        f"the key of {whose} is {kind}",
        remedy=f"Use RSA with {RSA_BITS_MIN} to {RSA_BITS_MAX} bits, P-256, P-384, P-521 or "
        "Ed25519.",
    )


def check_signature_algorithm(signed: x509.Certificate | x509.CertificateRevocationList) -> None:
    """Raise BadCredential for a signature over a hash that can be forged."""
    found = signed.signature_hash_algorithm  # None: Ed25519 has its own
    if found is not None and found.name not in HASHES:
        raise _refused(f"it is signed over {found.name}")


def _load(der: bytes) -> x509.Certificate:
    if len(der) > CERTIFICATE_BYTES_MAX:
        raise _refused(f"it has {len(der)} bytes, more than {CERTIFICATE_BYTES_MAX}")
    with readable("the certificate"):
        return x509.load_der_x509_certificate(der)


def _identity(
    certificate: x509.Certificate, authorities: Authorities, now_ns: int, usage: Usage
) -> Identity:
    with readable("the certificate"):
        now = _moment(now_ns)
        issuer = authorities.issuer_of(certificate, now)
        check_key(certificate.public_key(), "the certificate")
        check_signature_algorithm(certificate)
        _check_dates(certificate, now, "it")
        if _is_authority(certificate):
            raise _refused("it is that of an authority")
        usages = usages_of(certificate)
        if usage not in usages:
            raise _refused(f"it is not for use as {usage}")
        ends_ns = min(_ends_ns(certificate), _ends_ns(issuer.certificate))
        return Identity(
            principal=_principal(certificate),
            credential=Credential(
                CredentialKind.CERTIFICATE,
                credential_key(issuer.key_id, certificate.serial_number),
                ends_ns,
                entity_id(_spki(certificate)),
            ),
            usages=usages,
            begins_ns=datetime_ns(certificate.not_valid_before_utc),
        )


def _principal(certificate: x509.Certificate) -> Principal:
    names = _texts(certificate, NameOID.COMMON_NAME)
    if len(names) > 1:
        raise _refused("it has more than one common name")
    name = names[0] if names else _first_dns_name(certificate)
    if name is None:
        raise _refused("it has neither a common name nor a DNS name")
    groups = _texts(certificate, NameOID.ORGANIZATIONAL_UNIT_NAME)
    if len(groups) > GROUPS_MAX:
        raise _refused(f"it has more than {GROUPS_MAX} organizational units")
    if is_reserved(name):
        raise _refused(f"nobody may be called {name!r}")
    try:
        for each, what in [(name, "principal"), *((group, "group") for group in groups)]:
            if not each:
                raise _refused(f"the name of its {what} is empty")
            check_name(each, what)
    except BadCredential:
        raise
    except TocsinError as error:
        raise _refused(error.problem) from None
    return Principal(name, frozenset(groups))


def _texts(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> list[str]:
    values = [each.value for each in certificate.subject.get_attributes_for_oid(oid)]
    if any(not isinstance(value, str) for value in values):
        raise _refused("its subject has a name that is not a text")
    return [str(value) for value in values]


def _first_dns_name(certificate: x509.Certificate) -> str | None:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None
    return next(iter(names.get_values_for_type(x509.DNSName)), None)


def _authority(certificate: x509.Certificate, origin: str) -> Authority:
    whose = f"{certificate.subject.rfc4514_string()[:100]!r} in {origin}"
    if not _is_authority(certificate):
        raise BadCredential(
            f"{whose} is not an authority",
            remedy="Name the certificates of authorities: they have the basic constraint CA.",
        )
    key = certificate.public_key()
    if isinstance(key, ed25519.Ed25519PublicKey):
        # The library that verifies chains refuses it, so it would do at some endpoints alone.
        raise BadCredential(
            f"the authority {whose} has an Ed25519 key",
            remedy="Use an authority with RSA or P-256; what it signs may have Ed25519 keys.",
        )
    check_key(key, f"the authority {whose}")
    return Authority(certificate, key_id(certificate))


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        return False
    return constraints.ca


def _has_signed(authority: Authority, certificate: x509.Certificate) -> bool:
    try:  # it compares the names too
        certificate.verify_directly_issued_by(authority.certificate)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _check_dates(certificate: x509.Certificate, now: datetime, what: str) -> None:
    if now < certificate.not_valid_before_utc:
        raise _refused(f"{what} is not valid yet")
    if now >= certificate.not_valid_after_utc:
        raise _refused(f"{what} has expired")


def _leaf_policy() -> ExtensionPolicy:
    """As that of the Web, but a person has no DNS name. What it is for, we look at ourselves: the
    library knows servers and clients alone."""
    agnostic = Criticality.AGNOSTIC
    return (
        ExtensionPolicy.permit_all()
        .may_be_present(x509.SubjectAlternativeName, agnostic, None)
        .may_be_present(x509.BasicConstraints, agnostic, None)
        .may_be_present(x509.KeyUsage, agnostic, _signs)
        .may_be_present(x509.ExtendedKeyUsage, agnostic, None)
    )


def _signs(_policy: object, _certificate: object, usage: x509.KeyUsage | None) -> None:
    if usage is not None and not usage.digital_signature:
        raise ValueError("its key is not for signatures")


def _ends_ns(certificate: x509.Certificate) -> int:
    return min(datetime_ns(certificate.not_valid_after_utc), LATEST_NS)


def _moment(now_ns: int) -> datetime:
    return datetime.fromtimestamp(now_ns // NS_PER_S, UTC)


def _spki(certificate: x509.Certificate) -> bytes:
    key = certificate.public_key()
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _refused(why: str) -> BadCredential:
    return BadCredential(
        f"the certificate cannot be used: {why}",
        remedy="Have another one issued, as by `tocsin keys issue NAME`.",
    )
