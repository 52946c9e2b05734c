"""Signatures of other kinds than are taken, and keys and certificates that do not count."""

from __future__ import annotations

import base64
import copy
import hashlib
import hmac

import pytest
from altered import DS, fault, local, signature_of
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from lxml import etree

from soap.security.rewriting import sign_again
from soap.security.signers import (
    find,
    issued,
    signed,
    tree,
)
from tocsin.wire.soap.names import WSSE
from tocsin.wire.wss import names
from tocsin.wire.wss.values import canonical

# Other algorithms


TRANSFORMS = [
    "http://www.w3.org/2000/09/xmldsig#enveloped-signature",
    "http://www.w3.org/TR/1999/REC-xpath-19991116",
    "http://www.w3.org/2002/06/xmldsig-filter2",
    "http://www.w3.org/TR/1999/REC-xslt-19991116",
    "http://www.w3.org/2000/09/xmldsig#base64",
    "http://www.w3.org/TR/2001/REC-xml-c14n-20010315",
    "http://www.w3.org/2001/10/xml-exc-c14n#WithComments",
    f"{names.X509_V3.partition('x509')[0]}soap-message-security-1.0#STR-Transform",
    "",
]


@pytest.mark.parametrize("algorithm", TRANSFORMS)
def test_one_transform_alone_is_taken(algorithm: str) -> None:
    instead = tree(signed())
    next(signature_of(instead).iter(f"{DS}Transform")).set("Algorithm", algorithm)
    assert fault(sign_again(instead, issued("alice"))) == "UnsupportedAlgorithm"

    beside = tree(signed())
    transforms = next(signature_of(beside).iter(f"{DS}Transforms"))
    etree.SubElement(transforms, f"{DS}Transform", Algorithm=algorithm)
    assert fault(sign_again(beside, issued("alice"))) == "UnsupportedAlgorithm"

    form = tree(signed())
    next(signature_of(form).iter(f"{DS}CanonicalizationMethod")).set("Algorithm", algorithm)
    assert fault(sign_again(form, issued("alice"))) == "UnsupportedAlgorithm"


@pytest.mark.parametrize(
    "algorithm",
    [
        f"{names.DS}hmac-sha1",
        "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256",
        f"{names.DS}dsa-sha1",
        "http://www.w3.org/2009/xmldsig11#dsa-sha256",
        f"{names.DS}rsa-sha1",
        "http://www.w3.org/2001/04/xmldsig-more#rsa-md5",
        "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha1",
        "none",
        "",
    ],
)
def test_other_signatures_are_refused(algorithm: str) -> None:
    root = tree(signed())
    next(signature_of(root).iter(f"{DS}SignatureMethod")).set("Algorithm", algorithm)
    assert fault(sign_again(root, issued("alice"))) == "UnsupportedAlgorithm"


def test_a_hash_with_the_public_key_is_no_signature() -> None:
    """Whoever verifies by what the message says would take the certificate's key for a secret."""
    who = issued("alice")
    root = tree(signed(who))
    method = next(signature_of(root).iter(f"{DS}SignatureMethod"))
    method.set("Algorithm", "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256")
    info = find(signature_of(root), "SignedInfo")
    secrets = (
        who.pem,
        who.certificate.public_bytes(Encoding.DER),
        who.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    )
    for secret in secrets:
        made = hmac.new(secret, canonical(info), hashlib.sha256).digest()
        find(signature_of(root), "SignatureValue").text = base64.b64encode(made).decode()
        assert fault(root) == "UnsupportedAlgorithm"


def test_a_signature_of_the_wrong_kind_for_the_key_is_refused() -> None:
    for kind, algorithm in (("rsa", names.ECDSA_SHA256), ("ec", names.RSA_SHA256)):
        root = tree(signed(issued("alice", kind)))
        next(signature_of(root).iter(f"{DS}SignatureMethod")).set("Algorithm", algorithm)
        assert fault(root) == "FailedCheck"


def test_the_digest_has_to_be_by_sha_256_or_more() -> None:
    for algorithm in (names.SHA1, "http://www.w3.org/2001/04/xmldsig-more#md5", ""):
        root = tree(signed())
        next(signature_of(root).iter(f"{DS}DigestMethod")).set("Algorithm", algorithm)
        assert fault(sign_again(root, issued("alice"))) == "UnsupportedAlgorithm"


# Other keys


def test_a_key_in_the_signature_does_not_count() -> None:
    root = tree(signed())
    info = find(signature_of(root), "KeyInfo")
    key = etree.SubElement(etree.SubElement(info, f"{DS}KeyValue"), f"{DS}RSAKeyValue")
    etree.SubElement(key, f"{DS}Modulus").text = "AQAB"
    assert fault(root) == "InvalidSecurity"
    info.remove(find(info, "SecurityTokenReference"))
    assert fault(root) == "InvalidSecurity"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<d:X509Data/>",
        b"<d:X509Data><d:X509IssuerSerial/></d:X509Data>",
        b"<d:KeyName>alice</d:KeyName>",
        b'<o:KeyIdentifier ValueType="#ThumbprintSHA1">AAAA</o:KeyIdentifier>',
        b'<o:Reference URI="#elsewhere"/>',
        b'<o:Reference URI="http://127.0.0.1:1/certificate"/>',
        b"<o:Embedded/>",
    ],
)
def test_a_certificate_that_is_not_there_is_not_looked_for(content: bytes) -> None:
    root = tree(signed())
    header = find(root, "Header", "Security")
    named = find(header, "Signature", "KeyInfo", "SecurityTokenReference")
    instead = tree(
        b'<o:SecurityTokenReference xmlns:o="%b" xmlns:d="%b">%b</o:SecurityTokenReference>'
        % (WSSE.encode(), names.DS.encode(), content)
    )
    header.remove(find(header, "BinarySecurityToken"))
    find(header, "Signature", "KeyInfo").replace(named, instead)
    assert fault(root) == "SecurityTokenUnavailable"


def test_a_second_certificate_is_refused() -> None:
    root = tree(signed())
    token = find(root, "Header", "Security", "BinarySecurityToken")
    token.addnext(copy.deepcopy(token))
    assert fault(root) == "InvalidSecurity"


@pytest.mark.parametrize("text", ["", "***", "AAAA", "TUlJQg==", "A" * 200_000])
def test_what_is_no_certificate_signs_nobody_in(text: str) -> None:
    root = tree(signed())
    find(root, "Header", "Security", "BinarySecurityToken").text = text
    assert fault(root) in {"InvalidSecurityToken", "FailedAuthentication"}


@pytest.mark.parametrize("name", ["SignatureValue", "DigestValue"])
@pytest.mark.parametrize("text", ["", "***", "AAAA", "A" * 200_000])
def test_what_is_no_signature_is_refused(name: str, text: str) -> None:
    root = tree(signed())
    next(signature_of(root).iter(f"{DS}{name}")).text = text
    assert fault(root) in {"InvalidSecurity", "FailedCheck"}


def test_parts_of_a_signature_that_are_missing_or_come_twice_are_refused() -> None:
    whole = ("SignedInfo", "SignatureValue", "KeyInfo", "SecurityTokenReference")
    inside = ("CanonicalizationMethod", "SignatureMethod", "Transforms", "Transform")
    digest = ("DigestMethod", "DigestValue")
    expected = {"InvalidSecurity", "UnsupportedAlgorithm", "SecurityTokenUnavailable"}
    for name in (*whole, *inside, *digest):
        for change in ("cut", "twice"):
            root = tree(signed())
            part = next(each for each in signature_of(root).iter() if local(each) == name)
            parent = part.getparent()
            assert parent is not None
            if change == "cut":
                parent.remove(part)
            else:
                part.addnext(copy.deepcopy(part))
            assert fault(root) in expected, (name, change)
