"""One side of a conversation: subscriptions, queries and events, as they should go."""

from __future__ import annotations

import pytest
from conversation_peers import AS_CONSUMER, AS_PRODUCER, EVENT, LOAD, agreed, consumer, producer

from tocsin.errors import BrokenConversation
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.conversation import CONSUMER, PRODUCER, Conversation
from tocsin.wire.gma.names import EventName

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


# Queries and names (sections 4.4 and 4.5)


def test_a_query_gets_one_event() -> None:
    taking, giving = consumer(), producer()

    request = taking.query(LOAD, filter="Load1 > 1")
    asked = giving.receive(request)
    giving.replied(request)
    answered = taking.receive(m.QueryReply(request.request_id, event=EVENT))

    assert asked == c.RequestReceived(m.QueryRequest("1", LOAD, "Load1 > 1"))
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
    assert giving.receive(request) == c.RequestReceived(m.EventNamesRequest("1"))

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
