"""Quotas, in simulated time: each holder has his own, and what is given back can be had again."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from tocsin.access.quotas.holders import HOLDERS_MAX, Presence
from tocsin.access.quotas.quotas import Quotas
from tocsin.access.quotas.rules import Quota, QuotaRule
from tocsin.access.session import (
    ANONYMOUS,
    Credential,
    CredentialKind,
    Principal,
    Session,
    internal,
)
from tocsin.config.quota_tables import read_quota
from tocsin.errors import QuotaReached
from tocsin.event.instant import NS_PER_S

HERE = Presence(lambda _: True)
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

    quotas.claim(session("ann"), Quota.SUBSCRIPTIONS, "1", HERE)
    quotas.claim(session("ann", "x:1", "sensors"), Quota.SUBSCRIPTIONS, "2", HERE)

    for who in (session("ann"), session("ann", "x:1", "sensors")):
        with pytest.raises(QuotaReached):
            quotas.claim(who, Quota.SUBSCRIPTIONS, "3", HERE)


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

    quotas.claim(ann, Quota.BOXES, "a", Presence(there.__contains__))
    quotas.claim(ann, Quota.BOXES, "b", Presence(there.__contains__))
    with pytest.raises(QuotaReached) as caught:
        quotas.claim(ann, Quota.BOXES, "c", Presence(there.__contains__))
    there.remove("a")
    quotas.claim(ann, Quota.BOXES, "c", Presence(there.__contains__))

    assert caught.value.problem == "ann has reached its quota of message boxes, which is 2"


def test_a_claim_that_failed_is_given_up_and_one_that_is_kept_has_its_name() -> None:
    quotas, ann = Quotas([everybody(streams=1)]), session("ann")

    quotas.give_up(quotas.claim(ann, Quota.STREAMS, "new 1", HERE), Quota.STREAMS, "new 1")
    held = quotas.claim(ann, Quota.STREAMS, "new 2", HERE)
    quotas.give_up(held, Quota.STREAMS, "new 2")
    quotas.count(held, Quota.STREAMS, "7", Presence(lambda name: name != "7"))

    quotas.claim(ann, Quota.STREAMS, "new 3", HERE)


def test_connections_are_counted_until_they_end() -> None:
    quotas, ann = Quotas([everybody(connections=2)]), session("ann")

    counted = quotas.counted_for(ann)
    for _ in range(2):
        quotas.connect(ann, counted)
    with pytest.raises(QuotaReached):
        quotas.connect(ann, counted)
    quotas.disconnect(counted)

    quotas.connect(ann, counted)


def test_who_reaches_a_quota_is_reported() -> None:
    told: list[tuple[Session, str, str]] = []
    quotas, ann = Quotas([everybody(boxes=1)]), session("ann")
    quotas.on_reached = lambda *about: told.append(about)
    quotas.claim(ann, Quota.BOXES, "a", HERE)

    with pytest.raises(QuotaReached):
        quotas.claim(ann, Quota.BOXES, "b", HERE)

    assert told == [(ann, Quota.BOXES, "ann has reached its quota of message boxes, which is 1")]


def test_holders_who_have_nothing_are_forgotten_when_there_are_many() -> None:
    quotas = Quotas([everybody(boxes=1)])
    quotas.claim(session("ann"), Quota.BOXES, "a", HERE)

    for number in range(3 * HOLDERS_MAX):
        quotas.holders(session(f"p{number}"))

    assert len(quotas._principals.by_key) <= HOLDERS_MAX
    with pytest.raises(QuotaReached):
        quotas.claim(session("ann"), Quota.BOXES, "b", HERE)


def test_new_limits_count_what_was_there_before_and_end_nothing() -> None:
    quotas, ann, there = Quotas([]), session("ann"), {"a", "b", "c"}
    for name in "abc":
        quotas.claim(ann, Quota.STREAMS, name, Presence(there.__contains__))
    quotas.connect(ann, quotas.counted_for(ann))

    quotas.set_rules([everybody(streams=2, connections=1)])

    (holder,) = quotas.holders(ann)
    assert (holder.used(Quota.STREAMS), holder.used(Quota.CONNECTIONS)) == (3, 1)
    with pytest.raises(QuotaReached):
        quotas.connect(ann, quotas.counted_for(ann))
    for gone in "ab":
        with pytest.raises(QuotaReached):
            quotas.claim(ann, Quota.STREAMS, "d", HERE)
        there.remove(gone)
    quotas.claim(ann, Quota.STREAMS, "d", HERE)
    quotas.set_rules([])
    quotas.claim(ann, Quota.STREAMS, "e", HERE)


def test_a_new_rate_has_what_was_taken_of_the_former_one_missing_and_owes_no_more() -> None:
    quotas, ann = Quotas([everybody(publish_rate=10, burst=20)]), session("ann")
    assert is_taken(quotas, ann, 15, 0.0)

    quotas.set_rules([everybody(publish_rate=10, burst=20)])
    assert not is_taken(quotas, ann, 6, 0.0)
    quotas.set_rules([everybody(publish_rate=1, burst=10)])

    assert not is_taken(quotas, ann, 1, 0.0)
    assert is_taken(quotas, ann, 1, 1.0)
    assert not is_taken(quotas, ann, 1, 1.0)
    quotas.set_rules([everybody(publish_rate=1, burst=30)])
    assert is_taken(quotas, ann, 20, 1.0)
    assert not is_taken(quotas, ann, 1, 1.0)


def test_whether_strangers_share_a_limit_may_change_while_they_have_something() -> None:
    shared = QuotaRule({Quota.STREAMS: 2}, principal="anonymous")
    one, other = stranger("192.0.2.1:1"), stranger("192.0.2.2:1")
    quotas = Quotas([everybody(streams=2)])
    for name, who in (("a", one), ("b", one), ("c", other)):
        quotas.claim(who, Quota.STREAMS, name, HERE)

    quotas.set_rules([everybody(streams=2), shared])
    for who in (one, other):
        with pytest.raises(QuotaReached) as caught:
            quotas.claim(who, Quota.STREAMS, "d", HERE)
        assert caught.value.problem.startswith("anonymous has reached")
    quotas.set_rules([everybody(streams=2)])

    quotas.claim(other, Quota.STREAMS, "d", HERE)
    with pytest.raises(QuotaReached):
        quotas.claim(one, Quota.STREAMS, "e", HERE)


def test_limits_follow_the_groups_of_the_settings() -> None:
    members: set[str] = set()
    quotas = Quotas(
        [everybody(boxes=1), QuotaRule({Quota.BOXES: 2}, group="sensors")],
        lambda who: who.groups | ({"sensors"} if who.name in members else frozenset()),
    )
    ann = session("ann")
    quotas.claim(ann, Quota.BOXES, "a", HERE)
    members.add("ann")

    quotas.set_rules(quotas.rules)

    quotas.claim(ann, Quota.BOXES, "b", HERE)
    members.clear()
    quotas.set_rules(quotas.rules)
    assert [each.limits.by_quota[Quota.BOXES] for each in quotas.holders(ann)] == [1]


def test_each_learns_how_often_he_was_refused_himself() -> None:
    quotas = Quotas([QuotaRule({Quota.BOXES: 1}, peer="*")])
    ann, bob = session("ann"), session("bob")
    quotas.claim(ann, Quota.BOXES, "a", HERE)

    for who in (ann, bob, bob):
        with pytest.raises(QuotaReached):
            quotas.claim(who, Quota.BOXES, "b", HERE)

    assert (quotas.reached_by(ann)[Quota.BOXES], quotas.reached_by(bob)[Quota.BOXES]) == (1, 2)
    assert quotas.reached[Quota.BOXES] == 3


def test_what_is_gone_is_forgotten_also_where_nothing_is_limited() -> None:
    quotas, ann, there = Quotas([]), session("ann"), {"0"}
    presence = Presence(there.__contains__)

    for number in range(10_000):
        there.add(str(number))
        quotas.claim(ann, Quota.STREAMS, str(number), presence)
        there.remove(str(number))

    (holder, _) = quotas.counted_for(ann)
    assert len(holder._has[Quota.STREAMS]) < 200


def test_what_has_run_out_counts_again_when_it_is_renewed() -> None:
    quotas, ann, live = Quotas([everybody(registrations=1)]), session("ann"), {"a"}
    quotas.claim(
        ann, Quota.REGISTRATIONS, "a", Presence(live.__contains__, is_kept=lambda name: True)
    )

    live.remove("a")
    quotas.give_up(quotas.claim(ann, Quota.REGISTRATIONS, "b", HERE), Quota.REGISTRATIONS, "b")
    live.add("a")

    with pytest.raises(QuotaReached):
        quotas.claim(ann, Quota.REGISTRATIONS, "b", HERE)


@pytest.mark.parametrize(
    ("written", "peers"),
    [
        ("2001:db8::7", {"[2001:db8::7]:1": 1, "[2001:db8::8]:1": 1, "[2001:db8:1::7]:1": None}),
        ("2001:db8::/48", {"[2001:db8:0:1::7]:1": 1, "[2001:db8:1::7]:1": None}),
        ("::ffff:192.0.2.7", {"192.0.2.7:1": 1, "[::ffff:192.0.2.7]:1": 1, "192.0.2.8:1": None}),
        ("::ffff:192.0.2.0/120", {"192.0.2.8:1": 1, "192.0.3.8:1": None, "[::1]:1": None}),
        ("::1", {"[::1]:1": 1, "127.0.0.1:1": None}),
        ("0.0.0.0/0", {"127.0.0.1:1": 1, "192.0.2.8:1": 1, "[2001:db8::7]:1": None}),
    ],
)
def test_an_address_of_the_settings_is_counted_as_addresses_are(
    written: str, peers: dict[str, float | None]
) -> None:
    """Of IPv6 by its network of 64 bits, whoever of it comes first; one of IPv4 as that."""
    for order in (list(peers), list(reversed(peers))):
        quotas = Quotas([read_quota({"peer": written, "streams": 1}, "here")])

        limits = {each: quotas.peer(each).limits.by_quota.get(Quota.STREAMS) for each in order}

        assert limits == peers
        quotas.set_rules(quotas.rules)
        limits = {each: quotas.peer(each).limits.by_quota.get(Quota.STREAMS) for each in order}
        assert limits == peers
