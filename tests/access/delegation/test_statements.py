"""Statements that are signed: what the form admits, and whose a signature is."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st

from tocsin.access.delegation import statements
from tocsin.access.delegation.keys import PrivateKey, base64url, jwk, read_jwk, read_spki
from tocsin.errors import BadCredential, BadSignedStatement

KIND = "tocsin-example+jws"
KEYS = {
    "p256": PrivateKey(ec.generate_private_key(ec.SECP256R1())),
    "p384": PrivateKey(ec.generate_private_key(ec.SECP384R1())),
    "p521": PrivateKey(ec.generate_private_key(ec.SECP521R1())),
    "ed25519": PrivateKey(ed25519.Ed25519PrivateKey.generate()),
    "rsa": PrivateKey(rsa.generate_private_key(65537, 2048)),
}


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str
    number: int = 0


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@given(text=st.text(max_size=50), number=st.integers(-(2**60), 2**60))
def test_what_a_key_signs_is_read_again(key: PrivateKey, text: str, number: int) -> None:
    said = Example(text, number)

    signed = statements.sign(KIND, said, key)

    assert statements.verified(KIND, signed, Example, key.public) == said


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_key_is_the_same_from_its_der_and_its_jwk(key: PrivateKey) -> None:
    public = key.public

    assert read_spki(public.spki).eid == public.eid
    assert read_jwk(jwk(public)).spki == public.spki


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_what_is_signed_twice_has_one_signature(key: PrivateKey) -> None:
    assert statements.sign(KIND, Example("a"), key) == statements.sign(KIND, Example("a"), key)


@pytest.mark.parametrize("name", KEYS)
def test_a_signature_is_nobody_elses(name: str) -> None:
    signed = statements.sign(KIND, Example("a"), KEYS[name])
    others = [each.public for other, each in KEYS.items() if other != name]
    others.append(PrivateKey(ec.generate_private_key(ec.SECP256R1())).public)

    for other in others:
        with pytest.raises(BadSignedStatement, match="not signed by the key"):
            statements.verified(KIND, signed, Example, other)


@pytest.mark.parametrize("name", KEYS)
def test_no_bit_of_a_statement_can_be_changed(name: str) -> None:
    key = KEYS[name]
    signed = statements.sign(KIND, Example("a"), key)

    for at in range(0, len(signed), 7):
        other = "A" if signed[at] != "A" else "B"
        changed = signed[:at] + other + signed[at + 1 :]
        with pytest.raises(BadSignedStatement):
            statements.verified(KIND, changed, Example, key.public)


def test_a_statement_of_one_kind_is_none_of_another() -> None:
    signed = statements.sign(KIND, Example("a"), KEYS["p256"])

    with pytest.raises(BadSignedStatement, match="its header names the type"):
        statements.verified("tocsin-grant+jws", signed, Example, KEYS["p256"].public)


def forged(header: dict[str, Any], payload: bytes, signature: bytes = b"") -> str:
    head = base64url(json.dumps(header).encode())
    return f"{head}.{base64url(payload)}.{base64url(signature)}"


def test_neither_none_nor_a_shared_secret_nor_a_key_in_the_header_is_taken() -> None:
    import hashlib
    import hmac

    public = KEYS["rsa"].public
    payload = statements.canonical(Example("a"))
    secret = forged({"alg": "HS256", "typ": KIND}, payload).rpartition(".")[0]
    mac = hmac.new(public.spki, secret.encode(), hashlib.sha256).digest()
    own = PrivateKey(ec.generate_private_key(ec.SECP256R1()))
    head = base64url(json.dumps({"alg": "ES256", "typ": KIND, "jwk": jwk(own.public)}).encode())
    body = f"{head}.{base64url(payload)}"

    for text in (
        forged({"alg": "none", "typ": KIND}, payload),
        f"{secret}.{base64url(mac)}",
        f"{body}.{base64url(own.sign(body.encode()))}",
        # The key's own signature, under the name of another algorithm.
        forged({"alg": "ES256", "typ": KIND}, payload, KEYS["rsa"].sign(b"x")),
        forged({"alg": "PS256", "typ": KIND}, payload, KEYS["rsa"].sign(b"x")),
    ):
        with pytest.raises(BadSignedStatement):
            statements.verified(KIND, text, Example, public)


@pytest.mark.parametrize(
    "payload",
    [
        b'{"text":"a","text":"b"}',
        b'{"text":"a","other":1}',
        b'{"text":1}',
        b'{"number":1}',
        b'{"text":"a","number":1e999}',
        b'{"text":"a","number":NaN}',
        b'["a"]',
        b'"a"',
        b"",
        b"{" * 5_000,
        b"[" * 5_000,
        b'{"text":"\xff"}',
        b'\xef\xbb\xbf{"text":"a"}',
    ],
)
def test_what_two_readers_could_understand_differently_is_refused(payload: bytes) -> None:
    key = KEYS["ed25519"]
    head = base64url(json.dumps({"alg": "EdDSA", "typ": KIND}).encode())
    body = f"{head}.{base64url(payload)}"
    signed = f"{body}.{base64url(key.sign(body.encode()))}"

    with pytest.raises(BadSignedStatement):
        statements.verified(KIND, signed, Example, key.public)


def test_a_statement_that_is_too_long_is_not_looked_at() -> None:
    signed = statements.sign(KIND, Example("a" * 10_000), KEYS["p256"])

    with pytest.raises(BadSignedStatement, match="at most 8192 are read"):
        statements.verified(KIND, signed, Example, KEYS["p256"].public)
    assert statements.verified(KIND, signed, Example, KEYS["p256"].public, 20_000)


@given(text=st.text(max_size=300) | st.binary(max_size=300).map(lambda b: b.decode("latin-1")))
def test_any_text_is_refused_in_one_way(text: str) -> None:
    with pytest.raises(BadSignedStatement):
        statements.verified(KIND, text, Example, KEYS["p256"].public)


def test_keys_that_are_too_weak_or_of_other_kinds_are_refused() -> None:
    for key in (
        rsa.generate_private_key(65537, 1024),
        ec.generate_private_key(ec.SECP256K1()),
        dsa.generate_private_key(2048),
    ):
        with pytest.raises(BadCredential):
            PrivateKey(key)


@given(content=st.binary(max_size=200))
def test_any_bytes_for_a_key_are_refused_in_one_way(content: bytes) -> None:
    with pytest.raises(BadCredential):
        read_spki(content)


def test_a_key_written_in_a_second_way_is_refused() -> None:
    # Trailing bytes, and a point in the compressed form: each would give the same key another id.
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    private = ec.generate_private_key(ec.SECP256R1())
    spki = PrivateKey(private).public.spki
    point = private.public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
    header = base64.b64decode("MDkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDIgA=")

    assert read_spki(spki).spki == spki
    for other in (spki + b"\0", header + point):
        with pytest.raises(BadCredential):
            read_spki(other)
