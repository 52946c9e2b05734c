"""Handshakes: no event goes to a sink that was not asked (CloudEvents webhooks, section 4).

The sink is asked, not the subscription: whoever subscribes a hundred times to somebody else's
address makes us ask there once, and again ever more rarely, not a hundred times.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tocsin.broker.delivery.retry import RetryOptions, retry_at_ns
from tocsin.broker.effects import Handshake
from tocsin.broker.state.state import State
from tocsin.broker.state.subscriber import Subscriber
from tocsin.event.subscription import State as SubscriptionState
from tocsin.wire.cloudevents.webhook import Allowed, Refused


class Question:
    """What one sink is asked, and for whom. The token stays: a late call back is an answer too."""

    __slots__ = ("again_ns", "failures", "refusal", "sink", "token", "under_way", "waiting")

    def __init__(self, sink: str, token: str) -> None:
        self.sink = sink
        self.token = token
        self.waiting: dict[str, Subscriber] = {}
        self.under_way = False
        self.again_ns: int | None = None  # when it is asked next, unless it is being asked
        self.failures = 0
        self.refusal = ""


class Handshakes:
    """The questions that are open. `resume` starts a subscription whose sink has agreed."""

    def __init__(self, state: State, resume: Callable[[Subscriber, int], None]) -> None:
        self._state = state
        self._resume = resume
        self._by_sink: dict[str, Question] = {}
        self._by_token: dict[str, Question] = {}

    def ask(self, subscriber: Subscriber) -> None:
        """Ask this subscriber's sink, unless that is being done already."""
        sink = subscriber.subscription.sink
        assert sink is not None
        question = self._by_sink.get(sink)
        if question is None:
            question = Question(sink, self._state.new_id())
            self._by_sink[sink] = self._by_token[question.token] = question
            question.waiting[subscriber.subscription.id] = subscriber
            self._send(question)
            return
        question.waiting[subscriber.subscription.id] = subscriber
        subscriber.next_question_ns = question.again_ns
        if question.refusal:
            self._record_refusal(subscriber, question.refusal)

    def forget(self, subscriber: Subscriber, sink: str | None) -> None:
        """It has ended or moved away. The sink is asked again only if others still wait."""
        question = None if sink is None else self._by_sink.get(sink)
        if question is not None:
            question.waiting.pop(subscriber.subscription.id, None)

    def answered(self, token: str, answer: Allowed | Refused, now_ns: int) -> None:
        """The sink answered, called back, or did not answer in time."""
        question = self._by_token.get(token)
        if question is None:
            return
        if isinstance(answer, Allowed):
            self._close(question)
            for subscriber in self._still_waiting(question):
                self._agreed(subscriber, answer, now_ns)
        elif question.under_way:
            question.under_way = False
            self._declined(question, answer, now_ns)

    def _send(self, question: Question) -> None:
        waiting = self._still_waiting(question)
        if not waiting:
            self._close(question)
            return
        question.under_way = True
        self._set_again(question, None)
        # One that can sign in there, if any can: others would be turned away.
        asker = min(waiting, key=lambda each: each.subscription.config.credential is None)
        shown = asker.subscription.config.credential
        asked = Handshake(asker.subscription.id, question.sink, question.token, shown)
        self._state.out.append(asked)

    def _still_waiting(self, question: Question) -> list[Subscriber]:
        """Those for whom the answer counts: there still, and not moved to another sink."""
        return [
            subscriber
            for subscription_id, subscriber in question.waiting.items()
            if self._state.by_id.get(subscription_id) is subscriber
            and subscriber.subscription.state is SubscriptionState.PENDING
            and subscriber.subscription.sink == question.sink
        ]

    def _close(self, question: Question) -> None:
        del self._by_sink[question.sink]
        del self._by_token[question.token]

    def _agreed(self, subscriber: Subscriber, answer: Allowed, now_ns: int) -> None:
        subscriber.subscription = msgspec.structs.replace(
            subscriber.subscription,
            state=SubscriptionState.ACTIVE,
            reason=None,
            rate_per_minute=answer.rate_per_minute,
        )
        subscriber.last_error = None
        assert subscriber.lane is not None
        subscriber.lane.limit_rate(answer.rate_per_minute)
        self._state.redefined(subscriber)
        self._state.stands_differently(subscriber)
        self._resume(subscriber, now_ns)

    def _declined(self, question: Question, answer: Refused, now_ns: int) -> None:
        state = self._state
        question.failures += 1
        question.refusal = answer.reason
        for subscriber in self._still_waiting(question):
            self._record_refusal(subscriber, answer.reason)
        pace = RetryOptions(delay_s_max=state.options.handshake_delay_s_max)
        again_ns = retry_at_ns(pace, question.failures, now_ns, state.jitter())
        self._set_again(question, again_ns)
        state.timers.at(again_ns, lambda _: self._ask_again(question))

    def _set_again(self, question: Question, again_ns: int | None) -> None:
        question.again_ns = again_ns
        for subscriber in self._still_waiting(question):
            subscriber.next_question_ns = again_ns

    def _ask_again(self, question: Question) -> None:
        if self._by_token.get(question.token) is question and not question.under_way:
            self._send(question)

    def _record_refusal(self, subscriber: Subscriber, refusal: str) -> None:
        """Say in the subscription why it waits; on disk, and in the log, the first time only."""
        was = subscriber.subscription
        reason = f"the sink has not agreed to receive events: {refusal}"
        subscriber.last_error = refusal
        subscriber.subscription = msgspec.structs.replace(was, reason=reason)
        if was.reason is None:
            self._state.redefined(subscriber)
            self._state.note(
                "warning",
                "a subscription waits for its sink's consent",
                subscription=was.id,
                reason=refusal,
            )
