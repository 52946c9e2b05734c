"""Which decisions are written one by one, and which are summed up."""

from __future__ import annotations

import pytest

from tocsin.access.audit.records import AuditOptions, AuditSummary, Kind, record_of
from tocsin.access.decision import Action, Decision
from tocsin.access.policy.policy import Policy
from tocsin.access.policy.publishers import PUBLISHERS_MAX
from tocsin.access.policy.rights import read_right
from tocsin.access.policy.tokens import Token, hash_of
from tocsin.access.session import Credential, CredentialKind, Principal, Session, anonymous
from tocsin.errors import NotAllowed, NotSignedIn
from tocsin.event.event import Event
from tocsin.event.instant import NS_PER_S


def session(name: str, peer: str = "192.0.2.1:5000") -> Session:
    credential = Credential(CredentialKind.TOKEN, f"token/{name}")
    return Session(Principal(name), "http", peer, credential)


def decision(action: str, resource: str, *, allowed: bool, who: str = "ann") -> Decision:
    reason = "rule/1" if allowed else "no rule"
    return Decision(session(who), Action(action), resource, allowed, reason)


@pytest.mark.parametrize(
    ("action", "allowed"),
    [
        ("publish", False),
        ("read", False),
        ("subscribe", False),
        ("manage", False),
        ("subscribe", True),
        ("manage", True),
    ],
)
def test_refusals_and_what_is_managed_or_subscribed_to_are_records_of_their_own(
    action: str, allowed: bool
) -> None:
    summary = AuditSummary(AuditOptions(), 0)

    record = summary.decided(decision(action, "lead/ohio/radar", allowed=allowed), 7)

    assert record is not None
    assert (record.principal, record.credential) == ("ann", "token/ann")
    assert (record.endpoint, record.peer) == ("http", "192.0.2.1:5000")
    assert (record.action, record.resource) == (action, "lead/ohio/radar")
    assert (record.allowed, record.time_ns, record.count) == (allowed, 7, 1)
    assert summary.flush(9) == []


def test_what_is_published_and_read_is_one_record_a_minute_with_a_count() -> None:
    summary, ann = AuditSummary(AuditOptions(), 0), session("ann")

    for number in range(100):
        summary.published(ann, f"lead/ohio/radar/{number % 3}", "rule/1", 2)
        assert summary.decided(decision("read", f"run/{number}", allowed=True), 5) is None
    published, read = sorted(summary.flush(60), key=lambda each: each.action)

    assert (published.resource, published.count, published.reason) == (
        "lead/ohio/**",
        200,
        "rule/1",
    )
    assert (published.since_ns, published.time_ns, published.peer) == (0, 60, "192.0.2.1")
    assert (read.resource, read.count) == ("run/*", 100)
    assert summary.flush(120) == []
    assert summary.summed == 300


def test_rows_are_told_apart_by_principal_host_reason_and_part_of_the_topic() -> None:
    summary = AuditSummary(AuditOptions(), 0)

    summary.published(session("ann"), "lead/ohio", "rule/1", 1)
    summary.published(session("ann", "192.0.2.1:7"), "lead/ohio", "rule/1", 1)
    summary.published(session("ann", "192.0.2.2:7"), "lead/ohio", "rule/1", 1)
    summary.published(session("bob"), "lead/ohio", "rule/1", 1)
    summary.published(session("ann"), "lead/ohio", "rule/2", 1)
    summary.published(session("ann"), "lead/iowa", "rule/1", 1)

    assert sorted(each.count for each in summary.flush(1)) == [1, 1, 1, 1, 2]


def test_of_a_flood_of_refusals_the_first_are_written_and_the_rest_is_summed_up() -> None:
    summary = AuditSummary(AuditOptions(alike_max=10), 0)

    singles = [
        summary.decided(decision("publish", f"secret/x/{number}", allowed=False), number)
        for number in range(1_000)
    ]
    (row,) = summary.flush(1_000)

    assert sum(each is not None for each in singles) == 10
    assert (row.count, row.allowed, row.resource) == (990, False, "secret/x/**")


def test_a_flood_of_different_refusals_has_a_bounded_number_of_records() -> None:
    options = AuditOptions(singles_max=50, rows_max=20)
    summary = AuditSummary(options, 0)

    singles = [
        summary.decided(decision("read", f"run/{n}", allowed=False, who=f"eve{n}"), n)
        for n in range(1_000)
    ]
    rows = summary.flush(1_000)

    assert sum(each is not None for each in singles) == 50
    assert len(rows) == 21
    assert rows[-1].kind is Kind.REST
    assert 50 + sum(each.count for each in rows) == 1_000


def test_sessions_and_topics_that_are_counted_are_bounded() -> None:
    options = AuditOptions(sessions_max=10, topics_max=10, rows_max=1_000)
    summary = AuditSummary(options, 0)
    many = [session(f"p{n}") for n in range(100)]

    for who in many:
        for number in range(30):
            summary.published(who, f"t/{number}", "rule/1", 1)
        assert len(summary._published) <= 10

    assert sum(each.count for each in summary.flush(1)) == 3_000


def test_failed_sign_ins_and_quotas_are_summed_up_in_a_flood_as_what_they_are() -> None:
    summary = AuditSummary(AuditOptions(alike_max=1), 0)

    for _ in range(5):
        for kind in (Kind.SIGN_IN, Kind.QUOTA):
            summary.one_by_one(
                record_of(kind, anonymous("http", "192.0.2.9:1"), 1, resource="x", allowed=False)
            )

    assert {each.kind: each.count for each in summary.flush(2)} == {Kind.SIGN_IN: 4, Kind.QUOTA: 4}


class Recorded:
    """A recorder that keeps what it is shown."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self.counts: dict[tuple[str, str], int] = {}

    def decided(self, decision: Decision) -> None:
        self.decisions.append(decision)

    def published(self, session: Session, topic: str, reason: str, count: int) -> None:
        key = (topic, reason)
        self.counts[key] = self.counts.get(key, 0) + count


def policy_of(recorder: Recorded, *rights: dict[str, object], expires_ns: int = 10) -> Policy:
    policy = Policy(lambda: 1)
    read = tuple(read_right(each, 0) for each in rights)
    policy.set_token(Token("ann", "ann", hash_of("s"), 0, expires_ns=expires_ns, rights=read))
    policy.recorder = recorder
    return policy


def event(topic: str, value: int = 0) -> Event:
    return Event("1", "/s", "t", topic=topic, attributes={"load5": value})


def test_the_policy_shows_how_many_events_each_rule_let_pass() -> None:
    recorder = Recorded()
    policy = policy_of(
        recorder,
        {"action": "publish", "topic": "lead/**"},
        {"action": "publish", "topic": "load", "filter": "load5 > 3"},
    )

    policy.decide_events(session("ann"), [event("lead/a"), event("lead/b"), event("lead/a")])
    policy.decide_events(session("ann"), [event("load", 5)])
    with pytest.raises(NotAllowed):
        policy.decide_events(session("ann"), [event("load", 5), event("load", 2)])
    with pytest.raises(NotAllowed):
        policy.decide_events(session("ann"), [event("other")])

    policy.report_published()
    assert recorder.counts == {
        ("lead/a", "token/ann"): 2,
        ("lead/b", "token/ann"): 1,
        ("load", "token/ann"): 2,
    }
    assert [each.resource for each in recorder.decisions] == ["load", "other"]
    assert policy.refused[Action.PUBLISH] == 2


def test_a_credential_that_has_ended_is_a_recorded_refusal() -> None:
    recorder = Recorded()
    policy = policy_of(recorder, {"action": "read"})
    policy.set_token(Token("ann", "ann", hash_of("s"), 0, revoked_ns=1))

    with pytest.raises(NotSignedIn):
        policy.decide(session("ann"), Action.READ, "status")
    with pytest.raises(NotSignedIn):
        policy.decide_events(session("ann"), [event("a")])

    assert [(each.resource, each.allowed) for each in recorder.decisions] == [
        ("status", False),
        ("a", False),
    ]


def test_to_ask_what_somebody_may_see_is_no_refusal() -> None:
    recorder = Recorded()
    policy = policy_of(recorder, {"action": "read", "resource": "run/*"})

    assert policy.allows(session("ann"), Action.READ, "run/1")
    assert not policy.allows(session("ann"), Action.READ, "status")
    assert not policy.allows(anonymous("http"), Action.READ, "status")

    assert recorder.decisions == []


def test_what_was_decided_of_a_topic_holds_until_something_changes_or_ends() -> None:
    now_ns = 1
    policy = Policy(lambda: now_ns)
    right = (read_right({"action": "publish", "topic": "lead/**"}, 0),)
    token = Token("ann", "ann", hash_of("s"), 0, expires_ns=100, rights=right)
    policy.set_token(token)
    ann = Session(
        Principal("ann"), "http", "192.0.2.1:1", Credential(CredentialKind.TOKEN, token.key, 100)
    )
    recorder = policy.recorder = Recorded()

    for _ in range(3):
        policy.decide_events(ann, [event("lead/a")])
    policy.set_groups({"x": frozenset({"ann"})})
    assert recorder.counts == {("lead/a", "token/ann"): 3}
    policy.decide_events(ann, [event("lead/a"), event("lead/a")])
    now_ns = 100
    with pytest.raises(NotSignedIn):
        policy.decide_events(ann, [event("lead/a")])
    now_ns = 1
    policy.decide_events(ann, [event("lead/a")])
    policy.set_token(Token("ann", "ann", hash_of("s"), 0, rights=()))
    with pytest.raises(NotAllowed):
        policy.decide_events(ann, [event("lead/a")])

    policy.report_published()
    assert recorder.counts == {("lead/a", "token/ann"): 6}


def test_sessions_and_topics_that_are_known_are_bounded_and_none_is_lost() -> None:
    recorder = Recorded()
    policy = policy_of(recorder, {"action": "publish"})
    credential = Credential(CredentialKind.TOKEN, "token/ann")
    sessions = 2 * PUBLISHERS_MAX

    for number in range(sessions):
        who = Session(Principal("ann"), "soap", f"192.0.2.1:{number}", credential)
        policy.decide_events(who, [event("a"), event("b")])
        assert len(policy._publishers._by_id) <= PUBLISHERS_MAX
    policy.report_published()

    assert recorder.counts == {("a", "token/ann"): sessions, ("b", "token/ann"): sessions}


def test_a_credential_ends_on_time_although_the_time_of_day_is_seldom_asked_for() -> None:
    asked: list[int] = []
    day_ns = steady_ns = 0

    def now_ns() -> int:
        asked.append(day_ns)
        return day_ns

    policy = Policy(now_ns, steady_ns=lambda: steady_ns)
    right = (read_right({"action": "publish"}, 0),)
    policy.set_token(Token("ann", "ann", hash_of("s"), 0, expires_ns=NS_PER_S // 2, rights=right))
    ann = session("ann")
    policy.decide_events(ann, [event("a")])
    asked.clear()

    for _ in range(1_000):
        policy.decide_events(ann, [event("a")])
    assert len(asked) <= 1
    day_ns = steady_ns = NS_PER_S // 2
    with pytest.raises(NotAllowed):
        policy.decide_events(ann, [event("a")])
