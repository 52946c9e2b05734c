"""A full disk: what waits for it is tried again once a second, and not as often as it fails."""

from __future__ import annotations

from broker.harness import Hand, S, answer_to, event, only, pushes
from tocsin.broker.delivery.deadletter import DeadLetter, from_record
from tocsin.broker.delivery.outcome import Answered
from tocsin.broker.effects import Commit, Redriven
from tocsin.errors import DiskFull

FULL = DiskFull("no room", remedy="make some")


def with_a_dead_letter() -> tuple[Hand, DeadLetter]:
    hand = Hand()
    hand.subscribe()
    hand.publish(event(1))
    hand.answer(pushes(hand.seen)[0], Answered(400))
    hand.pass_s(1)
    [letter] = map(from_record, hand.dead.values())
    return hand, letter


def drop(hand: Hand, letter: DeadLetter, token: str) -> None:
    hand.broker.drop_dead(letter.id, token, hand.now)


def refused_commits(hand: Hand, seconds: float) -> int:
    """Every commit fails for so long. Somebody wakes the broker all the time."""
    commits = 0
    until_ns = hand.now + int(seconds * S)
    while hand.now < until_ns:
        for commit in only(Commit, hand.flush()):
            hand.refuse(commit, FULL)
            commits += 1
        hand.now += S // 1_000
        hand.broker.tick(hand.now)
    return commits


def test_an_answer_that_waits_for_a_full_disk_does_not_try_it_all_the_time() -> None:
    hand, letter = with_a_dead_letter()
    drop(hand, letter, "dropped")

    assert refused_commits(hand, 10) <= 10
    assert len(hand.dead) == 1

    assert answer_to("dropped", hand.pass_s(1)) is None
    assert hand.dead == {}


def test_an_answer_to_a_redrive_waits_for_the_disk_too() -> None:
    hand, letter = with_a_dead_letter()
    hand.broker.redrive(letter, "redriven", hand.now)
    [push] = pushes(hand.settle())[-1:]
    hand.broker.pushed(push.lane, Answered(204), hand.now)

    assert refused_commits(hand, 10) <= 10

    assert isinstance(answer_to("redriven", hand.pass_s(1)), Redriven)


def test_a_client_finds_out_at_once_that_there_is_room_again() -> None:
    hand, letter = with_a_dead_letter()
    drop(hand, letter, "dropped")
    [commit] = only(Commit, hand.flush())
    hand.refuse(commit, FULL)
    hand.broker.clock.accept(hand.now, "accepted", hand.now)

    answers = hand.settle()  # what waits goes along

    assert answer_to("accepted", answers) is answer_to("dropped", answers) is None
    hand.broker.clock.accept(hand.now, "again", hand.now)
    assert answer_to("again", hand.settle()) is None
