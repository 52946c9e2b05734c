"""AttemptCheck: how often a sink was asked, and whether it was left alone when it asked for that.

It counts what reached the broker and nothing else, and keeps to what the broker promises: after
`attempts` refusals an event becomes a dead letter, neither before nor later; after an answer with
Retry-After nothing is sent there before that time is over.
"""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.broker.delivery.deadletter import ATTEMPTS_KEPT_MAX, from_record
from tocsin.broker.delivery.outcome import Answered, Outcome, Verdict, judge
from tocsin.broker.delivery.retry import RetryOptions
from tocsin.broker.effects import Commit, Push
from tocsin.event.instant import NS_PER_S
from tocsin.sim.checks.subscription import SubscriptionRecord
from tocsin.sim.world import Violation, World


@dataclass(slots=True)
class _Tries:
    """Of the event in front of one subscription."""

    seq: int
    sink: str  # another one has not refused it
    changes: tuple[int, int]  # of the subscription, when this began
    limit: int
    attempts: int = 0
    refusals: int = 0  # of those, the ones that count towards giving up
    is_refused: bool = False  # for good
    is_over: bool = False  # it must be given up now


@dataclass(frozen=True, slots=True)
class _Sent:
    """A request that is under way, and the subscription as it was when it left."""

    changes: tuple[int, int]
    sinks: int  # how many the record had


class AttemptCheck:
    """Since the start of one process: a restart begins again."""

    def __init__(self, world: World, options: RetryOptions) -> None:
        self._world = world
        self._options = options
        self._patience_ns: dict[int, int] = {}  # by lane: nothing goes there before
        self._lanes: dict[str, int] = {}  # by subscription
        self._sent: dict[int, _Sent] = {}  # by lane
        self._tries: dict[str, _Tries] = {}  # by subscription
        self._attempts_of: dict[str, int] = {}  # by dead letter, until it is written

    def restart(self) -> None:
        self._patience_ns.clear()
        self._lanes.clear()
        self._sent.clear()
        self._tries.clear()
        self._attempts_of.clear()

    def pushing(self, record: SubscriptionRecord, push: Push) -> None:
        """A request leaves that is no dead letter sent again."""
        now_ns = self._world.now_ns
        self._lanes[record.id] = push.lane
        self._sent[push.lane] = _Sent(record.changes, len(record.sinks))
        wait_ns = self._patience_ns.get(push.lane, 0) - now_ns
        if wait_ns > 0:
            raise Violation(
                f"{push.sink} asked for patience and is sent to {wait_ns / NS_PER_S:.3f} s too soon"
            )
        tries = self._tries.get(record.id)
        if (
            tries is not None
            and tries.is_over
            and tries.seq == push.events[0].seq
            and tries.sink == push.sink
            and tries.changes == record.changes
        ):
            raise Violation(
                f"{record.id}: event {tries.seq} is tried again after {tries.refusals} of "
                f"{tries.limit} attempts"
            )

    def answered(self, record: SubscriptionRecord, push: Push, outcome: Outcome) -> None:
        """The broker hears what became of such a request."""
        verdict, sent = judge(outcome), self._sent.pop(push.lane)
        if record.has_left(push.sink, sent.sinks):
            # It says nothing of what is tried at the new sink, whenever it comes.
            if verdict is Verdict.WAIT:
                self._be_patient(push.lane, outcome)
            return
        if verdict in (Verdict.DELIVERED, Verdict.GONE):
            self._tries.pop(record.id, None)
            return
        seq = push.events[0].seq
        tries = self._tries.get(record.id)
        if tries is None or (tries.seq, tries.sink) != (seq, push.sink):
            limit = push.subscription.config.attempts or self._options.attempts
            tries = self._tries[record.id] = _Tries(seq, push.sink, sent.changes, limit)
        tries.attempts += 1
        if verdict is Verdict.WAIT:
            self._be_patient(push.lane, outcome)
            return
        tries.refusals += 1
        tries.is_refused = verdict is Verdict.REFUSED
        if tries.is_refused or tries.refusals >= tries.limit:
            if len(push.events) > 1:
                del self._tries[record.id]  # they go one by one now
            else:
                tries.is_over = True

    def _be_patient(self, lane: int, outcome: Outcome) -> None:
        if isinstance(outcome, Answered) and outcome.retry_after_s is not None:
            wait_s = min(outcome.retry_after_s, self._options.retry_after_s_max)
            self._patience_ns[lane] = self._world.now_ns + int(wait_s * NS_PER_S)

    def paused(self, subscription_id: str) -> None:
        """The broker has given up waiting for a sink; whoever resumes begins again."""
        self._patience_ns.pop(self._lanes.get(subscription_id, -1), None)

    def redriven(self, lane: int, outcome: Outcome) -> None:
        """A dead letter was sent again. Where it was taken, nothing is held against the sink."""
        if judge(outcome) is Verdict.DELIVERED:
            self._patience_ns.pop(lane, None)

    def gave_up(self, record: SubscriptionRecord, seq: int, letter: str) -> None:
        tries = self._tries.pop(record.id, None)
        if tries is None or tries.seq != seq or tries.changes != record.changes:
            return  # changed meanwhile, or found again after a crash
        if not tries.is_over:
            raise Violation(
                f"{record.id}: event {seq} was given up after {tries.refusals} of "
                f"{tries.limit} attempts"
            )
        self._attempts_of[letter] = min(tries.attempts, ATTEMPTS_KEPT_MAX)

    def committing(self, commit: Commit) -> None:
        """What is written of a dead letter says how often it was tried."""
        for name, data in commit.change.dead.items():
            expected = self._attempts_of.pop(name, None)
            if data is None or expected is None:
                continue
            found = len(from_record(data).attempts)
            if found != expected:
                raise Violation(f"dead letter {name} says {found} attempts, and had {expected}")
