"""Identities: keys, the certificate of one of them, and the id that follows from it."""

from __future__ import annotations

import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tocsin.access.delegation.keys import PrivateKey
from tocsin.access.sign_in.certificates import Authorities, Usage
from tocsin.errors import BadAdvertisement, BadCredential
from tocsin.topics.identity import (
    ENTROPY_BYTES,
    certified_key,
    identity,
    new_identity,
    read_identity,
    self_signed,
)
from tocsin.topics.trust import TrustedTdns

NOW_NS = 1_790_000_000 * 10**9


def entropy(seed: str) -> bytes:
    return hashlib.shake_256(seed.encode()).digest(ENTROPY_BYTES)


@pytest.mark.parametrize("kind", ["p256", "ed25519"])
def test_an_identity_is_the_same_from_its_files(kind: str) -> None:
    made = new_identity(entropy("a"), NOW_NS, name="alice", institution="CGL", kind=kind)

    read = read_identity(made.signing_pem, made.certificate_pem, made.sealing_pem, "alice.d")

    assert read.entity == made.entity
    assert read.eid == made.eid == certified_key(made.certificate).eid
    assert (read.entity.name, read.entity.institution) == ("alice", "CGL")


def test_one_seed_is_one_identity() -> None:
    one, again, other = (new_identity(entropy(s), NOW_NS, name="alice") for s in "aab")

    assert one.certificate == again.certificate
    assert one.entity == again.entity
    assert other.eid != one.eid


def test_a_certificate_of_another_key_makes_no_identity() -> None:
    alice, mallory = (new_identity(entropy(s), NOW_NS, name="alice") for s in "am")

    with pytest.raises(BadCredential, match="of another key"):
        read_identity(mallory.signing_pem, alice.certificate_pem, alice.sealing_pem, "alice.d")


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("content", [b"", b"-----BEGIN", b"\0" * 100, b"x" * 100_000])
def test_a_file_that_is_broken_is_refused(which: int, content: bytes) -> None:
    made = new_identity(entropy("a"), NOW_NS, name="alice")
    files = [made.signing_pem, made.certificate_pem, made.sealing_pem]
    files[which] = content

    with pytest.raises(BadCredential, match=r"alice\.d"):
        read_identity(*files, "alice.d")


def test_keys_of_every_kind_can_be_an_identity() -> None:
    sealing = X25519PrivateKey.generate()
    for key in (
        rsa.generate_private_key(65537, 2048),
        ec.generate_private_key(ec.SECP384R1()),
        ec.generate_private_key(ec.SECP521R1()),
    ):
        signing = PrivateKey(key)
        certificate = self_signed(signing, 7, NOW_NS, name="n", is_tdn=True)

        assert identity(signing, sealing, certificate).eid == signing.public.eid


@pytest.mark.parametrize("name", ["", "a" * 65, "a\nb", "\ud800"])
def test_a_name_that_no_certificate_can_have_is_refused(name: str) -> None:
    with pytest.raises(BadCredential):
        new_identity(entropy("a"), NOW_NS, name=name)


def test_a_certificate_that_somebody_made_himself_makes_no_discovery_node() -> None:
    mallory = new_identity(entropy("m"), NOW_NS, name="tdn", is_tdn=True)

    with pytest.raises(BadAdvertisement, match="not trusted"):
        TrustedTdns(Authorities()).check(mallory.certificate, NOW_NS)

    pinned = TrustedTdns(Authorities(), frozenset({mallory.eid}))
    assert pinned.check(mallory.certificate, NOW_NS).key.eid == mallory.eid
    assert Usage.TDN == "tdn"
