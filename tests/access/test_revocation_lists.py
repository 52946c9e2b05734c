"""Revocation lists: what they say, and which are not believed."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from pki import DAY, NOW, NOW_NS, authority, made, name, new_key, revocation_list
from tocsin.access.sign_in.certificates import Authorities, identity_of
from tocsin.access.sign_in.revocation_lists import read_lists, revoked_by, without_list
from tocsin.errors import BadCredential

SITE, OTHER = authority(), authority("other")
BOTH = Authorities.read(SITE.pem + OTHER.pem, "ca.pem")
ONE = Authorities.read(SITE.pem, "ca.pem")


def test_a_certificate_is_revoked_by_the_key_that_its_session_has() -> None:
    alice, bob = made(name("alice"), SITE), made(name("bob"), SITE)
    same = made(name("carol"), OTHER, serial=alice.certificate.serial_number)
    pem = revocation_list(SITE, [alice.certificate.serial_number]) + revocation_list(OTHER)

    revoked = revoked_by(read_lists(pem, BOTH, "crl.pem"))

    def key(der: bytes) -> str:
        return identity_of(der, BOTH, NOW_NS).credential.key

    assert key(alice.der) in revoked
    assert key(bob.der) not in revoked
    assert key(same.der) not in revoked, "the serial number is that of another authority"


def test_a_list_in_der_is_read_too() -> None:
    pem = revocation_list(SITE, [7])
    der = x509.load_pem_x509_crl(pem).public_bytes(Encoding.DER)

    assert read_lists(der, ONE, "crl.der") == read_lists(pem, ONE, "crl.pem")


def test_the_newest_of_several_lists_of_an_authority_counts() -> None:
    old, new = revocation_list(SITE, [1], begins=NOW - DAY), revocation_list(SITE, [2], begins=NOW)

    for content in (old + new, new + old):
        [found] = read_lists(content, ONE, "crl.pem")
        assert {key.rpartition("/")[2] for key in found.keys} == {"2"}


DELTA = (x509.DeltaCRLIndicator(1), True)
PART = (
    x509.IssuingDistributionPoint(
        full_name=None,
        relative_name=None,
        only_contains_user_certs=False,
        only_contains_ca_certs=False,
        only_some_reasons=None,
        indirect_crl=True,
        only_contains_attribute_certs=False,
    ),
    True,
)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (revocation_list(authority("elsewhere")), "signed by none of the authorities"),
        (revocation_list(authority()), "signed by none of the authorities"),
        (revocation_list(SITE, signed_with=new_key()), "signed by none of the authorities"),
        (revocation_list(SITE) + revocation_list(SITE, signed_with=new_key()), "signed by none"),
        (revocation_list(SITE, extensions=[DELTA]), "of a kind that is not known"),
        (revocation_list(SITE, extensions=[PART]), "of a kind that is not known"),
        (revocation_list(SITE, hash_algorithm=hashes.SHA224()), "signed over sha224"),
        (b"", "cannot be read"),
        (SITE.pem, "cannot be read"),
        (revocation_list(SITE)[:-60], "cannot be read"),
    ],
)
def test_a_file_of_which_a_list_cannot_be_believed_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(BadCredential, match=said):
        read_lists(content, ONE, "crl.pem")


def test_who_may_not_sign_lists_does_not() -> None:
    """As an authority whose key is for certificates alone."""
    subject, key = name("certificates only"), new_key()
    usage = x509.KeyUsage(True, False, False, False, False, True, False, False, False)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject)
    builder = builder.public_key(key.public_key()).serial_number(1).not_valid_before(NOW - DAY)
    builder = builder.not_valid_after(NOW + DAY).add_extension(usage, critical=True)
    builder = builder.add_extension(x509.BasicConstraints(True, None), critical=True)
    only = builder.sign(key, hashes.SHA256())
    pem = only.public_bytes(Encoding.PEM)
    from pki import Made

    with pytest.raises(BadCredential, match="signed by none of the authorities"):
        read_lists(revocation_list(Made(only, key)), Authorities.read(pem, "ca.pem"), "crl.pem")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (revocation_list(OTHER), "there is no revocation list of CN=site"),
        (
            revocation_list(OTHER) + revocation_list(SITE, begins=NOW - 9 * DAY, ends=NOW - DAY),
            "the revocation list of CN=site is out of date",
        ),
        (
            revocation_list(OTHER) + revocation_list(SITE, begins=NOW + DAY, ends=NOW + 2 * DAY),
            "the revocation list of CN=site is of the future",
        ),
    ],
)
def test_an_authority_without_a_list_that_holds_now_is_named(content: bytes, said: str) -> None:
    lists = read_lists(content, BOTH, "crl.pem")

    found = without_list(BOTH, lists, NOW_NS)

    assert found == {ONE.all[0].key_id: said}


def test_with_lists_of_all_nothing_is_wrong() -> None:
    lists = read_lists(revocation_list(SITE) + revocation_list(OTHER), BOTH, "crl.pem")

    assert not without_list(BOTH, lists, NOW_NS)
