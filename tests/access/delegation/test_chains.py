"""Chains of grants: what they give, and every way to get more by one that was thought of."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from granting import (
    ALICE,
    BOB,
    BOTH,
    CAROL,
    DAVE,
    HOUR_NS,
    MALLORY,
    NOW_NS,
    NS,
    OWNED,
    OWNER,
    TOPIC,
    UUID,
    claims,
    forged,
    granted,
    id,
    passed_on,
    terms,
)
from hypothesis import given
from hypothesis import strategies as st

from tocsin.access.decision import Action
from tocsin.access.delegation import statements
from tocsin.access.delegation.chain import (
    CHAIN_CHARS_MAX,
    LINKS_MAX,
    TopicOwner,
    check_allows,
    check_current,
    first_link,
    next_link,
    read_chain,
)
from tocsin.access.delegation.keys import PrivateKey, base64url, jwk
from tocsin.access.delegation.proof import PROOF_KIND
from tocsin.errors import GrantRefused

NONE: frozenset[str] = frozenset()


def refused(chain: tuple[str, ...], match: str, owner: TopicOwner = OWNED) -> GrantRefused:
    with pytest.raises(GrantRefused, match=match) as caught:
        check_current(read_chain(chain, owner), NOW_NS, NONE)
    return caught.value


def test_the_holder_of_a_grant_may_do_what_it_says_below_the_topic_and_nothing_else() -> None:
    right = read_chain(granted(prefix="radar", operations=frozenset({Action.PUBLISH})), OWNED)

    check_current(right, NOW_NS, NONE)
    assert right.holder.eid == ALICE.public.eid
    assert right.allows(Action.PUBLISH, f"{TOPIC}/radar")
    assert right.allows(Action.PUBLISH, f"{TOPIC}/radar/1")
    for topic in (TOPIC, f"{TOPIC}/radar2", f"{TOPIC}/gauge", f"other/{UUID}/radar", UUID, ""):
        assert not right.allows(Action.PUBLISH, topic), topic
    assert not right.allows(Action.SUBSCRIBE, f"{TOPIC}/radar")
    assert str(right.pattern) == f"{TOPIC}/radar/**"


def test_the_owner_needs_no_grant_at_its_topic_and_has_no_right_elsewhere() -> None:
    assert OWNED.allows(OWNER.public.eid, f"{TOPIC}/x")
    assert not OWNED.allows(OWNER.public.eid, f"{TOPIC}x")
    assert not OWNED.allows(ALICE.public.eid, f"{TOPIC}/x")


def test_a_grant_is_passed_on_until_its_depth_is_used_up() -> None:
    four = granted(depth=3)
    for by, to, depth in ((ALICE, BOB, 2), (BOB, CAROL, 1), (CAROL, DAVE, 0)):
        four = passed_on(four, by, to, depth=depth)

    right = read_chain(four, OWNED)

    assert len(four) == LINKS_MAX
    assert right.holder.eid == DAVE.public.eid
    assert sum(map(len, four)) < CHAIN_CHARS_MAX
    with pytest.raises(GrantRefused, match="may not be passed on"):
        passed_on(four, DAVE, MALLORY, depth=0)


# Theft: what somebody else's grant is good for.


def test_a_stolen_chain_is_its_holders_still() -> None:
    # Whoever has the text of a chain has nothing: the broker asks the last holder for a proof.
    assert read_chain(granted(), OWNED).holder.eid == ALICE.public.eid


def test_a_stolen_grant_cannot_be_passed_on_by_the_thief() -> None:
    error = refused(forged(MALLORY, MALLORY, granted()), "link 2 .*not signed by")

    assert f"the holder of link 1, {ALICE.public.eid}" in error.remedy


def test_a_grant_by_somebody_who_does_not_own_the_topic_is_refused() -> None:
    error = refused(forged(MALLORY, MALLORY), "link 1 .*not signed by")

    assert f"the owner of the topic, {OWNER.public.eid}" in error.remedy


def test_a_chain_from_the_owner_of_another_topic_is_refused() -> None:
    other = UUID.replace("0123abcd", "99999999")
    theirs = TopicOwner(other, f"lab/{other}", OWNER.public)

    refused(granted(), "link 1 .*another topic", theirs)
    refused(forged(OWNER, ALICE, top=other), "link 1 .*another topic")


# Widening.


@pytest.mark.parametrize(
    ("first", "then", "why"),
    [
        ({"ops": ["publish"]}, {"ops": ["publish", "subscribe"]}, "to subscribe, which"),
        ({"ops": ["publish"]}, {"ops": ["subscribe"]}, "to subscribe, which"),
        ({"pfx": "radar"}, {"pfx": ""}, "not below 'radar'"),
        ({"pfx": "radar"}, {"pfx": "radar2"}, "not below 'radar'"),
        ({"pfx": "radar/1"}, {"pfx": "radar"}, "not below 'radar/1'"),
        ({"exp": NOW_NS // NS + 60}, {"exp": NOW_NS // NS + 61}, "valid at times"),
        ({"nbf": NOW_NS // NS - 60}, {"nbf": NOW_NS // NS - 61}, "valid at times"),
        ({"dep": 1}, {"dep": 1}, "its depth is 1"),
        ({"dep": 1}, {"dep": 3}, "its depth is 3"),
        ({"dep": 0}, {"dep": 0}, "may not be passed on"),
    ],
)
def test_no_link_is_wider_than_the_one_before_it(
    first: dict[str, Any], then: dict[str, Any], why: str
) -> None:
    one = forged(OWNER, ALICE, **first)

    error = refused(forged(ALICE, BOB, one, **first | {"dep": 0} | then), f"link 2 .*{why}")

    assert ALICE.public.eid in error.remedy


def test_nobody_passes_on_more_than_he_has_by_mistake() -> None:
    publish = frozenset({Action.PUBLISH})
    with pytest.raises(GrantRefused, match=r"link 2 .*to subscribe"):
        passed_on(granted(operations=publish), operations=BOTH)
    with pytest.raises(GrantRefused, match=r"link 2 .*valid at times"):
        passed_on(granted(), expires_ns=NOW_NS + 2 * HOUR_NS)
    with pytest.raises(GrantRefused, match="does not own"):
        first_link(OWNED, MALLORY, BOB.public, terms(), id("1"))
    with pytest.raises(GrantRefused, match="is not the holder"):
        passed_on(granted(), by=MALLORY)


# Chains that are cut, mixed and made of something else.


def test_a_chain_that_is_cut_or_turned_round_is_refused() -> None:
    three = passed_on(passed_on(granted()), BOB, CAROL, depth=0)

    refused(three[1:], "link 1 .*not signed by")
    refused((three[0], three[2]), "link 2 .*not signed by")
    refused(three[::-1], "link 1 .*not signed by")
    refused((three[0], three[0]), "link 2 .*not signed by")
    assert read_chain(three[:2], OWNED).holder.eid == BOB.public.eid


def test_a_link_is_of_one_parent_and_of_no_other_by_the_same_people() -> None:
    narrow = granted(prefix="a")
    wide = granted(prefix="")
    from_wide = passed_on(wide, prefix="a")

    refused((narrow[0], from_wide[1]), "link 2 .*made of another grant")


def test_a_first_link_that_is_made_of_another_is_refused() -> None:
    refused(forged(OWNER, ALICE, prf=statements.digest("x")), "link 1 .*made of another grant")


def test_a_chain_with_an_owner_in_the_middle_is_checked_like_every_other() -> None:
    # The owner is a holder like others there: what it signs is limited by the link before.
    back = passed_on(granted(), ALICE, OWNER, depth=1)
    refused(forged(OWNER, MALLORY, back, dep=1), "link 3 .*depth")


def test_over_depth_is_refused_whoever_signs() -> None:
    chain = granted(depth=3)
    for by, to, depth in ((ALICE, BOB, 2), (BOB, CAROL, 1), (CAROL, DAVE, 0)):
        chain = passed_on(chain, by, to, depth=depth)

    with pytest.raises(GrantRefused, match="a chain of 5 grants"):
        read_chain((*chain, chain[-1]), OWNED)
    with pytest.raises(GrantRefused, match="a chain of 0 grants"):
        read_chain((), OWNED)


def test_a_link_with_the_id_of_an_earlier_one_is_refused() -> None:
    one = granted()
    refused(forged(ALICE, BOB, one, jti=id("1")), "link 2 .*the id of an earlier link")


# Signatures.


def unsigned(header: dict[str, Any], said: dict[str, Any]) -> str:
    return f"{base64url(json.dumps(header).encode())}.{base64url(json.dumps(said).encode())}"


def test_the_algorithm_none_is_refused() -> None:
    for signature in ("", base64url(b"x")):
        text = unsigned({"alg": "none", "typ": "tocsin-grant+jws"}, claims(MALLORY))
        refused((f"{text}.{signature}",), "link 1 .*algorithm is 'none'")


def test_a_public_key_taken_for_a_shared_secret_is_refused() -> None:
    import hashlib
    import hmac

    text = unsigned({"alg": "HS256", "typ": "tocsin-grant+jws"}, claims(MALLORY))
    for secret in (OWNER.public.spki, json.dumps(jwk(OWNER.public)).encode()):
        mac = base64url(hmac.new(secret, text.encode(), hashlib.sha256).digest())
        refused((f"{text}.{mac}",), "link 1 .*algorithm is 'HS256'")


def test_a_key_that_the_sender_brings_in_the_header_is_refused() -> None:
    header = {"alg": "ES256", "typ": "tocsin-grant+jws", "jwk": jwk(MALLORY.public)}
    text = unsigned(header, claims(MALLORY))
    refused((f"{text}.{base64url(MALLORY.sign(text.encode()))}",), "link 1 .*'jwk'")


def test_a_certificate_that_somebody_made_for_the_owners_name_does_not_help() -> None:
    # A chain names keys and never certificates; one in the header is not looked at.
    header = {"alg": "ES256", "typ": "tocsin-grant+jws", "x5c": ["MIIB"], "kid": OWNER.public.eid}
    text = unsigned(header, claims(MALLORY))
    refused((f"{text}.{base64url(MALLORY.sign(text.encode()))}",), "link 1 .*not signed by")


def test_a_signed_statement_of_another_kind_is_no_grant() -> None:
    refused(forged(OWNER, ALICE, kind=PROOF_KIND), "link 1 .*names the type")
    refused(forged(OWNER, ALICE, kind="JWT"), "link 1 .*names the type")


@pytest.mark.parametrize(
    "changed",
    [
        {"top": UUID.upper()},
        {"ops": []},
        {"ops": ["manage"]},
        {"ops": ["read"]},
        {"ops": ["publish", "publish"]},
        {"ops": "publish"},
        {"pfx": "*"},
        {"pfx": "**"},
        {"pfx": "/a"},
        {"pfx": "a/"},
        {"pfx": "../x\0"},
        {"pfx": "a" * 1_000},
        {"nbf": -1},
        {"exp": 0},
        {"exp": 2**63},
        {"exp": 1e300},
        {"dep": -1},
        {"dep": LINKS_MAX},
        {"jti": ""},
        {"jti": "x" * 32},
        {"cnf": {}},
        {"cnf": {"jwk": {"kty": "oct", "k": "c2VjcmV0"}}},
        {"cnf": {"jwk": {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}}},
        {"aud": "a restriction that is not known"},
    ],
)
def test_a_link_that_is_malformed_is_refused_even_from_the_owner(changed: dict[str, Any]) -> None:
    refused(forged(OWNER, ALICE, **changed), "link 1")


def test_a_chain_that_is_too_large_is_refused_before_anything_is_checked() -> None:
    with pytest.raises(GrantRefused, match="1 grants with 9000 characters"):
        read_chain(("a" * 9_000,), OWNED)


# Time and revocation.


def test_a_grant_holds_from_its_beginning_until_its_end() -> None:
    right = read_chain(granted(), OWNED)

    check_current(right, NOW_NS - HOUR_NS, NONE)
    check_current(right, NOW_NS + HOUR_NS - 1, NONE)
    with pytest.raises(GrantRefused, match=r"link 1 .*not valid before"):
        check_current(right, NOW_NS - HOUR_NS - 1, NONE)
    with pytest.raises(GrantRefused, match=r"link 1 .*expired at") as caught:
        check_current(right, NOW_NS + HOUR_NS, NONE)
    assert OWNER.public.eid in caught.value.remedy


def test_the_link_that_has_ended_is_named_and_who_can_give_another() -> None:
    right = read_chain(passed_on(granted(), expires_ns=NOW_NS), OWNED)

    with pytest.raises(GrantRefused, match=r"link 2 .*expired") as caught:
        check_current(right, NOW_NS, NONE)
    assert f"the holder of link 1, {ALICE.public.eid}" in caught.value.remedy


def test_who_revokes_a_grant_revokes_all_that_were_made_of_it() -> None:
    three = passed_on(passed_on(granted()), BOB, CAROL, depth=0)

    for number in (1, 2, 3):
        with pytest.raises(GrantRefused, match=f"link {number} .*revoked"):
            check_current(read_chain(three, OWNED), NOW_NS, frozenset({id(str(number))}))
    check_current(read_chain(three[:2], OWNED), NOW_NS, frozenset({id("3")}))


def test_a_refusal_of_what_the_chain_is_not_about_names_who_can_give_it() -> None:
    right = read_chain(passed_on(granted(), operations=frozenset({Action.PUBLISH})), OWNED)

    check_allows(right, Action.PUBLISH, TOPIC)
    with pytest.raises(GrantRefused, match=r"link 2 .*does not allow to subscribe") as caught:
        check_allows(right, Action.SUBSCRIBE, TOPIC)
    assert ALICE.public.eid in caught.value.remedy
    with pytest.raises(GrantRefused, match=f"link 2 .*is about {TOPIC}"):
        check_allows(right, Action.PUBLISH, "other")


# Properties.

KEYS = [
    PrivateKey(ec.generate_private_key(ec.SECP256R1())),
    PrivateKey(ec.generate_private_key(ec.SECP384R1())),
    PrivateKey(ec.generate_private_key(ec.SECP521R1())),
    PrivateKey(ed25519.Ed25519PrivateKey.generate()),
    PrivateKey(rsa.generate_private_key(65537, 2048)),
]

some_terms = st.builds(
    terms,
    operations=st.sets(st.sampled_from([Action.PUBLISH, Action.SUBSCRIBE])).map(frozenset),
    prefix=st.sampled_from(["", "a", "a/b", "a/b/c", "b"]),
    begins_ns=st.sampled_from([NOW_NS - HOUR_NS, NOW_NS, NOW_NS + NS]),
    expires_ns=st.sampled_from([NOW_NS, NOW_NS + HOUR_NS]),
    depth=st.integers(0, 3),
)


@given(wanted=st.lists(some_terms, min_size=1, max_size=5), data=st.data())
def test_a_chain_only_narrows(wanted: list[Any], data: st.DataObject) -> None:
    holders = [data.draw(st.sampled_from(KEYS)) for _ in wanted]
    chain: tuple[str, ...] = ()
    rights = []
    try:
        for number, (each, to) in enumerate(zip(wanted, holders, strict=True)):
            if number == 0:
                chain = (first_link(OWNED, OWNER, to.public, each, id("0")),)
            else:
                by = holders[number - 1]
                chain = next_link(chain, OWNED, by, to.public, each, id(str(number)))
            rights.append(read_chain(chain, OWNED))
    except GrantRefused:
        pass

    topics = [TOPIC, *(f"{TOPIC}/{each}" for each in ("a", "a/b", "a/b/c", "b", "ab"))]
    for before, after in pairwise(rights):
        assert after.depth < before.depth
        assert before.begins_ns <= after.begins_ns < after.expires_ns <= before.expires_ns
        for operation in Action:
            for topic in topics:
                assert before.allows(operation, topic) or not after.allows(operation, topic)
    assert len(rights) <= LINKS_MAX


@given(
    texts=st.lists(
        st.text(max_size=60)
        | st.builds(
            lambda said: unsigned({"alg": "ES256", "typ": "tocsin-grant+jws"}, said) + ".AAAA",
            st.dictionaries(st.sampled_from([*claims(ALICE), "x"]), st.none() | st.integers()),
        ),
        max_size=6,
    )
)
def test_whatever_comes_as_a_chain_is_refused_in_one_way(texts: list[str]) -> None:
    with pytest.raises(GrantRefused):
        read_chain(texts, OWNED)


@given(
    said=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from([*claims(ALICE), "jwk", "kty"]) | st.text(max_size=5),
                inner,
                max_size=9,
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_an_owner_signs_is_a_good_grant_or_refused_in_one_way(said: Any) -> None:
    payload = json.dumps(said).encode()
    head = base64url(json.dumps({"alg": "ES256", "typ": "tocsin-grant+jws"}).encode())
    body = f"{head}.{base64.urlsafe_b64encode(payload).rstrip(b'=').decode()}"
    text = f"{body}.{base64url(OWNER.sign(body.encode()))}"

    with pytest.raises(GrantRefused, match="link 1"):
        read_chain((text,), OWNED)
