"""Rules and tokens decide: what is not granted is refused, and what ends is over at once."""

from __future__ import annotations

import pytest

from tocsin.access.decision import Action
from tocsin.access.policy.policy import Policy
from tocsin.access.policy.rights import Right, read_right, read_rule, write_rule
from tocsin.access.policy.tokens import Token, hash_of
from tocsin.access.session import (
    BROKER,
    Credential,
    CredentialKind,
    Principal,
    Session,
    anonymous,
    internal,
)
from tocsin.errors import BadRight, NotAllowed, NotSignedIn
from tocsin.event.event import Event
from tocsin.event.filter_text import parse_filter
from tocsin.event.instant import NS_PER_S
from tocsin.event.subscription import Owner


class Clock:
    now_ns = 1_000 * NS_PER_S

    def __call__(self) -> int:
        return self.now_ns


def signed_in(name: str, *groups: str, key: str = "openid/x") -> Session:
    kind = CredentialKind(key.partition("/")[0])
    return Session(Principal(name, frozenset(groups)), "http", "", Credential(kind, key))


def policy_of(*rules: dict[str, object], clock: Clock | None = None) -> Policy:
    policy = Policy(clock or Clock())
    policy.set_rules([read_rule(rule, str(number), 0) for number, rule in enumerate(rules)])
    return policy


def event(topic: str, load: int = 0) -> Event:
    return Event("1", "/s", "t", topic=topic, attributes={"load": load})


def may_publish(policy: Policy, session: Session, published: Event) -> bool:
    try:
        policy.decide_events(session, [published])
    except NotAllowed:
        return False
    return True


def token(policy: Policy, name: str, *rights: Right, bounded: bool = False) -> Session:
    made = Token("ab", name, hash_of("s"), 0, None, rights=rights or None, is_bounded=bounded)
    policy.set_token(made)
    return signed_in(name, key=made.key)


def test_who_has_no_rule_may_do_nothing() -> None:
    policy = policy_of({"principal": "ann", "action": "publish", "topic": "lead/**"})

    for action in Action:
        with pytest.raises(NotAllowed):
            policy.decide(signed_in("bob"), action, "status")
    assert not may_publish(policy, signed_in("bob"), event("lead/a"))


def test_who_shows_no_credential_is_asked_for_one() -> None:
    policy = policy_of({"principal": "ann", "action": "publish"})

    with pytest.raises(NotSignedIn):
        policy.decide_events(anonymous("http"), [event("lead/a")])


def test_a_rule_for_anonymous_is_for_everybody_without_a_credential() -> None:
    policy = policy_of({"principal": "anonymous", "action": "publish", "topic": "public/**"})

    policy.decide_events(anonymous("http"), [event("public/a")])
    with pytest.raises(NotSignedIn):
        policy.decide_events(anonymous("http"), [event("lead/a")])


def test_a_rule_is_about_its_topics_alone() -> None:
    policy = policy_of({"principal": "ann", "action": "publish", "topic": "lead/*/radar"})

    assert may_publish(policy, signed_in("ann"), event("lead/ohio/radar"))
    assert not may_publish(policy, signed_in("ann"), event("lead/ohio/wind"))
    assert not may_publish(policy, signed_in("ann"), event(""))


def test_a_content_filter_looks_at_each_event() -> None:
    rule = {"principal": "ann", "action": "publish", "topic": "lead/**", "filter": "load < 5"}
    policy = policy_of(rule)

    assert may_publish(policy, signed_in("ann"), event("lead/a", 4))
    assert not may_publish(policy, signed_in("ann"), event("lead/a", 6))


def test_members_of_a_group_have_its_rights_however_they_are_members() -> None:
    policy = policy_of({"group": "ops", "action": "*"})
    policy.set_groups({"ops": frozenset({"bob"})})

    assert may_publish(policy, signed_in("bob"), event("a"))
    assert may_publish(policy, signed_in("ann", "ops"), event("a"))
    assert not may_publish(policy, signed_in("ann", "others"), event("a"))


def test_a_rule_ends_by_itself() -> None:
    clock = Clock()
    policy = Policy(clock)
    rule = {"principal": "ann", "action": "publish", "expires": "PT10S"}
    policy.set_rules([read_rule(rule, "1", clock.now_ns)])
    assert may_publish(policy, signed_in("ann"), event("a"))
    assert policy.next_end_ns(clock.now_ns) == clock.now_ns + 10 * NS_PER_S

    clock.now_ns += 10 * NS_PER_S

    assert not may_publish(policy, signed_in("ann"), event("a"))


def test_a_right_to_subscribe_is_to_filters_that_overlap_with_it() -> None:
    policy = policy_of({"principal": "ann", "action": "subscribe", "topic": "lead/**"})
    for text, allowed in (("topic lead/x", True), ("load > 5", True), ("topic ops/**", False)):
        wanted = parse_filter(text)
        found = policy.explain(signed_in("ann"), Action.SUBSCRIBE, f"filter/{text}", wanted)
        assert found.allowed is allowed, text


def test_what_somebody_made_is_theirs_while_they_have_the_right() -> None:
    policy = policy_of({"principal": "ann", "action": "subscribe", "topic": "lead/**"})
    own, others = Owner("ann", credential="openid/x"), Owner("bob", credential="openid/x")

    policy.decide(signed_in("ann"), Action.SUBSCRIBE, "subscription/1", own)
    for owner in (others, None):
        with pytest.raises(NotAllowed):
            policy.decide(signed_in("ann"), Action.SUBSCRIBE, "subscription/1", owner)
    with pytest.raises(NotAllowed):
        policy.decide(signed_in("bob"), Action.SUBSCRIBE, "subscription/1", others)


def test_a_token_with_rights_has_those_alone() -> None:
    policy = policy_of({"principal": "ann", "action": "*"})
    session = token(policy, "ann", read_right({"action": "publish", "topic": "lead/**"}, 0))

    assert may_publish(policy, session, event("lead/a"))
    assert not may_publish(policy, session, event("ops/a"))
    with pytest.raises(NotAllowed):
        policy.decide(session, Action.READ, "events")


def test_a_bounded_token_gives_nothing_that_its_principal_has_not() -> None:
    policy = policy_of({"principal": "ann", "action": "publish", "topic": "lead/**"})
    session = token(policy, "ann", read_right({"action": "*"}, 0), bounded=True)

    assert may_publish(policy, session, event("lead/a"))
    assert not may_publish(policy, session, event("ops/a"))


def test_a_revoked_token_signs_nobody_in() -> None:
    policy = policy_of({"principal": "ann", "action": "*"})
    session = token(policy, "ann")
    permit = policy.permit(session.owner, Action.SUBSCRIBE)
    assert permit is not None
    assert permit.allows(event("a"))
    before = permit.version

    policy.set_token(Token("ab", "ann", hash_of("s"), 0, revoked_ns=1))

    with pytest.raises(NotSignedIn):
        policy.decide_events(session, [event("a")])
    assert permit.is_empty
    assert permit.version != before
    assert not permit.allows(event("a"))


def test_a_token_that_is_unknown_signs_nobody_in() -> None:
    policy = policy_of({"principal": "ann", "action": "*"})

    with pytest.raises(NotSignedIn):
        policy.decide_events(signed_in("ann", key="token/other"), [event("a")])


def test_nobody_signs_in_as_the_broker() -> None:
    policy = policy_of()

    policy.decide(internal("x"), Action.MANAGE, "status")
    assert Principal("broker") != BROKER
    with pytest.raises(NotAllowed):
        policy.decide(signed_in("broker"), Action.MANAGE, "status")
    with pytest.raises(BadRight):
        read_rule({"principal": "broker", "action": "*"}, "1", 0)


def test_everything_is_what_has_no_topic_too() -> None:
    policy = policy_of(
        {"principal": "ann", "action": "read"},
        {"principal": "bob", "action": "read", "topic": "lead/**"},
        {"principal": "eve", "action": "read", "resource": "run/*"},
    )

    policy.decide(signed_in("ann"), Action.READ, "status")
    policy.decide(signed_in("eve"), Action.READ, "run/r1")
    for name in ("bob", "eve"):
        with pytest.raises(NotAllowed):
            policy.decide(signed_in(name), Action.READ, "status")


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"action": "fly"},
        {"action": "read", "topic": "a//b"},
        {"action": "read", "filter": "load <"},
        {"action": "read", "expires": "soon"},
        {"action": "read", "resource": "nonsense/x"},
        {"action": "read", "resource": "run/x", "topic": "a"},
        {"action": "read", "topik": "a"},
        {"action": [], "topic": "a"},
        {"action": "read", "withheld": "yes"},
        {"action": "read", "topic": 7},
    ],
)
def test_a_right_that_cannot_be_read_is_refused(written: dict[str, object]) -> None:
    with pytest.raises(BadRight):
        read_right(written, 0)


def test_a_rule_is_shown_as_it_is_written() -> None:
    written = {
        "principal": "ann",
        "action": ["publish", "read"],
        "topic": "lead/**",
        "filter": "load < 5",
        "expires": "2027-01-31T12:00:00.000Z",
        "withheld": True,
    }

    assert write_rule(read_rule(written, "1", 0)) == written


def test_a_clock_that_is_right_again_gives_back_what_ended_by_a_wrong_one() -> None:
    clock = Clock()
    policy = Policy(clock)
    rule = {"principal": "ann", "action": "publish", "expires": "PT10S"}
    policy.set_rules([read_rule(rule, "1", clock.now_ns)])
    key = token(policy, "bob", read_right({"action": "publish", "expires": "PT10S"}, clock.now_ns))
    clock.now_ns += 3_600 * NS_PER_S
    for session in (signed_in("ann"), key):
        assert not may_publish(policy, session, event("a"))

    clock.now_ns -= 3_600 * NS_PER_S

    for session in (signed_in("ann"), key):
        assert may_publish(policy, session, event("a"))
