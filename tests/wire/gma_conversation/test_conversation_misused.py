"""Ids that are used twice or by nobody, and more of everything than there may be."""

from __future__ import annotations

import pytest
from conversation_peers import EVENT, LOAD, agreed, consumer, producer

from tocsin.errors import BrokenConversation, TooManySubscriptions
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.conversation import PRODUCER, Conversation

# Ids that are used twice, or by nobody


def test_a_request_id_that_is_in_use_is_refused_until_its_reply() -> None:
    giving = producer()
    first = m.QueryRequest("15", LOAD)
    giving.receive(first)

    while_waiting = giving.receive(m.EventNamesRequest("15"))
    giving.replied(first)
    afterwards = giving.receive(m.EventNamesRequest("15"))

    detail = "requestID 15 is in use by an earlier request"
    assert while_waiting == c.Refusal(m.EventNamesReply("15", m.FAILURE, detail))
    assert afterwards == c.RequestReceived(m.EventNamesRequest("15"))


def test_a_subscription_id_that_is_in_use_is_refused_while_asked_and_while_open() -> None:
    giving = producer()
    first = m.SubscribeRequest("1", "12", LOAD)
    giving.receive(first)

    while_asked = giving.receive(m.SubscribeRequest("2", "12", LOAD))
    giving.accept(first)
    while_open = giving.receive(m.SubscribeRequest("3", "12", LOAD))

    for happening in (while_asked, while_open):
        assert isinstance(happening, c.Refusal)
        assert happening.reply.detail == "SubscriptionID 12 is in use; end it first"
    assert len(giving.subscriptions) == 1


@pytest.mark.parametrize(
    "reply",
    [
        m.SubscribeReply("7", subscription_id="99"),
        m.UnsubscribeReply("7"),
        m.QueryReply("7", event=EVENT),
        m.EventNamesReply("7"),
        m.EventReply("7"),
    ],
)
def test_a_reply_to_nothing_breaks_the_conversation(reply: m.Reply) -> None:
    with pytest.raises(BrokenConversation, match="came to no request"):
        Conversation().receive(reply)


def test_a_second_reply_is_a_reply_to_nothing() -> None:
    taking = consumer()
    request = taking.event_names()
    taking.receive(m.EventNamesReply(request.request_id))

    with pytest.raises(BrokenConversation):
        taking.receive(m.EventNamesReply(request.request_id))


def test_a_reply_of_the_wrong_kind_breaks_the_conversation() -> None:
    taking = consumer()
    request = taking.query(LOAD)

    with pytest.raises(BrokenConversation, match="a SubscribeReply came to a QueryRequest"):
        taking.receive(m.SubscribeReply(request.request_id, subscription_id="99"))


def test_success_without_an_id_breaks_the_conversation() -> None:
    taking = consumer()
    request, _ = taking.subscribe(LOAD)

    with pytest.raises(BrokenConversation, match="no SubscriptionID"):
        taking.receive(m.SubscribeReply(request.request_id))


def test_an_event_for_an_unknown_subscription_breaks_the_conversation() -> None:
    with pytest.raises(BrokenConversation, match="which does not exist"):
        consumer().receive(m.EventMessage("12", EVENT))


def test_an_event_that_comes_before_the_reply_breaks_the_conversation() -> None:
    taking = consumer()
    request, _ = taking.subscribe(LOAD)

    with pytest.raises(BrokenConversation):
        taking.receive(m.EventMessage(request.subscription_id, EVENT))


# Limits


def test_the_oldest_of_too_many_unanswered_requests_is_given_up() -> None:
    taking = consumer()
    requests = [taking.event_names() for _ in range(c.WAITING_MAX + 1)]

    first = m.EventNamesReply(requests[0].request_id)
    second = m.EventNamesReply(requests[1].request_id)

    assert taking.receive(first) == c.Stale(first)
    assert taking.receive(second) == c.Answered(requests[1], second)


def test_replies_to_requests_that_are_forgotten_do_not_break_the_conversation() -> None:
    taking = consumer()
    requests = [taking.event_names() for _ in range(3 * c.WAITING_MAX)]

    happenings = [taking.receive(m.EventNamesReply(request.request_id)) for request in requests]

    reported = [type(happening) for happening in happenings]
    assert reported == [c.Stale] * (2 * c.WAITING_MAX) + [c.Answered] * c.WAITING_MAX


def test_events_may_still_come_for_what_we_are_ending_however_much_has_ended_since() -> None:
    taking, giving = consumer(), producer()
    taken, given = agreed(taking, giving)
    taking.unsubscribe(taken)
    for _ in range(c.REMEMBERED_MAX + 1):
        _, others = agreed(taking, giving)
        ended = taking.receive(giving.unsubscribe(others))
        assert isinstance(ended, c.Ended)
        giving.receive(ended.reply)

    message = giving.event(given, EVENT)

    assert taking.receive(message) == c.Stale(message)


def test_past_the_limit_the_peers_subscription_is_refused_and_our_own_is_an_error() -> None:
    taking, giving = consumer(), Conversation(frozenset({PRODUCER}), subscriptions_max=2)
    agreed(taking, giving)
    taken, _ = agreed(taking, giving)

    third, _ = taking.subscribe(LOAD)
    refusal = giving.receive(third)

    assert isinstance(refusal, c.Refusal)
    assert refusal.reply.detail == "2 subscriptions are open already"
    with pytest.raises(TooManySubscriptions):
        giving.subscribe(LOAD)

    giving.receive(taking.unsubscribe(taken))
    assert isinstance(giving.receive(taking.subscribe(LOAD)[0]), c.SubscribeAsked)


def test_the_ids_of_requests_may_come_from_whoever_has_several_conversations() -> None:
    numbers = iter("abc")
    both = [Conversation(new_request_id=lambda: next(numbers)) for _ in range(2)]

    asked = [conversation.event_names().request_id for conversation in (*both, both[0])]

    assert asked == ["a", "b", "c"]
