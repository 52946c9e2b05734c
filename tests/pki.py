"""Authorities, certificates and revocation lists for tests, good ones and every kind of bad one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NOW = datetime(2026, 6, 1, tzinfo=UTC)
NOW_NS = int(NOW.timestamp()) * 1_000_000_000
DAY = timedelta(days=1)
CLIENT = (ExtendedKeyUsageOID.CLIENT_AUTH,)
BROKER = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)


@dataclass
class Made:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: Any

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def write(self, folder: Path, name: str) -> tuple[str, str]:
        """The paths of the certificate and of the key."""
        certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
        certificate.write_bytes(self.pem)
        key.touch(mode=0o600)
        key.write_bytes(self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return str(certificate), str(key)


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def name(*common: str, units: Sequence[str] = ()) -> x509.Name:
    return x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit) for unit in units]
        + [x509.NameAttribute(NameOID.COMMON_NAME, each) for each in common]
    )


def made(
    subject: x509.Name,
    by: Made | None = None,
    *,
    key: Any = None,
    is_authority: bool | None = False,
    usages: Sequence[x509.ObjectIdentifier] | None = CLIENT,
    names: Sequence[str] = (),
    begins: datetime | None = None,
    ends: datetime | None = None,
    serial: int | None = None,
    hash_algorithm: Any = None,
    extensions: Sequence[tuple[x509.ExtensionType, bool]] = (),
    signs: bool = True,
    signed_with: Any = None,
) -> Made:
    """A certificate, signed by itself without `by`. `signed_with`: another key than that."""
    key = key or new_key()
    signer = signed_with or (key if by is None else by.key)
    issuer = subject if by is None else by.certificate.subject
    now = datetime.now(UTC).replace(microsecond=0)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(serial or x509.random_serial_number())
        .not_valid_before(begins or min(now, NOW) - DAY)
        .not_valid_after(ends or max(now, NOW) + 300 * DAY)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(
                (key if by is None else by.key).public_key()
            ),
            False,
        )
    )
    if is_authority is not None:
        builder = builder.add_extension(x509.BasicConstraints(is_authority, None), True)
    builder = builder.add_extension(key_usage(is_authority=bool(is_authority), signs=signs), True)
    if usages is not None and not is_authority:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), False)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(list(map(host, names))), False)
    for extension, is_critical in extensions:
        builder = builder.add_extension(extension, is_critical)
    algorithm = None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return Made(builder.sign(signer, hash_algorithm or algorithm), key)


def host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def own_files(folder: Path, *hosts: str, **how: Any) -> tuple[str, str]:
    """A certificate for these that is its own authority, own.pem, and own.key."""
    return made(name(hosts[0]), is_authority=True, names=hosts, **how).write(folder, "own")


def lock(key: Path, password: str) -> Path:
    """The same key in a file beside it that is encrypted."""
    found = load_pem_private_key(key.read_bytes(), None)
    locked = key.with_name("locked.key")
    encryption = BestAvailableEncryption(password.encode())
    locked.touch(mode=0o600)
    locked.write_bytes(found.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    return locked


def server_files(folder: Path, *hosts: str) -> Path:
    """A throw-away authority, ca.pem, and a certificate of it for these, own.pem with own.key."""
    by = authority("throw-away")
    by.write(folder, "ca")
    made(name(hosts[0]), by, usages=BROKER, names=hosts).write(folder, "own")
    return folder


def key_usage(*, is_authority: bool, signs: bool = True) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=signs,
        content_commitment=False,
        key_encipherment=not signs,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def authority(common: str = "site", **how: Any) -> Made:
    how.setdefault("ends", max(datetime.now(UTC).replace(microsecond=0), NOW) + 3_000 * DAY)
    return made(name(common), is_authority=True, **how)


def revocation_list(
    by: Made,
    serials: Sequence[int] = (),
    *,
    begins: datetime | None = None,
    ends: datetime | None = None,
    signed_with: Any = None,
    hash_algorithm: Any = None,
    extensions: Sequence[tuple[x509.ExtensionType, bool]] = (),
) -> bytes:
    """In PEM."""
    now = datetime.now(UTC).replace(microsecond=0)
    begins, ends = begins or min(now, NOW) - DAY, ends or max(now, NOW) + 30 * DAY
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(by.certificate.subject)
        .last_update(begins)
        .next_update(ends)
        .add_extension(x509.CRLNumber(1), False)
    )
    for extension, is_critical in extensions:
        builder = builder.add_extension(extension, is_critical)
    for serial in serials:
        revoked = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(begins)
        builder = builder.add_revoked_certificate(revoked.build())
    signer = signed_with or by.key
    algorithm = None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return builder.sign(signer, hash_algorithm or algorithm).public_bytes(Encoding.PEM)
