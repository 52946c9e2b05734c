"""Message boxes: events that are fetched. What was handed out stays until it is acknowledged."""

from __future__ import annotations

from tocsin.broker.catchup import Catchup
from tocsin.broker.effects import Pulled, Token
from tocsin.broker.state import State
from tocsin.broker.subscriber import Pull, Subscriber
from tocsin.delivery.follower import weight
from tocsin.errors import BadToken, Busy, NoSuchBox
from tocsin.event.stored import Stored
from tocsin.event.subscription import Kind

PULL_EVENTS_MAX = 1_000
PULL_BYTES_MAX = 8 << 20
TOKEN_CHARACTERS_MAX = 20


class Boxes:
    """Pulling, waiting and acknowledging."""

    def __init__(self, state: State, catchup: Catchup) -> None:
        self._state = state
        self._catchup = catchup
        self._waiting: dict[Token, tuple[Subscriber, Pull]] = {}

    def find(self, box_id: str) -> Subscriber:
        box = self._state.by_id.get(box_id)
        if box is None or box.subscription.kind is not Kind.BOX:
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
        pull = Pull(token, max(1, min(events_max, PULL_EVENTS_MAX)))
        if box.follower.waiting or wait_ns <= 0:
            self._answer(box, pull)
            return
        if len(box.pulls) >= self._state.options.pulls_per_box_max:
            raise Busy(
                f"{len(box.pulls)} callers wait at this box already",
                remedy="Let one consumer pull at a time.",
            )
        box.pulls.append(pull)
        self._waiting[token] = (box, pull)
        longest_ns = int(self._state.options.pull_wait_s_max * 1e9)
        until_ns = now_ns + min(wait_ns, longest_ns)
        pull.gives_in = self._state.timers.at(until_ns, lambda _: self._answer(box, pull))

    def _acknowledge(self, box: Subscriber, ack: str) -> None:
        if len(ack) > TOKEN_CHARACTERS_MAX or not (ack.isascii() and ack.isdigit()):
            raise BadToken(
                f"{ack[:32]!r} is no acknowledgement token", remedy="Give back `next` as it came."
            )
        seq = int(ack)
        if seq > box.follower.cursor(self._state.head):
            if seq > box.handed_out:
                raise BadToken(
                    f"token {ack} was never handed out", remedy="Give back `next` as it came."
                )
            box.follower.settle_through(seq)
            box.told_dropped = box.answered_dropped
            self._state.moved(box)
            if box.follower.wants_more():
                self._catchup.add(box.follower)

    def _answer(self, box: Subscriber, pull: Pull) -> None:
        events = _first(box, pull.events_max)
        follower = box.follower
        last = events[-1].seq if events else follower.cursor(self._state.head)
        box.delivered += len(events)
        box.handed_out = max(box.handed_out, last)
        self._state.counters.pulled += len(events)
        box.answered_dropped = follower.dropped
        self._close(box, pull)
        self._state.reply(
            pull.token, Pulled(events, str(last), follower.dropped - box.told_dropped)
        )

    def _close(self, box: Subscriber, pull: Pull) -> None:
        self._state.timers.cancel(pull.gives_in)
        if pull in box.pulls:
            box.pulls.remove(pull)
            self._waiting.pop(pull.token, None)

    def wake(self, box: Subscriber) -> None:
        """Something came: everybody who waits gets it, and the acknowledgement decides."""
        if box.is_active:
            for pull in list(box.pulls):
                self._answer(box, pull)

    def cancel(self, token: Token) -> None:
        """The caller has left."""
        if token in self._waiting:
            box, pull = self._waiting[token]
            self._close(box, pull)

    def turn_away(self, box: Subscriber) -> None:
        """The box is no more; those who wait are told."""
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


def _first(box: Subscriber, events_max: int) -> list[Stored]:
    """The oldest waiting events, as many as one answer may hold; none while the box is paused."""
    taken: list[Stored] = []
    size = 0
    if not box.is_active:
        return taken
    for stored in box.follower.waiting:
        size += weight(stored)
        if taken and (len(taken) >= events_max or size > PULL_BYTES_MAX):
            break
        taken.append(stored)
    return taken
