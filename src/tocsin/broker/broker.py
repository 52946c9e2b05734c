"""Broker: what happens goes in as method calls, what must be done comes out of `flush`.

One commit is under way at a time. While the disk works, publishes and changes gather; when it is
done they form the next commit, so nobody waits for a timer when it is idle and everybody shares it
when it is not. The store numbers the events when it applies them. An answer leaves only after the
commit that carries its event; then the event is matched and handed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tocsin.access.decision import Permit
from tocsin.broker.clock import Clock
from tocsin.broker.commit.intake import Intake
from tocsin.broker.commit.log_order import LogOrder
from tocsin.broker.commit.numbering import Applied
from tocsin.broker.commit.pending_change import InFlightCommit, NextCommit
from tocsin.broker.delivery.deadletter import DeadLetter
from tocsin.broker.delivery.lane import Redrive
from tocsin.broker.delivery.outcome import Outcome
from tocsin.broker.effects import Commit, Effect, Reply, Stop, Token
from tocsin.broker.fanout import Fanout
from tocsin.broker.followers.boxes import Boxes
from tocsin.broker.followers.catchup import Catchup
from tocsin.broker.followers.skipped_filters import SkippedFilters
from tocsin.broker.followers.streams import Streams
from tocsin.broker.options import BrokerOptions
from tocsin.broker.push.lanes import PushLanes
from tocsin.broker.registry import Registry
from tocsin.broker.retention import Retention
from tocsin.broker.service_state import ServiceState
from tocsin.broker.snapshot import Snapshot
from tocsin.broker.state.state import PermitOf, State
from tocsin.broker.state.subscriber import Subscriber, SubscriptionView, view
from tocsin.errors import Busy, DiskFailed, DiskFull, TocsinError
from tocsin.event.event import Event
from tocsin.event.filter import Filter
from tocsin.event.instant import NS_PER_S
from tocsin.event.stored import Arrival, StateChange, Stored
from tocsin.event.subscription import Change, Subscription
from tocsin.wire.cloudevents.webhook import Allowed, Refused

DISK_FULL_PAUSE_NS = 1_000_000_000  # between tries to save what only the broker itself wants saved
CORRUPT_NAMED_MAX = 10_000  # damaged records; past that no more are named


class Broker:
    """One broker's brain. It knows no socket, file, clock or dice."""

    def __init__(
        self,
        options: BrokerOptions,
        *,
        new_id: Callable[[], str],
        jitter: Callable[[], float],
        is_trusted: Callable[[str], bool],
        stopwatch: Callable[[], int] = lambda: 0,
        addresses_of: Callable[[str], Iterable[str]] = lambda sink: (),
        permit_of: PermitOf = lambda owner: None,
    ) -> None:
        self._state = state = State(options, new_id, jitter, stopwatch, permit_of)
        self.options = options
        self.counters, self.watch_local_filters = state.counters, state.watch_local_filters
        self.interest = state.interest  # to be asked: what anybody wants now
        self._intake = Intake(options)
        self.refuse = self._intake.refuse
        skipped_filters = SkippedFilters(state)
        self._catchup = Catchup(state, skipped_filters)
        self._push_lanes = lanes = PushLanes(state, self._catchup, addresses_of)
        self.unreachable, self.peer_connected = lanes.unreachable, lanes.peer_connected
        self.boxes = boxes = Boxes(state, self._catchup)
        self.cancel = boxes.cancel  # whoever waited has left
        self._streams = streams = Streams(state, self._catchup)
        self.close_stream, self.has_stream = streams.close, streams.has
        self.stream_blocked, self.stream_ready = streams.blocked, streams.ready
        self._fanout = Fanout(state, self._catchup, lanes, boxes, streams, skipped_filters)
        self._registry = registry = Registry(state, self._catchup, lanes, boxes, is_trusted)
        self.want, self.confirm, self.has = registry.want, registry.confirm, registry.has
        self.owner_of, self.letter_owner = registry.owner_of, lanes.dead_letters.owner_of
        self._service_state = kept = ServiceState(state)
        self.kept, self.has_kept = kept.under, kept.has
        self._retention = Retention(state, self._catchup, self._streams)
        self.clock = Clock(state, self._registry, self._retention)
        self._committing: InFlightCommit | None = None
        self._applied: Applied | None = None  # to the log, and not all before it is known
        self._log_order = LogOrder()
        self._save_at_ns = self._hold_until_ns = self._replies_tried = 0
        self._disk_is_full = self._stopped = False
        self._corrupt_seen: set[int] = set()

    # What was before

    def recover(self, snapshot: Snapshot, now_ns: int, *, lower_bound_ns: int = 0) -> None:
        """Go on where the last broker on this disk stopped; it is at least `lower_bound_ns`."""
        state = self._state
        state.head, state.first = snapshot.last_seq, snapshot.first_seq
        state.counters.dead_letters = snapshot.dead_letters
        self._service_state.restore(snapshot.service_state)
        self.clock.recover(max(snapshot.last_time_ns, lower_bound_ns), now_ns)
        self._registry.restore(snapshot)
        self._retention.check(now_ns)

    # What clients ask

    def publish(self, events: list[Event], token: Token, how: list[Arrival] | None = None) -> None:
        """Store these; `Reply` with `Accepted` once on disk. `how` each came, if by a link."""
        try:
            self._intake.offer(events, token, how)
        except TocsinError as error:
            self.counters.rejected += 1
            self.counters.refused_busy += isinstance(error, Busy)
            self._state.reply(token, error)

    def subscribe(
        self, asked: Subscription, filter: Filter, start: int | None, token: Token, now_ns: int
    ) -> None:
        """Begin with the next event, or after `start`; `Reply` with a view once it is on disk."""
        self._try(token, lambda: self._registry.subscribe(asked, filter, start, token, now_ns))

    def change(self, subscription_id: str, change: Change, token: Token, now_ns: int) -> None:
        self._try(token, lambda: self._registry.change(subscription_id, change, token))

    def unsubscribe(
        self, subscription_id: str, token: Token, now_ns: int, *, quietly: bool = False
    ) -> None:
        """End it. `quietly` if its own consumer asks, who needs no notice of the end then."""
        ask = self._registry.unsubscribe
        self._try(token, lambda: ask(subscription_id, token, quietly=quietly))

    def keep(
        self, values: Mapping[str, bytes | None], token: Token, *, is_limited: bool = True
    ) -> None:
        """Keep a service's bytes by name, or None for no longer; `Reply(None)` once on disk."""
        self._try(token, lambda: self._service_state.keep(values, token, is_limited=is_limited))

    def pull(
        self, box_id: str, events_max: int, wait_ns: int, ack: str | None, token: Token, now_ns: int
    ) -> None:
        """Fetch from a box; `Reply` with `Pulled`."""
        self._try(token, lambda: self.boxes.pull(box_id, events_max, wait_ns, ack, token, now_ns))

    def redrive(self, letter: DeadLetter, token: Token, now_ns: int) -> None:
        """Send a dead letter again, to where its subscription points now."""
        self._try(token, lambda: self._push_lanes.redrive(Redrive(letter, token), now_ns))

    def drop_dead(self, letter_id: str, token: Token, now_ns: int) -> None:
        """Discard a dead letter that the caller has seen to exist."""
        self._try(token, lambda: self._push_lanes.dead_letters.drop(letter_id, token))

    def _try(self, token: Token, ask: Callable[[], None]) -> None:
        try:
            ask()
        except TocsinError as error:
            self._state.reply(token, error)

    # What anybody may look at

    @property
    def head(self) -> int:
        return self._state.head

    @property
    def first(self) -> int:
        return self._state.first

    @property
    def streams_open(self) -> int:
        return len(self._streams)

    @property
    def lanes_open(self) -> int:
        return self._push_lanes.lanes()

    def view(self, subscription_id: str) -> SubscriptionView:
        return self._view(self._state.find(subscription_id))

    def view_box(self, box_id: str) -> SubscriptionView:
        return self._view(self.boxes.find(box_id))

    def views(self) -> list[SubscriptionView]:
        return [self._view(subscriber) for subscriber in self._state.by_id.values()]

    def _view(self, subscriber: Subscriber) -> SubscriptionView:
        return view(subscriber, self._state.head, self._state.shift_ns)

    def subscription_ids(self) -> list[str]:
        return list(self._state.by_id)

    def rights_changed(self) -> None:
        """Somebody may have less than before, or more: nothing goes out that is not allowed now."""
        self._streams.rights_changed()
        self._registry.rights_changed()

    def is_wanted(self, event: Event) -> bool:
        """True if a subscription, a stream or a neighbour asks for such an event now."""
        return bool(self._state.matcher.match(event))

    def open_stream(
        self,
        filter: Filter,
        after: int | None,
        name: str,
        asks: frozenset[str] | None = None,
        permit: Permit | None = None,
    ) -> int:
        return self._streams.open(filter, after, name, asks, permit)

    # What became of effects

    def committed(self, applied: Applied, first_seq: int, now_ns: int) -> list[Stored]:
        """The commit under way is on disk. `first_seq` is the oldest event the log still has.

        Returns what is handed on now, in the log's order: usually the events of this commit.
        """
        assert self._committing is not None
        state = self._state
        state.first = first_seq
        if self._disk_is_full:
            self._disk_is_full = False
            state.note("info", "the disk has room again")
        self.counters.commits += bool(applied.events) or not self._committing.change.is_empty()
        self._acknowledge(self._committing.publishers, applied)
        if not self._log_order and applied.last_seq == state.head + len(applied.events):
            self._fanout.hand_on(applied.events, now_ns)
            self._finish(applied, now_ns)
            return applied.events
        self._log_order.add(applied.events)
        self._applied = applied
        return self._hand_on_in_order(now_ns)

    def appended(self, events: list[Stored], now_ns: int) -> list[Stored]:
        """Another broker appended these. Returns what is handed on now, in the log's order."""
        head = self._state.head
        self._log_order.add(stored for stored in events if stored.seq > head)
        return self._hand_on_in_order(now_ns)

    def _hand_on_in_order(self, now_ns: int) -> list[Stored]:
        """A commit is done when all that the log had by then is handed on: whoever subscribed with
        it begins there. What follows comes after."""
        state, applied = self._state, self._applied
        run: list[Stored] = []
        if applied is not None:
            run = self._log_order.take(state.head, applied.last_seq)
            self._fanout.hand_on(run, now_ns)
            if state.head < applied.last_seq:
                return run  # others appended something before it that we have yet to hear of
            self._applied = None
            self._finish(applied, now_ns)
        rest = self._log_order.take(state.head)
        self._fanout.hand_on(rest, now_ns)
        return run + rest

    def _finish(self, applied: Applied, now_ns: int) -> None:
        """Do what waited for the commit."""
        assert self._committing is not None
        (done, self._committing), state = (self._committing, None), self._state
        state.committing = StateChange()
        for pending in done.pending:
            answer = pending.apply(applied, now_ns)
            if isinstance(answer, NextCommit):
                state.reply_when_saved(pending.token, answer.answer)
            else:
                state.reply(pending.token, answer)
        state.out += done.replies
        state.out += done.ends
        if done.change.trim_to >= state.first:  # the log lets go of a bounded number at a time
            state.unsaved.trim_to = max(state.unsaved.trim_to, done.change.trim_to)

    def _acknowledge(self, publishers: list[Token], applied: Applied) -> None:
        """Answer the publishers: it is on disk."""
        out = self._state.out
        for token, accepted in zip(publishers, applied.answers, strict=True):
            self.counters.acknowledged += accepted.accepted
            self.counters.duplicates += accepted.duplicates
            out.append(Reply(token, accepted))

    def commit_failed(self, error: DiskFull | DiskFailed, now_ns: int) -> None:
        """The commit under way is not on disk, and nothing of it was stored."""
        assert self._committing is not None
        (failed, self._committing), state = (self._committing, None), self._state
        state.committing = StateChange()
        for token in failed.askers():
            self.counters.rejected += 1
            state.reply(token, error)
        if isinstance(error, DiskFull):
            self.counters.disk_full += 1
            state.unsaved_replies[:0] = failed.replies
            self._replies_tried = len(failed.replies)
            state.unsaved_ends[:0] = failed.ends
            state.take_back(failed.change)
            self._hold_until_ns = now_ns + DISK_FULL_PAUSE_NS
            state.timers.at(self._hold_until_ns, lambda _: None)
            if not self._disk_is_full:  # reported once, not with every try
                self._disk_is_full = True
                state.note("error", error.problem, code=error.code, remedy=error.remedy)
            return
        for token in [*self._intake.turn_away(), *(change.token for change in state.pending)]:
            state.reply(token, error)
        for reply in failed.replies + state.unsaved_replies:
            state.reply(reply.token, error)
        state.pending.clear()
        state.unsaved_replies.clear()
        self._stopped = True
        state.out.append(Stop(error))

    def log_read(self, events: list[Stored], through: int, corrupt: list[int], now_ns: int) -> None:
        """The page that `ReadLog` asked for; it covers everything up to `through`."""
        self.report_corrupt(corrupt)
        for reader in self._catchup.read(events, through):
            self._fanout.wake(reader, now_ns)

    def report_corrupt(self, sequences: list[int]) -> None:
        """Somebody came across records that fail their checksum; each is reported once."""
        seen = self._corrupt_seen
        new = [seq for seq in sequences if seq not in seen][: CORRUPT_NAMED_MAX - len(seen)]
        if new:
            seen.update(new)
            self.counters.corrupt += len(new)
            words = "records failed their checksum and are not served"
            self._state.note("error", words, sequences=new[:10], count=len(new))

    def retention_checked(self, through: int, now_ns: int) -> None:
        """Retention reaches up to `through`."""
        self._retention.checked(through)

    def hold_for_archive(self, archived: int | None) -> None:
        """Keep what is past `archived`; None to hold nothing on its account."""
        self._state.archived = archived

    def pushed(self, lane: int, outcome: Outcome, now_ns: int) -> None:
        self._push_lanes.pushed(lane, outcome, now_ns)

    def handshaken(self, token: str, answer: Allowed | Refused, now_ns: int) -> None:
        self._registry.handshaken(token, answer, now_ns)

    # Time

    def tick(self, now_ns: int) -> None:
        """Do what is due. Call it at `next_wake_ns`, or any time."""
        self._state.timers.run(now_ns)

    def next_wake_ns(self) -> int | None:
        """When `tick` and `flush` have something to do if nothing else happens."""
        if self._stopped:
            return None
        due = self._state.timers.next_ns()
        if self._committing is None and self._has_own_changes():
            save = max(self._save_at_ns, self._hold_until_ns)
            due = save if due is None else min(due, save)
        return due

    # What must be done

    def flush(self, now_ns: int) -> list[Effect]:
        """Everything to be done since the last call, the next commit among it if one is due."""
        self._streams.tell_withheld(now_ns)
        if self._committing is None and not self._stopped:
            self._next_commit(now_ns)
        if not self._stopped and (read := self._catchup.next_read()) is not None:
            self._state.out.append(read)
        effects, self._state.out = self._state.out, []
        return effects

    def _has_own_changes(self) -> bool:
        return bool(self._state.dirty) or not self._state.unsaved.is_empty()

    def _next_commit(self, now_ns: int) -> None:
        state = self._state
        pending, state.pending = state.pending, []
        append, publishers = self._intake.take(state.time_ns(now_ns))
        is_held = now_ns < self._hold_until_ns  # what a full disk did not take
        tried = self._replies_tried if is_held else 0
        urgent = publishers or pending or len(state.unsaved_replies) > tried
        if not urgent and (is_held or now_ns < self._save_at_ns or not self._has_own_changes()):
            return
        self._registry.stage(pending)
        change, state.unsaved = state.unsaved, StateChange()
        # Cursors of this moment: events of this very commit are past them all, so the old head.
        change.cursors = {**state.cursors_to_save(state.head), **change.cursors}
        replies, state.unsaved_replies, self._replies_tried = state.unsaved_replies, [], 0
        ends, state.unsaved_ends = state.unsaved_ends, []
        self._save_at_ns = now_ns + int(self.options.save_cursors_s * NS_PER_S)
        self._committing = InFlightCommit(change, publishers, pending, replies, ends)
        state.committing = change
        state.out.append(Commit(append, change))

    def shut_down(self, now_ns: int) -> None:
        """Answer everybody who waits, and let the next commit carry every cursor."""
        self.boxes.end_waits()
        self.clock.shut_down(now_ns)
        self._save_at_ns = 0
        for subscriber in self._state.by_id.values():
            self._state.moved(subscriber)

    def is_idle(self) -> bool:
        """Nothing is under way to the disk and nothing waits for it."""
        return self._committing is None and not self._intake and not self._has_own_changes()
