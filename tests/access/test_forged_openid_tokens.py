"""Tokens that somebody has forged, changed or made strange are refused, in one way."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OctKey
from openid_tokens import (
    OTHER,
    RSA,
    claims,
    key_set,
    now_ns,
    open_id,
    why_not,
)

from access.issuer import OpenIdIssuer, SigningKey, base64url, compact
from tocsin.access.sign_in.jws import SIZE_MAX
from tocsin.access.sign_in.openid import OpenId
from tocsin.errors import NotSignedIn

# Attacks


@pytest.mark.parametrize("name", ["none", "None", "NONE", "nOnE", "", None, ["RS256"], {"a": 1}])
def test_a_token_without_a_signature_is_refused(name: object) -> None:
    for signature in (b"", b"x"):
        token = compact({"alg": name, "kid": "first"}, claims(), lambda _, s=signature: s)
        assert "algorithm" in why_not(open_id(), token)
    signed = compact({"alg": "RS256", "kid": "first"}, claims(), lambda _: b"")
    assert "signature" in why_not(open_id(), signed)


@pytest.mark.parametrize("size", [256, 384, 512])
def test_the_public_key_is_no_shared_secret(size: int) -> None:
    """The classic confusion: what is published is taken for the secret of an HMAC."""
    public = RSA.key.public_key
    pem = public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    der = public.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    jwk = json.dumps(RSA.public).encode()
    modulus = base64.urlsafe_b64decode(RSA.public["n"] + "==")
    for secret in (pem, pem.strip(), der, jwk, modulus, RSA.public["n"].encode(), b""):
        token = compact(
            {"alg": f"HS{size}", "kid": "first"},
            claims(),
            lambda signed, k=secret: hmac.new(k, signed, f"sha{size}").digest(),
        )
        assert "algorithm" in why_not(open_id(), token)


def test_a_shared_secret_among_the_keys_of_an_issuer_is_never_used() -> None:
    secret = OctKey.import_key(b"0" * 32).as_dict() | {"kid": "s", "alg": "HS256", "use": "sig"}
    token = compact(
        {"alg": "HS256", "kid": "s"},
        claims(),
        lambda signed: hmac.new(b"0" * 32, signed, hashlib.sha256).digest(),
    )
    assert "algorithm" in why_not(open_id(RSA, secret), token)
    assert "kind" in key_set(RSA, secret).skipped[0]


@pytest.mark.parametrize(
    "algorithm", ["RS512", "PS256", "ES256", "ES512", "EdDSA", "ES256K", "Ed448"]
)
def test_an_algorithm_must_fit_the_key(algorithm: str) -> None:  # fmt: skip
    token = compact({"alg": algorithm, "kid": "first"}, claims(), RSA.sign)
    assert "first" in why_not(open_id(), token) or "algorithm" in why_not(open_id(), token)


def test_a_key_without_an_algorithm_is_for_those_of_its_kind() -> None:
    jwk = {name: value for name, value in RSA.public.items() if name != "alg"}
    for algorithm in ("RS384", "PS512"):
        same = SigningKey(algorithm, kid="first", key=RSA.key)
        assert open_id(jwk).sign_in(same.token(claims()), now_ns())
    ec = SigningKey("ES256", kid="first")
    assert "does not fit" in why_not(open_id(jwk), ec.token(claims()))


@pytest.mark.parametrize("name", ["jku", "x5u"])
def test_the_address_of_a_key_in_a_header_is_never_asked(name: str) -> None:
    with OpenIdIssuer() as attacker:
        address = f"{attacker.url}/keys"
        forged = attacker.key.token(claims(), kid="first", **{name: address})
        unknown = attacker.key.token(claims(), **{name: address})
        assert "signature" in why_not(open_id(), forged)
        assert "kid" in why_not(open_id(), unknown)
        assert attacker.asked == []
    # Some issuers say there where their keys are: it is of no use, and no harm.
    assert open_id().sign_in(RSA.token(claims(), **{name: address}), now_ns())


def test_a_key_in_a_header_is_refused() -> None:
    forged = OTHER.token(claims(), jwk=OTHER.public)
    assert "'jwk'" in why_not(open_id(), forged)
    assert "signature" in why_not(open_id(), OTHER.token(claims(), x5c=["MIIB"]))


@pytest.mark.parametrize("crit", [["b64"], ["exp"], [], "b64", None])
def test_what_a_header_calls_critical_is_refused(crit: object) -> None:
    assert "'crit'" in why_not(open_id(), RSA.token(claims(), crit=crit))
    assert "'b64'" in why_not(open_id(), RSA.token(claims(), b64=False))


@pytest.mark.parametrize("kid", ["../../etc/passwd", "' OR 1=1 --", "first\x00", "", "x" * 3000])
def test_a_strange_kid_is_an_unknown_one(kid: str) -> None:
    assert "kid" in why_not(open_id(), RSA.token(claims(), kid=kid))


@pytest.mark.parametrize("kid", [5, ["first"], {"kid": "first"}, True])
def test_a_kid_that_is_no_text_is_refused(kid: object) -> None:
    assert "kid" in why_not(open_id(), RSA.token(claims(), kid=kid))


def test_a_token_that_is_too_long_is_refused_before_it_is_read() -> None:
    token = RSA.token(claims(padding="x" * SIZE_MAX))
    assert OpenId.looks_like(token)
    assert "characters" in why_not(open_id(), token)


def test_a_payload_that_was_changed_is_refused() -> None:
    head, payload, signature = RSA.token(claims()).split(".")
    changed = base64url(json.dumps(claims(sub="root")).encode())
    assert "signature" in why_not(open_id(), f"{head}.{changed}.{signature}")
    other_head = base64url(json.dumps({"alg": "RS256", "kid": "first", "typ": "JWT"}).encode())
    assert "signature" in why_not(open_id(), f"{other_head}.{payload}.{signature}")


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"null",
        b"[]",
        b'"iss"',
        b"{",
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b"[" * 2800 + b"]" * 2800,
        b'{"a":' * 900 + b"1" + b"}" * 900,
        b'{"iss": NaN}',
        b'{"exp": 1e999}',
        b'{"exp": ' + b"9" * 4400 + b"}",
        b'{"iss": "\\ud800"}',
        b"{} {}",
    ],
    ids=range(14),
)
def test_a_payload_that_is_no_plain_json_object_is_refused(payload: bytes) -> None:
    token = compact({"alg": "RS256", "kid": "first"}, payload, RSA.sign)
    assert "payload" in why_not(open_id(), token) or "issuer" in why_not(open_id(), token)


@pytest.mark.parametrize("depth", [5, 400, 900])
@pytest.mark.parametrize("name", ["aud", "groups", "exp", "sub", "iss", "nbf"])
def test_deep_claims_are_refused_as_others_of_the_wrong_kind(name: str, depth: int) -> None:
    inner = "[" * depth + "]" * depth
    text = json.dumps(claims(**{name: "@"})).replace('"@"', inner)
    token = compact({"alg": "RS256", "kid": "first"}, text.encode(), RSA.sign)
    assert why_not(open_id(), token)


@pytest.mark.parametrize("name", ["iss", "aud", "sub", "exp"])
def test_a_claim_that_comes_twice_is_refused(name: str) -> None:
    good = json.dumps(claims())
    escaped = f"\\u{ord(name[0]):04x}{name[1:]}"
    for twice in (name, escaped):
        payload = f'{{"{twice}": "root", {good[1:]}'.encode()
        token = compact({"alg": "RS256", "kid": "first"}, payload, RSA.sign)
        assert "twice" in why_not(open_id(), token)
    head = b'{"alg": "none", "alg": "RS256", "kid": "first"}'
    assert "twice" in why_not(open_id(), compact(head, claims(), RSA.sign))


def variants() -> Iterator[str]:
    good = RSA.token(claims())
    head, payload, signature = good.split(".")
    yield from ("", ".", "..", "a", "a.b", good + ".", "." + good, good + "." + signature)
    yield from (f"{head}..{signature}", f".{payload}.{signature}", f"{head}.{payload}")
    yield from (f" {good}", f"{good}\n", good + "=", good.replace(".", ". "), good + "\x00")
    yield from (f"{head}=.{payload}.{signature}", f"{head}.{payload}.{signature}A")
    yield from (good.replace("-", "+").replace("_", "/") + "+", good[:-1] + "é", good + "ß")
    yield json.dumps({"protected": head, "payload": payload, "signature": signature})


@pytest.mark.parametrize("text", list(variants()), ids=range(len(list(variants()))))
def test_what_is_no_token_in_the_compact_form_is_refused(text: str) -> None:
    assert why_not(open_id(), text)


def test_a_signature_is_written_in_one_way_only() -> None:
    """The last character of base64 has bits that are not used."""
    good = RSA.token(claims())
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    same = good[:-1] + letters[letters.index(good[-1]) ^ 1]
    assert base64.urlsafe_b64decode(same.split(".")[2] + "==") == base64.urlsafe_b64decode(
        good.split(".")[2] + "=="
    )
    assert "as it is written" in why_not(open_id(), same)


@given(st.text())
def test_garbage_is_refused(text: str) -> None:
    assert why_not(open_id(), text)


@given(st.binary(max_size=200), st.binary(max_size=200), st.binary(max_size=80))
def test_garbage_in_three_parts_is_refused(head: bytes, payload: bytes, signature: bytes) -> None:
    text = ".".join(map(base64url, (head, payload, signature)))
    assert OpenId.looks_like(text) == bool(head)
    assert why_not(open_id(), text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["iss", "sub", "aud", "exp", "nbf", "iat", "groups"]), JSON))
def test_whatever_a_signed_token_says_it_is_refused_or_a_principal(changed: dict[str, Any]) -> None:
    token = RSA.token(claims() | changed)
    try:
        principal, credential = open_id().sign_in(token, now_ns())
    except NotSignedIn:
        return
    assert principal.name.isprintable()
    assert credential.expires_ns is not None


@given(st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "cty", "x5c"]), JSON))
def test_whatever_a_header_says_nobody_but_the_issuer_signs(changed: dict[str, Any]) -> None:
    assert why_not(open_id(), OTHER.token(claims(), **changed))
