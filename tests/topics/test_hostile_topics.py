"""Whatever comes, from anybody: every reader of statements and messages answers in one way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from creating import (
    ALICE,
    NOW_NS,
    SEALING,
    TDN,
    TRUSTED,
    asked,
    created,
    identity,
    known,
    nonce,
    opened,
    reply_key,
    wanted,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.access.delegation.chain import GRANT_KIND, read_chain
from tocsin.access.delegation.keys import base64url
from tocsin.access.delegation.proof import PROOF_KIND, SIGN_IN, Nonces, check_proof
from tocsin.access.delegation.revocations import REVOCATIONS_KIND, read_revocations
from tocsin.errors import CannotOpen, TocsinError, TooLarge
from tocsin.topics.advertisement import (
    REQUEST_KIND,
    TOPIC_KIND,
    SignedAdvertisement,
    check_request,
    read_request,
    verify,
)
from tocsin.topics.creation import (
    CREATE,
    CREATED,
    read_creation,
    read_creation_answer,
    request_creation,
)
from tocsin.topics.descriptors import Descriptors, check_descriptors
from tocsin.topics.envelope import SEALED_BYTES_MAX, Sealed, open_sealed, seal
from tocsin.topics.identity import Identity, certified_entity, read_identity
from tocsin.topics.introduction import ANSWER, QUESTION_KIND, read_introduction, read_question
from tocsin.topics.private import (
    PRIVATE_KIND,
    EncryptedAdvertisement,
    decrypt,
    open_key,
    share_key,
    verify_private,
)
from tocsin.topics.synopsis import StringSynopsis
from tocsin.topics.tombstone import WITHDRAWAL_KIND, read_withdrawal

HOSTILE = Path(__file__).parents[2] / "../shared/data/hostile"
OWNER = opened()[1].owner
TEXT = reply_key("text")


def read_topic(text: str) -> object:
    found = SignedAdvertisement(text, TDN.certificate, ALICE.certificate)
    return verify(found, TRUSTED, NOW_NS)


def read_private(text: str) -> object:
    return verify_private(EncryptedAdvertisement(text, TDN.certificate), TRUSTED, NOW_NS)


def read_proof(text: str) -> object:
    key = ALICE.signing.public
    return check_proof(text, key, SIGN_IN, "here", Nonces(bytes(32)), NOW_NS)


READERS: dict[str, tuple[str, Identity, Callable[[str], object]]] = {
    "topic": (TOPIC_KIND, TDN, read_topic),
    "private topic": (PRIVATE_KIND, TDN, read_private),
    "request": (REQUEST_KIND, ALICE, lambda text: check_request(read_request(text))),
    "withdrawal": (WITHDRAWAL_KIND, ALICE, lambda text: read_withdrawal(text, NOW_NS)),
    "question": (QUESTION_KIND, ALICE, lambda text: read_question(text, NOW_NS)),
    "grant": (GRANT_KIND, ALICE, lambda text: read_chain([text], OWNER)),
    "revocations": (REVOCATIONS_KIND, ALICE, lambda text: read_revocations(text, OWNER, NOW_NS)),
    "proof": (PROOF_KIND, ALICE, read_proof),
}
every_reader = pytest.mark.parametrize("which", READERS)


def signed(which: str, payload: bytes) -> str:
    """What the right key signs, whatever it is."""
    kind, by, _ = READERS[which]
    header = base64url(json.dumps({"alg": by.signing.algorithm, "typ": kind}).encode())
    body = f"{header}.{base64url(payload)}"
    return f"{body}.{base64url(by.signing.sign(body.encode('ascii')))}"


def read(which: str, text: str) -> None:
    """Nothing but our own errors, with few words that can be written."""
    said = ""
    try:
        READERS[which][2](text)
    except TocsinError as error:
        said = str(error)
    assert len(said.encode("utf-8")) < 2_000


NAMES = [
    *(
        "uuid",
        "salt",
        "origin",
        "tdn",
        "version",
        "created_ns",
        "expires_ns",
        "synopsis",
        "request",
    ),
    *("digest", "nonce", "creator", "spki", "sealing_key", "name", "institution", "requested_ns"),
    *("reply_key", "lifetime_ns", "type", "path", "topic", "descriptors", "text", "keywords"),
    *("properties", "xml", "schema", "withdrawn_ns", "top", "ops", "pfx", "nbf", "exp", "dep"),
    *("jti", "cnf", "jwk", "prf", "num", "iat", "ids", "op", "aud", "ath", "asker", "asked_ns"),
    *("key", "ciphertext", "kind", "recipient", "content", "string", "publish", "form", "open"),
]

contents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
    | st.sampled_from([*NAMES, OWNER.uuid, TDN.eid, "A" * 44, 1, 2**63, 2**64]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=4), inner, max_size=12),
    max_leaves=20,
)  # fmt: skip


@every_reader
@given(content=contents)
@settings(deadline=None)
def test_any_json_that_is_signed_rightly_is_read_or_refused(which: str, content: Any) -> None:
    read(which, signed(which, json.dumps(content).encode()))


@every_reader
@given(text=st.text(max_size=80))
def test_any_text_is_refused(which: str, text: str) -> None:
    with pytest.raises(TocsinError):
        READERS[which][2](text)


def true_content(which: str) -> dict[str, Any]:
    """What is read, to be changed in one place."""
    from tocsin.access.delegation import statements
    from tocsin.topics.introduction import ask_for_tdns
    from tocsin.topics.tombstone import withdraw

    open_one, made = opened()
    private, _ = created(is_private=True)
    found = {
        "topic": open_one.jws,
        "private topic": private.jws,
        "request": asked()[0].signed,
        "withdrawal": withdraw(made, ALICE, NOW_NS),
        "question": ask_for_tdns(ALICE, nonce("q"), reply_key("q"), NOW_NS),
    }[which]
    payload = statements.parse(READERS[which][0], found, 1 << 20).payload
    content: dict[str, Any] = json.loads(payload)
    return content


MADE = {
    each: true_content(each)
    for each in ("topic", "private topic", "request", "withdrawal", "question")
}


@pytest.mark.parametrize("which", MADE)
@given(data=st.data())
@settings(deadline=None)
def test_a_good_statement_with_one_part_exchanged_is_read_or_refused(
    which: str, data: st.DataObject
) -> None:
    content = dict(MADE[which])
    name = data.draw(st.sampled_from(sorted(content)))
    inside = content[name]
    if isinstance(inside, dict) and inside and data.draw(st.booleans()):
        member = data.draw(st.sampled_from(sorted(inside)))
        content[name] = inside | {member: data.draw(contents)}
    else:
        content[name] = data.draw(contents)

    read(which, signed(which, json.dumps(content).encode()))


@pytest.mark.parametrize("which", MADE)
def test_a_good_statement_without_one_of_its_parts_is_read_or_refused(which: str) -> None:
    READERS[which][2](signed(which, json.dumps(MADE[which]).encode()))
    for name in MADE[which]:
        left = {key: value for key, value in MADE[which].items() if key != name}
        read(which, signed(which, json.dumps(left).encode()))


@pytest.mark.skipif(not HOSTILE.exists(), reason="the hostile files are not beside the project")
@every_reader
def test_the_files_of_jsontestsuite_are_refused(which: str) -> None:
    files = [each for each in HOSTILE.glob("jsontestsuite/**/*.json") if each.stat().st_size < 4000]
    assert len(files) > 100
    for path in files:
        with pytest.raises(TocsinError):
            READERS[which][2](signed(which, path.read_bytes()))


@pytest.mark.skipif(not HOSTILE.exists(), reason="the hostile files are not beside the project")
def test_naughty_strings_are_descriptions_or_refused() -> None:
    for text in json.loads((HOSTILE / "blns/blns.json").read_text()):
        for each in (
            Descriptors(text=text),
            Descriptors(paths=(text,)),
            Descriptors(keywords=(text,)),
            Descriptors(properties={text: text}),
            Descriptors(xml=text),
        ):
            try:
                check_descriptors(each)
            except TocsinError as error:
                str(error).encode("utf-8")
        try:
            _, made = created(
                synopsis=StringSynopsis(path=text), descriptors=Descriptors(text=text)
            )
            assert made.descriptors.text == text
        except TocsinError as error:
            str(error).encode("utf-8")


@pytest.mark.skipif(not HOSTILE.exists(), reason="the hostile files are not beside the project")
def test_hostile_xml_is_no_description() -> None:
    for path in sorted(HOSTILE.glob("defusedxml/**/*.xml")):
        text = path.read_text(errors="replace")
        if "<!DOCTYPE" not in text:
            continue
        with pytest.raises(TocsinError):
            check_descriptors(Descriptors(xml=text))


# Sealed messages.


@given(
    kind=st.sampled_from([CREATE, CREATED, ANSWER, ""]) | st.text(max_size=5),
    recipient=st.sampled_from([TDN.eid, ALICE.eid]) | st.text(max_size=45),
    of=st.sampled_from([nonce("1")]) | st.text(max_size=35),
    content=st.binary(max_size=200),
)
def test_any_sealed_message_is_refused(kind: str, recipient: str, of: str, content: bytes) -> None:
    found = Sealed(kind, recipient, of, content)
    _, pending = asked()

    with pytest.raises(CannotOpen):
        read_creation(found, TDN, [SEALING], NOW_NS)
    with pytest.raises(CannotOpen):
        read_creation_answer(found, pending, ALICE, known(), TRUSTED, NOW_NS)
    with pytest.raises(CannotOpen):
        read_introduction(found, ALICE.eid, nonce("1"), reply_key("1"), TRUSTED, NOW_NS)
    with pytest.raises(CannotOpen):
        open_key(found, OWNER.uuid, ALICE.eid, ALICE.sealing)


@given(inside=contents.map(json.dumps).map(str.encode) | st.binary(max_size=50))
@settings(deadline=None)
def test_anything_that_is_sealed_rightly_is_read_or_refused(inside: bytes) -> None:
    public = SEALING.public_key().public_bytes_raw()
    _, pending = asked()
    reply = pending.reply_key.public_key().public_bytes_raw()

    with pytest.raises(TocsinError):
        read_creation(seal(CREATE, inside, public, TDN.eid, nonce("1")), TDN, [SEALING], 0)
    answered = seal(CREATED, inside, reply, ALICE.eid, nonce("1"))
    with pytest.raises(TocsinError):
        read_creation_answer(answered, pending, ALICE, known(), TRUSTED, NOW_NS)
    introduced = seal(ANSWER, inside, reply, ALICE.eid, nonce("1"))
    with pytest.raises(TocsinError):
        read_introduction(introduced, ALICE.eid, nonce("1"), pending.reply_key, TRUSTED, NOW_NS)


@given(content=st.binary(max_size=2_000), seed=st.text(max_size=5))
def test_what_is_sealed_is_opened_by_its_recipient(content: bytes, seed: str) -> None:
    key = reply_key(seed)
    public = key.public_key().public_bytes_raw()

    sealed = seal("kind", content, public, ALICE.eid, nonce(seed))

    assert open_sealed(sealed, "kind", [TEXT, key], ALICE.eid, nonce(seed)) == content
    with pytest.raises(CannotOpen):
        open_sealed(sealed, "kind", [TEXT], ALICE.eid, nonce(seed))
    with pytest.raises(CannotOpen):
        open_sealed(sealed, "kind", [], ALICE.eid, nonce(seed))


def test_a_message_that_is_too_long_is_neither_sealed_nor_opened() -> None:
    public = TEXT.public_key().public_bytes_raw()

    with pytest.raises(TooLarge):
        seal("kind", bytes(SEALED_BYTES_MAX + 1), public, ALICE.eid, nonce("1"))
    long = Sealed("kind", ALICE.eid, nonce("1"), bytes(3 * SEALED_BYTES_MAX))
    with pytest.raises(CannotOpen, match="it has 3145728 bytes"):
        open_sealed(long, "kind", [TEXT], ALICE.eid, nonce("1"))


def test_the_largest_request_fits_into_the_largest_advertisement() -> None:
    """A node never signs what nobody may read."""
    from tocsin.topics.advertisement import SCHEMA_BYTES_MAX, Schema
    from tocsin.topics.descriptors import DESCRIPTORS_BYTES_MAX, check_descriptors

    most = Descriptors(
        paths=tuple(f"{n}/{'é' * 80}" for n in range(32)),
        text='"' * 2_000,
        xml="<a>é</a>" + " " * 1_900,
    )
    check_descriptors(most)
    assert len(msgspec.json.encode(most)) > DESCRIPTORS_BYTES_MAX * 0.9
    schema = Schema("json-schema", '"' * (SCHEMA_BYTES_MAX))
    largest: dict[str, Any] = {
        "descriptors": most, "schema": schema, "synopsis": StringSynopsis(path="é" * 250)
    }  # fmt: skip

    signed_one, made = opened(**largest)
    private, _ = created(is_private=True, **largest)

    assert verify(signed_one, TRUSTED, NOW_NS) == made
    assert isinstance(private, EncryptedAdvertisement)
    topic = verify_private(private, TRUSTED, NOW_NS)
    key = open_key(topic.key, topic.uuid, ALICE.eid, ALICE.sealing)
    assert decrypt(topic, key) is not None
    assert share_key(key, topic.uuid, ALICE.entity)


@given(content=st.binary(max_size=300))
def test_any_bytes_are_no_certificate_and_no_identity(content: bytes) -> None:
    with pytest.raises(TocsinError):
        certified_entity(content, bytes(32), NOW_NS)
    with pytest.raises(TocsinError):
        TRUSTED.check(content, NOW_NS)
    with pytest.raises(TocsinError):
        read_identity(content, content, content, "here")


def test_a_request_does_not_grow_with_the_versions_before_it() -> None:
    """Each names the one before by its hash. With the whole of it inside, base64 in base64, the
    eighth would be a hundred times the first."""
    lengths = []
    last: tuple[SignedAdvertisement, Any] | None = None
    for number in range(8):
        last = opened(previous=last, seed=str(number))
        lengths.append(len(last[0].jws))

    assert lengths[1] == lengths[-1]
    sealed, _ = request_creation(
        identity("alice", institution="CGL"), wanted(), known(), nonce("1"), TEXT, NOW_NS, last
    )
    assert len(sealed.content) < 20_000
