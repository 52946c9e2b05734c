"""One side of a conversation: what may follow what, and what comes of everything else."""

from __future__ import annotations

import pytest

from tocsin.errors import BrokenConversation, TooManySubscriptions
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.conversation import CONSUMER, PRODUCER, Conversation
from tocsin.wire.gma.names import EventName

LOAD = m.Parameters(EventName("UptimeCPULoad"), (m.Element("Period", 10, "min"),))
EVENT = m.PerformanceEvent(
    EventName("UptimeCPULoad"), "2000-11-09T21:51:45Z", (m.Element("Load1", 1.5),)
)
AS_PRODUCER = m.Options(role=PRODUCER)
AS_CONSUMER = m.Options(role=CONSUMER)


def consumer() -> Conversation:
    return Conversation(frozenset({CONSUMER}))


def producer() -> Conversation:
    ids = iter(range(99, 10_000))
    return Conversation(frozenset({PRODUCER}), lambda: str(next(ids)))


def agreed(
    asking: Conversation, asked: Conversation, options: m.Options | None = None
) -> tuple[c.Subscription, c.Subscription]:
    """A subscription that both have: as the one who asked knows it, and as the other does."""
    request, _ = asking.subscribe(LOAD, options=options)
    happening = asked.receive(request)
    assert isinstance(happening, c.SubscribeAsked)
    reply, theirs = asked.accept(happening.request)
    subscribed = asking.receive(reply)
    assert isinstance(subscribed, c.Subscribed)
    return subscribed.subscription, theirs


# Subscriptions of consumers (section 4.2)


def test_a_consumer_subscribes_and_events_come_under_its_own_id() -> None:
    taking, giving = consumer(), producer()

    request, _ = taking.subscribe(LOAD, filter="Load5 >= 5.0")
    asked = giving.receive(request)

    assert asked == c.SubscribeAsked(request)
    assert request == m.SubscribeRequest("1", "1", LOAD, "Load5 >= 5.0")

    reply, given = giving.accept(request, detail="every ten minutes")

    assert reply == m.SubscribeReply("1", m.SUCCESS, "every ten minutes", "99")
    assert (given.own_id, given.peer_id, given.peer_role) == ("99", "1", CONSUMER)
    assert (given.parameters, given.filter) == (LOAD, "Load5 >= 5.0")

    subscribed = taking.receive(reply)

    assert isinstance(subscribed, c.Subscribed)
    assert subscribed.detail == "every ten minutes"
    taken = subscribed.subscription
    assert (taken.own_id, taken.peer_id, taken.peer_role) == ("1", "99", PRODUCER)

    message = giving.event(given, EVENT)
    arrived = taking.receive(message)

    assert message == m.EventMessage("1", EVENT)
    assert arrived == c.EventArrived(taken, message, settled=False)


def test_an_error_in_place_of_an_event_arrives_like_one() -> None:
    taking, giving = consumer(), producer()
    taken, _ = agreed(taking, giving)

    message = m.EventMessage(taken.own_id, error="Failed", error_detail="no such sensor")

    assert taking.receive(message) == c.EventArrived(taken, message)


def test_what_the_reply_agrees_to_is_kept_with_the_subscription_on_both_sides() -> None:
    taking, giving = consumer(), producer()
    request, _ = taking.subscribe(LOAD, options=m.Options(role=CONSUMER, context=True))

    reply, given = giving.accept(request, agreed=m.Options(context=True))
    subscribed = taking.receive(reply)

    assert given.agreed == m.Options(context=True)
    assert isinstance(subscribed, c.Subscribed)
    assert subscribed.subscription.agreed == m.Options(context=True)


def test_a_refusal_says_why_and_leaves_nothing_open() -> None:
    taking, giving = consumer(), producer()
    request, wanted = taking.subscribe(LOAD)
    giving.receive(request)

    reply = giving.refuse(request, "no such event")
    happening = taking.receive(reply)

    assert reply == m.SubscribeReply("1", m.FAILURE, "no such event")
    assert happening == c.Refused(wanted, "no such event")
    assert taking.subscriptions == []
    assert giving.subscriptions == []


def test_a_return_code_of_the_future_is_no_success() -> None:
    taking = consumer()
    request, wanted = taking.subscribe(LOAD)

    happening = taking.receive(m.SubscribeReply(request.request_id, "Busy", "later", "7"))

    assert happening == c.Refused(wanted, "later")
    assert taking.subscriptions == []


def test_a_refused_id_may_be_used_again() -> None:
    giving = producer()
    request = m.SubscribeRequest("1", "12", LOAD)
    giving.receive(request)
    giving.refuse(request, "not now")

    again = m.SubscribeRequest("2", "12", LOAD)

    assert giving.receive(again) == c.SubscribeAsked(again)


# Subscriptions of producers (section 4.3)


def test_a_producer_offers_events_and_sends_them_under_the_id_of_the_consumer() -> None:
    giving, taking = producer(), consumer()

    given, taken = agreed(giving, taking)

    assert (given.own_id, given.peer_id, given.peer_role) == ("99", "1", CONSUMER)
    assert (taken.own_id, taken.peer_id, taken.peer_role) == ("1", "99", PRODUCER)
    message = giving.event(given, EVENT)
    assert message.subscription_id == "1"
    assert taking.receive(message) == c.EventArrived(taken, message)


def test_who_can_be_both_goes_by_the_role_that_is_said() -> None:
    both = Conversation()

    _, of_producer = agreed(producer(), both, AS_PRODUCER)
    _, of_consumer = agreed(consumer(), both, AS_CONSUMER)

    assert of_producer.peer_role == PRODUCER
    assert of_consumer.peer_role == CONSUMER


def test_the_first_event_shows_who_the_producer_is_if_nobody_said_so() -> None:
    both, giving = Conversation(), producer()
    given, taken = agreed(giving, both)
    assert taken.peer_role is None

    first = both.receive(giving.event(given, EVENT))
    second = both.receive(giving.event(given, EVENT))

    assert isinstance(first, c.EventArrived)
    assert isinstance(second, c.EventArrived)
    assert (first.settled, second.settled) == (True, False)
    assert taken.peer_role == PRODUCER


def test_two_of_the_same_role_have_nothing_to_say_to_each_other() -> None:
    first, second = consumer(), consumer()
    request, wanted = first.subscribe(LOAD, options=AS_CONSUMER)

    refusal = second.receive(request)

    assert isinstance(refusal, c.Refusal)
    happening = first.receive(refusal.reply)
    assert happening == c.Refused(wanted, "both sides would be the consumer")


def test_an_event_of_one_who_said_it_was_the_consumer_breaks_the_conversation() -> None:
    both = Conversation()
    _, subscription = agreed(consumer(), both, AS_CONSUMER)

    with pytest.raises(BrokenConversation, match="sent an event"):
        both.receive(m.EventMessage(subscription.own_id, EVENT))


def test_an_event_of_one_to_whom_we_said_that_we_produce_breaks_the_conversation() -> None:
    giving = producer()
    subscription, _ = agreed(giving, Conversation(), AS_PRODUCER)

    with pytest.raises(BrokenConversation, match="sent an event"):
        giving.receive(m.EventMessage(subscription.own_id, EVENT))


def test_who_was_never_told_that_we_only_produce_may_try_to_send_us_events() -> None:
    giving, both = producer(), Conversation()
    _, of_both = agreed(giving, both)

    message = both.event(of_both, EVENT)

    assert giving.receive(message) == c.Stale(message)


# Unsubscribing, from either end


def test_the_consumer_ends_it_with_the_id_of_the_producer() -> None:
    taking, giving = consumer(), producer()
    taken, given = agreed(taking, giving)

    request = taking.unsubscribe(taken)
    ended = giving.receive(request)

    assert request == m.UnsubscribeRequest("2", "99")
    assert ended == c.Ended(given, m.UnsubscribeReply("2"))
    assert taking.receive(m.UnsubscribeReply("2")) == c.Answered(request, m.UnsubscribeReply("2"))
    assert taking.subscriptions == giving.subscriptions == []


def test_the_producer_ends_it_with_the_id_of_the_consumer() -> None:
    taking, giving = consumer(), producer()
    taken, given = agreed(taking, giving)

    request = giving.unsubscribe(given)
    ended = taking.receive(request)

    assert request == m.UnsubscribeRequest("1", "1")
    assert ended == c.Ended(taken, m.UnsubscribeReply("1"))
    assert taking.subscriptions == giving.subscriptions == []


def test_both_may_end_it_at_once_and_neither_is_wrong() -> None:
    taking, giving = consumer(), producer()
    taken, given = agreed(taking, giving)

    from_consumer, from_producer = taking.unsubscribe(taken), giving.unsubscribe(given)
    at_producer, at_consumer = giving.receive(from_consumer), taking.receive(from_producer)

    for happening in (at_producer, at_consumer):
        assert isinstance(happening, c.Refusal)
        assert isinstance(happening.reply, m.UnsubscribeReply)
        assert happening.reply.returned == m.SUCCESS
    assert isinstance(at_producer, c.Refusal)
    assert isinstance(at_consumer, c.Refusal)
    assert isinstance(taking.receive(at_producer.reply), c.Answered)
    assert isinstance(giving.receive(at_consumer.reply), c.Answered)


def test_an_event_that_passed_our_goodbye_on_its_way_is_nobodys_mistake() -> None:
    taking, giving = consumer(), producer()
    taken, given = agreed(taking, giving)
    message = giving.event(given, EVENT)

    taking.unsubscribe(taken)

    assert taking.receive(message) == c.Stale(message)


def test_a_goodbye_is_heard_even_if_a_thousand_requests_wait() -> None:
    taking, giving = consumer(), producer()
    taken, given = agreed(taking, giving)
    for number in range(c.ASKED_MAX):
        giving.receive(m.QueryRequest(f"q{number}", LOAD))
    refused = giving.receive(m.QueryRequest("one more", LOAD))
    assert isinstance(refused, c.Refusal)

    ended = giving.receive(taking.unsubscribe(taken))

    assert isinstance(ended, c.Ended)
    assert ended.subscription is given


def test_ending_what_there_is_not_fails_and_says_so() -> None:
    happening = producer().receive(m.UnsubscribeRequest("9", "1234"))

    reply = m.UnsubscribeReply("9", m.FAILURE, "there is no subscription 1234")
    assert happening == c.Refusal(reply)


def test_an_ended_id_may_be_used_again_by_the_peer() -> None:
    giving = producer()
    request = m.SubscribeRequest("1", "12", LOAD)
    giving.receive(request)
    _, first = giving.accept(request)
    giving.receive(m.UnsubscribeRequest("2", first.own_id))

    again = m.SubscribeRequest("3", "12", LOAD)

    assert giving.receive(again) == c.SubscribeAsked(again)


def test_a_second_goodbye_to_an_ended_one_leaves_the_next_with_the_same_id_in_use() -> None:
    giving = producer()
    request = m.SubscribeRequest("1", "12", LOAD)
    giving.receive(request)
    _, first = giving.accept(request)
    giving.receive(m.UnsubscribeRequest("2", first.own_id))
    again = m.SubscribeRequest("3", "12", LOAD)
    giving.receive(again)
    giving.accept(again)

    giving.unsubscribe(first)

    third = giving.receive(m.SubscribeRequest("4", "12", LOAD))
    assert isinstance(third, c.Refusal)
    assert third.reply.detail == "SubscriptionID 12 is in use; end it first"


# Queries and names (sections 4.4 and 4.5)


def test_a_query_gets_one_event() -> None:
    taking, giving = consumer(), producer()

    request = taking.query(LOAD, filter="Load1 > 1")
    asked = giving.receive(request)
    giving.replied(request)
    answered = taking.receive(m.QueryReply(request.request_id, event=EVENT))

    assert asked == c.Asked(m.QueryRequest("1", LOAD, "Load1 > 1"))
    assert answered == c.Answered(request, m.QueryReply("1", event=EVENT))


def test_a_refused_query_is_answered_with_a_failure() -> None:
    taking, giving = consumer(), producer()
    request = taking.query(LOAD)
    giving.receive(request)

    reply = giving.refuse(request, "no such event")

    assert reply == m.QueryReply("1", m.FAILURE, "no such event")
    assert taking.receive(reply) == c.Answered(request, reply)


def test_who_asks_for_names_gets_names() -> None:
    taking, giving = consumer(), producer()
    request = taking.event_names()
    assert giving.receive(request) == c.Asked(m.EventNamesRequest("1"))

    reply = m.EventNamesReply("1", names=(EventName("UptimeCPULoad"),))

    assert taking.receive(reply) == c.Answered(request, reply)


@pytest.mark.parametrize("request_", [m.QueryRequest("15", LOAD), m.EventNamesRequest("15")])
def test_a_consumer_has_no_events_to_give(request_: m.Request) -> None:
    happening = consumer().receive(request_)

    assert isinstance(happening, c.Refusal)
    assert isinstance(happening.reply, m.REPLY_TO[type(request_)])
    assert happening.reply.returned == m.FAILURE


# Numbered events (ours)


def test_the_answer_to_a_numbered_event_leads_back_to_it() -> None:
    giving, taking = producer(), consumer()
    given, taken = agreed(giving, taking)

    message = giving.event(given, EVENT, "e1")

    assert taking.receive(message) == c.EventArrived(taken, message)
    reply = m.EventReply("e1")
    assert giving.receive(reply) == c.Answered(message, reply)


def test_an_event_that_is_written_already_needs_only_its_number() -> None:
    giving = producer()
    given, _ = agreed(giving, consumer())

    message = giving.event(given, None, "e1")

    assert giving.receive(m.EventReply("e1")) == c.Answered(message, m.EventReply("e1"))


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
    assert afterwards == c.Asked(m.EventNamesRequest("15"))


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
    with pytest.raises(BrokenConversation, match="which there is not"):
        consumer().receive(m.EventMessage("12", EVENT))


def test_an_event_that_comes_before_the_reply_breaks_the_conversation() -> None:
    taking = consumer()
    request, _ = taking.subscribe(LOAD)

    with pytest.raises(BrokenConversation):
        taking.receive(m.EventMessage(request.subscription_id, EVENT))


# Giving up


def test_a_reply_that_comes_after_we_gave_up_is_no_surprise() -> None:
    taking = consumer()
    request = taking.query(LOAD)
    taking.give_up(request.request_id)

    reply = m.QueryReply(request.request_id, event=EVENT)

    assert taking.receive(reply) == c.Stale(reply)


def test_a_subscription_that_is_agreed_to_after_we_gave_up_is_ended_at_once() -> None:
    taking, giving = consumer(), producer()
    request, _ = taking.subscribe(LOAD)
    giving.receive(request)
    taking.give_up(request.request_id)
    reply, given = giving.accept(request)
    event = giving.event(given, EVENT)

    late = taking.receive(reply)

    assert late == c.Stale(reply, m.UnsubscribeRequest("2", given.own_id))
    assert taking.receive(event) == c.Stale(event)
    assert isinstance(late, c.Stale)
    assert late.answer is not None
    ended = giving.receive(late.answer)
    assert isinstance(ended, c.Ended)
    assert isinstance(taking.receive(ended.reply), c.Answered)
    assert taking.subscriptions == giving.subscriptions == []


def test_a_refusal_that_comes_after_we_gave_up_needs_no_answer() -> None:
    taking = consumer()
    request, _ = taking.subscribe(LOAD)
    taking.give_up(request.request_id)

    reply = m.SubscribeReply(request.request_id, m.FAILURE, "no such event")

    assert taking.receive(reply) == c.Stale(reply)


def test_giving_up_what_was_answered_changes_nothing() -> None:
    taking, giving = consumer(), producer()
    taken, _ = agreed(taking, giving)

    taking.give_up("1")

    assert taking.subscriptions == [taken]


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

    told = [type(happening) for happening in happenings]
    assert told == [c.Stale] * (2 * c.WAITING_MAX) + [c.Answered] * c.WAITING_MAX


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
