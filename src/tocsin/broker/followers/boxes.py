"""Message boxes: events that are fetched. What was handed out stays until it is acknowledged.

There are two ways to fetch. A pull hands out a token, and giving it back acknowledges. A take is
for protocols that have no token: what it handed out is in flight, and no other take gets it, until
whoever carried the answer says that it arrived (`release`) or that it did not (`give_back`).
"""

from __future__ import annotations

import msgspec

from tocsin.broker.delivery.follower import weight
from tocsin.broker.effects import Pulled, Token
from tocsin.broker.followers.catchup import Catchup
from tocsin.broker.state.state import State
from tocsin.broker.state.subscriber import Pull, Subscriber
from tocsin.errors import BadToken, Busy, NoSuchBox
from tocsin.event.stored import Stored
from tocsin.event.subscription import Kind

PULL_EVENTS_MAX = 1_000
PULL_BYTES_MAX = 8 << 20
TOKEN_CHARACTERS_MAX = 20


class HandOut(msgspec.Struct, frozen=True, eq=False):
    """What one take was answered with."""

    box: Subscriber
    numbers: list[int]
    dropped: int  # what the answer said of events that were dropped
    withheld: int  # and of events that were withheld


class Boxes:
    """Pulling, taking, waiting and acknowledging."""

    def __init__(self, state: State, catchup: Catchup) -> None:
        self._state = state
        self._catchup = catchup
        self._waiting: dict[Token, tuple[Subscriber, Pull]] = {}
        self._hand_outs: dict[Token, HandOut] = {}  # by the token of the take

    def find(self, box_id: str, kind: Kind = Kind.BOX) -> Subscriber:
        box = self._state.by_id.get(box_id)
        if box is None or box.subscription.kind is not kind:
            raise NoSuchBox(
                f"there is no message box {box_id[:64]!r}",
                remedy="`tocsin box create` makes one; `tocsin box ls` lists those there are.",
            )
        return box

    def pull(
        self, box_id: str, events_max: int, wait_ns: int, ack: str | None, token: Token, now_ns: int
    ) -> None:
        """Answer with what waits, or when something comes, or empty when the wait is over."""
        box = self.find(box_id)
        if ack is not None:
            self._acknowledge(box, ack)
        self._answer_or_wait(box, Pull(token, _within(events_max)), wait_ns, now_ns)

    def take(
        self,
        box_id: str,
        events_max: int,
        wait_ns: int,
        token: Token,
        now_ns: int,
        kind: Kind = Kind.BOX,
    ) -> None:
        """The same, of what is not in flight. `token` stands for what was handed out, until it is
        released or given back."""
        pull = Pull(token, _within(events_max), takes=True)
        self._answer_or_wait(self.find(box_id, kind), pull, wait_ns, now_ns)

    def _answer_or_wait(self, box: Subscriber, pull: Pull, wait_ns: int, now_ns: int) -> None:
        box.withhold()
        if wait_ns <= 0 or _has_something(box, pull):
            self._answer(box, pull)
            return
        if len(box.pulls) >= self._state.options.pulls_per_box_max:
            raise Busy(
                f"{len(box.pulls)} callers are already waiting for this box",
                remedy="Let one consumer pull at a time.",
            )
        box.pulls.append(pull)
        self._waiting[pull.token] = (box, pull)
        longest_ns = int(self._state.options.pull_wait_s_max * 1e9)
        until_ns = now_ns + min(wait_ns, longest_ns)
        pull.gives_in = self._state.timers.at(until_ns, lambda _: self._answer(box, pull))

    def _acknowledge(self, box: Subscriber, ack: str) -> None:
        if len(ack) > TOKEN_CHARACTERS_MAX or not (ack.isascii() and ack.isdigit()):
            raise BadToken(
                f"{ack[:32]!r} is not an acknowledgement token",
                remedy="Send `next` of the last response unchanged.",
            )
        seq = int(ack)
        if seq > box.follower.cursor(self._state.head):
            if seq > box.handed_out:
                raise BadToken(
                    f"token {ack} was not issued by this box",
                    remedy="Send `next` of the last response unchanged.",
                )
            box.acknowledged_dropped = box.answered_dropped
            box.acknowledged_withheld = box.answered_withheld
            self._settle(box, seq)

    def _settle(self, box: Subscriber, seq: int) -> None:
        """Everything up to `seq` is done with, and what follows it and was released early."""
        follower = box.follower
        for stored in follower.waiting if box.released else ():
            if stored.seq > seq and stored.seq not in box.released:
                break
            seq = max(seq, stored.seq)
        follower.settle_through(seq)
        if box.released or box.in_flight:
            box.released = {each for each in box.released if each > seq}
            box.in_flight = {each for each in box.in_flight if each > seq}
            _hold_front(box)
        self._state.moved(box)
        if follower.wants_more():
            self._catchup.add(follower)

    def release(self, token: Token, through: int | None = None) -> None:
        """What this take handed out has arrived; of it what is past `through` has not."""
        hand_out = self._finished(token)
        if hand_out is None:
            return
        box = hand_out.box
        box.acknowledged_dropped = max(box.acknowledged_dropped, hand_out.dropped)
        box.acknowledged_withheld = max(box.acknowledged_withheld, hand_out.withheld)
        waited = box.in_flight.intersection(hand_out.numbers)
        box.in_flight -= waited
        box.released |= {seq for seq in waited if through is None or seq <= through}
        if box.released:
            self._settle(box, 0)
        else:
            _hold_front(box)
        self.wake(box)

    def give_back(self, token: Token) -> None:
        """What this take handed out did not arrive: it is for whoever asks next."""
        hand_out = self._finished(token)
        if hand_out is not None:
            hand_out.box.in_flight.difference_update(hand_out.numbers)
            _hold_front(hand_out.box)
            self.wake(hand_out.box)

    def _finished(self, token: Token) -> HandOut | None:
        hand_out = self._hand_outs.pop(token, None)
        if hand_out is None:
            return None
        is_there = self._state.by_id.get(hand_out.box.subscription.id) is hand_out.box
        return hand_out if is_there else None

    def _answer(self, box: Subscriber, pull: Pull) -> None:
        box.withhold()
        events = _first(box, pull)
        follower = box.follower
        last = events[-1].seq if events else follower.cursor(self._state.head)
        box.delivered += len(events)
        box.handed_out = max(box.handed_out, last)
        self._state.counters.pulled += len(events)
        box.answered_dropped = follower.dropped
        box.answered_withheld = withheld = box.permits.withheld
        self._close(box, pull)
        if pull.takes:
            numbers = [stored.seq for stored in events]
            self._hand_outs[pull.token] = HandOut(box, numbers, follower.dropped, withheld)
            box.in_flight.update(numbers)
            _hold_front(box)
        dropped = follower.dropped - box.acknowledged_dropped
        told = None
        if box.permits.disclosed is not None:
            told = withheld - box.acknowledged_withheld
        self._state.reply(pull.token, Pulled(events, str(last), dropped, told))

    def _close(self, box: Subscriber, pull: Pull) -> None:
        self._state.timers.cancel(pull.gives_in)
        if pull in box.pulls:
            box.pulls.remove(pull)
            self._waiting.pop(pull.token, None)

    def wake(self, box: Subscriber) -> None:
        """Something came: everybody who waits gets it, and the acknowledgement decides. Of those
        who take, the first gets it."""
        if box.is_active:
            box.withhold()
            for pull in list(box.pulls):
                if not pull.takes or _has_something(box, pull):
                    self._answer(box, pull)

    def cancel(self, token: Token) -> None:
        """The caller has left."""
        self.give_back(token)
        if token in self._waiting:
            box, pull = self._waiting[token]
            self._close(box, pull)

    def turn_away(self, box: Subscriber) -> None:
        """The box is no more; those who wait are answered."""
        error = NoSuchBox(
            "the message box has ended", remedy="`tocsin box create` makes a new one."
        )
        for pull in list(box.pulls):
            self._close(box, pull)
            self._state.reply(pull.token, error)

    def end_waits(self) -> None:
        """Answer everybody who waits, empty: the broker stops."""
        for box, pull in list(self._waiting.values()):
            self._answer(box, pull)


def _within(events_max: int) -> int:
    return max(1, min(events_max, PULL_EVENTS_MAX))


def _has_something(box: Subscriber, pull: Pull) -> bool:
    waiting = box.follower.waiting
    if not pull.takes or not (box.in_flight or box.released):
        return bool(waiting)
    return any(_is_free(box, stored.seq) for stored in waiting)


def _is_free(box: Subscriber, seq: int) -> bool:
    return seq not in box.in_flight and seq not in box.released


def _hold_front(box: Subscriber) -> None:
    """A box that is full drops its oldest, but none that is under way to its owner."""
    held = 0
    for stored in box.follower.waiting:
        if _is_free(box, stored.seq):
            break
        held += 1
    box.follower.held = held


def _first(box: Subscriber, pull: Pull) -> list[Stored]:
    """The oldest waiting events, as many as one answer may hold; none while the box is paused."""
    taken: list[Stored] = []
    size = 0
    if not box.is_active:
        return taken
    for stored in box.follower.waiting:
        if pull.takes and not _is_free(box, stored.seq):
            continue
        size += weight(stored)
        if taken and (len(taken) >= pull.events_max or size > PULL_BYTES_MAX):
            break
        taken.append(stored)
    return taken
