"""DeliveryCheck: what subscriptions must get and must not, at each step and each start, and in
the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tocsin.broker.broker import Broker
from tocsin.broker.delivery.deadletter import DeadLetter
from tocsin.broker.effects import Ended, Push
from tocsin.broker.snapshot import Snapshot
from tocsin.broker.state.state import IDLE, WATERMARK
from tocsin.event.instant import NS_PER_MS
from tocsin.event.stored import Stored
from tocsin.event.subscription import Kind, State, Subscription
from tocsin.sim.checks.access import AccessModel
from tocsin.sim.checks.attempts import AttemptCheck
from tocsin.sim.checks.grants import Watched, holder_of_owner
from tocsin.sim.checks.log import LogCheck
from tocsin.sim.checks.subscription import SubscriptionRecord, Uncertain, may_drop
from tocsin.sim.faults.clock import MachineClock
from tocsin.sim.workload import want_of
from tocsin.sim.world import Violation, World

EXPIRY_SLACK_NS = NS_PER_MS  # a turn of the loop may stand between a timer and what it does
DOUBT_SLACK_NS = 10 * NS_PER_MS  # leases stay while the clock is in doubt, and end soon after


class DeliveryCheck:
    """The records of all subscriptions of one broker, and the rules of delivery."""

    def __init__(
        self,
        world: World,
        clock: MachineClock,
        log: LogCheck,
        attempts: AttemptCheck,
        *,
        all_may_drop: bool,
    ) -> None:
        self._world = world
        self._clock = clock
        self.log = log
        self.attempts = attempts
        self.records: dict[str, SubscriptionRecord] = {}
        self.consents: set[str] = set()  # of sinks
        self.trusted: set[str] = set()
        self.taken = 0
        self.access: AccessModel | None = None  # None: everybody may do everything
        self.on_open: Callable[[SubscriptionRecord], None] = lambda record: None
        self._all_may_drop = all_may_drop

    @property
    def fair_ns(self) -> int:
        """The time that the broker's clock shows when it is right."""
        return self._clock.fair_ns

    # Subscriptions

    def open(self, subscription: Subscription, start: int) -> None:
        """A subscription is there: its client is being answered, or it was found on disk."""
        record = SubscriptionRecord(
            id=subscription.id,
            kind=subscription.kind,
            start=start,
            want=Uncertain(want_of(subscription.filters)),
            sink=Uncertain(subscription.sink),
            expires_ns=Uncertain(subscription.expires_ns),
            may_drop=self._all_may_drop or may_drop(subscription.config),
            is_paused=subscription.state is State.PAUSED,
            is_soap=subscription.soap is not None,
            checked_to=start,
            trim_checked_to=start,
        )
        self.records[subscription.id] = record
        if self.access is not None:
            record.watched = Watched(start=start)
            self.access.watch(record.watched)
            self.access.hold(record.watched, holder_of_owner(subscription.owner))
        self.on_open(record)

    def ended(self, ended: Ended) -> None:
        """Its end is announced: there was a reason, and it is over for good."""
        record = self.records[ended.subscription.id]
        if ended.subscription.soap is None:
            raise Violation(f"subscription {record.id}: nobody asked to be notified of its end")
        if not record.may_have_ended:
            raise Violation(f"subscription {record.id} was ended without a reason")
        record.is_ended = True

    # Safety: pushes

    def pushing(self, push: Push) -> SubscriptionRecord:
        """A push leaves the broker."""
        record = self.records.get(push.subscription.id)
        if record is None:
            raise Violation(f"a push for {push.subscription.id}, which nobody asked for")
        who = f"subscription {record.id}"
        # Consumers of Web services are judged when they subscribe; all others are asked.
        asked = push.subscription.soap is None and push.sink not in self.trusted
        if asked and push.sink not in self.consents:
            raise Violation(f"{who}: a push to {push.sink}, which has not agreed")
        self._check_wanted(record, push.events)
        self._check_allowed(record, push.events)
        if len(push.events) == 1 and push.events[0].seq in record.given_up:
            return record  # a dead letter sent again: in no order, and wherever it is pointed
        if push.sink not in record.sink.now():
            raise Violation(f"{who}: a push to {push.sink}, which is not its sink")
        if record.is_ended:
            raise Violation(f"{who}: a push after it was deleted")
        if record.is_paused:
            raise Violation(f"{who}: a push while it is paused")
        expiries = record.expires_ns.now()
        # A clock that is days behind at the first start of all is doubted by nobody.
        latest_ns = min(self._clock.fair_ns, self._clock.steady_ns) - EXPIRY_SLACK_NS
        is_sure = self._clock.is_sure_for(DOUBT_SLACK_NS)
        if is_sure and all(due is not None and due < latest_ns for due in expiries):
            raise Violation(f"{who}: a push after it expired")
        self._check_order(record, push.events)
        self.attempts.pushing(record, push)
        return record

    def _check_wanted(self, record: SubscriptionRecord, events: Iterable[Stored]) -> None:
        for stored in events:
            if self.log.events.get(stored.seq) != stored.event:
                raise Violation(f"{record.id}: event {stored.seq} is not what the log has")
            if not record.may_want(stored.seq, stored.event):
                raise Violation(f"{record.id}: event {stored.seq}, which it did not ask for")

    def _check_allowed(self, record: SubscriptionRecord, events: Iterable[Stored]) -> None:
        if self.access is not None and record.watched is not None:
            seqs = [stored.seq for stored in events]
            self.access.check_sent(record.watched.holder, seqs, f"{record.kind.value} {record.id}")

    def _check_order(self, record: SubscriptionRecord, events: list[Stored]) -> None:
        """Ascending, nothing that the broker knows to be delivered, and nothing left out."""
        numbers = [stored.seq for stored in events]
        if numbers != sorted(set(numbers)):
            raise Violation(f"{record.id}: events {numbers} in one request")
        if numbers[0] <= record.settled_to:
            raise Violation(
                f"{record.id}: event {numbers[0]} again, after {record.settled_to} was taken"
            )
        if record.may_drop:
            return
        for seq in range(record.checked_to + 1, numbers[-1]):
            if seq not in numbers and not record.is_done(seq) and self._owes(record, seq):
                raise Violation(f"{record.id}: events {numbers} before event {seq}")
        record.checked_to = max(record.checked_to, numbers[0] - 1)

    def _owes(self, record: SubscriptionRecord, seq: int) -> bool:
        return self._asks(record, seq) and not self._may_be_withheld(record, seq)

    def _asks(self, record: SubscriptionRecord, seq: int) -> bool:
        return seq not in self.log.unreadable and record.must_get(seq, self.log.events[seq])

    def _may_be_withheld(self, record: SubscriptionRecord, seq: int) -> bool:
        access, watched = self.access, record.watched
        return access is not None and watched is not None and access.is_exempt(watched, seq)

    def took(self, record: SubscriptionRecord, events: Iterable[Stored]) -> None:
        """A sink answered yes, or a client has what it pulled; the broker may not know yet."""
        for stored in events:
            if stored.seq in record.taken:
                self._world.seen["event delivered again"] += 1
            record.taken.add(stored.seq)
            self.taken += 1

    def gave_up(self, subscription_id: str, seq: int, letter: str) -> None:
        record = self.records[subscription_id]
        if seq not in record.refused:
            raise Violation(f"{record.id}: event {seq} was given up, which no sink refused")
        self.attempts.gave_up(record, seq, letter)
        record.given_up.add(seq)

    # Safety: boxes

    def releasing(self, record: SubscriptionRecord, through: int) -> None:
        """A box is told that its owner has everything up to there."""
        if record.may_drop:  # it may have dropped any, but for what its last answer handed out
            owed = [seq for seq in record.handed_out if seq <= through]
        else:
            held = range(record.settled_to + 1, min(through, self.log.last) + 1)
            owed = [seq for seq in held if self._owes(record, seq)]
        for seq in owed:
            if not record.is_done(seq):
                raise Violation(
                    f"box {record.id} released event {seq}, which its owner has not got"
                )

    def handing_out(
        self, record: SubscriptionRecord, released: int | None, events: list[Stored]
    ) -> None:
        """Events leave a box for somebody who has released all up to there. None: there is no such
        place, because the answer itself releases what arrives."""
        if record.is_ended:
            raise Violation(f"box {record.id}: a pull was answered after it was deleted")
        self._check_wanted(record, events)
        self._check_allowed(record, events)
        if released is None:
            numbers = [stored.seq for stored in events]
            again = record.settled.intersection(numbers)
            if again or numbers != sorted(set(numbers)):
                raise Violation(f"box {record.id}: events {numbers}, and {again} were released")
            return
        record.handed_out = [stored.seq for stored in events]
        record.settled.update(seq for seq in record.taken if seq <= released)
        if events:
            record.settled_to = released
            self._check_order(record, events)

    def is_not_found(self, record: SubscriptionRecord) -> None:
        """The broker says that there is no such subscription or box."""
        if not record.may_be_gone(self._clock.fair_ns):
            raise Violation(f"subscription {record.id} is gone")
        record.may_have_ended = True

    # Retention

    def trimmed(self) -> None:
        """The log has let go of its beginning: nobody may still have waited for that."""
        for record in self.records.values():
            if record.may_drop or record.may_be_gone(self._clock.fair_ns):
                continue
            for seq in range(record.trim_checked_to + 1, self.log.trimmed_to + 1):
                if not record.is_done(seq) and self._owes(record, seq):
                    raise Violation(f"{record.id}: event {seq} was trimmed while it waited")
            record.trim_checked_to = max(record.trim_checked_to, self.log.trimmed_to)

    # Starts

    def process_ended(self, broker: Broker) -> None:
        """What it dropped for a subscription's own limit is remembered here."""
        self.attempts.restart()
        dropped = {view.subscription.id: view.dropped for view in broker.views()}
        for record in self.records.values():
            # One that had ended may be back after the crash; what it dropped is not known then.
            record.dropped += dropped.get(record.id, self.log.last)
            record.settled_to = 0
            record.settled.clear()
            record.is_exact = False
            # The next process may be given an earlier time; what expired before stays expired.
            record.may_have_ended |= record.may_be_gone(self._clock.fair_ns)

    def recovered(self, snapshot: Snapshot, letters: list[DeadLetter]) -> None:
        """A process starts: what was acknowledged about subscriptions is what it finds."""
        found = {each.id: each for each in snapshot.subscriptions if each.kind is not Kind.LINK}
        for record in self.records.values():
            if record.id not in found and not record.may_be_gone(self._clock.fair_ns):
                raise Violation(f"subscription {record.id} is lost")
        dead = {(letter.subscription, letter.seq) for letter in letters}
        for subscription in found.values():
            cursor = place(snapshot.cursors, subscription.id, snapshot.first_seq)
            known = self.records.get(subscription.id)
            if known is None:
                self._world.seen["subscription found after a crash"] += 1
                self.open(subscription, cursor)
            else:
                self._check_definition(known, subscription)
                self._check_cursor(known, cursor, dead)

    def _check_definition(self, record: SubscriptionRecord, found: Subscription) -> None:
        if record.is_ended:
            raise Violation(f"subscription {record.id} was deleted and is back")
        if record.may_be_gone(self._clock.fair_ns):
            return
        if want_of(found.filters) not in record.want.now():
            raise Violation(f"subscription {record.id} has another filter than was acknowledged")
        if found.sink not in record.sink.now():
            raise Violation(f"subscription {record.id} has another sink than was acknowledged")
        if found.expires_ns not in record.expires_ns.now():
            raise Violation(
                f"subscription {record.id} expires at another time than was acknowledged"
            )
        if record.is_paused and found.state is not State.PAUSED:
            raise Violation(f"subscription {record.id} was paused and is {found.state.value}")

    def _check_cursor(
        self, record: SubscriptionRecord, cursor: int, dead: set[tuple[str, int]]
    ) -> None:
        if record.may_drop:
            return
        for seq in range(record.start + 1, min(cursor, self.log.last) + 1):
            if seq in record.taken or seq in record.discarded or not self._owes(record, seq):
                continue
            if (record.id, seq) not in dead:
                raise Violation(
                    f"{record.id}: its cursor is at {cursor} and event {seq} was not delivered"
                )

    # The end

    def what_is_owed(self, broker: Broker, cursors: dict[str, int]) -> str | None:
        """Why this is not the end yet: one thing that a live subscription is owed."""
        views = {view.subscription.id: view for view in broker.views()}
        for record in self.records.values():
            view = views.get(record.id)
            if view is None:
                if not record.may_be_gone(self._clock.fair_ns):
                    return f"subscription {record.id} is gone"
                continue
            missing = [
                seq
                for seq in range(record.start + 1, self.log.last + 1)
                if seq not in record.taken
                and seq not in record.discarded
                and self._owes(record, seq)
            ]
            dropped = record.dropped + view.dropped if record.may_drop else 0
            if len(missing) > dropped:
                return f"subscription {record.id} has not got events {missing[:5]}"
            says = view.dropped + view.withheld
            counted = self._unsettled(record) if record.is_exact else says
            # Whoever pulls may have got what the box dropped before it was acknowledged.
            is_right = counted == says
            if not is_right and (record.kind is Kind.PUSH or counted > says):
                withheld = f" and {view.withheld} withheld" if view.withheld else ""
                return (
                    f"subscription {record.id} says {view.dropped} dropped{withheld}, not {counted}"
                )
            if record.is_exact and view.withheld:
                self._world.seen["access: withheld, and counted"] += 1
            if view.waiting or view.lagging:
                return f"subscription {record.id} has {view.waiting} events waiting"
            if place(cursors, record.id, broker.first) < self._last_owed(record):
                return f"the cursor of subscription {record.id} is not saved"
        return None

    def _unsettled(self, record: SubscriptionRecord) -> int:
        """How many events it wanted of which the broker does not know that it has them."""
        return sum(
            self._asks(record, seq) and seq not in record.settled and seq not in record.given_up
            for seq in range(record.start + 1, self.log.last + 1)
        )

    def _last_owed(self, record: SubscriptionRecord) -> int:
        owed = (s for s in range(self.log.last, record.start, -1) if self._owes(record, s))
        return next(owed, 0)


def place(cursors: dict[str, int], subscription_id: str, first_seq: int) -> int:
    """Where a subscription is, by the cursors on disk."""
    saved = cursors.get(subscription_id, IDLE)
    return max(cursors.get(WATERMARK, 0) if saved == IDLE else saved, first_seq - 1)
