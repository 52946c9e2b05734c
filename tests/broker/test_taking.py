"""Taking from a box without a token: in flight until it is released or given back."""

from __future__ import annotations

from broker.harness import Hand, answer_to, event
from tocsin.broker.effects import Pulled
from tocsin.broker.options import BrokerOptions

S = 1_000_000_000


class Taker:
    """Somebody whose answers either arrive or do not."""

    def __init__(self, hand: Hand, box: str) -> None:
        self.hand = hand
        self.box = box

    def take(self, events_max: int = 100, wait_s: float = 0) -> tuple[object, list[int]]:
        token = object()
        boxes, now = self.hand.broker.boxes, self.hand.now
        boxes.take(self.box, events_max, int(wait_s * S), token, now)
        return token, numbers(answer_to(token, self.hand.settle()))

    def release(self, token: object, through: int | None = None) -> None:
        self.hand.broker.boxes.release(token, through)
        self.hand.settle()

    def give_back(self, token: object) -> None:
        self.hand.broker.boxes.give_back(token)
        self.hand.settle()

    @property
    def cursor(self) -> int:
        return self.hand.broker.view_box(self.box).cursor


def numbers(answer: object) -> list[int]:
    assert isinstance(answer, Pulled)
    return [stored.seq for stored in answer.events]


def filled(count: int, **config: object) -> Taker:
    hand = Hand(BrokerOptions())
    box = hand.subscribe(sink=None, **config)  # type: ignore[arg-type]
    for number in range(count):
        hand.publish(event(number))
    return Taker(hand, box)


def test_what_was_given_back_is_handed_out_again() -> None:
    taker = filled(3)

    lost, first = taker.take()
    taker.give_back(lost)
    _, second = taker.take()

    assert first == second == [1, 2, 3]


def test_what_was_released_is_gone_and_the_cursor_is_past_it() -> None:
    taker = filled(3)

    token, _ = taker.take(2)
    taker.release(token)
    _, rest = taker.take()

    assert rest == [3]
    assert taker.cursor == 2


def test_two_who_take_at_once_get_different_events() -> None:
    taker = filled(4)

    _, mine = taker.take(2)
    _, yours = taker.take(2)
    _, nobodys = taker.take()

    assert (mine, yours, nobodys) == ([1, 2], [3, 4], [])


def test_the_cursor_waits_for_the_oldest_in_flight() -> None:
    taker = filled(4)
    early, _ = taker.take(2)
    late, _ = taker.take(2)

    taker.release(late)
    before = taker.cursor
    taker.give_back(early)
    again, seen = taker.take()
    taker.release(again)

    assert before == 0
    assert seen == [1, 2]
    assert taker.cursor == 4


def test_a_part_of_what_was_taken_can_be_released() -> None:
    taker = filled(3)

    token, _ = taker.take()
    taker.release(token, through=1)

    assert taker.take()[1] == [2, 3]


def test_who_waits_is_woken_by_what_another_gives_back() -> None:
    taker = filled(1)
    lost, _ = taker.take()
    waiting = object()
    taker.hand.broker.boxes.take(taker.box, 10, 5 * S, waiting, taker.hand.now)

    taker.hand.broker.boxes.give_back(lost)

    assert numbers(answer_to(waiting, taker.hand.settle())) == [1]


def test_of_two_who_wait_the_first_gets_the_event() -> None:
    taker = filled(0)
    first, second = object(), object()
    for token in (first, second):
        taker.hand.broker.boxes.take(taker.box, 10, 5 * S, token, taker.hand.now)

    effects = taker.hand.ask(lambda token: taker.hand.broker.publish([event(1)], token))
    answers = {id(e.token): e.result for e in taker.hand.seen if hasattr(e, "token")}

    assert effects is not None
    assert numbers(answers[id(first)]) == [1]
    assert id(second) not in answers
    taker.hand.pass_s(6)
    answers = {id(e.token): e.result for e in taker.hand.seen if hasattr(e, "token")}
    assert numbers(answers[id(second)]) == []


def test_whoever_leaves_after_it_was_answered_gives_back() -> None:
    taker = filled(2)

    token, _ = taker.take()
    taker.hand.broker.cancel(token)

    assert taker.take()[1] == [1, 2]


def test_what_is_in_flight_is_not_dropped_by_a_full_box() -> None:
    taker = filled(2, backlog=2)
    token, _ = taker.take()

    for number in range(10, 14):
        taker.hand.publish(event(number))
    taker.give_back(token)

    assert taker.take()[1] == [1, 2, 5, 6]


def test_releasing_from_a_box_that_is_gone_does_nothing() -> None:
    taker = filled(2)
    token, _ = taker.take()
    taker.hand.ask(lambda asked: taker.hand.broker.unsubscribe(taker.box, asked, taker.hand.now))

    taker.release(token)

    assert taker.hand.broker.is_idle()
