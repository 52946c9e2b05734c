"""The check of attempts: it raises when a limit is passed, and not for a limit that has changed."""

from __future__ import annotations

import pytest

from tocsin.broker.delivery.outcome import Answered
from tocsin.broker.delivery.retry import RetryOptions
from tocsin.broker.effects import Push
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Change, Config, Kind, Subscription
from tocsin.sim.checks.attempts import AttemptCheck
from tocsin.sim.checks.subscription import SubscriptionRecord, Uncertain
from tocsin.sim.workload import POOL
from tocsin.sim.world import Violation, World

SINK = "http://sink.example/"
EVENT = Stored(1, 0, Event("1", "/test", "test"))
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
