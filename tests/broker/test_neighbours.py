"""A neighbour is a subscriber with a place in the log, and its filters come from its table."""

from __future__ import annotations

from broker.harness import Hand, answer_to, event
from tocsin.broker.effects import Pulled
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.event.filter import NOTHING, Filter, TopicIs
from tocsin.event.subscription import Kind, Subscription
from tocsin.event.topic import TopicPattern

S = 1_000_000_000


def on(topic: str) -> Filter:
    return TopicIs(TopicPattern.parse(topic))


def link_to(hand: Hand, neighbour: str, *wanted: str) -> str:
    asked = Subscription(id="", kind=Kind.LINK, neighbour=neighbour)
    view = hand.ask(lambda token: hand.broker.subscribe(asked, NOTHING, None, token, hand.now))
    assert isinstance(view, SubscriptionView)
    link = view.subscription.id
    wants(hand, link, *wanted)
    return link


def wants(hand: Hand, link: str, *topics: str) -> None:
    hand.broker.want(link, {topic: on(topic) for topic in topics}, (), hand.now)
    hand.settle()


def take(hand: Hand, link: str) -> tuple[object, list[int]]:
    token = object()
    hand.broker.boxes.take(link, 100, 0, token, hand.now, Kind.LINK)
    answer = answer_to(token, hand.settle())
    assert isinstance(answer, Pulled)
    return token, [stored.seq for stored in answer.events]


def test_a_neighbour_gets_what_any_of_its_filters_lets_pass_and_once() -> None:
    hand = Hand()
    link = link_to(hand, "b", "a", "a/**", *(f"many/{n}" for n in range(200)))

    for number, topic in enumerate(("a", "b", "many/7", "many/300")):
        hand.publish(event(number, topic))

    assert take(hand, link)[1] == [1, 3]


def test_what_is_not_acknowledged_is_sent_again_after_a_crash() -> None:
    hand = Hand()
    link = link_to(hand, "b", "a")
    hand.publish(event(1, "a"), event(2, "a"))
    token, first = take(hand, link)
    hand.broker.boxes.release(token, 1)
    hand.pass_s(1)

    again = hand.crash()
    wants(again, link, "a")

    assert first == [1, 2]
    assert take(again, link)[1] == [2]


def test_after_a_restart_it_waits_for_its_table_and_keeps_its_place() -> None:
    hand = Hand()
    link = link_to(hand, "b", "a")
    hand.pass_s(1)

    again = hand.crash()
    again.publish(event(1, "a"), event(2, "b"))
    before = take(again, link)[1]
    wants(again, link, "a")

    assert before == []
    assert take(again, link)[1] == [1]


def test_what_clients_want_is_told_by_distinct_filters_without_those_of_neighbours() -> None:
    hand, calls = Hand(), list[int]()
    first = hand.subscribe(filters=[{"topic": "a"}])
    local = hand.broker.watch_local_filters(lambda: calls.append(1))
    topic = TopicIs(TopicPattern.parse("a"))

    assert local.take_changed() == [(topic, True)]

    second = hand.subscribe(filters=[{"topic": "a"}])
    link_to(hand, "b", "c")
    hand.ask(lambda token: hand.broker.unsubscribe(first, token, hand.now))

    assert local.take_changed() == []

    hand.ask(lambda token: hand.broker.unsubscribe(second, token, hand.now))

    assert local.take_changed() == [(topic, False)]
    assert len(calls) == 2


def test_a_filter_that_several_ask_for_stays_until_the_last_has_left() -> None:
    hand = Hand()
    link = link_to(hand, "b")
    hand.broker.want(link, {1: on("a"), 2: on("a"), 3: on("c")}, (), hand.now)

    hand.broker.want(link, {3: on("b")}, [1], hand.now)
    hand.publish(event(1, "a"), event(2, "b"), event(3, "c"))
    hand.broker.want(link, {}, [2], hand.now)
    hand.publish(event(4, "a"), event(5, "b"))

    assert take(hand, link)[1] == [1, 2, 5]


def test_what_a_neighbour_wants_counts_as_interest_until_it_is_gone() -> None:
    hand = Hand()
    link = link_to(hand, "b", "a")

    before = hand.broker.interest.has(on("a"))
    hand.ask(lambda token: hand.broker.unsubscribe(link, token, hand.now))

    assert before
    assert not hand.broker.interest.has(on("a"))


def test_a_place_whose_filters_are_not_known_yet_stays_where_it_is_when_the_log_is_trimmed() -> (
    None
):
    """After a restart, and when what was kept for one neighbour begins to go to another."""
    hand = Hand()
    for number in range(1, 5):
        hand.publish(event(number, "a"))
    asked = Subscription(id="", kind=Kind.LINK)
    view = hand.ask(lambda token: hand.broker.subscribe(asked, NOTHING, 1, token, hand.now))
    assert isinstance(view, SubscriptionView)

    hand.broker.retention_checked(4, hand.now)
    hand.settle()
    wants(hand, view.subscription.id, "a")

    assert take(hand, view.subscription.id)[1] == [2, 3, 4]
