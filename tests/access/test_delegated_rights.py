"""Rights that owners of topics have granted: they hold beside the rules, in every session in which
somebody has proved to have the key, and end with what gives them."""

from __future__ import annotations

import msgspec
from principals import Site

from tocsin.access.decision import Action
from tocsin.access.policy.delegated import DelegatedRight, DelegatedRights
from tocsin.access.policy.policy import Policy
from tocsin.access.policy.rights import Right
from tocsin.access.policy.tokens import Token, hash_of
from tocsin.access.session import Credential, CredentialKind, Principal, Session
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.errors import NotAllowed
from tocsin.event.event import Event
from tocsin.event.instant import NS_PER_S
from tocsin.event.topic import TopicPattern

TOPIC = "radar/5f0c1d2e-3a4b-870c-8d9e-aabbccddeeff"
ALICE, BOB = "a" * 40, "b" * 40


class Clock:
    now_ns = 1_000 * NS_PER_S

    def __call__(self) -> int:
        return self.now_ns


def session_of(entity_id: str, key: str = "certificate/ca/1") -> Session:
    kind = CredentialKind(key.partition("/")[0])
    return Session(
        Principal(f"somebody {entity_id[:1]}"),
        "http",
        "",
        Credential(kind, key, entity_id=entity_id),
    )


def granted(entity_id: str, *actions: Action, ends_ns: int | None = None) -> DelegatedRight:
    pattern = TopicPattern((*TOPIC.split("/"), "**"))
    right = Right(frozenset(actions), topic=pattern, expires_ns=ends_ns)
    return DelegatedRight(entity_id, "grant/7", right)


def may_publish(policy: Policy, session: Session, topic: str = TOPIC) -> bool:
    try:
        policy.decide_events(session, [Event("1", "/s", "t", topic=topic)])
    except NotAllowed:
        return False
    return True


def fetched(site: Site, session: Session, box: SubscriptionView) -> list[str]:
    """Ids of what a box has, which are released."""
    box_id = box.subscription.id
    pulled = site.runtime.run(site.port.pull(session, box_id, 10, 0, None))
    site.runtime.run(site.port.pull(session, box_id, 1, 0, pulled.next))
    return [each.event.id for each in pulled.events]


def test_a_right_is_that_of_whoever_has_the_key_and_of_nobody_else() -> None:
    policy = Policy(Clock())
    policy.delegated.put("7", granted(ALICE, Action.PUBLISH))

    assert may_publish(policy, session_of(ALICE))
    assert may_publish(policy, session_of(ALICE, "openid/1"))
    assert may_publish(policy, session_of(ALICE), f"{TOPIC}/below")
    assert not may_publish(policy, session_of(ALICE), "radar/other")
    assert not may_publish(policy, session_of(BOB))
    assert not may_publish(policy, session_of(""))
    assert not policy.allows(session_of(ALICE), Action.SUBSCRIBE, "events", TOPIC)
    explained = policy.explain(session_of(ALICE), Action.PUBLISH, TOPIC)
    assert (explained.allowed, explained.reason) == (True, "grant/7")


def test_it_ends_when_it_is_dropped_and_when_its_time_is_over() -> None:
    clock = Clock()
    delegated = DelegatedRights()
    policy = Policy(clock, delegated=delegated)
    delegated.put("7", granted(ALICE, Action.PUBLISH, ends_ns=clock.now_ns + NS_PER_S))
    delegated.put("8", granted(BOB, Action.PUBLISH))
    assert policy.next_end_ns(clock.now_ns) == clock.now_ns + NS_PER_S
    assert may_publish(policy, session_of(ALICE))

    clock.now_ns += NS_PER_S

    assert not may_publish(policy, session_of(ALICE))
    assert may_publish(policy, session_of(BOB))
    delegated.drop("8")
    assert not may_publish(policy, session_of(BOB))
    assert len(delegated) == 1
    assert delegated.rights_of(BOB) == []


def test_a_token_with_rights_of_its_own_has_no_others() -> None:
    policy = Policy(Clock())
    policy.delegated.put("7", granted(ALICE, Action.PUBLISH))
    right = Right(frozenset({Action.PUBLISH}), topic=TopicPattern(("other",)))
    scoped = Token("ab", "alice", hash_of("s"), 0, rights=(right,), entity_id=ALICE)
    whole = msgspec.structs.replace(scoped, id="cd", rights=None)
    policy.set_token(scoped)
    policy.set_token(whole)

    assert not may_publish(policy, session_of(ALICE, scoped.key))
    assert may_publish(policy, session_of(ALICE, whole.key))


def test_what_is_sent_later_goes_by_the_rights_of_the_key_of_who_asked_for_it() -> None:
    site = Site()
    subscriber = session_of(ALICE)
    site.policy.delegated.put("7", granted(ALICE, Action.SUBSCRIBE))
    box = site.subscribe(subscriber, sink=None)
    site.publish(Event("1", "/s", "t", topic=TOPIC), Event("2", "/s", "t", topic="other"))
    assert fetched(site, subscriber, box) == ["1"]

    site.policy.delegated.drop("7")
    site.publish(Event("3", "/s", "t", topic=TOPIC))
    site.policy.delegated.put("7", granted(ALICE, Action.SUBSCRIBE))
    site.publish(Event("4", "/s", "t", topic=TOPIC))

    assert fetched(site, subscriber, box) == ["4"]
