"""Keys, certificates and revocation lists, as an authority makes them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tocsin.access.sign_in.certificates import TDN_USAGE, readable
from tocsin.errors import BadCredential, BadSetting

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
SigningKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey  # of an authority

RSA_BITS: Final = 3_072
KEYS: Final = ("p256", "rsa", "ed25519")
# Clocks of a site differ: what is issued now has to hold at a machine that is a little behind.
BACKDATED: Final = timedelta(minutes=5)

_CLIENT, _SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
USAGES: Final = {
    "client": (_CLIENT,),
    "broker": (_SERVER, _CLIENT),  # brokers are clients of each other, and of sinks
    "tdn": (_SERVER, _CLIENT, TDN_USAGE),
}


def new_key(kind: str) -> PrivateKey:
    """A private key of one of KEYS."""
    if kind == "rsa":
        return rsa.generate_private_key(65537, RSA_BITS)
    if kind == "ed25519":
        return ed25519.Ed25519PrivateKey.generate()
    assert kind == "p256", kind
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def read_signing_key(pem: bytes, origin: str) -> SigningKey:
    with readable(origin):
        key = load_pem_private_key(pem, None)
    if not isinstance(key, SigningKey):
        raise BadCredential(f"{origin} holds no RSA or EC key", remedy="Use the authority's own.")
    return key


def authority_certificate(name: str, key: SigningKey, now: datetime, days: int) -> x509.Certificate:
    """Signed by itself; it signs certificates and lists, and no other authorities."""
    subject = _subject(name, ())
    builder = _begun(subject, subject, key, key, now, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(is_authority=True), critical=True)
    return builder.sign(key, hashes.SHA256())


def certificate(
    name: str,
    kind: str,
    key: PrivateKey,
    *,
    groups: Iterable[str],
    hosts: Iterable[str],
    by: x509.Certificate,
    by_key: SigningKey,
    now: datetime,
    days: int,
) -> x509.Certificate:
    """Of a client, a broker or a topic discovery node. Raises BadSetting for names that cannot be
    in one."""
    builder = _begun(_subject(name, groups), by.subject, key, by_key, now, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
    builder = builder.add_extension(_key_usage(is_authority=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(USAGES[kind]), critical=False)
    names = [_host(each) for each in hosts]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(by_key, hashes.SHA256())


def revocation_list(
    revoked: Iterable[tuple[int, datetime]],
    by: x509.Certificate,
    by_key: SigningKey,
    number: int,
    now: datetime,
    days: int,
) -> x509.CertificateRevocationList:
    """Of these serial numbers, each since a time."""
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(by.subject)
        .last_update(now - BACKDATED)
        .next_update(now + timedelta(days=days))
        .add_extension(x509.CRLNumber(number), critical=False)
        .add_extension(_authority_key(by_key), critical=False)
    )
    for serial, since in revoked:
        each = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(since)
        builder = builder.add_revoked_certificate(each.build())
    return builder.sign(by_key, hashes.SHA256())


def _begun(
    subject: x509.Name,
    issuer: x509.Name,
    key: PrivateKey,
    by_key: SigningKey,
    now: datetime,
    days: int,
) -> x509.CertificateBuilder:
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(_authority_key(by_key), critical=False)
    )


def _authority_key(key: SigningKey) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())


def _subject(name: str, groups: Iterable[str]) -> x509.Name:
    try:
        return x509.Name(
            [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, each) for each in groups]
            + [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        )
    except ValueError as error:
        raise BadSetting(f"{name!r:.80}: {error}", remedy="Use 1 to 64 characters.") from None


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        pass
    try:
        # International names as they are in certificates; a wildcard is for any one level.
        ascii_name = text.encode("ascii" if text.isascii() else "idna").decode()
        if not ascii_name or any(map(str.isspace, ascii_name)) or ":" in ascii_name:
            raise ValueError
        return x509.DNSName(ascii_name)
    except ValueError:
        raise BadSetting(
            f"--host {text!r:.80} is neither a host name nor an IP address",
            remedy="Write it as in --host broker.example --host 192.0.2.1, without a port.",
        ) from None


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )
