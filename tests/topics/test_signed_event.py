"""Signed events: whose an event is can be checked wherever it is read, and any change is seen."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from pki import authority, made, name
from tocsin.access.delegation.keys import PrivateKey, base64url
from tocsin.access.sign_in.certificates import Authorities
from tocsin.errors import BadEventSignature
from tocsin.event.event import Event
from tocsin.topics.identity import ENTROPY_BYTES, Identity, identity, new_identity, self_signed
from tocsin.topics.signed_event import ATTRIBUTE, KIND, sign_event, signer_of
from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.cloudevents.read import read_events
from tocsin.wire.cloudevents.write import binary_headers, structured

NOW_NS = 1_790_000_000 * 10**9


def somebody(seed: str, called: str = "alice") -> Identity:
    entropy = hashlib.shake_256(seed.encode()).digest(ENTROPY_BYTES)
    return new_identity(entropy, NOW_NS, name=called)


ALICE, MALLORY = somebody("a"), somebody("m", "mallory")
EVENT = Event(
    id="1",
    source="/radar/7",
    type="org.tocsin.event",
    topic="lead/ohio/radar",
    time="2026-03-01T12:00:00.5Z",
    subject="sweep",
    datacontenttype="application/json",
    extensions={"station": "7", "priority": 3, "urgent": True},
    data=b'{"load5": 7}',
)
SIGNED = sign_event(EVENT, ALICE)


def test_a_signed_event_says_whose_it_is() -> None:
    signer = signer_of(SIGNED)

    assert signer is not None
    assert (signer.eid, signer.name, signer.is_certified) == (ALICE.eid, "alice", False)
    assert signer_of(EVENT) is None


def test_a_name_counts_if_an_authority_that_is_trusted_has_certified_it() -> None:
    site, elsewhere = authority(), authority("elsewhere")
    key = ec.generate_private_key(ec.SECP256R1())
    certified = made(name("alice"), site, key=key)
    alice = identity(PrivateKey(key), X25519PrivateKey.generate(), certified.der)

    signed = sign_event(EVENT, alice)

    ours, theirs = (Authorities.read(each.pem, "ca.pem") for each in (site, elsewhere))
    assert [signer_of(signed, each).is_certified for each in (ours, theirs, None)] == [  # type: ignore[union-attr]
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    "key",
    [
        rsa.generate_private_key(65537, 2048),
        ec.generate_private_key(ec.SECP384R1()),
        ec.generate_private_key(ec.SECP521R1()),
    ],
    ids=["rsa", "p-384", "p-521"],
)
def test_keys_of_each_kind_sign(key: Any) -> None:
    signing = PrivateKey(key)
    certificate = self_signed(signing, 7, NOW_NS, name="alice")
    alice = identity(signing, X25519PrivateKey.generate(), certificate)

    signer = signer_of(sign_event(EVENT, alice))

    assert signer is not None
    assert signer.eid == alice.eid


CHANGES: dict[str, dict[str, Any]] = {
    "id": {"id": "2"},
    "source": {"source": "/radar/8"},
    "type": {"type": "other"},
    "topic": {"topic": "lead/ohio"},
    "time": {"time": "2026-03-01T12:00:00Z"},
    "no time": {"time": None},
    "subject": {"subject": None},
    "media type": {"datacontenttype": "text/plain"},
    "schema": {"dataschema": "urn:other"},
    "data": {"data": b'{"load5": 8}'},
    "no data": {"data": None},
    "empty data": {"data": b""},
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_after_signing_is_seen(change: str) -> None:
    with pytest.raises(BadEventSignature, match="changed after it was signed"):
        signer_of(msgspec.structs.replace(SIGNED, **CHANGES[change]))


@pytest.mark.parametrize("attribute", ["station", "priority", "urgent"])
def test_extension_attributes_that_were_there_are_signed_too(attribute: str) -> None:
    for value in ("8", 4, False):
        other = {**SIGNED.extensions, attribute: value}
        with pytest.raises(BadEventSignature):
            signer_of(msgspec.structs.replace(SIGNED, extensions=other))
    without = {key: value for key, value in SIGNED.extensions.items() if key != attribute}
    with pytest.raises(BadEventSignature):
        signer_of(msgspec.structs.replace(SIGNED, extensions=without))


def test_what_a_broker_adds_changes_nothing() -> None:
    added = {**SIGNED.extensions, "traceparent": "00-1-2-01"}

    assert signer_of(msgspec.structs.replace(SIGNED, extensions=added)) == signer_of(SIGNED)


FORMS: list[dict[str, Any]] = [
    {"data": None, "datacontenttype": None},
    {"data": b"", "datacontenttype": "text/plain"},
    {"data": b" [1, 2]\r\n", "datacontenttype": None},
    {"data": "größer".encode(), "datacontenttype": "text/plain; charset=utf-8", "subject": "é"},
    {"data": b"\xff\x00", "datacontenttype": "application/octet-stream"},
    {"data": b"<a>1</a>\n", "datacontenttype": "application/xml", "time": None},
    {"data": None, "attributes": {"load": 7.5, "host": "n7"}, "datacontenttype": None},
]


def test_the_signature_outlives_both_forms_of_a_cloudevent() -> None:
    for event in (EVENT, *(msgspec.structs.replace(EVENT, **each) for each in FORMS)):
        signed = sign_event(event, ALICE)
        lines = (line.partition(": ") for line in binary_headers(signed).decode().splitlines())
        headers = {name: value for name, _, value in lines}
        content_type = headers.pop("content-type", "")
        (binary,) = read_events(content_type, headers, signed.data or b"", Limits())
        (whole,) = read_events("application/cloudevents+json", {}, structured(signed), Limits())

        assert signer_of(binary) == signer_of(whole) == signer_of(signed) is not None


def test_a_signature_cannot_be_moved_to_another_event() -> None:
    other = msgspec.structs.replace(EVENT, id="2")
    moved = {**other.extensions, ATTRIBUTE: SIGNED.extensions[ATTRIBUTE]}

    with pytest.raises(BadEventSignature):
        signer_of(msgspec.structs.replace(other, extensions=moved))


def test_the_certificate_of_somebody_else_does_not_fit() -> None:
    """Nobody can put another name on an event than that of the key that signed it."""
    header, _, signature = str(SIGNED.extensions[ATTRIBUTE]).partition("..")
    said = msgspec.json.decode(_decoded(header))
    said["x5c"] = [base64.b64encode(MALLORY.certificate).decode()]
    forged = f"{base64url(msgspec.json.encode(said, order='sorted'))}..{signature}"

    with pytest.raises(BadEventSignature):
        signer_of(_with(forged))


def test_what_is_signed_already_is_not_signed_again() -> None:
    with pytest.raises(BadEventSignature, match="signed already"):
        sign_event(SIGNED, MALLORY)


HEADER: dict[str, Any] = {
    "alg": "ES256",
    "typ": KIND,
    "x5c": [base64.b64encode(ALICE.certificate).decode()],
}
SIGNATURE = str(SIGNED.extensions[ATTRIBUTE]).partition("..")[2]


@pytest.mark.parametrize(
    "header",
    [
        {},
        {**HEADER, "alg": "none"},
        {**HEADER, "alg": "HS256"},
        {**HEADER, "alg": "RS256"},
        {**HEADER, "typ": "tocsin-grant+jws"},
        {**HEADER, "crit": ["b64"], "b64": False},
        {**HEADER, "jwk": {}},
        {**HEADER, "x5c": []},
        {**HEADER, "x5c": "x"},
        {**HEADER, "x5c": ["%%%"]},
        {**HEADER, "x5c": ["A" * 8_000]},
        {**HEADER, "x5c": HEADER["x5c"] * 2},
        {**HEADER, "ext": "station"},
        {**HEADER, "ext": [1]},
        {**HEADER, "ext": ["station", "station"]},
        {**HEADER, "ext": ["urgent", "station"]},
        {**HEADER, "ext": [ATTRIBUTE]},
        {**HEADER, "ext": [f"a{n:03}" for n in range(65)]},
    ],
)
def test_headers_that_are_not_taken(header: dict[str, Any]) -> None:
    text = f"{base64url(msgspec.json.encode(header))}..{SIGNATURE}"

    with pytest.raises(BadEventSignature):
        signer_of(_with(text))


@pytest.mark.parametrize("text", ["", "..", "a..b", "a.b.c", "x" * 9_000, 7, True, "é..é", ". . ."])
def test_what_is_no_signature_is_refused(text: str | int) -> None:
    with pytest.raises(BadEventSignature):
        signer_of(_with(text))


@given(st.text(max_size=200))
def test_any_text_is_a_signature_or_refused(text: str) -> None:
    with pytest.raises(BadEventSignature):
        signer_of(_with(text))


def _with(signature: str | int) -> Event:
    return msgspec.structs.replace(EVENT, extensions={**EVENT.extensions, ATTRIBUTE: signature})


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
