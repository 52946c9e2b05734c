"""Registry: subscriptions come, change, wait for their sink's word, expire and go."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec import UNSET

from tocsin.broker.commit.numbering import Applied
from tocsin.broker.commit.pending_change import NextCommit, PendingChange
from tocsin.broker.effects import Token
from tocsin.broker.followers.boxes import Boxes
from tocsin.broker.followers.catchup import Catchup
from tocsin.broker.push.handshakes import Handshakes
from tocsin.broker.push.lanes import PushLanes
from tocsin.broker.snapshot import Snapshot
from tocsin.broker.state.state import IDLE, WATERMARK, State, endings, no_such_subscription
from tocsin.broker.state.subscriber import Subscriber, view
from tocsin.errors import TocsinError, TooManySubscriptions
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.filter import EVERYTHING, NOTHING, Filter
from tocsin.event.stored import START_AT_END
from tocsin.event.subscription import Change, Kind, Owner, Subscription, definition
from tocsin.event.subscription import State as SubscriptionState
from tocsin.wire.cloudevents.webhook import Allowed, Refused

Name = TypeVar("Name", bound=Hashable)


class Registry:
    """The life of a subscription."""

    def __init__(
        self,
        state: State,
        catchup: Catchup,
        push_lanes: PushLanes,
        boxes: Boxes,
        is_trusted: Callable[[str], bool],
    ) -> None:
        self._state = state
        self._catchup = catchup
        self._push_lanes = push_lanes
        self._boxes = boxes
        self._is_trusted = is_trusted
        self._handshakes = Handshakes(state, self._resume)
        self._staged: dict[str, Subscription] = {}  # as the commit under way will leave them

    def stage(self, pending: list[PendingChange]) -> None:
        """Put what clients ask into the next commit; each sees what the one before it changed."""
        self._staged.clear()
        for change in pending:
            change.stage()

    def subscribe(
        self, asked: Subscription, filter: Filter, start: int | None, token: Token, now_ns: int
    ) -> None:
        state = self._state
        is_link = asked.kind is Kind.LINK  # those are limited by who keeps them
        count = len(state.by_id) + len(state.pending)
        if count >= state.options.subscriptions_max and not is_link:
            raise TooManySubscriptions(
                f"there are {state.options.subscriptions_max} subscriptions",
                remedy="Delete some, or raise subscriptions_max.",
            )
        subscription = msgspec.structs.replace(
            asked,
            id=state.new_id(),
            created_ns=state.time_ns(now_ns),
            state=self._first_state(asked),
        )
        follower = state.new_follower(0, keep=subscription.config.backlog)
        permits = state.permits_of(subscription.owner)
        subscriber = Subscriber(subscription, filter, follower, permits)

        def stage() -> None:
            # Where the log ends with this commit is known when it is applied, and not before.
            after = START_AT_END if start is None else max(start, state.first - 1)
            state.hold(min(after, state.head))
            state.unsaved.subscriptions[subscription.id] = definition(subscription)
            state.unsaved.starts[subscription.id] = follower.scanned_to = after

        def apply(applied: Applied, now_ns: int) -> object:
            follower.scanned_to = applied.start(follower.scanned_to)
            self._install(subscriber)
            self._push_lanes.is_there(subscriber, now_ns)
            return view(subscriber, state.head, state.shift_ns)

        state.pending.append(PendingChange(token, stage, apply))

    def _first_state(self, asked: Subscription) -> SubscriptionState:
        # The SOAP endpoint has checked its consumers: they know no handshake by which to be asked.
        if asked.sink is not None and asked.soap is None and not self._is_trusted(asked.sink):
            return SubscriptionState.PENDING
        return asked.state

    def restore(self, snapshot: Snapshot) -> None:
        """Take the subscriptions up again after a restart, each where its cursor says."""
        state, cursors = self._state, snapshot.cursors
        watermark = cursors.get(WATERMARK, 0)
        known: dict[bytes, Filter] = {}  # many subscriptions have the same filters
        for stored in snapshot.subscriptions:
            subscription, filter = self._with_filter(stored, known)
            saved = cursors.get(subscription.id, IDLE)
            cursor = max(watermark if saved == IDLE else saved, state.first - 1)
            follower = state.new_follower(cursor, keep=subscription.config.backlog)
            subscriber = Subscriber(
                subscription, filter, follower, state.permits_of(subscription.owner)
            )
            subscriber.handed_out = state.head  # nobody wrote down how far it was
            self._install(subscriber)

    def _with_filter(
        self, subscription: Subscription, known: dict[bytes, Filter]
    ) -> tuple[Subscription, Filter]:
        """A subscription whose filter this version cannot read is paused, with the reason."""
        if subscription.kind is Kind.LINK:
            return subscription, NOTHING  # who keeps its table says what it wants
        text = bytes(subscription.filters)
        filter = known.get(text)
        try:
            if filter is None:
                filter = known[text] = read_filters(Snapshot.filters_of(subscription))
        except TocsinError as error:
            reason = f"its filter is not valid: {error.problem}"
            self._state.note("error", "a subscription is paused", id=subscription.id, reason=reason)
            paused = msgspec.structs.replace(
                subscription, state=SubscriptionState.PAUSED, reason=reason
            )
            return paused, EVERYTHING
        return subscription, filter

    def _install(self, subscriber: Subscriber) -> None:
        state, subscription = self._state, subscriber.subscription
        state.by_id[subscription.id] = subscriber
        state.enter(subscriber, subscriber.filter)
        if subscription.kind is Kind.PUSH:
            self._push_lanes.join(subscriber)
        self._set_lease(subscriber)
        follower = subscriber.follower
        state.hold(follower.scanned_to)
        is_link = subscription.kind is Kind.LINK  # it waits for what its neighbour wants
        if not subscriber.is_active or is_link:
            follower.park(state.head)
        elif follower.scanned_to >= state.head:
            follower.live = True
        else:
            self._catchup.add(follower)
        state.moved(subscriber)
        if subscription.state is SubscriptionState.PENDING:
            self._handshakes.ask(subscriber)

    def want(
        self,
        link_id: str,
        added: Mapping[Name, Filter],
        removed: Iterable[Name],
        now_ns: int,
    ) -> None:
        """The neighbour at a link wants these too, by names of its own, and those no longer. The
        first call of all lets its events flow, from its place in the log on."""
        link = self._state.find(link_id)
        assert link.subscription.kind is Kind.LINK
        self._state.want(link, added, removed)
        if link.follower.parked:
            self._resume(link, now_ns)

    def change(self, subscription_id: str, change: Change, token: Token) -> None:
        state = self._state
        subscriber = state.find(subscription_id)
        staged = subscriber.subscription

        def stage() -> None:
            nonlocal staged
            if state.by_id.get(subscription_id) is not subscriber:
                return  # it ended while this waited: to write it down would bring it back
            latest = self._staged.get(subscription_id, subscriber.subscription)
            self._staged[subscription_id] = staged = self._changed(latest, change)
            if state.unsaved.subscriptions.get(subscription_id, b"") is not None:
                state.unsaved.subscriptions[subscription_id] = definition(staged)

        def apply(_applied: Applied, now_ns: int) -> object:
            if state.by_id.get(subscription_id) is not subscriber:
                return no_such_subscription(subscription_id)
            changed = self._changed(subscriber.subscription, change)
            if change.is_there and subscriber.lane is not None:
                self._push_lanes.recovered(subscriber.lane)
                subscriber.lane.not_before_ns = now_ns
            self._apply(subscriber, changed, change.filter, now_ns)
            if change.expires_ns is not UNSET or change.state is SubscriptionState.ACTIVE:
                self._push_lanes.is_there(subscriber, now_ns)
            answer = view(subscriber, state.head, state.shift_ns)
            # A sink that agreed while this was written makes it a pause that is not on disk yet.
            is_saved = change.state is None or changed.state is staged.state
            return answer if is_saved else NextCommit(answer)

        state.pending.append(PendingChange(token, stage, apply))

    def _changed(self, was: Subscription, change: Change) -> Subscription:
        fields: dict[str, object] = {}
        if change.expires_ns is not UNSET:
            fields["expires_ns"] = change.expires_ns
        if change.filters is not None:
            fields["filters"] = change.filters
        if change.config is not None:
            fields["config"] = change.config
        if change.owner is not None:
            fields["owner"] = change.owner
        if change.state is not None and was.state is not SubscriptionState.PENDING:
            fields |= {"state": change.state, "reason": None}
        if change.sink is not None and change.sink != was.sink:
            fields |= {"sink": change.sink, "rate_per_minute": None}
            if was.soap is not None:  # no box of this broker: nobody can turn to one of those
                fields["soap"] = msgspec.structs.replace(was.soap, box=False)
            if not self._is_trusted(change.sink):
                fields |= {"state": SubscriptionState.PENDING, "reason": None}
        return msgspec.structs.replace(was, **fields)

    def _apply(
        self, subscriber: Subscriber, changed: Subscription, filter: Filter | None, now_ns: int
    ) -> None:
        state, was = self._state, subscriber.subscription
        subscriber.subscription = changed
        if changed.id in state.unsaved.subscriptions:
            # The broker changed it too while this was written: the next commit must have both.
            state.redefined(subscriber)
        if changed.owner != was.owner:
            subscriber.permits.use(state.permit_of(changed.owner))
        follower = subscriber.follower
        follower.keep_at_most(changed.config.backlog)
        if filter is not None:
            state.refilter(subscriber, filter)
        if changed.owner != was.owner:
            subscriber.permits = state.permits_of(changed.owner)
            subscriber.acknowledged_withheld = subscriber.answered_withheld = 0
            subscriber.withhold()
        if changed.sink != was.sink:
            subscriber.sink_changed()
            self._handshakes.forget(subscriber, was.sink)
            self._push_lanes.leave(subscriber)
            self._push_lanes.join(subscriber)
        if changed.expires_ns != was.expires_ns:
            self._set_lease(subscriber)
        if changed.state is SubscriptionState.ACTIVE:
            if was.state is not SubscriptionState.ACTIVE and subscriber.lane is not None:
                # Nobody tried while it was paused.
                subscriber.lane.unreachable_since_ns = None
                subscriber.lane.missing = False
            self._resume(subscriber, now_ns)
        else:
            follower.park(state.head)
            self._catchup.forget(follower)
        state.moved(subscriber)
        state.stands_differently(subscriber)
        if changed.state is SubscriptionState.PENDING:
            self._handshakes.ask(subscriber)

    def _resume(self, subscriber: Subscriber, now_ns: int) -> None:
        follower, lane = subscriber.follower, subscriber.lane
        follower.unpark()
        if not follower.live:
            self._catchup.add(follower)
        if lane is not None:
            if not lane.failures:
                lane.not_before_ns = min(lane.not_before_ns, now_ns)
            self._push_lanes.wake_for(subscriber, now_ns)
        else:
            self._boxes.wake(subscriber)

    def unsubscribe(self, subscription_id: str, token: Token, *, quietly: bool) -> None:
        """`quietly`: whoever gets notices of ends asked for this one, and gets none."""
        state = self._state
        subscriber = state.find(subscription_id)

        def stage() -> None:
            state.unsaved.subscriptions[subscription_id] = None

        def apply(_applied: Applied, now_ns: int) -> object:
            if state.by_id.get(subscription_id) is subscriber:
                self._end(subscriber)
                if not quietly:
                    state.out += endings(subscriber, "SourceCancelling", "it was deleted")
                # The commit that was just made has removed it already.
                state.unsaved.subscriptions.pop(subscription_id, None)
            return None

        state.pending.append(PendingChange(token, stage, apply))

    def _end(self, subscriber: Subscriber) -> None:
        self._boxes.turn_away(subscriber)
        self._handshakes.forget(subscriber, subscriber.subscription.sink)
        self._push_lanes.end(subscriber)

    # Rights

    def owner_of(self, subscription_id: str) -> Owner | None:
        """Who made a subscription; None if nobody who had signed in, or if there is none."""
        found = self._state.by_id.get(subscription_id)
        return None if found is None else found.subscription.owner

    def has(self, subscription_id: str) -> bool:
        return subscription_id in self._state.by_id

    def rights_changed(self) -> None:
        """What somebody may not have any more leaves what waits for it."""
        for subscriber in list(self._state.by_id.values()):
            self._state.stands_differently(subscriber)
            if subscriber.withhold():
                self._state.moved(subscriber)
                if subscriber.follower.wants_more():
                    self._catchup.add(subscriber.follower)

    # Leases

    def _set_lease(self, subscriber: Subscriber) -> None:
        """As long as the subscription says now, whatever it said before."""
        state, due_ns = self._state, subscriber.subscription.expires_ns
        state.timers.cancel(subscriber.lease)
        subscriber.lease = None
        if due_ns is not None and not state.holds:
            due_ns -= state.shift_ns
            subscriber.lease = state.timers.at(due_ns, lambda _: self._expire(subscriber))

    def set_leases(self) -> None:
        """The time of day is another, or in doubt, or no longer."""
        for subscriber in self._state.by_id.values():
            self._set_lease(subscriber)

    def _expire(self, subscriber: Subscriber) -> None:
        subscription_id = subscriber.subscription.id
        self._state.note("info", "a subscription expired", subscription=subscription_id)
        self._end(subscriber)

    # Consent

    def confirm(
        self, subscription_id: str, token: str, answer: Allowed | Refused, now_ns: int
    ) -> None:
        """The sink called back, with the token that only it was given."""
        self._state.find(subscription_id)
        self._handshakes.answered(token, answer, now_ns)

    def handshaken(self, token: str, answer: Allowed | Refused, now_ns: int) -> None:
        """The sink answered, or did not. Unanswered, it is asked again, ever more rarely."""
        self._handshakes.answered(token, answer, now_ns)
