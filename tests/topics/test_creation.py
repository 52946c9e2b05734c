"""Creating a topic in the six steps of paper 003, section 8, and what an attacker can do there."""

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
    SEALING,
    SECRET,
    TDN,
    TRUSTED,
    asked,
    chance,
    created,
    known,
    nonce,
    opened,
    reply_key,
    wanted,
)
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec.structs import replace

from pki import CLIENT, authority, made, name
from tocsin.access.delegation import statements
from tocsin.access.delegation.keys import PrivateKey
from tocsin.access.sign_in.certificates import TDN_USAGE, Authorities, Authority, key_id
from tocsin.errors import (
    AdvertisementEnded,
    BadAdvertisement,
    BadCredential,
    BadDescriptors,
    BadSignedStatement,
    BadSynopsis,
    CannotOpen,
    CreationRefused,
    TocsinError,
)
from tocsin.topics import creation
from tocsin.topics.advertisement import (
    REQUEST_KIND,
    CreationRequest,
    Schema,
    SignedAdvertisement,
    check_valid,
    verify,
)
from tocsin.topics.creation import (
    CREATE,
    CreationRules,
    answer,
    create,
    read_creation,
    read_creation_answer,
    request_creation,
)
from tocsin.topics.descriptors import Descriptors
from tocsin.topics.envelope import Sealed, seal
from tocsin.topics.identity import Identity, new_identity
from tocsin.topics.identity import identity as of_keys
from tocsin.topics.introduction import (
    FRESH_NS,
    ask_for_tdns,
    introduce,
    read_introduction,
    read_question,
)
from tocsin.topics.synopsis import StringSynopsis, uuid_of
from tocsin.topics.trust import TrustedTdns

SITE = authority()
AUTHORITIES = Authorities([Authority(SITE.certificate, key_id(SITE.certificate))])


def site_identity(common: str, *usages: Any, institution: str = "", **how: Any) -> Identity:
    """Of somebody whose certificate the site's authority has signed."""
    subject = name(common)
    key = new_identity(chance(common, 96), NOW_NS, name=common).signing.key
    found = made(subject, SITE, key=key, usages=usages or CLIENT, **how)
    der = found.certificate.public_bytes(Encoding.DER)
    return of_keys(PrivateKey(key), reply_key(common), der)


def test_the_six_steps() -> None:
    # 1. The entity asks for nodes,
    one, two = reply_key("question"), reply_key("creation")
    question = read_question(ask_for_tdns(ALICE, nonce("q"), one, NOW_NS), NOW_NS)
    # 2. and a node answers what only the entity can read.
    public = SEALING.public_key().public_bytes_raw()
    introduced = introduce(question, TDN, public, NOW_NS + DAY_NS)
    tdn = read_introduction(introduced, ALICE.eid, nonce("q"), one, TRUSTED, NOW_NS)
    assert tdn.tdn == TDN.eid
    # 3. The entity asks for the topic,
    sealed, pending = request_creation(ALICE, wanted(), tdn, nonce("c"), two, NOW_NS)
    assert b"radar" not in msgspec.json.encode(sealed)
    # 4. the node makes the advertisement,
    request = read_creation(sealed, TDN, [SEALING], NOW_NS)
    made = create(request, TDN, SECRET, OPEN, TRUSTED, NOW_NS)
    # 5. signs it, and seals it to the entity,
    answered = answer(request, made, TDN)
    assert b"jws" not in answered.content
    # 6. which checks it, and may then advertise it.
    signed, mine = read_creation_answer(answered, pending, ALICE, tdn, TRUSTED, NOW_NS)

    assert isinstance(signed, SignedAdvertisement)
    assert verify(signed, TRUSTED, NOW_NS) == mine  # as every other node does
    assert mine.topic == f"lab/radar/{mine.uuid}"
    assert uuid_of(mine.synopsis) == mine.uuid
    assert (mine.creator, mine.tdn, mine.origin) == (ALICE.entity, TDN.eid, TDN.eid)
    assert mine.descriptors == wanted().descriptors
    assert mine.expires_ns == NOW_NS + 30 * DAY_NS
    assert mine.owner.allows(ALICE.eid, f"{mine.topic}/x")
    check_valid(mine, mine.expires_ns - 1)
    with pytest.raises(AdvertisementEnded, match="has expired"):
        check_valid(mine, mine.expires_ns)


def test_a_request_that_comes_twice_has_one_answer_and_the_node_keeps_nothing() -> None:
    request, _ = asked()

    first, second = (create(request, TDN, SECRET, OPEN, TRUSTED, NOW_NS + n) for n in (0, NS))

    assert first == second


def test_two_requests_are_two_topics_and_so_are_those_at_two_nodes() -> None:
    uuids = {
        opened(seed="1")[1].uuid,
        opened(seed="2")[1].uuid,
        opened(creator=MALLORY)[1].uuid,
        opened(tdn=OTHER_TDN, secret=chance("other"))[1].uuid,
        opened(secret=chance("other"))[1].uuid,
    }
    assert len(uuids) == 5


# Hole 2: what is sealed says who signed it, and is for one recipient, one request and one purpose.


def test_a_sealed_answer_opens_for_its_request_alone() -> None:
    request, pending = asked()
    sealed = answer(request, create(request, TDN, SECRET, OPEN, TRUSTED, NOW_NS), TDN)
    _, other = asked(seed="2")

    def read(found: Sealed, by: Identity = ALICE, of: creation.Pending = pending) -> object:
        return read_creation_answer(found, of, by, known(), TRUSTED, NOW_NS)

    assert read(sealed)
    with pytest.raises(CannotOpen):
        read(sealed, by=MALLORY)
    with pytest.raises(CannotOpen):
        read(sealed, of=other)  # another nonce, and another key
    with pytest.raises(CannotOpen):
        read(sealed, of=replace(other, nonce=pending.nonce))
    with pytest.raises(CannotOpen):
        read(replace(sealed, nonce=other.nonce), of=replace(other, reply_key=pending.reply_key))
    with pytest.raises(CannotOpen):
        read(replace(sealed, recipient=MALLORY.eid), by=MALLORY)
    with pytest.raises(CannotOpen):
        read(replace(sealed, kind=CREATE))
    for at in range(0, len(sealed.content), 97):
        changed = bytearray(sealed.content)
        changed[at] ^= 1
        with pytest.raises(CannotOpen):
            read(replace(sealed, content=bytes(changed)))


def test_an_old_answer_is_none_to_a_new_request_although_the_nonce_is_used_again() -> None:
    request, _ = asked()
    old = answer(request, create(request, TDN, SECRET, OPEN, TRUSTED, NOW_NS), TDN)
    # The same nonce and, worse, the same key, for another topic: what is signed is compared.
    later, pending = asked(synopsis=StringSynopsis(path="other"))

    with pytest.raises(CreationRefused, match="something else than what it was asked for"):
        read_creation_answer(old, pending, ALICE, known(), TRUSTED, NOW_NS)
    assert later.request.nonce == request.request.nonce


def test_whoever_can_seal_an_answer_still_has_to_be_the_node() -> None:
    """Sealing proves nothing: Mallory seals to the right key, and has no right to sign."""
    request, pending = asked()
    forged = create(
        replace(request, request=replace(request.request, tdn=MALLORY.eid)),
        MALLORY, SECRET, OPEN, TrustedTdns(Authorities(), frozenset({MALLORY.eid})), NOW_NS,
    )  # fmt: skip

    with pytest.raises(BadAdvertisement, match="not trusted"):
        read_creation_answer(
            answer(request, forged, MALLORY), pending, ALICE, known(), TRUSTED, NOW_NS
        )
    refused = answer(request, CreationRefused("go away", remedy="."), MALLORY)
    with pytest.raises(BadSignedStatement):
        read_creation_answer(refused, pending, ALICE, known(), TRUSTED, NOW_NS)


def test_a_request_is_for_one_node_which_no_other_can_use() -> None:
    sealed, _ = request_creation(ALICE, wanted(), known(), nonce("1"), reply_key("1"), NOW_NS)
    with pytest.raises(CannotOpen):
        read_creation(sealed, OTHER_TDN, [SEALING], NOW_NS)

    # A node that passes on what it was asked, as if it were asked by the creator there.
    request = read_creation(sealed, TDN, [SEALING], NOW_NS)
    message = {"request": request.signed, "certificate": request.certificate}
    public = SEALING.public_key().public_bytes_raw()
    passed_on = seal(CREATE, msgspec.json.encode(message), public, OTHER_TDN.eid, nonce("1"))
    with pytest.raises(CreationRefused, match="for another node"):
        read_creation(passed_on, OTHER_TDN, [SEALING], NOW_NS)


def test_a_request_of_another_time_is_refused() -> None:
    sealed, _ = request_creation(ALICE, wanted(), known(), nonce("1"), reply_key("1"), NOW_NS)

    read_creation(sealed, TDN, [SEALING], NOW_NS + FRESH_NS)
    for at_ns in (NOW_NS + FRESH_NS + 1, NOW_NS - FRESH_NS - 1):
        with pytest.raises(BadSignedStatement, match="was made 300 s from now"):
            read_creation(sealed, TDN, [SEALING], at_ns)


def test_a_key_that_the_node_had_before_still_opens() -> None:
    sealed, _ = request_creation(ALICE, wanted(), known(), nonce("1"), reply_key("1"), NOW_NS)

    assert read_creation(sealed, TDN, [reply_key("new"), SEALING], NOW_NS)
    with pytest.raises(CannotOpen, match="another key"):
        read_creation(sealed, TDN, [reply_key("new")], NOW_NS)


# Hole 3: the id of an entity is its key's, and nobody can have answers sent to a victim.


def test_nobody_asks_in_the_name_of_a_victim() -> None:
    question = ask_for_tdns(MALLORY, nonce("q"), reply_key("q"), NOW_NS)
    assert read_question(question, NOW_NS).asker.eid == MALLORY.eid

    parts = statements.parse("tocsin-tdn-question+jws", question)
    content = msgspec.json.decode(parts.payload)
    content["asker"]["spki"] = msgspec.to_builtins(ALICE.entity)["spki"]
    forged = statements.sign("tocsin-tdn-question+jws", content, MALLORY.signing)
    with pytest.raises(BadSignedStatement, match="not signed by"):
        read_question(forged, NOW_NS)

    victims = MALLORY.entity.__class__(
        ALICE.entity.spki, MALLORY.entity.sealing_key, "alice", "CGL"
    )
    liar = Identity(MALLORY.signing, MALLORY.sealing, ALICE.certificate, victims)
    with pytest.raises(BadSignedStatement, match="not signed by"):
        asked(creator=liar)


def test_a_creator_has_the_name_of_its_certificate() -> None:
    for claimed in (
        replace(MALLORY.entity, name="alice"),
        replace(MALLORY.entity, institution="CGL"),
    ):
        liar = Identity(MALLORY.signing, MALLORY.sealing, MALLORY.certificate, claimed)
        with pytest.raises(CreationRefused, match="its certificate says"):
            created(creator=liar)
    stolen = Identity(MALLORY.signing, MALLORY.sealing, ALICE.certificate, MALLORY.entity)
    with pytest.raises(CreationRefused, match="of another key"):
        created(creator=stolen)


def test_a_site_with_an_authority_serves_those_whom_it_certified() -> None:
    rules = CreationRules(AUTHORITIES, accepts_self_signed=False)
    member = site_identity("bob")

    assert created(creator=member, rules=rules)[1].creator.eid == member.eid
    with pytest.raises(BadCredential, match="none of the authorities"):
        created(creator=ALICE, rules=rules)
    serial = f"certificate/{key_id(SITE.certificate)}"
    own = f"{serial}/{_serial(member):x}"
    with pytest.raises(CreationRefused, match="revoked"):
        created(creator=member, rules=replace(rules, revoked=frozenset({own})))


def _serial(of: Identity) -> int:
    from cryptography import x509

    return x509.load_der_x509_certificate(of.certificate).serial_number


# Hole 7: to be a node is a right in the certificate.


def test_a_member_of_the_site_without_the_right_is_no_node() -> None:
    trusted = TrustedTdns(AUTHORITIES)
    node = site_identity("node", *CLIENT, TDN_USAGE)
    member = site_identity("bob")

    question = read_question(ask_for_tdns(ALICE, nonce("q"), reply_key("q"), NOW_NS), NOW_NS)
    public = SEALING.public_key().public_bytes_raw()

    def introduced(by: Identity) -> object:
        sealed = introduce(question, by, public, NOW_NS + DAY_NS)
        key = reply_key("q")
        return read_introduction(sealed, ALICE.eid, nonce("q"), key, trusted, NOW_NS)

    assert introduced(node)
    for other in (member, MALLORY, TDN):  # TDN has signed for itself that it is one
        with pytest.raises(BadAdvertisement, match="not trusted"):
            introduced(other)


def test_a_node_whose_certificate_was_revoked_is_none() -> None:
    node = site_identity("node", *CLIENT, TDN_USAGE)
    credential = f"certificate/{key_id(SITE.certificate)}/{_serial(node):x}"

    assert TrustedTdns(AUTHORITIES).check(node.certificate, NOW_NS)
    with pytest.raises(BadAdvertisement, match="revoked"):
        TrustedTdns(AUTHORITIES, revoked=frozenset({credential})).check(node.certificate, NOW_NS)


def test_that_a_certificate_was_checked_is_remembered_while_it_is_valid() -> None:
    node = site_identity("node", *CLIENT, TDN_USAGE)
    trusted = TrustedTdns(AUTHORITIES)
    found = trusted.check(node.certificate, NOW_NS)

    assert trusted.check(node.certificate, NOW_NS + NS) == found
    assert trusted.check(node.certificate, found.expires_ns - 1) == found
    begins_ns = NOW_NS - 2_000 * DAY_NS
    for at_ns in (found.expires_ns, begins_ns):
        with pytest.raises(BadAdvertisement, match="not trusted"):
            trusted.check(node.certificate, at_ns)


def test_an_advertisement_ends_with_the_certificate_of_its_node() -> None:
    node = site_identity("node", *CLIENT, TDN_USAGE)
    trusted = TrustedTdns(AUTHORITIES)

    _, mine = created(tdn=node, trusted=trusted, lifetime_ns=360 * DAY_NS)

    assert mine.expires_ns == trusted.check(node.certificate, NOW_NS).expires_ns
    assert mine.expires_ns < NOW_NS + 360 * DAY_NS


def test_introductions_are_for_their_question() -> None:
    key = reply_key("q")
    question = read_question(ask_for_tdns(ALICE, nonce("q"), key, NOW_NS), NOW_NS)
    other = read_question(ask_for_tdns(ALICE, nonce("r"), key, NOW_NS), NOW_NS)
    public = SEALING.public_key().public_bytes_raw()
    old = introduce(other, TDN, public, NOW_NS + DAY_NS)

    with pytest.raises(CannotOpen):
        read_introduction(old, ALICE.eid, nonce("q"), key, TRUSTED, NOW_NS)
    replayed = introduce(replace(other, nonce=question.nonce), TDN, public, NOW_NS)
    with pytest.raises(BadSignedStatement, match="not used any more"):
        read_introduction(replayed, ALICE.eid, nonce("q"), key, TRUSTED, NOW_NS)


# What is wanted is checked by the node, and the reason comes back.


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"lifetime_ns": 0}, BadAdvertisement),
        ({"lifetime_ns": 100 * 366 * DAY_NS}, BadAdvertisement),
        ({"descriptors": Descriptors(text="x" * 3_000)}, BadDescriptors),
        ({"descriptors": Descriptors(xml="<a>")}, BadDescriptors),
        ({"descriptors": Descriptors(xml="<!DOCTYPE a><a/>")}, BadDescriptors),
        ({"descriptors": Descriptors(xml="<a>" + "<b/>" * 300 + "</a>")}, BadDescriptors),
        ({"descriptors": Descriptors(paths=("a//b",))}, BadDescriptors),
        ({"descriptors": Descriptors(keywords=("",))}, BadDescriptors),
        ({"descriptors": Descriptors(properties={"a b": 1})}, BadDescriptors),
        ({"descriptors": Descriptors(properties={"a": "x" * 300})}, BadDescriptors),
        ({"schema": Schema("json-schema", "x" * 10_000)}, BadAdvertisement),
    ],
)
def test_what_no_node_keeps_is_refused_and_the_creator_learns_why(
    changed: dict[str, Any], error: type[TocsinError]
) -> None:
    request, pending = asked(**changed)
    with pytest.raises(error) as caught:
        create(request, TDN, SECRET, OPEN, TRUSTED, NOW_NS)

    refused = answer(request, caught.value, TDN)

    with pytest.raises(CreationRefused, match=caught.value.code):
        read_creation_answer(refused, pending, ALICE, known(), TRUSTED, NOW_NS)


def test_the_creator_learns_why_it_is_refused() -> None:
    request, pending = asked(lifetime_ns=400 * DAY_NS)
    with pytest.raises(CreationRefused) as caught:
        create(request, TDN, SECRET, OPEN, TRUSTED, NOW_NS)

    sealed = answer(request, caught.value, TDN)

    with pytest.raises(CreationRefused, match=r"at most 366 days \[T365\]"):
        read_creation_answer(sealed, pending, ALICE, known(), TRUSTED, NOW_NS)


def test_nothing_can_be_sealed_to_a_point_that_everybody_can_compute() -> None:
    request, _ = asked()
    weak = replace(request, request=replace(request.request, reply_key=bytes(32)))

    with pytest.raises(BadCredential, match="nothing can be sealed"):
        answer(weak, CreationRefused("x", remedy="y"), TDN)


# Versions.


def test_a_later_version_is_made_like_the_first_and_stays_on_its_topic() -> None:
    first = opened()

    _, second = opened(previous=first, seed="2", descriptors=Descriptors(text="new"))
    _, elsewhere = opened(previous=first, seed="3", tdn=OTHER_TDN, secret=chance("other"))

    assert (second.version, second.uuid, second.topic) == (2, first[1].uuid, first[1].topic)
    assert second.previous == first[1].hash
    assert (elsewhere.tdn, elsewhere.origin) == (OTHER_TDN.eid, TDN.eid)
    assert elsewhere.uuid == first[1].uuid


def test_nobody_makes_a_version_of_somebody_elses_topic() -> None:
    first = opened()
    request, _ = asked(creator=MALLORY, previous=first)

    with pytest.raises(CreationRefused, match=f"is that of {ALICE.eid}"):
        create(request, TDN, SECRET, OPEN, TRUSTED, NOW_NS)


def test_a_version_is_the_next_of_the_one_that_came_with_it() -> None:
    first, other = opened(), opened(seed="2")
    request, _ = asked(previous=first, seed="3")

    for before in (other[0], None):
        with pytest.raises(CreationRefused, match="version"):
            create(replace(request, previous=before), TDN, SECRET, OPEN, TRUSTED, NOW_NS)
    moved, _ = asked(previous=first, seed="3", synopsis=StringSynopsis(path="elsewhere"))
    with pytest.raises(CreationRefused, match="stays on its topic"):
        create(moved, TDN, SECRET, OPEN, TRUSTED, NOW_NS)
    skipped = replace(request, request=replace(request.request, version=7))
    with pytest.raises(CreationRefused, match="not the one before"):
        create(skipped, TDN, SECRET, OPEN, TRUSTED, NOW_NS)


def test_no_topic_is_made_below_somebody_elses() -> None:
    _, first = opened()

    with pytest.raises(BadSynopsis, match="below somebody's topic"):
        created(creator=MALLORY, synopsis=StringSynopsis(path=f"{first.topic}/mine"))


def test_a_signed_request_cannot_be_changed_by_the_node_that_reads_it() -> None:
    request, _ = asked()
    parts = statements.parse(REQUEST_KIND, request.signed, 40 << 10)
    changed = replace(
        statements.content(REQUEST_KIND, parts, CreationRequest), descriptors=Descriptors()
    )
    forged = statements.sign(REQUEST_KIND, changed, TDN.signing)

    from tocsin.topics.advertisement import read_request

    with pytest.raises(BadSignedStatement, match="not signed by"):
        read_request(forged)
