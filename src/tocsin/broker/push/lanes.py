"""PushLanes: each sink's lane, one request at a time; what an answer means for what comes next."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from tocsin.broker.delivery.deadletter import ATTEMPTS_KEPT_MAX, attempt
from tocsin.broker.delivery.lane import Lane, Redrive
from tocsin.broker.delivery.outcome import Answered, Outcome, Verdict, describe, judge
from tocsin.broker.delivery.retry import retry_at_ns
from tocsin.broker.effects import CloseSubscription, Push
from tocsin.broker.followers.catchup import Catchup
from tocsin.broker.push.deadletters import DeadLetters
from tocsin.broker.push.lane_order import line_up, next_member, tidy
from tocsin.broker.push.unreachable import UnreachableSinks
from tocsin.broker.state.state import State, endings
from tocsin.broker.state.subscriber import Subscriber
from tocsin.errors import NotAllowed, TocsinError
from tocsin.event.instant import NS_PER_S
from tocsin.event.stored import Stored
from tocsin.event.subscription import State as SubscriptionState


class PushLanes:
    """The lanes by sink, and the rules of delivery."""

    def __init__(
        self, state: State, catchup: Catchup, addresses_of: Callable[[str], Iterable[str]]
    ) -> None:
        self._state = state
        self._catchup = catchup
        self._addresses_of = addresses_of
        self.unreachable = UnreachableSinks()
        self._by_sink: dict[str, Lane[Subscriber]] = {}
        self._by_number: dict[int, Lane[Subscriber]] = {}
        self.dead_letters = DeadLetters(state)

    def lanes(self) -> int:
        return len(self._by_sink)

    def _lane(self, sink: str) -> Lane[Subscriber]:
        lane = self._by_sink.get(sink)
        if lane is None:
            lane = Lane(self._state.new_key(), sink)
            self._by_sink[sink] = self._by_number[lane.number] = lane
        return lane

    def join(self, subscriber: Subscriber) -> None:
        """The subscriber's events go to its sink from now on."""
        sink = subscriber.subscription.sink
        assert sink is not None
        subscriber.lane = lane = self._lane(sink)
        if lane.only is not None:  # who was alone needed no line
            line_up(lane, lane.only)
        lane.members[subscriber.follower.key] = subscriber
        lane.only = subscriber if len(lane.members) == 1 else None
        lane.limit_rate(subscriber.subscription.rate_per_minute)

    def is_there(self, subscriber: Subscriber, now_ns: int) -> None:
        """Somebody at the sink subscribed, renewed or resumed: try now, not after the old delay."""
        lane = subscriber.lane
        if lane is not None and lane.forget_delay(now_ns):
            self.wake(lane, now_ns)

    def peer_connected(self, address: str, now_ns: int) -> None:
        """Somebody connected from this address: sinks there that were out of reach may be back."""
        for lane in self.unreachable.at(address, now_ns):
            if lane.forget_delay(now_ns):
                self.wake(lane, now_ns)

    def leave(self, subscriber: Subscriber) -> None:
        if (lane := subscriber.lane) is None:
            return
        del lane.members[subscriber.follower.key]
        subscriber.lane = subscriber.lined_up = None
        tidy(lane)
        if isinstance(lane.busy, tuple) and lane.busy[0] is subscriber:
            # The answer will concern nobody, also not a subscriber that is back here by then.
            lane.busy = (subscriber, [])
        self._state.out.append(CloseSubscription(lane.number, subscriber.subscription.id))
        self._close_if_idle(lane)

    def _close_if_idle(self, lane: Lane[Subscriber]) -> None:
        if not lane.members and lane.busy is None and not lane.redrives:
            self._by_sink.pop(lane.sink, None)
            self._by_number.pop(lane.number, None)
            self.unreachable.drop(lane)

    def wake_for(self, subscriber: Subscriber, now_ns: int) -> None:
        """Something waits for this subscriber's sink."""
        lane = subscriber.lane
        assert lane is not None
        if lane.only is None:
            line_up(lane, subscriber)
        if lane.busy is None:
            self.wake(lane, now_ns)

    def wake(self, lane: Lane[Subscriber], now_ns: int) -> None:
        """Send the next thing on this lane, if nothing is under way and nothing forbids it."""
        if lane.busy is not None:
            return
        while lane.redrives:
            if self._send_redrive(lane, lane.redrives.popleft()):
                return
        subscriber = next_member(lane)
        while subscriber is not None and subscriber.withhold():
            self._state.moved(subscriber)
            if subscriber.follower.wants_more():
                self._catchup.add(subscriber.follower)
            subscriber = next_member(lane)
        if subscriber is None:
            return
        if now_ns < lane.not_before_ns:
            self._wake_later(lane)
            return
        self._send(lane, subscriber, now_ns)

    def _send(self, lane: Lane[Subscriber], subscriber: Subscriber, now_ns: int) -> None:
        follower, subscription = subscriber.follower, subscriber.subscription
        size = subscription.config.batch
        if size <= 1 or follower.waiting[0].seq <= subscriber.singly_to:
            events = [follower.waiting[0]]
        else:
            events = [follower.waiting[i] for i in range(min(size, len(follower.waiting)))]
        follower.held = len(events)
        lane.busy = (subscriber, events)
        if lane.interval_ns:
            lane.not_before_ns = now_ns + lane.interval_ns
        timeout_s = subscription.config.timeout_s or self._state.options.retry.timeout_s
        self._state.out.append(Push(lane.number, lane.sink, subscription, events, timeout_s))

    def pushed(self, number: int, outcome: Outcome, now_ns: int) -> None:
        """An attempt ended."""
        lane = self._by_number[number]
        busy, lane.busy = lane.busy, None
        assert busy is not None, "an answer on a lane that sent nothing"
        if isinstance(busy, Redrive):
            self._redriven(lane, busy, outcome, now_ns)
        else:
            who, events = busy
            if not events:  # unsubscribed, or moved to another sink, in the meantime
                self._answered_nobody(lane, outcome, now_ns)
            elif (verdict := judge(outcome)) is Verdict.DELIVERED:
                self._delivered(lane, who, events, now_ns)
            else:
                self._not_delivered(lane, who, events, verdict, outcome, now_ns)
        self.wake(lane, now_ns)
        self._close_if_idle(lane)

    def _answered_nobody(self, lane: Lane[Subscriber], outcome: Outcome, now_ns: int) -> None:
        """A sink that asks for patience asks everybody who sends there, not one subscription."""
        asks_it = isinstance(outcome, Answered) and outcome.retry_after_s is not None
        if asks_it and judge(outcome) in (Verdict.WAIT, Verdict.RETRY):
            lane.asks_patience = True
            self._retry_at(lane, outcome, now_ns)

    def _delivered(
        self, lane: Lane[Subscriber], who: Subscriber, events: list[Stored], now_ns: int
    ) -> None:
        if lane.failures:
            self._is_back(lane)
            who.last_error = None
        count = len(events)
        who.delivered += count
        who.last_delivered_ns = now_ns + self._state.shift_ns
        self._state.counters.delivered += count
        self._front_is_settled(who, events[-1].seq)

    def _not_delivered(
        self,
        lane: Lane[Subscriber],
        who: Subscriber,
        events: list[Stored],
        verdict: Verdict,
        outcome: Outcome,
        now_ns: int,
    ) -> None:
        who.follower.held = 0
        who.failed_attempts += 1
        who.last_error = describe(outcome)
        self._state.counters.failed_attempts += 1
        if verdict is Verdict.GONE:
            self._gone(who)
            return
        who.tries(events[0].seq)
        if len(who.attempts) >= ATTEMPTS_KEPT_MAX:
            del who.attempts[
                ATTEMPTS_KEPT_MAX // 2
            ]  # the first ones and the last ones are the most useful
        who.attempts.append(attempt(outcome, self._state.time_ns(now_ns)))
        self._failed(lane, who, events, verdict, outcome, now_ns)

    def _failed(
        self,
        lane: Lane[Subscriber],
        who: Subscriber,
        events: list[Stored],
        verdict: Verdict,
        outcome: Outcome,
        now_ns: int,
    ) -> None:
        if verdict is Verdict.WAIT:
            self._wait(lane, outcome, now_ns)
            return
        if lane.unreachable_since_ns is not None:
            failures = lane.failures
            self._is_back(lane)  # it answers, if with a refusal
            lane.failures = failures
        who.refusals += 1
        attempts_max = who.subscription.config.attempts or self._state.options.retry.attempts
        if verdict is Verdict.REFUSED or who.refusals >= attempts_max:
            if len(events) > 1:
                # One of them is not wanted, and the answer does not say which: ask one by one.
                who.singly_to = events[-1].seq
                who.start_afresh()
            else:
                self._give_up(who, describe(outcome), now_ns)
            lane.failures = 0
            return
        lane.asks_patience = isinstance(outcome, Answered) and outcome.retry_after_s is not None
        self._retry_at(lane, outcome, now_ns)

    def _wait(self, lane: Lane[Subscriber], outcome: Outcome, now_ns: int) -> None:
        if lane.unreachable_since_ns is None:
            lane.unreachable_since_ns = now_ns
        lane.asks_patience = isinstance(outcome, Answered)
        options = self._state.options
        away_ns = now_ns - lane.unreachable_since_ns
        if not lane.missing and away_ns > options.missing_after_s * NS_PER_S:
            lane.missing = True
            self._stand_differently(lane)
        patience_s = options.retry.unreachable_s_max
        if away_ns > patience_s * NS_PER_S:
            for member in lane.members.values():
                self.suspend(
                    member, f"no delivery for {patience_s / 3600:.0f} h: {describe(outcome)}"
                )
            self.recovered(lane)
            return
        self.unreachable.put(lane, () if lane.asks_patience else self._addresses_of(lane.sink))
        self._retry_at(lane, outcome, now_ns)

    def recovered(self, lane: Lane[Subscriber]) -> None:
        lane.recovered()
        self.unreachable.drop(lane)

    def _is_back(self, lane: Lane[Subscriber]) -> None:
        was_missing = lane.missing
        self.recovered(lane)
        if was_missing:
            self._stand_differently(lane)

    def _stand_differently(self, lane: Lane[Subscriber]) -> None:
        for member in lane.members.values():
            self._state.stands_differently(member)

    def _retry_at(self, lane: Lane[Subscriber], outcome: Outcome, now_ns: int) -> None:
        lane.failures += 1
        asked_s = outcome.retry_after_s if isinstance(outcome, Answered) else None
        lane.not_before_ns = retry_at_ns(
            self._state.options.retry, lane.failures, now_ns, self._state.jitter(), asked_s
        )

    def _wake_later(self, lane: Lane[Subscriber]) -> None:
        """Something waits and may not go yet: come back when it may."""
        if lane.timer_ns != lane.not_before_ns:
            lane.timer_ns = lane.not_before_ns
            self._state.timers.at(lane.not_before_ns, lambda now: self.wake(lane, now))

    def _front_is_settled(self, who: Subscriber, seq: int) -> None:
        who.front_is_settled(seq)
        self._state.moved(who)
        if not who.follower.live and who.follower.wants_more():
            self._catchup.add(who.follower)

    def _give_up(self, who: Subscriber, reason: str, now_ns: int) -> None:
        """The event in front becomes a dead letter, in the same commit that moves the cursor."""
        if self.dead_letters.are_full():
            self.suspend(who, f"the dead letters are full, and the sink answered {reason}")
            return
        stored = who.follower.waiting[0]
        self.dead_letters.bury(who, stored, reason, now_ns)
        self._front_is_settled(who, stored.seq)

    def _gone(self, who: Subscriber) -> None:
        """410: the sink wants no more, ever."""
        self._state.note(
            "info",
            "the sink answered 410 Gone; its subscription ends",
            subscription=who.subscription.id,
        )
        self.end(who)
        self._state.unsaved_ends += endings(
            who, "DeliveryFailure", "the consumer answered 410 Gone"
        )

    def end(self, who: Subscriber) -> None:
        """Take a push subscription out of everything, and off the disk with the next commit."""
        state = self._state
        self.leave(who)
        state.timers.cancel(who.lease)
        self._catchup.forget(who.follower)
        state.leave(who)
        del state.by_id[who.subscription.id]
        state.dirty.pop(who.subscription.id, None)
        state.unsaved.cursors.pop(who.subscription.id, None)
        state.unsaved.subscriptions[who.subscription.id] = None

    def suspend(self, who: Subscriber, reason: str) -> None:
        """Pause it, say why, keep its backlog."""
        if not who.is_active:
            return  # one that waits for its sink's consent would be resumed without it
        state = self._state
        who.subscription = msgspec.structs.replace(
            who.subscription, state=SubscriptionState.PAUSED, reason=reason
        )
        who.follower.park(state.head)
        self._catchup.forget(who.follower)
        state.redefined(who)
        state.stands_differently(who)
        state.note(
            "warning",
            "a subscription was paused; `tocsin subs resume` starts it again",
            subscription=who.subscription.id,
            reason=reason,
        )

    # Redrive: the dead letter stays until the sink has taken a copy.

    def redrive(self, redrive: Redrive, now_ns: int) -> None:
        """Send a dead letter again, to where its subscription points now."""
        letter = redrive.letter
        known = self._state.by_id.get(letter.subscription)
        lane = self._lane(known.lane.sink if known and known.lane else letter.sink)
        try:
            self.dead_letters.begin(letter, under_way=len(lane.redrives))
        except TocsinError:
            self._close_if_idle(lane)
            raise
        lane.redrives.append(redrive)
        self.wake(lane, now_ns)
        self._close_if_idle(lane)

    def _send_redrive(self, lane: Lane[Subscriber], redrive: Redrive) -> bool:
        """False if it may not be sent: the right to it ended, perhaps while it waited here."""
        try:
            self.dead_letters.check_permitted(redrive.letter)
        except NotAllowed as refused:
            self.dead_letters.not_sent(redrive, refused)
            return False
        lane.busy = redrive
        subscription = self.dead_letters.subscription_of(redrive.letter)
        events: list[Stored] = [redrive.letter.stored()]
        timeout_s = subscription.config.timeout_s or self._state.options.retry.timeout_s
        self._state.out.append(Push(lane.number, lane.sink, subscription, events, timeout_s))
        return True

    def _redriven(
        self, lane: Lane[Subscriber], redrive: Redrive, outcome: Outcome, now_ns: int
    ) -> None:
        if self.dead_letters.redriven(redrive, outcome, now_ns):
            self.recovered(lane)
            lane.not_before_ns = 0
        subscription_id = redrive.letter.subscription
        known = self._state.by_id.get(subscription_id)
        is_next = lane.redrives and lane.redrives[0].letter.subscription == subscription_id
        if (known is None or known.lane is not lane) and not is_next:
            self._state.out.append(CloseSubscription(lane.number, subscription_id))
