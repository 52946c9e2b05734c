"""A clock that jumps by days destroys nothing, and the broker says that it jumped."""

from __future__ import annotations

import pytest

from broker.harness import Hand, answer_to, event, only
from tocsin.broker.clock import Doubt
from tocsin.broker.effects import CheckRetention, Commit, LogLine, Reply
from tocsin.broker.options import DAY_S, BrokerOptions
from tocsin.broker.snapshot import Snapshot
from tocsin.broker.state.state import CLOCK
from tocsin.errors import DiskFull
from tocsin.event.subscription import from_definition

S = 1_000_000_000
DAY = DAY_S * S
MONTH = 30 * DAY
NOW = 20_000 * DAY


def running() -> Hand:
    """A broker that has a box with a backlog, and a subscription with a lease of seven days."""
    hand = Hand()
    hand.now = NOW
    hand.broker.recover(Snapshot(), hand.now)
    hand.settle()
    hand.subscribe(sink=None, expires_ns=NOW + 2 * DAY)
    hand.subscribe(expires_ns=NOW + 7 * DAY)
    hand.publish(event(1), event(2))
    return hand


def started(was: Hand, jump: int) -> Hand:
    """The next process, on a machine whose clock has jumped."""
    hand = Hand(log=was.log)
    hand.now = was.now + jump
    hand.definitions = was.definitions
    hand.cursors = was.cursors
    hand.broker.recover(
        Snapshot(
            last_seq=was.broker.head,
            first_seq=1,
            subscriptions=[from_definition(each) for each in was.definitions.values()],
            cursors=was.cursors,
            last_received_ns=was.log[-1].received_ns if was.log else 0,
        ),
        hand.now,
    )
    hand.settle()
    hand.pass_s(1)
    hand.pass_s(20)
    return hand


def states(hand: Hand) -> list[tuple[str, int]]:
    return [(view.subscription.id, view.dropped) for view in hand.broker.views()]


def notes(hand: Hand) -> str:
    return "\n".join(each.message for each in hand.seen if isinstance(each, LogLine))


def accept(hand: Hand, wall: int | None = None) -> None:
    result = hand.ask(lambda token: hand.broker.clock.accept(wall or hand.now, token, hand.now))
    assert result is None
    hand.pass_s(11)


def test_a_clock_that_starts_a_month_ahead_ends_no_lease_and_drops_nothing() -> None:
    before = running()
    hand = started(before, MONTH)

    assert states(hand) == states(before)
    assert hand.broker.clock.doubt is Doubt.AHEAD
    assert [each.before_ns for each in hand.seen if isinstance(each, CheckRetention)][-1] is None
    assert "30.0 days past the last time in the log" in notes(hand)
    assert "off that long" in notes(hand)


def test_accepted_what_is_over_ends_and_what_was_made_since_lives() -> None:
    hand = started(running(), MONTH)
    new = hand.subscribe(sink=None, expires_ns=hand.now + 3600 * S)
    hand.publish(event(3))

    accept(hand)

    assert [name for name, _ in states(hand)] == [new]
    assert hand.broker.clock.doubt is None
    assert hand.broker.view(new).waiting == 1
    assert hand.log[-1].received_ns >= NOW + MONTH


def test_a_broker_that_was_off_for_less_than_the_setting_goes_on_as_ever() -> None:
    hand = started(running(), DAY - 60 * S)

    assert hand.broker.clock.doubt is None
    assert len(states(hand)) == 2


def test_a_clock_that_goes_back_by_itself_ends_the_doubt_and_stamps_are_right_again() -> None:
    hand = started(running(), MONTH)
    hand.publish(event(3))
    ahead = hand.log[-1].received_ns

    hand.broker.clock.read(hand.now - MONTH, hand.now)
    hand.publish(event(4))
    hand.pass_s(11)

    assert hand.broker.clock.doubt is None
    assert len(states(hand)) == 2
    assert ahead >= NOW + MONTH
    assert NOW <= hand.log[-1].received_ns < NOW + DAY


def test_the_next_start_with_a_right_clock_stamps_right_and_loses_nothing() -> None:
    wrong = started(running(), MONTH)
    wrong.publish(event(3))
    wrong.broker.shut_down(wrong.now)
    wrong.settle()

    hand = started(wrong, -MONTH)
    hand.publish(event(4))

    assert hand.broker.clock.doubt is None
    assert len(states(hand)) == 2
    assert NOW <= hand.log[-1].received_ns < NOW + DAY


def test_a_wrong_clock_twice_in_a_row_is_still_in_doubt() -> None:
    hand = started(started(running(), MONTH), 60 * S)

    assert hand.broker.clock.doubt is Doubt.AHEAD
    assert len(states(hand)) == 2


def test_a_clock_far_behind_stamps_from_the_last_time_on_and_leases_go_by_what_passes() -> None:
    hand = started(running(), -MONTH)
    hand.publish(event(3))

    assert hand.broker.clock.doubt is Doubt.BEHIND
    assert NOW <= hand.log[-1].received_ns < NOW + DAY
    hand.pass_s(3 * DAY_S)
    assert [kind for kind, _ in states(hand)] == [states(running())[1][0]]  # the box's was two days


def test_accepting_a_clock_that_is_behind_lets_stamps_go_back() -> None:
    hand = started(running(), -MONTH)

    accept(hand)
    hand.publish(event(3))

    assert hand.log[-1].received_ns < NOW - MONTH + DAY
    assert hand.broker.clock.doubt is None


@pytest.mark.parametrize("jump", [MONTH, -MONTH])
def test_a_clock_that_is_set_while_the_broker_runs_changes_nothing_until_accepted(
    jump: int,
) -> None:
    hand = running()

    hand.broker.clock.read(hand.now + jump, hand.now)
    hand.publish(event(3))
    hand.pass_s(60)

    assert hand.broker.clock.doubt is Doubt.SET
    assert len(states(hand)) == 2
    assert NOW <= hand.log[-1].received_ns < NOW + DAY
    hand.broker.clock.read(hand.now, hand.now)
    assert hand.broker.clock.doubt is None
    hand.broker.clock.read(hand.now + jump, hand.now)
    accept(hand, hand.now + jump)
    hand.publish(event(4))
    assert abs(hand.log[-1].received_ns - (NOW + jump)) < DAY
    assert len(states(hand)) == (0 if jump > 0 else 2)


def test_small_steps_back_leave_the_stamps_in_order() -> None:
    hand = started(running(), -5 * S)
    hand.publish(event(3))

    times = [stored.received_ns for stored in hand.log]
    assert times == sorted(times)


def test_the_time_is_on_disk_while_it_is_sure_and_not_while_it_is_in_doubt() -> None:
    sure = running()
    sure.pass_s(400)
    doubtful = started(sure, MONTH)
    doubtful.pass_s(400)

    assert sure.cursors[CLOCK] == doubtful.cursors[CLOCK]
    assert NOW + 300 * S <= sure.cursors[CLOCK] <= sure.now


def fill_the_disk(hand: Hand) -> None:
    """The commit that is due finds no room; from the next one on there is some."""
    (commit,) = only(Commit, hand.flush())
    hand.refuse(commit, DiskFull("no room", remedy="make some"))


def test_the_time_that_a_full_disk_did_not_take_is_on_disk_before_any_lease() -> None:
    hand = Hand()
    hand.now = NOW
    hand.broker.recover(Snapshot(), hand.now)
    fill_the_disk(hand)
    hand.subscribe(expires_ns=NOW + DAY)

    hand = started(hand, 9 * DAY)

    assert hand.broker.clock.doubt is Doubt.AHEAD
    assert len(hand.broker.views()) == 1


def test_a_clock_accepted_while_the_disk_is_full_is_accepted_once_that_is_on_disk() -> None:
    hand = started(running(), MONTH)
    hand.broker.clock.accept(hand.now, "accept", hand.now)
    fill_the_disk(hand)
    assert not any(each.token == "accept" for each in only(Reply, hand.seen))

    accepted_ns = hand.now
    assert answer_to("accept", hand.pass_s(1)) is None
    assert hand.cursors[CLOCK] >= accepted_ns


def test_the_setting_says_how_much_is_a_jump() -> None:
    options = BrokerOptions(clock_jump_s=60 * DAY_S)
    hand = Hand(options, snapshot=Snapshot(last_received_ns=1))
    assert hand.broker.clock.doubt is None
