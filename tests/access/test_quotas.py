"""Quotas, in simulated time: each holder has his own, and what is given back can be had again."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from tocsin.access.quotas.quotas import HOLDERS_MAX, Quotas
from tocsin.access.quotas.rules import Quota, QuotaRule
from tocsin.access.session import (
    ANONYMOUS,
    Credential,
    CredentialKind,
    Principal,
    Session,
    internal,
)
from tocsin.errors import QuotaReached
from tocsin.event.instant import NS_PER_S

TOKEN = Credential(CredentialKind.TOKEN, "token/1")


def session(name: str, peer: str = "192.0.2.1:5000", *groups: str) -> Session:
    return Session(Principal(name, frozenset(groups)), "http", peer, TOKEN)


def stranger(peer: str) -> Session:
    return Session(ANONYMOUS, "http", peer)


def everybody(burst: float | None = None, **limits: float) -> QuotaRule:
    return QuotaRule({Quota(name): each for name, each in limits.items()}, burst, principal="*")


def is_taken(quotas: Quotas, who: Session, count: int, now_s: float, size: int = 0) -> bool:
    try:
        quotas.publish(who, count, size, int(now_s * NS_PER_S))
    except QuotaReached:
        return False
    return True


def test_a_rate_lets_the_burst_pass_at_once_and_then_so_many_a_second() -> None:
    quotas, ann = Quotas([everybody(publish_rate=10, burst=20)]), session("ann")

    assert sum(is_taken(quotas, ann, 1, 0.0) for _ in range(100)) == 20
    assert sum(is_taken(quotas, ann, 1, 1.0) for _ in range(100)) == 10
    assert sum(is_taken(quotas, ann, 1, 100.0) for _ in range(100)) == 20
    assert quotas.reached[Quota.PUBLISH_RATE] == 250


def test_over_any_time_no_more_passes_than_the_burst_and_the_rate_allow() -> None:
    quotas, ann = Quotas([everybody(publish_rate=10, burst=20)]), session("ann")

    passed = sum(
        count
        for step in range(1_000)
        if is_taken(quotas, ann, count := 1 + step * 7 % 40, step / 100)
    )

    # A batch over the burst passes when nothing was for a while; what follows waits for it.
    assert passed <= 20 + 10 * 10 + 40


def test_a_refusal_says_when_to_try_again_and_then_it_is_taken() -> None:
    quotas, ann = Quotas([everybody(publish_rate=10, burst=10)]), session("ann")
    quotas.publish(ann, 10, 0, 0)

    with pytest.raises(QuotaReached) as caught:
        quotas.publish(ann, 5, 0, 0)

    assert caught.value.retry_after_s == 0.5
    assert is_taken(quotas, ann, 5, 0.5)


def test_who_has_used_up_his_quota_takes_nothing_from_others() -> None:
    quotas = Quotas([everybody(publish_rate=1, subscriptions=1)])

    assert [is_taken(quotas, session("ann"), 1, 0) for _ in range(2)] == [True, False]
    assert is_taken(quotas, session("bob"), 1, 0)
    assert is_taken(quotas, stranger("192.0.2.1:1"), 1, 0)
    assert is_taken(quotas, stranger("192.0.2.2:1"), 1, 0)
    assert not is_taken(quotas, stranger("192.0.2.2:2"), 1, 0)


def test_the_broker_itself_has_no_quota() -> None:
    quotas = Quotas([everybody(publish_rate=1)])

    assert all(is_taken(quotas, internal("archive"), 100, 0) for _ in range(10))


def test_ones_own_limit_goes_before_that_of_a_group_and_that_before_everybodys() -> None:
    quotas = Quotas(
        [
            everybody(subscriptions=1, boxes=1, streams=1),
            QuotaRule({Quota.SUBSCRIPTIONS: 5, Quota.BOXES: 5}, group="sensors"),
            QuotaRule({Quota.SUBSCRIPTIONS: 8}, group="more"),
            QuotaRule({Quota.SUBSCRIPTIONS: 3}, principal="ann"),
        ]
    )

    def limits(who: Session) -> dict[Quota, float]:
        (holder,) = quotas.holders(who)
        return dict(holder.limits.by_quota)

    own = {Quota.SUBSCRIPTIONS: 3, Quota.BOXES: 5, Quota.STREAMS: 1}
    assert limits(session("ann", "x:1", "sensors")) == own
    assert limits(session("bob", "x:1", "sensors", "more"))[Quota.SUBSCRIPTIONS] == 8
    assert limits(session("eve"))[Quota.SUBSCRIPTIONS] == 1


def test_another_credential_with_other_groups_is_the_same_holder() -> None:
    quotas = Quotas(
        [everybody(subscriptions=1), QuotaRule({Quota.SUBSCRIPTIONS: 2}, group="sensors")]
    )

    quotas.claim(session("ann"), Quota.SUBSCRIPTIONS, "1", lambda _: True)
    quotas.claim(session("ann", "x:1", "sensors"), Quota.SUBSCRIPTIONS, "2", lambda _: True)

    for who in (session("ann"), session("ann", "x:1", "sensors")):
        with pytest.raises(QuotaReached):
            quotas.claim(who, Quota.SUBSCRIPTIONS, "3", lambda _: True)


def test_an_address_has_a_quota_of_its_own_by_the_smallest_network() -> None:
    quotas = Quotas(
        [
            QuotaRule({Quota.PUBLISH_RATE: 1}, 1, peer="*"),
            QuotaRule({Quota.PUBLISH_RATE: 2}, 2, network=ip_network("192.0.2.0/24")),
            QuotaRule({Quota.PUBLISH_RATE: 3}, 3, network=ip_network("192.0.2.7/32")),
        ]
    )

    def taken(peer: str) -> int:
        return sum(is_taken(quotas, session(f"p{n}", peer), 1, 0) for n in range(10))

    assert taken("192.0.2.7:1") == 3
    assert taken("192.0.2.8:1") == 2
    assert taken("[2001:db8::1]:1") == 1
    assert taken("[2001:db8::2]:1") == 0  # of the same network of 64 bits
    assert taken("127.0.0.1:1") == 10  # all programs of this machine, and a proxy


def test_what_is_refused_for_one_holder_is_taken_from_none() -> None:
    quotas = Quotas(
        [
            everybody(publish_rate=10, in_flight_bytes=100),
            QuotaRule({Quota.PUBLISH_RATE: 1}, 1, peer="*"),
        ]
    )
    ann = session("ann")
    quotas.publish(ann, 1, 10, 0)

    for _ in range(100):
        assert not is_taken(quotas, ann, 1, 0, 10)
    holder, _ = quotas.holders(ann)

    assert holder.used(Quota.PUBLISH_RATE) == 1
    assert holder.in_flight == 10


def test_bytes_in_flight_come_back_with_the_answer_and_one_large_event_is_let_through() -> None:
    quotas, ann = Quotas([everybody(in_flight_bytes=100)]), session("ann")

    held = quotas.publish(ann, 1, 500, 0)
    assert not is_taken(quotas, ann, 1, 0, 1)
    quotas.settle(held, 500)

    assert is_taken(quotas, ann, 1, 0, 60)
    assert not is_taken(quotas, ann, 1, 0, 60)


def test_what_is_over_counts_no_longer() -> None:
    quotas, ann, there = Quotas([everybody(boxes=2)]), session("ann"), {"a", "b", "c"}

    quotas.claim(ann, Quota.BOXES, "a", there.__contains__)
    quotas.claim(ann, Quota.BOXES, "b", there.__contains__)
    with pytest.raises(QuotaReached) as caught:
        quotas.claim(ann, Quota.BOXES, "c", there.__contains__)
    there.remove("a")
    quotas.claim(ann, Quota.BOXES, "c", there.__contains__)

    assert caught.value.problem == "ann has reached its quota of message boxes, which is 2"


def test_a_claim_that_failed_is_given_up_and_one_that_is_kept_has_its_name() -> None:
    quotas, ann = Quotas([everybody(streams=1)]), session("ann")

    quotas.give_up(
        quotas.claim(ann, Quota.STREAMS, "new 1", lambda _: True), Quota.STREAMS, "new 1"
    )
    held = quotas.claim(ann, Quota.STREAMS, "new 2", lambda _: True)
    quotas.rename(held, Quota.STREAMS, "new 2", "7", lambda name: name != "7")

    quotas.claim(ann, Quota.STREAMS, "new 3", lambda _: True)


def test_connections_are_counted_until_they_end() -> None:
    quotas, ann = Quotas([everybody(connections=2)]), session("ann")

    held = [quotas.connect(ann, quotas.holders(ann)) for _ in range(2)]
    with pytest.raises(QuotaReached):
        quotas.connect(ann, quotas.holders(ann))
    quotas.disconnect(held[0])

    quotas.connect(ann, quotas.holders(ann))


def test_who_reaches_a_quota_is_reported() -> None:
    told: list[tuple[Session, str, str]] = []
    quotas, ann = Quotas([everybody(boxes=1)]), session("ann")
    quotas.on_reached = lambda *about: told.append(about)
    quotas.claim(ann, Quota.BOXES, "a", lambda _: True)

    with pytest.raises(QuotaReached):
        quotas.claim(ann, Quota.BOXES, "b", lambda _: True)

    assert told == [(ann, Quota.BOXES, "ann has reached its quota of message boxes, which is 1")]


def test_holders_who_have_nothing_are_forgotten_when_there_are_many() -> None:
    quotas = Quotas([everybody(boxes=1)])
    quotas.claim(session("ann"), Quota.BOXES, "a", lambda _: True)

    for number in range(3 * HOLDERS_MAX):
        quotas.holders(session(f"p{number}"))

    assert len(quotas._principals.by_key) <= HOLDERS_MAX
    with pytest.raises(QuotaReached):
        quotas.claim(session("ann"), Quota.BOXES, "b", lambda _: True)
