"""Whether anybody wants an event can be asked before there is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.harness import Hand, event, pushes
from tocsin.broker.delivery.outcome import Answered, Failed
from tocsin.broker.state import interest as interest_module
from tocsin.broker.state.interest import Interest
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.concept_filter import concepts_filter
from tocsin.event.filter import EVERYTHING, AnyOf, ByConcept, Filter, Sql, TopicIs
from tocsin.event.subscription import Change, State
from tocsin.event.topic import TopicPattern
from tocsin.matching.covering import intersects
from tocsin.wire.cloudevents.webhook import Allowed

LAB = [{"topic": "lab/**"}]
SKY = [{"topic": "sky/**"}]


def on(pattern: str) -> Filter:
    return TopicIs(TopicPattern.parse(pattern))


def change(hand: Hand, subscription: str, **what: object) -> None:
    asked = Change(**what)  # type: ignore[arg-type]
    hand.ask(lambda token: hand.broker.change(subscription, asked, token, hand.now))


def test_what_nobody_subscribed_to_is_not_wanted() -> None:
    hand = Hand()
    assert not hand.broker.interest.has(EVERYTHING)

    hand.subscribe(filters=LAB)

    assert hand.broker.interest.has(EVERYTHING)
    assert hand.broker.interest.has(on("lab/a"))
    assert not hand.broker.interest.has(on("sky/a"))


def test_it_is_wanted_until_the_last_one_leaves() -> None:
    hand = Hand()
    first, second = hand.subscribe(filters=LAB), hand.subscribe(sink=None, filters=LAB)
    for subscription in (first, second):
        assert hand.broker.interest.has(on("lab/a"))
        hand.broker.unsubscribe(subscription, "token", hand.now)
        hand.settle()

    assert not hand.broker.interest.has(on("lab/a"))


def test_a_stream_wants_what_it_follows_while_it_is_open() -> None:
    hand = Hand()
    stream = hand.broker.open_stream(on("lab/**"), None, "test")
    assert hand.broker.interest.has(on("lab/a"))

    hand.broker.close_stream(stream)

    assert not hand.broker.interest.has(on("lab/a"))


def test_who_is_paused_wants_nothing() -> None:
    hand = Hand()
    subscription = hand.subscribe(filters=LAB)
    for state, wanted in ((State.PAUSED, False), (State.ACTIVE, True)):
        version = hand.broker.interest.version
        change(hand, subscription, state=state)

        assert hand.broker.interest.has(on("lab/a")) == wanted
        assert hand.broker.interest.version > version


def test_a_new_filter_is_another_interest_and_a_new_lease_is_not() -> None:
    hand = Hand()
    subscription = hand.subscribe(filters=LAB)
    version = hand.broker.interest.version
    change(hand, subscription, expires_ns=hand.now + 10**12)
    assert hand.broker.interest.version == version

    change(hand, subscription, filter=read_filters(SKY))

    assert hand.broker.interest.version > version
    assert hand.broker.interest.has(on("sky/a"))
    assert not hand.broker.interest.has(on("lab/a"))


def test_who_has_not_consented_wants_nothing_yet() -> None:
    hand = Hand(trusted=False)
    hand.subscribe(filters=LAB)
    assert not hand.broker.interest.has(on("lab/a"))

    hand.hear(Allowed(None))

    assert hand.broker.interest.has(on("lab/a"))


def test_a_sink_that_left_or_was_given_up_wants_nothing() -> None:
    for outcome in (Answered(410), Failed("nobody there")):
        hand = Hand()
        hand.subscribe(filters=LAB)
        hand.publish(event(1, topic="lab/a"))
        assert hand.broker.interest.has(on("lab/a"))
        hand.answer(pushes(hand.seen)[-1], outcome)
        if isinstance(outcome, Failed):
            hand.pass_s(10 * 86_400)
            hand.answer(pushes(hand.seen)[-1], outcome)

        assert not hand.broker.interest.has(on("lab/a"))


def test_interest_is_back_after_a_restart() -> None:
    hand = Hand()
    hand.subscribe(filters=LAB)

    assert hand.crash().broker.interest.has(on("lab/a"))


def test_asking_again_looks_only_at_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Filter] = []

    def counted(one: Filter, other: Filter) -> bool:
        looked.append(one)
        return intersects(one, other)

    monkeypatch.setattr(interest_module, "intersects", counted)
    interest = Interest()
    for number in range(1_000):
        interest.wants(number, on(f"lab/{number % 100}"))

    assert not interest.has(on("sky"))
    assert len(looked) == 100
    interest.wants(1_000, on("hill"))
    assert not interest.has(on("sky"))
    assert len(looked) == 101
    interest.wants(1_001, on("sky"))
    assert interest.has(on("sky"))
    assert interest.has(on("sky"))
    assert len(looked) == 102


FILTERS = [
    on("a"),
    on("b"),
    on("*"),
    on("a/**"),
    AnyOf((on("a"), on("c"))),
    Sql("level > 3"),
    EVERYTHING,
    *(read_filters([{"filter": f"level {how} 5"}]) for how in ("<", ">")),
]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.none() | st.sampled_from(FILTERS), st.sampled_from(FILTERS))
    )
)
def test_the_answer_is_that_of_looking_at_everybody(
    steps: list[tuple[int, Filter | None, Filter]],
) -> None:
    interest, active = Interest(), dict[int, Filter]()
    for reader, filter, asked in steps:
        interest.wants(reader, filter)
        active.pop(reader, None)
        if filter is not None:
            active[reader] = filter
        assert interest.has(asked) == any(intersects(each, asked) for each in active.values())


PROFILES = [concepts_filter(names) for names in (["RunId"], ["Cpu"], ["RunId", "CpuSeconds"])]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.none() | st.sampled_from([*PROFILES, on("b"), EVERYTHING]))
    )
)
def test_the_profile_is_the_union_of_all_and_has_another_version_when_it_is_another(
    steps: list[tuple[int, Filter | None]],
) -> None:
    interest, active = Interest(), dict[int, Filter]()
    former = interest.profile()
    for reader, filter in steps:
        interest.wants(reader, filter)
        active.pop(reader, None)
        if filter is not None:
            active[reader] = filter
        asked = [each for each in active.values() if isinstance(each, ByConcept)]
        profile = interest.profile()
        assert set(profile.concepts) == set().union(*(each.names() for each in asked))
        assert profile.everything == (EVERYTHING in active.values())
        same = (profile.concepts, profile.everything) == (former.concepts, former.everything)
        assert (profile.version == former.version) == same
        former = profile


def test_a_service_that_takes_what_comes_is_asked_for_in_the_profile_alone() -> None:
    interest = Interest()
    interest.asks_for(1, frozenset({"RunId"}))

    assert interest.profile().concepts == ("RunId",)
    assert not interest.profile().everything
    assert not interest.has(EVERYTHING)
    interest.asks_for(1, None)
    assert interest.profile().concepts == ()
