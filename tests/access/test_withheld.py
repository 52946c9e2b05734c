"""What somebody asked for and has no right to is withheld, counted, and told if a rule says so."""

from __future__ import annotations

from principals import Reader, Site, as_, event

from tocsin.access.decision import Action
from tocsin.access.policy.rights import Right
from tocsin.access.policy.tokens import Token, hash_of
from tocsin.event.filter import EVERYTHING
from tocsin.event.instant import NS_PER_S
from tocsin.event.topic import TopicPattern
from tocsin.services.access.service import AccessOptions, AccessService

LEAD = {"principal": "ann", "action": "subscribe", "topic": "lead/**"}
TELLS = {**LEAD, "withheld": True}


def test_a_box_holds_what_its_owner_may_have_and_says_how_much_it_may_not() -> None:
    site = Site(TELLS)
    box = site.subscribe(as_("ann"), sink=None).subscription.id
    site.publish(event(1), event(2, "ops/a"), event(3, "ops/b"))

    pulled = site.runtime.run(site.port.pull(as_("ann"), box, 10, 0, None))
    after = site.runtime.run(site.port.pull(as_("ann"), box, 10, 0, pulled.next))

    assert [each.event.topic for each in pulled.events] == ["lead/a"]
    assert pulled.withheld == 2
    assert after.withheld == 0
    assert site.port.view_box(as_("ann"), box).withheld == 2
    assert site.runtime.broker.counters.withheld == 2


def test_who_may_not_know_is_not_told_that_there_was_something() -> None:
    site = Site(LEAD)
    box = site.subscribe(as_("ann"), sink=None).subscription.id
    reader = Reader()
    site.port.open_stream(as_("ann"), reader, EVERYTHING, None, "a stream")
    site.publish(event(1), event(2, "ops/a"))
    site.runtime.pass_s(20)

    pulled = site.runtime.run(site.port.pull(as_("ann"), box, 10, 0, None))

    assert pulled.withheld is None
    assert not site.port.view_box(as_("ann"), box).tells_withheld
    assert reader.got == ["lead/a"]
    assert reader.told == []


def test_a_stream_is_told_every_few_seconds_and_not_with_every_event() -> None:
    site = Site(TELLS)
    reader = Reader()
    site.port.open_stream(as_("ann"), reader, EVERYTHING, None, "a stream")

    site.publish(event(1, "ops/a"))
    assert reader.told == [1]
    for number in range(2, 12):
        site.publish(event(number, "ops/a"))
    assert reader.told == [1]
    site.runtime.pass_s(6)

    assert reader.told == [1, 10]


def test_a_right_that_ends_in_the_middle_of_a_stream_ends_it() -> None:
    site = Site(LEAD)
    reader = Reader()
    site.port.open_stream(as_("ann"), reader, EVERYTHING, None, "a stream")
    site.publish(event(1))

    site.revoke("ann")
    site.publish(event(2))

    assert reader.got == ["lead/a"]
    assert "ended" in reader.ended


def test_a_scoped_token_gets_what_it_names_and_no_more() -> None:
    site = Site({"principal": "ann", "action": "*"})
    rights = (Right(frozenset({Action.SUBSCRIBE}), TopicPattern(("lead", "*"))),)
    site.policy.set_token(Token("ab", "ann", hash_of("s"), 0, rights=rights))
    reader, whole = Reader(), Reader()
    site.port.open_stream(as_("ann", key="token/ab"), reader, EVERYTHING, None, "a stream")
    site.port.open_stream(as_("ann"), whole, EVERYTHING, None, "another")

    site.publish(event(1), event(2, "ops/a"))

    assert reader.got == ["lead/a"]
    assert whole.got == ["lead/a", "ops/a"]


def test_a_subscription_has_after_a_restart_what_its_owner_may_have() -> None:
    site = Site(TELLS)
    box = site.subscribe(as_("ann"), sink=None).subscription.id
    again = Site(TELLS, store=site.runtime.store)
    again.publish(event(1), event(2, "ops/a"))

    pulled = again.runtime.run(again.port.pull(as_("ann"), box, 10, NS_PER_S, None))

    assert [each.event.topic for each in pulled.events] == ["lead/a"]
    assert pulled.withheld == 1


def test_a_stream_ends_also_if_its_right_does_just_after_it_was_looked_at() -> None:
    """A timer may be a little early. What has ended when the next end is looked for, and had not
    when rights were looked at, is an end that nobody would wait for."""
    site = Site({**LEAD, "expires": "PT9S"})
    early_ns = NS_PER_S // 1_000
    moments: list[int] = []

    def looked() -> None:
        site.runtime.broker.rights_changed()
        moments.append(site.runtime.now_ns())

    def now_ns() -> int:
        """Until rights have been looked at there, the clock has not come to the end."""
        real_ns = site.runtime.now_ns()
        return real_ns if real_ns in moments else real_ns - early_ns

    policy, runtime = site.policy, site.runtime
    policy.changed.remove(site._changed)
    policy.now_ns = now_ns
    AccessService(
        runtime.port,
        policy,
        AccessOptions(required=True),
        new_secret=lambda: "s" * 43,
        rights_changed=looked,
    )
    reader = Reader()
    site.port.open_stream(as_("ann"), reader, EVERYTHING, None, "a stream")

    runtime.pass_s(8)
    assert not reader.ended
    runtime.pass_s(2)

    assert reader.ended
