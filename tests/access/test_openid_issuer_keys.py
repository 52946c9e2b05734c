"""The keys of an issuer: which are asked for, believed and passed over."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from openid_tokens import (
    OTHER,
    OTHER_URL,
    RSA,
    URL,
    FixedKeys,
    claims,
    key_set,
    now_ns,
    number,
    open_id,
    why_not,
)

from access.issuer import SigningKey, compact
from tocsin.access.sign_in.issuer import Issuer
from tocsin.access.sign_in.jws import BadKeySet
from tocsin.access.sign_in.openid import OpenId
from tocsin.errors import NotSignedIn

# Keys


def test_a_key_that_is_not_known_is_asked_for_and_said_to_be_coming() -> None:
    keys = FixedKeys({URL: key_set(RSA)})
    openid = OpenId([Issuer(URL, "tocsin")], keys)
    new = SigningKey("RS256", kid="second")

    with pytest.raises(NotSignedIn, match="Try again"):
        openid.sign_in(new.token(claims()), now_ns())
    assert keys.asked == [URL]

    keys.sets[URL] = key_set(RSA, new)
    assert openid.sign_in(new.token(claims()), now_ns())
    assert keys.asked == [URL]


def test_nobody_signs_in_before_there_are_keys() -> None:
    keys = FixedKeys({URL: None})
    with pytest.raises(NotSignedIn, match="Try again"):
        OpenId([Issuer(URL, "tocsin")], keys).sign_in(RSA.token(claims()), now_ns())
    assert keys.asked == [URL]


def test_what_is_wrong_with_a_token_starts_no_request_for_keys() -> None:
    keys = FixedKeys({URL: key_set(RSA)})
    openid = OpenId([Issuer(URL, "tocsin")], keys)
    for token in (
        OTHER.token(claims()),
        RSA.token(claims(aud="x")),
        RSA.token(claims(iss=OTHER_URL), kid="unknown"),
        RSA.token(claims(), kid="unknown", crit=["b64"]),
    ):
        why_not(openid, token)
    assert keys.asked == []


def test_a_key_that_is_withdrawn_ends_what_it_signed_also_what_was_verified() -> None:
    keys = FixedKeys({URL: key_set(RSA)})
    openid = OpenId([Issuer(URL, "tocsin")], keys)
    token = RSA.token(claims())
    assert openid.sign_in(token, now_ns())

    keys.sets[URL] = key_set(SigningKey("ES256", kid="second"))

    assert "kid" in why_not(openid, token)


def test_a_token_without_a_kid_needs_an_issuer_with_one_key_for_it() -> None:
    token = compact({"alg": "RS256"}, claims(), RSA.sign)
    assert open_id(RSA, SigningKey("ES256")).sign_in(token, now_ns())
    assert "2 keys" in why_not(open_id(RSA, SigningKey("RS256")), token)
    assert "2 keys" in why_not(open_id(RSA, OTHER), RSA.token(claims()))


EC = SigningKey("ES256", kid="ec").public
EDWARDS = SigningKey("EdDSA", kid="ed").public
WITHOUT_ALG = {name: value for name, value in RSA.public.items() if name != "alg"}


@pytest.mark.parametrize(
    ("jwk", "why"),
    [
        (RSA.key.as_dict(private=True) | {"kid": "leaked"}, "private part"),
        (RSA.public | {"use": "enc"}, "not for signatures"),
        (WITHOUT_ALG | {"key_ops": ["encrypt"]}, "not for signatures"),
        (WITHOUT_ALG | {"key_ops": "verify"}, "not for signatures"),
        (RSA.public | {"kid": 5}, "kid"),
        (RSA.public | {"alg": "RSA-OAEP"}, "algorithm"),
        (RSA.public | {"alg": "HS256"}, "algorithm"),
        (RSA.public | {"alg": "none"}, "algorithm"),
        (RSA.public | {"alg": ["RS256"]}, "algorithm"),
        (RSA.public | {"n": number(2**1023 + 1)}, "1024 bits"),
        (RSA.public | {"n": number(2**8200 + 1)}, "8201 bits"),
        (RSA.public | {"n": "A" * 100_000}, "too long"),
        (RSA.public | {"n": 5}, "not a text"),
        (RSA.public | {"n": "a+b="}, "base64url"),
        (RSA.public | {"n": number(65537**129)}, "factored"),
        (RSA.public | {"e": number(2**64 + 1)}, "exponent"),
        (RSA.public | {"e": number(1)}, "cannot be read"),
        (RSA.public | {"e": number(2)}, "cannot be read"),
        ({"kty": "RSA"}, "cannot be read"),
        (EC | {"x": EC["y"], "y": EC["x"]}, "cannot be read"),
        (EC | {"crv": "P-384"}, "cannot be read"),
        (EC | {"crv": "secp256k1"}, "secp256k1"),
        (EC | {"crv": ["P-256"]}, "cannot be read"),
        (EC | {"alg": "ES384"}, "algorithm"),
        (EDWARDS | {"crv": "X25519"}, "X25519"),
        (EDWARDS | {"x": "AAAA"}, "cannot be read"),
        (EDWARDS | {"alg": "ES256"}, "algorithm"),
        ({"kty": "oct", "k": "AAAA"}, "oct"),
        ({"kty": ["RSA"]}, "kind"),
        ({}, "kind"),
        ("RSA", "object"),
        (None, "object"),
    ],
)
def test_a_key_that_must_not_sign_tokens_is_passed_over(jwk: Any, why: str) -> None:
    good = SigningKey("ES512", kid="good")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # some libraries only warn
        found = key_set(good, jwk)
        with pytest.raises(BadKeySet, match="none of its keys"):
            key_set(jwk)

    assert [each.kid for each in found.keys] == ["good"]
    assert why in found.skipped[0]


def test_what_else_is_said_of_a_key_does_not_matter() -> None:
    jwk = RSA.public | {
        "x5c": ["MIIB"],
        "x5t": 5,
        "x5u": "nowhere",
        "nbf": 1,
        "key_ops": ["verify"],
    }
    assert open_id(jwk).sign_in(RSA.token(claims()), now_ns())
    for algorithm in ("EdDSA", "Ed25519"):  # two names of one algorithm
        key = SigningKey("EdDSA", kid="ed")
        token = compact({"alg": algorithm, "kid": "ed"}, claims(), key.sign)
        assert open_id(key).sign_in(token, now_ns())
