"""Advertisements: a node that lies is found out by everybody who reads what it signed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from creating import (
    ALICE,
    DAY_NS,
    MALLORY,
    NOW_NS,
    NS,
    OPEN,
    OTHER_TDN,
    SECRET,
    TDN,
    TRUSTED,
    asked,
    chance,
    lied,
    opened,
    said,
)
from msgspec.structs import replace

from tocsin.access.decision import Action
from tocsin.access.delegation import statements
from tocsin.access.delegation.chain import GRANT_KIND, Terms, first_link, read_chain
from tocsin.access.sign_in.certificates import Authorities
from tocsin.errors import (
    AdvertisementEnded,
    BadAdvertisement,
    BadCredential,
    BadSignedStatement,
    BadSynopsis,
    GrantRefused,
    TocsinError,
)
from tocsin.topics.advertisement import (
    CLOCK_SKEW_NS,
    TOPIC_KIND,
    SignedAdvertisement,
    digest,
    topic_uuid,
    verify,
)
from tocsin.topics.creation import create
from tocsin.topics.identity import Identity, self_signed
from tocsin.topics.private import (
    EncryptedAdvertisement,
    decrypt,
    open_key,
    read_signed,
    share_key,
    verify_private,
)
from tocsin.topics.synopsis import IntegerSynopsis, PairsSynopsis, StringSynopsis, place
from tocsin.topics.tombstone import (
    WITHDRAWAL_KIND,
    check_not_withdrawn,
    read_withdrawal,
    withdraw,
)
from tocsin.topics.trust import TrustedTdns
from tocsin.topics.verified import VerifiedAdvertisements


def refused(signed: SignedAdvertisement, why: str) -> None:
    with pytest.raises((BadAdvertisement, BadSignedStatement, BadSynopsis), match=why):
        verify(signed, TRUSTED, NOW_NS)


# Hole 1: the creator's key is inside, and nobody else can be made the owner.


def test_a_lying_node_cannot_give_an_existing_topic_to_another_creator() -> None:
    signed, first = opened()
    request, _ = asked(creator=MALLORY)
    theirs = said(signed)

    for salt, origin in ((theirs.salt, theirs.origin), (chance("x"), TDN.eid)):
        synopsis = place(request.request.synopsis, first.uuid)
        lie = replace(
            theirs, salt=salt, origin=origin, synopsis=synopsis, request=request.signed,
            digest=digest(request.signed, synopsis),
        )  # fmt: skip
        refused(lied(TDN, lie, MALLORY), f"was not made for the creator {MALLORY.eid}")


def test_a_lying_node_cannot_make_up_what_the_creator_did_not_ask_for() -> None:
    signed, _ = opened()
    forged = statements.sign(
        "tocsin-topic-request+jws", asked()[0].request, MALLORY.signing
    )  # in the name of the creator

    with pytest.raises(BadSignedStatement, match="not signed by"):
        verify(lied(TDN, replace(said(signed), request=forged)), TRUSTED, NOW_NS)


def test_a_lying_node_cannot_reuse_a_request_for_another_version_or_node() -> None:
    signed, _ = opened()
    true = said(signed)

    refused(lied(TDN, replace(true, version=2)), "asked for version 1, not 2")
    refused(lied(OTHER_TDN, replace(true, tdn=OTHER_TDN.eid)), "another one answered")
    refused(lied(OTHER_TDN, true), f"is signed by {OTHER_TDN.eid}")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"uuid": "00000000-0000-870c-8000-000000000000"}, "was not made for"),
        ({"uuid": "x"}, "was not made for"),
        ({"salt": b""}, "salt"),
        ({"salt": bytes(32)}, "was not made for"),
        ({"origin": OTHER_TDN.eid}, "from the node that signs it"),
        ({"origin": "x"}, "salt or the id"),
        ({"synopsis": StringSynopsis(path="lab/radar", topic="lab/radar/x")}, "not the one that"),
        ({"synopsis": StringSynopsis(path="lab/radar")}, "not the one that"),
        ({"digest": ""}, "digest"),
        ({"created_ns": NOW_NS + 31 * DAY_NS}, "ends before it begins"),
        ({"created_ns": -1}, "ends before it begins"),
        ({"expires_ns": NOW_NS + 30 * DAY_NS + CLOCK_SKEW_NS + 1}, "later than the creator"),
        ({"request": ""}, "cannot be used"),
    ],
)
def test_every_part_that_a_node_could_change_is_checked(changed: dict[str, Any], why: str) -> None:
    signed, _ = opened()

    refused(lied(TDN, replace(said(signed), **changed)), why)
    assert verify(lied(TDN, said(signed)), TRUSTED, NOW_NS)  # which is what the node signed


def test_a_value_is_not_exchanged_for_one_that_only_python_takes_for_the_same() -> None:
    signed, made = opened(synopsis=PairsSynopsis(pairs={"a": True}))
    other = PairsSynopsis(topic=made.topic, pairs={"a": 1})
    assert other == made.synopsis  # to Python

    refused(lied(TDN, replace(said(signed), synopsis=other)), "not the one that")


def test_an_integer_is_not_exchanged_for_no_integer() -> None:
    signed, made = opened(synopsis=IntegerSynopsis(path="n", integer=7))
    other = IntegerSynopsis(path="n", topic=made.topic)

    refused(lied(TDN, replace(said(signed), synopsis=other)), "not the one that")


def test_only_nodes_sign_advertisements() -> None:
    signed, _ = opened()

    refused(lied(MALLORY, replace(said(signed), tdn=MALLORY.eid)), "not trusted")
    # Another's certificate beside it, and a certificate that Mallory made with the same name.
    refused(replace(lied(MALLORY, said(signed)), tdn_certificate=TDN.certificate), "not signed by")
    with pytest.raises(BadAdvertisement, match="not trusted"):
        verify(signed, TrustedTdns(Authorities()), NOW_NS)


def test_the_creators_certificate_is_of_its_key() -> None:
    signed, _ = opened()

    refused(replace(signed, creator_certificate=MALLORY.certificate), "not that of the creator")
    for content in (b"", b"x", signed.creator_certificate[:-1]):
        with pytest.raises(BadCredential):
            verify(replace(signed, creator_certificate=content), TRUSTED, NOW_NS)


def test_an_advertisement_is_no_other_kind_of_statement() -> None:
    signed, _ = opened()
    other = statements.sign(GRANT_KIND, said(signed), TDN.signing)

    refused(replace(signed, jws=other), "names the type")


def test_two_topics_of_one_creator_have_two_owners_of_one_key() -> None:
    _, one = opened()
    _, two = opened(seed="2")

    assert one.owner.key.eid == two.owner.key.eid == ALICE.eid
    assert one.owner.uuid != two.owner.uuid
    assert topic_uuid(one.origin, one.creator.key.thumbprint, one.salt) == one.uuid


@pytest.mark.parametrize("kind", ["p256", "ed25519"])
def test_creators_and_nodes_have_keys_of_every_kind(kind: str) -> None:
    from creating import identity

    node, creator = identity("n", kind=kind, is_tdn=True), identity("c", kind=kind)
    trusted = TrustedTdns(Authorities(), frozenset({node.eid}))

    _, made = opened(creator=creator, tdn=node, trusted=trusted)

    assert (made.tdn, made.creator.eid) == (node.eid, creator.eid)


def test_a_grant_by_the_creator_holds_for_every_version_and_for_this_topic_alone() -> None:
    first, other = opened(), opened(seed="2")
    _, second = opened(previous=first, seed="3")
    terms = Terms(frozenset({Action.PUBLISH}), NOW_NS, NOW_NS + DAY_NS, prefix="x")

    chain = [first_link(first[1].owner, ALICE.signing, MALLORY.signing.public, terms, "0" * 32)]

    for made in (first[1], second):
        right = read_chain(chain, made.owner)
        assert right.holder.eid == MALLORY.eid
        assert right.allows(Action.PUBLISH, f"{made.topic}/x")
        assert not right.allows(Action.PUBLISH, made.topic)
    with pytest.raises(GrantRefused, match=r"link 1 .*another topic"):
        read_chain(chain, other[1].owner)
    _, theirs = opened(creator=MALLORY)
    with pytest.raises(GrantRefused, match=r"link 1 .*not signed by"):
        read_chain(chain, theirs.owner)


# Hole 4: withdrawals, and older versions.


def test_the_creator_withdraws_a_version_and_all_before_it() -> None:
    first = opened()
    _, second = opened(previous=first, seed="2")

    withdrawal = read_withdrawal(withdraw(first[1], ALICE, NOW_NS), NOW_NS)

    assert (withdrawal.uuid, withdrawal.creator) == (first[1].uuid, ALICE.eid)
    assert withdrawal.expires_ns == first[1].expires_ns
    with pytest.raises(AdvertisementEnded, match="was withdrawn"):
        check_not_withdrawn(first[1].version, withdrawal)
    check_not_withdrawn(second.version, withdrawal)


@pytest.mark.parametrize("by", [MALLORY, TDN], ids=["somebody", "the node"])
def test_nobody_else_withdraws_a_topic(by: Identity) -> None:
    _, made = opened()
    text = withdraw(made, ALICE, NOW_NS)
    parts = statements.parse(WITHDRAWAL_KIND, text)
    true = msgspec.json.decode(parts.payload)
    spki = msgspec.to_builtins(by.entity)["spki"]

    with pytest.raises(BadSignedStatement, match="not signed by"):
        read_withdrawal(statements.sign(WITHDRAWAL_KIND, true, by.signing), NOW_NS)
    with pytest.raises(BadSignedStatement, match="is not that of"):
        read_withdrawal(statements.sign(WITHDRAWAL_KIND, true | {"spki": spki}, by.signing), NOW_NS)


@pytest.mark.parametrize(
    "changed",
    [
        {"version": 0},
        {"version": 2**40},
        {"uuid": "x"},
        {"uuid": "00000000-0000-870c-8000-000000000000"},
        {"origin": "x"},
        {"salt": ""},
        {"salt": "!"},
        {"expires_ns": -1},
        {"expires_ns": 2**63},
        {"withdrawn_ns": NOW_NS + CLOCK_SKEW_NS + NS},
        {"spki": ""},
    ],
)
def test_a_withdrawal_that_is_malformed_is_refused(changed: dict[str, Any]) -> None:
    _, made = opened()
    parts = statements.parse(WITHDRAWAL_KIND, withdraw(made, ALICE, NOW_NS))
    content = msgspec.json.decode(parts.payload) | changed

    with pytest.raises((BadSignedStatement, BadCredential)):
        read_withdrawal(statements.sign(WITHDRAWAL_KIND, content, ALICE.signing), NOW_NS)


# Encrypted advertisements.


def test_a_private_topic_is_read_by_its_creator_and_whom_it_gives_the_key() -> None:
    from creating import created

    encrypted, mine = created(is_private=True)
    assert not isinstance(encrypted, SignedAdvertisement)
    topic = verify_private(encrypted, TRUSTED, NOW_NS)

    assert (topic.uuid, topic.creator, topic.version) == (mine.uuid, ALICE.eid, 1)
    assert (
        b"radar" not in statements.parse("tocsin-private-topic+jws", encrypted.jws, 200_000).payload
    )
    key = open_key(topic.key, topic.uuid, ALICE.eid, ALICE.sealing)
    shared = share_key(key, topic.uuid, MALLORY.entity)
    assert open_key(shared, topic.uuid, MALLORY.eid, MALLORY.sealing) == key
    assert read_signed(topic, key, TRUSTED, NOW_NS)[1] == mine

    for eid, sealing in ((MALLORY.eid, MALLORY.sealing), (ALICE.eid, MALLORY.sealing)):
        with pytest.raises(TocsinError, match="cannot be opened"):
            open_key(topic.key, topic.uuid, eid, sealing)
    with pytest.raises(TocsinError, match="has another key"):
        decrypt(topic, bytes(32))
    other = "00000000-0000-870c-8000-000000000000"
    with pytest.raises(TocsinError, match="cannot be opened"):
        open_key(topic.key, other, ALICE.eid, ALICE.sealing)


def test_one_key_never_encrypts_two_texts() -> None:
    """AES-GCM tells all if it does. The request comes again when the node has a new certificate."""
    request, _ = asked(is_private=True)
    renewed = Identity(
        TDN.signing, TDN.sealing, self_signed(TDN.signing, 7, NOW_NS, name="tdn-1"), TDN.entity
    )

    topics = []
    for node in (TDN, TDN, renewed):
        made = create(request, node, SECRET, OPEN, TRUSTED, NOW_NS)
        assert isinstance(made, EncryptedAdvertisement)
        topics.append(verify_private(made, TRUSTED, NOW_NS))
    keys = [open_key(each.key, each.uuid, ALICE.eid, ALICE.sealing) for each in topics]

    assert keys[0] == keys[1] != keys[2]
    assert topics[0].ciphertext == topics[1].ciphertext
    assert len({each.uuid for each in topics}) == 1


def test_a_private_topic_is_what_it_says_openly() -> None:
    from creating import created

    encrypted, _ = created(is_private=True)
    topic = verify_private(encrypted, TRUSTED, NOW_NS)
    key = open_key(topic.key, topic.uuid, ALICE.eid, ALICE.sealing)

    for changed in (
        {"version": 2},
        {"creator": MALLORY.eid},
        {"uuid": "00000000-0000-870c-8000-000000000000"},
    ):
        with pytest.raises(TocsinError, match="has another key"):
            read_signed(replace(topic, **changed), key, TRUSTED, NOW_NS)
    longer = replace(topic, expires_ns=topic.expires_ns + 1)
    with pytest.raises(BadAdvertisement, match="another topic than the one"):
        read_signed(longer, key, TRUSTED, NOW_NS)


def test_an_encrypted_advertisement_is_signed_by_a_node() -> None:
    from creating import created

    encrypted, _ = created(is_private=True)
    assert not isinstance(encrypted, SignedAdvertisement)
    parts = statements.parse("tocsin-private-topic+jws", encrypted.jws, 200_000)
    true = msgspec.json.decode(parts.payload)

    def signed(by: Identity, kind: str = "tocsin-private-topic+jws", **changed: Any) -> Any:
        jws = statements.sign(kind, true | changed, by.signing)
        return replace(encrypted, jws=jws, tdn_certificate=by.certificate)

    assert verify_private(signed(TDN), TRUSTED, NOW_NS)
    for bad in (
        signed(MALLORY),
        signed(OTHER_TDN),
        signed(TDN, TOPIC_KIND),
        signed(TDN, uuid="x"),
        signed(TDN, creator="x"),
        signed(TDN, version=0),
        signed(TDN, created_ns=0, expires_ns=0),
        signed(TDN, key=None),
    ):
        with pytest.raises((BadAdvertisement, BadSignedStatement)):
            verify_private(bad, TRUSTED, NOW_NS)


# What is remembered.


def test_what_was_verified_once_is_known_until_its_node_is_trusted_no_more() -> None:
    signed, made = opened()
    verified = VerifiedAdvertisements(TRUSTED)

    assert verified.verify(signed, NOW_NS) == made
    assert verified.verify(signed, NOW_NS) is verified.verify(signed, NOW_NS)
    for bad in (
        replace(signed, creator_certificate=MALLORY.certificate),
        replace(signed, tdn_certificate=OTHER_TDN.certificate),
        replace(signed, jws=signed.jws[:-4] + "AAAA"),
    ):
        with pytest.raises((BadAdvertisement, BadSignedStatement)):
            verified.verify(bad, NOW_NS)
    verified.trusted = TrustedTdns(Authorities())
    with pytest.raises(BadAdvertisement, match="not trusted"):
        verified.verify(signed, NOW_NS)


def test_as_many_are_remembered_as_are_allowed() -> None:
    three = [opened(seed=str(n))[0] for n in range(3)]
    size = len(three[0].jws) + len(TDN.certificate) + len(ALICE.certificate)
    verified = VerifiedAdvertisements(TRUSTED, kept_bytes_max=2 * size + size // 2)

    for each in (three[0], three[1], three[0], three[2]):
        verified.verify(each, NOW_NS)
    # The same text with another certificate of its creator takes the place of the first.
    other = self_signed(ALICE.signing, 7, NOW_NS, name="alice")
    verified.verify(replace(three[0], creator_certificate=other), NOW_NS)
    verified.verify(three[0], NOW_NS)

    assert len(verified) == 2
    first = verified.verify(three[0], NOW_NS)  # it was asked for after the second
    assert verified.verify(three[0], NOW_NS) is first
