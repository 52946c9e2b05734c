"""Dead letters: what was given up is kept with its story until it was taken, or dropped."""

from __future__ import annotations

import msgspec

from tocsin.broker.delivery.deadletter import ATTEMPTS_KEPT_MAX, DeadLetter, attempt, record
from tocsin.broker.delivery.lane import Redrive
from tocsin.broker.delivery.outcome import Outcome, Verdict, describe, judge
from tocsin.broker.effects import Redriven, Token
from tocsin.broker.state.state import State
from tocsin.broker.state.subscriber import Subscriber
from tocsin.errors import Busy, NoSuchDeadLetter, NotAllowed, RedriveFailed
from tocsin.event.stored import Stored
from tocsin.event.subscription import Kind, Owner, Subscription
from tocsin.event.subscription import State as SubscriptionState

REDRIVES_PER_LANE_MAX = 1_000


class DeadLetters:
    """Burying, sending again, dropping. Every change is on disk before anybody hears of it."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._redriving: set[str] = set()

    def are_full(self) -> bool:
        return self._state.counters.dead_letters >= self._state.options.dead_letters_max

    def bury(self, who: Subscriber, stored: Stored, reason: str, now_ns: int) -> None:
        """Keep what this subscriber's sink did not take."""
        state, subscription = self._state, who.subscription
        assert subscription.sink is not None
        letter = DeadLetter(
            id=state.new_id(),
            subscription=subscription.id,
            sink=subscription.sink,
            seq=stored.seq,
            received_ns=stored.received_ns,
            given_up_ns=self._state.time_ns(now_ns),
            reason=reason,
            attempts=list(who.attempts),
            event=stored.event,
            soap=subscription.soap,
            owner=subscription.owner,
        )
        state.unsaved.dead[letter.id] = record(letter)
        state.counters.dead_letters += 1
        state.counters.given_up += 1
        who.dead += 1
        state.note(
            "warning",
            "an event became a dead letter; see `tocsin dlq show`",
            dead_letter=letter.id,
            subscription=letter.subscription,
            seq=letter.seq,
            reason=reason,
        )

    def begin(self, letter: DeadLetter, *, under_way: int) -> None:
        """It is to be sent again; raises why it cannot be."""
        self._check_kept(letter.id)
        known = self._state.by_id.get(letter.subscription)
        if known is not None and known.subscription.state is SubscriptionState.PENDING:
            raise RedriveFailed(
                "the subscription's sink has not agreed to receive events",
                remedy="Redrive it when the subscription is active.",
            )
        if under_way >= REDRIVES_PER_LANE_MAX:
            raise RedriveFailed(
                f"{REDRIVES_PER_LANE_MAX} dead letters are already waiting for this sink",
                remedy="Wait for those to go through, then redrive the rest.",
            )
        self._redriving.add(letter.id)

    def subscription_of(self, letter: DeadLetter) -> Subscription:
        """As which subscription it goes out; if that is gone, plain and unsigned, in the
        specification that its consumer speaks."""
        known = self._state.by_id.get(letter.subscription)
        if known is not None:
            return known.subscription
        return Subscription(
            id=letter.subscription, kind=Kind.PUSH, sink=letter.sink, soap=letter.soap
        )

    def owner_of(self, letter: DeadLetter) -> Owner | None:
        """Whose subscription it is; of one that is gone, whose it was."""
        known = self._state.by_id.get(letter.subscription)
        return letter.owner if known is None else known.subscription.owner

    def check_permitted(self, letter: DeadLetter) -> None:
        """Raise NotAllowed unless the owner of its subscription may have the event now."""
        permit = self._state.permit_of(self.owner_of(letter))
        if permit is not None and not permit.allows(letter.event):
            raise NotAllowed(
                "whoever made the subscription has no right to this event any more",
                remedy="Grant the right, or give the subscription to somebody who has it; "
                "or drop the dead letter.",
            )

    def not_sent(self, redrive: Redrive, error: NotAllowed) -> None:
        """It is kept as it was, and may be redriven again."""
        self._redriving.discard(redrive.letter.id)
        self._state.reply(redrive.token, error)

    def redriven(self, redrive: Redrive, outcome: Outcome, now_ns: int) -> bool:
        """It was sent again. True if the sink took it, and then it is removed."""
        state, letter = self._state, redrive.letter
        self._redriving.discard(letter.id)
        if judge(outcome) is Verdict.DELIVERED:
            state.unsaved.dead[letter.id] = None
            state.counters.dead_letters -= 1
            state.counters.delivered += 1
            state.reply_when_saved(redrive.token, Redriven(letter))
            return True
        attempts = [*letter.attempts, attempt(outcome, self._state.time_ns(now_ns))][
            -ATTEMPTS_KEPT_MAX:
        ]
        kept = msgspec.structs.replace(letter, attempts=attempts, reason=describe(outcome))
        state.unsaved.dead[letter.id] = record(kept)
        state.reply_when_saved(
            redrive.token,
            RedriveFailed(
                f"the sink did not take it: {describe(outcome)}",
                remedy="The dead letter is kept. Fix the sink, then redrive it again.",
            ),
        )
        return False

    def drop(self, letter_id: str, token: Token) -> None:
        """Discard one that the caller has seen to exist."""
        self._check_kept(letter_id)
        self._state.unsaved.dead[letter_id] = None
        self._state.counters.dead_letters -= 1
        self._state.reply_when_saved(token, None)

    def _check_kept(self, letter_id: str) -> None:
        """Nobody removes a dead letter twice: not while it is sent, nor while it is removed."""
        if letter_id in self._redriving:
            raise Busy(
                f"dead letter {letter_id[:64]!r} is already being sent again",
                remedy="Wait until that attempt has ended.",
            )
        for changes in (self._state.unsaved.dead, self._state.committing.dead):
            if letter_id in changes and changes[letter_id] is None:
                raise NoSuchDeadLetter(
                    f"dead letter {letter_id[:64]!r} was just removed",
                    remedy="`tocsin dlq ls` lists those there are.",
                )
