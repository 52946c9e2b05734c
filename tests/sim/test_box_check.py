"""The check of boxes: what a pull releases its owner has got, also where a limit drops events."""

from __future__ import annotations

import pytest

from tocsin.broker.delivery.retry import RetryOptions
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Config, Kind, Subscription
from tocsin.sim.checks.attempts import AttemptCheck
from tocsin.sim.checks.delivery import DeliveryCheck
from tocsin.sim.checks.log import LogCheck
from tocsin.sim.checks.subscription import SubscriptionRecord
from tocsin.sim.faults.clock import MachineClock
from tocsin.sim.workload import POOL
from tocsin.sim.world import Violation, World

EVENTS = [Stored(seq, 0, Event(str(seq), "/test", "test")) for seq in (1, 2, 3)]


def a_box(backlog: int | None) -> tuple[DeliveryCheck, SubscriptionRecord]:
    world = World(1)
    log = LogCheck(10)
    log.events, log.last = {each.seq: each.event for each in EVENTS}, 3
    check = DeliveryCheck(
        world,
        MachineClock(world, "m"),
        log,
        AttemptCheck(world, RetryOptions()),
        all_may_drop=False,
    )
    box = Subscription(id="b", kind=Kind.BOX, filters=POOL[0].raw, config=Config(backlog=backlog))
    check.open(box, 0)
    return check, check.records["b"]


@pytest.mark.parametrize("backlog", [None, 2])
def test_a_release_of_what_was_handed_out_and_has_not_arrived_is_found(backlog: int | None) -> None:
    check, box = a_box(backlog)
    check.handing_out(box, 0, EVENTS)

    with pytest.raises(Violation, match="released event 1, which its owner has not got"):
        check.releasing(box, 3)


def test_what_a_limit_dropped_before_the_answer_that_arrived_may_be_released() -> None:
    check, box = a_box(2)
    check.handing_out(box, 0, EVENTS[:2])  # it is lost, and then the limit drops the first
    check.handing_out(box, 0, EVENTS[1:])
    check.took(box, EVENTS[1:])

    check.releasing(box, 3)
