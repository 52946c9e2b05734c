"""How subscriptions and questions end: by a goodbye from either side, or because no answer came."""

from __future__ import annotations

from conversation_peers import EVENT, LOAD, agreed, consumer, producer

from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m

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


def test_a_side_is_settled_when_the_peer_has_answered_its_goodbyes() -> None:
    sender, archive = producer(), consumer()
    ours, _ = agreed(sender, archive)
    assert sender.is_settled

    goodbye = sender.unsubscribe(ours)
    assert not sender.is_settled
    ended = archive.receive(goodbye)
    assert isinstance(ended, c.Ended)
    sender.receive(ended.reply)

    assert sender.is_settled


def test_a_side_is_settled_when_what_it_gave_up_asking_for_cannot_come_any_more() -> None:
    sender, archive = producer(), consumer()
    request, _ = sender.subscribe(LOAD)
    sender.give_up(request.request_id)
    assert not sender.is_settled

    asked = archive.receive(request)
    assert isinstance(asked, c.SubscribeAsked)
    late = sender.receive(archive.accept(asked.request)[0])
    assert not sender.is_settled, "now a goodbye is to be answered"
    assert isinstance(late, c.Stale)
    assert isinstance(late.answer, m.UnsubscribeRequest)
    ended = archive.receive(late.answer)
    assert isinstance(ended, c.Ended)
    sender.receive(ended.reply)

    assert sender.is_settled
