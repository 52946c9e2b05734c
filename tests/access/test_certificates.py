"""Which certificates sign somebody in, and which do not: each with one thing wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import example, given
from hypothesis import strategies as st

from pki import BROKER, CLIENT, DAY, NOW, NOW_NS, Made, authority, made, name, new_key
from tocsin.access.sign_in.certificates import (
    TDN_USAGE,
    Authorities,
    Identity,
    Usage,
    entity_id,
    identity_of,
    verified,
)
from tocsin.errors import BadCredential

SITE = authority()
SITE_ONLY = Authorities.read(SITE.pem, "ca.pem")
RSA_2048 = rsa.generate_private_key(65537, 2048)
Read = Callable[..., Identity]
BOTH = pytest.mark.parametrize("read", [identity_of, verified])


@BOTH
def test_the_common_name_is_the_principal_and_the_units_are_its_groups(read: Read) -> None:
    alice = made(name("alice", units=("operators", "radar")), SITE, serial=0xBEEF)

    identity = read(alice.der, SITE_ONLY, NOW_NS)

    assert identity.principal.name == "alice"
    assert identity.principal.groups == {"operators", "radar"}
    assert not identity.principal.is_internal
    assert identity.credential.key == f"certificate/{SITE_ONLY.all[0].key_id}/beef"
    assert identity.expires_ns == int(alice.certificate.not_valid_after_utc.timestamp()) * 10**9


@BOTH
def test_without_a_common_name_it_is_the_first_dns_name(read: Read) -> None:
    host = made(name(), SITE, names=("node7.example", "other.example"))

    assert read(host.der, SITE_ONLY, NOW_NS).principal.name == "node7.example"


@BOTH
@pytest.mark.parametrize(
    "key",
    [
        RSA_2048,
        new_key(),
        ec.generate_private_key(ec.SECP384R1()),
        ec.generate_private_key(ec.SECP521R1()),
        ed25519.Ed25519PrivateKey.generate(),
    ],
    ids=["rsa-2048", "p-256", "p-384", "p-521", "ed25519"],
)
def test_keys_that_may_be_used(read: Read, key: Any) -> None:
    alice = made(name("alice"), SITE, key=key)

    assert read(alice.der, SITE_ONLY, NOW_NS).principal.name == "alice"


@BOTH
@pytest.mark.parametrize(
    ("key", "said"),
    [
        (rsa.generate_private_key(65537, 1024), "RSA 1024"),
        (ec.generate_private_key(ec.SECP256K1()), "secp256k1"),
        (ec.generate_private_key(ec.BrainpoolP256R1()), "brainpoolP256r1"),
        (ed448.Ed448PrivateKey.generate(), "Ed448"),
        (dsa.generate_private_key(2048), "DSA 2048"),
    ],
    ids=["rsa-1024", "secp256k1", "brainpool", "ed448", "dsa"],
)
def test_keys_that_may_not(read: Read, key: Any, said: str) -> None:
    weak = made(name("alice"), SITE, key=key)

    with pytest.raises(BadCredential, match=f"the key of the certificate is {said}"):
        read(weak.der, SITE_ONLY, NOW_NS)


FOREIGN = authority()  # of the same name, with another key
OTHER = authority("elsewhere")
UNDER = made(name("under"), SITE, is_authority=True)
WRONG: dict[str, tuple[Made, str]] = {
    "made by itself": (made(name("alice")), "none of the authorities"),
    "of another authority": (made(name("alice"), OTHER), "none of the authorities"),
    "of one that has the same name": (made(name("alice"), FOREIGN), "none of the authorities"),
    "signed with another key": (
        made(name("alice"), SITE, signed_with=new_key()),
        "none of the authorities",
    ),
    "of an authority under ours": (made(name("alice"), UNDER), "none of the authorities"),
    "of somebody who is no authority": (
        made(name("mallory"), made(name("alice"), SITE)),
        "none of the authorities",
    ),
    "expired": (made(name("alice"), SITE, begins=NOW - 9 * DAY, ends=NOW - DAY), "has expired"),
    "expires now": (made(name("alice"), SITE, ends=NOW), "has expired"),
    "not valid yet": (made(name("alice"), SITE, begins=NOW + DAY), "not valid yet"),
    "that of an authority": (UNDER, "that of an authority"),
    "that of the authority itself": (SITE, "that of an authority"),
    "for servers alone": (
        made(name("alice"), SITE, usages=(ExtendedKeyUsageOID.SERVER_AUTH,)),
        "not for use as client",
    ),
    "for topics alone": (made(name("alice"), SITE, usages=(TDN_USAGE,)), "not for use as client"),
    "called as those without one": (made(name("anonymous"), SITE), "nobody may be called"),
    "called as the broker itself": (made(name("broker"), SITE), "nobody may be called"),
    "with a control character": (
        made(name("alice\nbob"), SITE),
        "cannot be the name of a principal",
    ),
    "with a space at its end": (made(name("alice "), SITE), "cannot be the name of a principal"),
    "of two names": (made(name("alice", "bob"), SITE), "more than one common name"),
    "of no name": (made(name(), SITE), "neither a common name nor a DNS name"),
    "with a group of no name": (
        made(name("alice", units=(" ",)), SITE),
        "cannot be the name of a group",
    ),
    "with many groups": (
        made(name("alice", units=[f"g{n}" for n in range(65)]), SITE),
        "more than 64",
    ),
}


@BOTH
@pytest.mark.parametrize("what", WRONG)
def test_who_is_not_signed_in(read: Read, what: str) -> None:
    wrong, said = WRONG[what]

    with pytest.raises(BadCredential, match=said):
        read(wrong.der, SITE_ONLY, NOW_NS)


def test_without_tls_the_rest_of_the_chain_is_checked_too() -> None:
    """What OpenSSL does on a connection."""
    unknown = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4.5"), b"\x05\x00")
    limits = x509.NameConstraints([x509.DNSName("site.example")], None)
    limited = authority("limited", extensions=[(limits, True)])
    ours = Authorities.read(SITE.pem + limited.pem, "ca.pem")
    for wrong in (
        made(name("alice"), SITE, extensions=[(unknown, True)]),
        made(name("alice"), SITE, signs=False),
        made(name("alice"), limited, names=("elsewhere.example",)),
    ):
        with pytest.raises(BadCredential, match="its chain is not valid"):
            verified(wrong.der, ours, NOW_NS)
    for right in (
        made(name("alice"), SITE, extensions=[(unknown, False)]),
        made(name("alice"), limited, names=("node.site.example",)),
    ):
        assert verified(right.der, ours, NOW_NS).principal.name == "alice"


@BOTH
def test_an_authority_that_has_expired_signs_nobody_in(read: Read) -> None:
    old = authority(begins=NOW - 9 * DAY, ends=NOW - DAY)
    alice = made(name("alice"), old)

    with pytest.raises(BadCredential, match="its authority has expired"):
        read(alice.der, Authorities.read(old.pem, "ca.pem"), NOW_NS)


@BOTH
def test_nobody_is_signed_in_for_longer_than_the_authority_is_valid(read: Read) -> None:
    short = authority(ends=NOW + DAY)

    identity = read(made(name("a"), short).der, Authorities.read(short.pem, "ca.pem"), NOW_NS)

    assert identity.expires_ns == NOW_NS + 86_400 * 10**9


@BOTH
@pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")
def test_a_hash_that_can_be_forged_is_refused(read: Read) -> None:
    weak = made(name("alice"), SITE, hash_algorithm=hashes.SHA224())

    with pytest.raises(BadCredential, match="signed over sha224"):
        read(weak.der, SITE_ONLY, NOW_NS)


def test_the_right_to_answer_about_topics_has_to_be_named() -> None:
    plain, without = made(name("a"), SITE), made(name("a"), SITE, usages=None)
    node = made(name("t"), SITE, usages=(*BROKER, TDN_USAGE))

    assert verified(node.der, SITE_ONLY, NOW_NS, Usage.TDN).usages == set(Usage)
    assert verified(without.der, SITE_ONLY, NOW_NS).usages == {Usage.CLIENT, Usage.SERVER}
    anything = made(name("a"), SITE, usages=(ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,))
    for each in (plain, without, anything):
        with pytest.raises(BadCredential, match="not for use as tdn"):
            verified(each.der, SITE_ONLY, NOW_NS, Usage.TDN)


def test_what_a_certificate_says_of_its_issuer_s_key_is_not_used() -> None:
    """Else an authority could have certificates that no list names."""
    lies = x509.AuthorityKeyIdentifier(b"\x01" * 20, None, None)
    builder = x509.CertificateBuilder().subject_name(name("alice"))
    builder = builder.issuer_name(SITE.certificate.subject).serial_number(7)
    builder = builder.public_key(new_key().public_key()).not_valid_before(NOW - DAY)
    builder = builder.not_valid_after(NOW + DAY).add_extension(lies, critical=False)
    builder = builder.add_extension(x509.ExtendedKeyUsage(CLIENT), critical=False)
    certificate = builder.sign(SITE.key, hashes.SHA256())

    identity = identity_of(Made(certificate, None).der, SITE_ONLY, NOW_NS)

    assert identity.credential.key == f"certificate/{SITE_ONLY.all[0].key_id}/7"


def test_an_entity_s_id_follows_from_its_key_alone() -> None:
    key = new_key()
    first = identity_of(made(name("alice"), SITE, key=key).der, SITE_ONLY, NOW_NS)
    second = identity_of(made(name("bob"), SITE, key=key).der, SITE_ONLY, NOW_NS)
    other = identity_of(made(name("alice"), SITE).der, SITE_ONLY, NOW_NS)

    assert first.entity_id == second.entity_id != other.entity_id
    assert first.credential != second.credential
    assert len(entity_id(b"")) == 40


@pytest.mark.parametrize(
    ("pem", "said"),
    [
        (b"", "holds 0 certificates"),
        (made(name("alice"), SITE).pem, "is not an authority"),
        (made(name("v1"), is_authority=None).pem, "is not an authority"),
        (authority(key=ed25519.Ed25519PrivateKey.generate()).pem, "has an Ed25519 key"),
        (authority(key=rsa.generate_private_key(65537, 1024)).pem, "is RSA 1024"),
        (authority(key=ec.generate_private_key(ec.SECP256K1())).pem, "is secp256k1"),
        (SITE.pem.replace(b"M", b"", 3), "ca.pem cannot be read"),
    ],
)
def test_files_that_hold_no_authority(pem: bytes, said: str) -> None:
    with pytest.raises(BadCredential, match=said):
        Authorities.read(pem, "ca.pem")


def test_an_authority_with_an_rsa_key_will_do() -> None:
    site = authority(key=RSA_2048)
    alice = made(name("alice"), site, key=ed25519.Ed25519PrivateKey.generate())

    ours = Authorities.read(b"comments\n" + OTHER.pem + site.pem, "ca.pem")

    assert verified(alice.der, ours, NOW_NS).principal.name == "alice"


ALICE = made(name("alice", units=("g",)), SITE, names=("a.example",))
POSITIONS = st.integers(0, len(ALICE.der) - 1)


@BOTH
@given(st.data())
@example(None)
def test_what_a_certificate_says_cannot_be_changed(read: Read, data: st.DataObject | None) -> None:
    """Nor can it be torn. One bit is nobody's: the signature has a count of bits that are unused at
    its end, so where its last bit is 0 the count may be 1. Such a copy says what the original says,
    and is revoked with it."""
    changed = bytearray(ALICE.der)
    if data is None:
        changed[-len(ALICE.certificate.signature) - 1] ^= 1
    elif data.draw(st.booleans()):
        changed[data.draw(POSITIONS)] ^= data.draw(st.integers(1, 255))
    else:
        del changed[data.draw(POSITIONS) :]

    try:
        identity = read(bytes(changed), SITE_ONLY, NOW_NS)
    except BadCredential:
        return
    assert identity == read(ALICE.der, SITE_ONLY, NOW_NS)
    assert x509.load_der_x509_certificate(bytes(changed)).signature == ALICE.certificate.signature
