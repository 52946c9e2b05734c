"""The check of attempts: it raises when a limit is passed, and not for a limit that has changed."""

from __future__ import annotations

import msgspec
import pytest

from tocsin.broker.delivery.outcome import Answered, Failed
from tocsin.broker.delivery.retry import RetryOptions
from tocsin.broker.effects import Push
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Change, Config, Kind, State, Subscription
from tocsin.sim.checks.attempts import AttemptCheck
from tocsin.sim.checks.subscription import SubscriptionRecord, Uncertain
from tocsin.sim.workload import POOL
from tocsin.sim.world import Violation, World

SINK = "http://sink.example/"
NEW_SINK = "http://new.example/"
EVENT = Stored(1, 0, Event("1", "/test", "test"))
OTHER_EVENT = Stored(2, 0, Event("2", "/test", "test"))
REFUSED = Answered(500)


def subscribed(attempts: int | None) -> Subscription:
    return Subscription(id="s", kind=Kind.PUSH, sink=SINK, config=Config(attempts=attempts))


def push(attempts: int | None) -> Push:
    return Push(1, SINK, subscribed(attempts), [EVENT], 30.0)


def a_record() -> SubscriptionRecord:
    want, sink = Uncertain(POOL[0]), Uncertain[str | None](SINK)
    return SubscriptionRecord("s", Kind.PUSH, 0, want, sink, Uncertain(None), may_drop=False)


def test_a_try_after_the_last_is_found() -> None:
    check, record = AttemptCheck(World(1), RetryOptions()), a_record()
    check.pushing(record, push(1))
    check.answered(record, push(1), REFUSED)

    with pytest.raises(Violation, match="after 1 of 1 attempts"):
        check.pushing(record, push(1))


def test_a_limit_that_changed_after_the_event_was_sent_is_not_held_against_the_broker() -> None:
    check, record = AttemptCheck(World(1), RetryOptions()), a_record()
    record.request(1, Change(config=Config(attempts=None)))
    check.pushing(record, push(1))
    record.confirm(1, subscribed(None), 1)
    check.answered(record, push(1), REFUSED)

    check.pushing(record, push(None))


def test_an_event_given_up_too_early_is_found() -> None:
    check, record = AttemptCheck(World(1), RetryOptions()), a_record()
    check.pushing(record, push(2))
    check.answered(record, push(2), REFUSED)

    with pytest.raises(Violation, match="given up after 1 of 2 attempts"):
        check.gave_up(record, 1, "letter")


def test_an_event_given_up_by_a_limit_that_changed_after_it_was_sent_is_no_mistake() -> None:
    check, record = AttemptCheck(World(1), RetryOptions()), a_record()
    record.request(1, Change(config=Config(attempts=1)))
    check.pushing(record, push(2))
    record.confirm(1, subscribed(1), 1)
    check.answered(record, push(2), REFUSED)

    check.gave_up(record, 1, "letter")


AT_NEW_SINK = msgspec.structs.replace(subscribed(2), sink=NEW_SINK)


def push_to_new_sink(event: Stored) -> Push:
    return Push(2, NEW_SINK, AT_NEW_SINK, [event], 30.0)


def moved(check: AttemptCheck) -> SubscriptionRecord:
    """It has moved to the new sink, and a push to the former one is still under way."""
    record = a_record()
    check.pushing(record, push(2))
    record.request(1, Change(sink=NEW_SINK))
    record.confirm(1, AT_NEW_SINK, 2)
    return record


@pytest.mark.parametrize("late", [REFUSED, Answered(204), Failed("no answer in time")])
def test_what_the_former_sink_answers_says_nothing_of_the_attempts_at_the_new_one(
    late: Answered | Failed,
) -> None:
    check = AttemptCheck(World(1), RetryOptions())
    record, again = moved(check), push_to_new_sink(OTHER_EVENT)
    check.pushing(record, again)
    check.answered(record, again, REFUSED)
    check.answered(record, push(2), late)
    check.pushing(record, again)
    check.answered(record, again, REFUSED)

    check.gave_up(record, 2, "letter")


def test_a_broker_that_counts_the_answer_of_the_former_sink_is_found() -> None:
    check = AttemptCheck(World(1), RetryOptions())
    record, again = moved(check), push_to_new_sink(EVENT)
    check.pushing(record, again)
    check.answered(record, again, REFUSED)
    check.answered(record, push(2), REFUSED)

    with pytest.raises(Violation, match="given up after 1 of 2 attempts"):
        check.gave_up(record, 1, "letter")


def test_the_patience_that_the_former_sink_asked_for_holds_for_all_who_send_there() -> None:
    check = AttemptCheck(World(1), RetryOptions())
    check.answered(moved(check), push(2), Answered(429, 5.0))

    with pytest.raises(Violation, match="asked for patience"):
        check.pushing(a_record(), push(2))


def test_an_answer_counts_after_a_change_that_left_the_sink_as_it_was() -> None:
    check, record = AttemptCheck(World(1), RetryOptions()), a_record()
    check.pushing(record, push(1))
    record.request(1, Change(state=State.ACTIVE))
    record.confirm(1, subscribed(1), 1)
    check.answered(record, push(1), REFUSED)

    check.gave_up(record, 1, "letter")
    assert not record.has_left(SINK, 0)


def test_an_answer_counts_of_a_push_that_left_before_its_client_heard_of_the_new_sink() -> None:
    check, record = AttemptCheck(World(1), RetryOptions()), a_record()
    again = push_to_new_sink(EVENT)
    record.request(1, Change(sink=NEW_SINK))
    check.pushing(record, again)
    record.confirm(1, AT_NEW_SINK, 1)
    check.answered(record, again, REFUSED)
    check.pushing(record, again)
    check.answered(record, again, REFUSED)

    check.gave_up(record, 1, "letter")


def test_an_answer_that_comes_after_a_later_one_does_not_move_it_back() -> None:
    record = a_record()
    record.request(1, Change(state=State.PAUSED))
    record.request(2, Change(sink=NEW_SINK))
    record.confirm(2, AT_NEW_SINK, 1)
    record.confirm(1, subscribed(None), 1)

    assert not record.has_left(NEW_SINK, 0)
    assert record.has_left(SINK, 0)
