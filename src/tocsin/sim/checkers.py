"""Checkers: what must hold after each step, at each start, and in the end."""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.broker.broker import Broker
from tocsin.broker.delivery.deadletter import DeadLetter
from tocsin.broker.effects import Ended, Push
from tocsin.broker.snapshot import Snapshot
from tocsin.broker.state import IDLE, WATERMARK
from tocsin.event.stored import Stored
from tocsin.event.subscription import State, Subscription
from tocsin.sim.account import Account, Doubtful, may_drop
from tocsin.sim.log_witness import LogWitness
from tocsin.sim.workload import BY_TEXT
from tocsin.sim.world import NS_PER_MS, Violation, World

EXPIRY_SLACK_NS = NS_PER_MS  # a turn of the loop may stand between a timer and what it does
DOUBT_SLACK_NS = 10 * NS_PER_MS  # leases stay while the clock is in doubt, and end soon after


class Checkers:
    """The accounts of all subscriptions, and the rules of delivery."""

    def __init__(self, world: World, log: LogWitness, *, all_may_drop: bool) -> None:
        self._world = world
        self.log = log
        self.accounts: dict[str, Account] = {}
        self.consents: set[str] = set()  # of sinks
        self.trusted: set[str] = set()
        self.taken = 0
        self._all_may_drop = all_may_drop

    # Subscriptions

    def open(self, subscription: Subscription, start: int) -> Account:
        """A subscription is there: its client was told, or it was found on disk."""
        account = Account(
            id=subscription.id,
            kind=subscription.kind,
            start=start,
            want=Doubtful(BY_TEXT[bytes(subscription.filters)]),
            sink=Doubtful(subscription.sink),
            expires_ns=Doubtful(subscription.expires_ns),
            may_drop=self._all_may_drop or may_drop(subscription.config),
            checked_to=start,
            trim_checked_to=start,
        )
        self.accounts[subscription.id] = account
        return account

    def told_of_end(self, ended: Ended) -> None:
        """Somebody is told that it is over: there was a reason, and it is over for good."""
        account = self.accounts[ended.subscription.id]
        if ended.subscription.soap is None:
            raise Violation(f"subscription {account.id}: nobody asked to be told of its end")
        if not account.may_have_ended:
            raise Violation(f"subscription {account.id} was told of an end without a reason")
        account.is_ended = True

    # Safety: pushes

    def pushing(self, push: Push) -> Account:
        """A push leaves the broker."""
        account = self.accounts.get(push.subscription.id)
        if account is None:
            raise Violation(f"a push for {push.subscription.id}, which nobody asked for")
        who = f"subscription {account.id}"
        # Consumers of Web services are judged at their door; all others are asked.
        asked = push.subscription.soap is None and push.sink not in self.trusted
        if asked and push.sink not in self.consents:
            raise Violation(f"{who}: a push to {push.sink}, which has not agreed")
        self._check_wanted(account, push.events)
        if len(push.events) == 1 and push.events[0].seq in account.given_up:
            return account  # a dead letter sent again: in no order, and wherever it is pointed
        if push.sink not in account.sink.now():
            raise Violation(f"{who}: a push to {push.sink}, which is not its sink")
        if account.is_ended:
            raise Violation(f"{who}: a push after it was deleted")
        if account.is_paused:
            raise Violation(f"{who}: a push while it is paused")
        expiries = account.expires_ns.now()
        latest_ns = self._world.fair_ns - EXPIRY_SLACK_NS
        is_sure = self._world.now_ns - self._world.doubted_ns > DOUBT_SLACK_NS
        if is_sure and all(due is not None and due < latest_ns for due in expiries):
            raise Violation(f"{who}: a push after it expired")
        self._check_order(account, push.events)
        return account

    def _check_wanted(self, account: Account, events: Iterable[Stored]) -> None:
        for stored in events:
            if self.log.events.get(stored.seq) != stored.event:
                raise Violation(f"{account.id}: event {stored.seq} is not what the log has")
            if not account.may_want(stored.seq, stored.event):
                raise Violation(f"{account.id}: event {stored.seq}, which it did not ask for")

    def _check_order(self, account: Account, events: list[Stored]) -> None:
        """Ascending, nothing that the broker knows to be delivered, and nothing left out."""
        numbers = [stored.seq for stored in events]
        if numbers != sorted(set(numbers)):
            raise Violation(f"{account.id}: events {numbers} in one request")
        if numbers[0] <= account.settled_to:
            raise Violation(
                f"{account.id}: event {numbers[0]} again, after {account.settled_to} was taken"
            )
        if account.may_drop:
            return
        for seq in range(account.checked_to + 1, numbers[-1]):
            if seq not in numbers and not account.is_done(seq) and self._owes(account, seq):
                raise Violation(f"{account.id}: events {numbers} before event {seq}")
        account.checked_to = max(account.checked_to, numbers[0] - 1)

    def _owes(self, account: Account, seq: int) -> bool:
        return account.must_get(seq, self.log.events[seq])

    def took(self, account: Account, events: Iterable[Stored]) -> None:
        """A sink answered yes, or a client has what it pulled; the broker may not know yet."""
        for stored in events:
            if stored.seq in account.taken:
                self._world.seen["event delivered again"] += 1
            account.taken.add(stored.seq)
            self.taken += 1

    def gave_up(self, subscription_id: str, seq: int) -> None:
        account = self.accounts[subscription_id]
        if seq not in account.refused:
            raise Violation(f"{account.id}: event {seq} was given up, which no sink refused")
        account.given_up.add(seq)

    # Safety: boxes

    def handing_out(self, account: Account, released: int, events: list[Stored]) -> None:
        """Events leave a box for somebody who has released all up to there."""
        if account.is_ended:
            raise Violation(f"box {account.id}: a pull was answered after it was deleted")
        self._check_wanted(account, events)
        if events:
            account.settled_to = released
            self._check_order(account, events)

    # Retention

    def trimmed(self) -> None:
        """The log has let go of its beginning: nobody may still have waited for that."""
        for account in self.accounts.values():
            if account.may_drop or account.may_be_gone(self._world.fair_ns):
                continue
            for seq in range(account.trim_checked_to + 1, self.log.trimmed_to + 1):
                if not account.is_done(seq) and self._owes(account, seq):
                    raise Violation(f"{account.id}: event {seq} was trimmed while it waited")
            account.trim_checked_to = max(account.trim_checked_to, self.log.trimmed_to)

    # Starts

    def falling(self, broker: Broker) -> None:
        """A process ends; what it dropped for a subscription's own limit is remembered here."""
        dropped = {view.subscription.id: view.dropped for view in broker.views()}
        for account in self.accounts.values():
            # One that had ended may be back after the crash; what it dropped is not known then.
            account.dropped += dropped.get(account.id, self.log.last)
            account.settled_to = 0
            # The next process may be told an earlier time; what expired before stays expired.
            account.may_have_ended |= account.may_be_gone(self._world.fair_ns)

    def recovered(self, snapshot: Snapshot, letters: list[DeadLetter]) -> list[Account]:
        """A process starts: what was acknowledged about subscriptions is what it finds.

        Returns those that are there although nobody was told.
        """
        untold: list[Account] = []
        found = {subscription.id: subscription for subscription in snapshot.subscriptions}
        for account in self.accounts.values():
            if account.id not in found and not account.may_be_gone(self._world.fair_ns):
                raise Violation(f"subscription {account.id} is lost")
        dead = {(letter.subscription, letter.seq) for letter in letters}
        for subscription in found.values():
            cursor = place(snapshot.cursors, subscription.id, snapshot.first_seq)
            known = self.accounts.get(subscription.id)
            if known is None:
                self._world.seen["subscription found after a crash"] += 1
                untold.append(self.open(subscription, cursor))
            else:
                self._check_definition(known, subscription)
                self._check_cursor(known, cursor, dead)
        return untold

    def _check_definition(self, account: Account, found: Subscription) -> None:
        if account.is_ended:
            raise Violation(f"subscription {account.id} was deleted and is back")
        if account.may_be_gone(self._world.fair_ns):
            return
        if BY_TEXT[bytes(found.filters)] not in account.want.now():
            raise Violation(f"subscription {account.id} has another filter than it was told")
        if found.sink not in account.sink.now():
            raise Violation(f"subscription {account.id} has another sink than it was told")
        if found.expires_ns not in account.expires_ns.now():
            raise Violation(f"subscription {account.id} expires at another time than it was told")
        if account.is_paused and found.state is not State.PAUSED:
            raise Violation(f"subscription {account.id} was paused and is {found.state.value}")

    def _check_cursor(self, account: Account, cursor: int, dead: set[tuple[str, int]]) -> None:
        if account.may_drop:
            return
        for seq in range(account.start + 1, min(cursor, self.log.last) + 1):
            if seq in account.taken or seq in account.renounced or not self._owes(account, seq):
                continue
            if (account.id, seq) not in dead:
                raise Violation(
                    f"{account.id}: its cursor is at {cursor} and event {seq} was not delivered"
                )

    # The end

    def what_is_owed(self, broker: Broker, cursors: dict[str, int]) -> str | None:
        """Why this is not the end yet: one thing that a live subscription is owed."""
        views = {view.subscription.id: view for view in broker.views()}
        for account in self.accounts.values():
            view = views.get(account.id)
            if view is None:
                if not account.may_be_gone(self._world.fair_ns):
                    return f"subscription {account.id} is gone"
                continue
            missing = [
                seq
                for seq in range(account.start + 1, self.log.last + 1)
                if seq not in account.taken
                and seq not in account.renounced
                and self._owes(account, seq)
            ]
            dropped = account.dropped + view.dropped if account.may_drop else 0
            if len(missing) > dropped:
                return f"subscription {account.id} has not got events {missing[:5]}"
            if view.waiting or view.lagging:
                return f"subscription {account.id} has {view.waiting} events waiting"
            if place(cursors, account.id, broker.first) < self._last_owed(account):
                return f"the cursor of subscription {account.id} is not saved"
        return None

    def _last_owed(self, account: Account) -> int:
        owed = (s for s in range(self.log.last, account.start, -1) if self._owes(account, s))
        return next(owed, 0)


def place(cursors: dict[str, int], subscription_id: str, first_seq: int) -> int:
    """Where a subscription is, by the cursors on disk."""
    saved = cursors.get(subscription_id, IDLE)
    return max(cursors.get(WATERMARK, 0) if saved == IDLE else saved, first_seq - 1)
