"""The directory of a broker: kept with its log, and found again after a restart.

A registration is answered, and shown to others, once it is on disk. Until then it is pending: who
asks meanwhile for the same entry is treated as if it were there, so that of two at the same moment
the second replaces the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

import msgspec

from tocsin.access.decision import Action
from tocsin.access.session import Session, internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Semaphore, run_all
from tocsin.errors import BadRegistration, Busy, DirectoryFull, NoSuchEntry, TocsinError, TooLarge
from tocsin.event.subscription import SOMEBODY, Owner
from tocsin.wire.directory.entry import (
    Entry,
    Identity,
    Offered,
    Registration,
    from_bytes,
    leased,
    to_bytes,
)
from tocsin.wire.directory.listing import EntryPage, Listing, Wanted
from tocsin.wire.directory.registration import EVENTS_MAX
from tocsin.wire.gma.names import PERIOD, EventName

KEY: Final = "directory/"
ENTRIES_MAX: Final = 10_000
ENTRY_BYTES_MAX: Final = 64 << 10
DIRECTORY_BYTES_MAX: Final = 32 << 20  # half of what all services together may keep
SWEEP_S: Final = 30.0  # a lapsed entry is off the disk within a minute
SWEPT_MAX: Final = 1_000  # at a time, so that others get their commits in between
LOOKED_AT_MAX: Final = 50  # entries that a filter is asked of before others get a turn
SEARCHES_MAX: Final = 32  # that wait for the one under way
OWN_MAX: Final = 16
OWN_EVENTS_S: Final = 1.0  # how old the list of events that the broker itself offers may be

_DIRECTORY: Final = internal("directory")

Offering = Callable[[], Iterable[EventName]]


class _Own(msgspec.Struct):
    """An entry of the broker itself, and where its list of events comes from."""

    entry: Entry
    events: Offering
    asked_s: float


class _Pending:
    """How an entry will be when what is under way to the disk has arrived."""

    __slots__ = ("entry", "identities", "writes")

    def __init__(self) -> None:
        self.entry: Entry | None = None
        self.identities: set[Identity] = set()
        self.writes = 0


class Directory:
    """Who offers which events, and where."""

    def __init__(self, port: BrokerPort) -> None:
        self._port = port
        self._runtime = port.runtime
        self._listing = Listing()
        self._pending: dict[str, _Pending] = {}
        self._claims: dict[Identity, str] = {}  # of those that are pending, by who they are
        self._own: dict[str, _Own] = {}
        self._one_at_a_time = Semaphore(port.runtime)  # a filter over all entries takes a while
        self._searches = 0
        self._bytes: dict[str, int] = {}  # on disk, by id
        self._bytes_total = 0
        self._recover()
        self._is_sweeping = False
        self.on_found: list[Callable[[Wanted, int, float], None]] = []  # how many, in what time
        self._runtime.call_later(SWEEP_S, self._sweep)

    # Registering

    async def register(
        self, session: Session, registration: Registration, entry_id: str | None = None
    ) -> tuple[Entry, bool]:
        """The entry, once it is on disk; True if there was none before."""
        holder = self._holder(registration.identity)
        self._may(session, Action.MANAGE, entry_id or holder or registration.name)
        if holder is not None and holder != entry_id:
            self._may(session, Action.MANAGE, holder)
        if entry_id is None:
            entry_id = holder or self._runtime.new_id()
        elif holder not in (None, entry_id):
            raise BadRegistration(
                f"{registration.name!r} on {registration.host} is already registered as {holder}",
                remedy="Replace that entry, withdraw it, or register under another name.",
            )
        self._check_not_own(entry_id)
        now_ns = self._runtime.now_ns()
        was = self._current(entry_id)
        is_new = was is None or not was.is_live(now_ns)
        owner = session.owner if session.is_signed_in else None
        entry = leased(entry_id, registration, now_ns, owner)
        if was is not None and not is_new:
            entry = msgspec.structs.replace(entry, registered_ns=was.registered_ns, owner=was.owner)
        with self._port.registering(session, f"{KEY}{entry_id}"):
            await self._write(entry_id, entry)
        return entry, is_new

    async def renew(self, session: Session, entry_id: str) -> Entry:
        """The entry with its whole lease before it; NoSuchEntry if that has ended."""
        self._may(session, Action.MANAGE, entry_id)
        self._check_not_own(entry_id)
        now_ns = self._runtime.now_ns()
        was = self._current(entry_id)
        if was is None or not was.is_live(now_ns):
            raise no_such_entry(entry_id)
        entry = was.renewed(now_ns)
        await self._write(entry_id, entry)
        return entry

    async def withdraw(self, session: Session, entry_id: str) -> None:
        """Remove the entry, and answer once that is on disk."""
        self._may(session, Action.MANAGE, entry_id)
        self._check_not_own(entry_id)
        was = self._current(entry_id)
        if was is None or not was.is_live(self._runtime.now_ns()):
            raise no_such_entry(entry_id)
        await self._write(entry_id, None)

    def list_own(self, registration: Registration, events: Offering) -> str:
        """Have the broker's own offer answered like the others', but not kept.

        `events` is asked again, at most once a second, when somebody looks something up. Listing
        the same name again replaces it. Returns the entry's id.
        """
        listed = (own.entry for own in self._own.values())
        same = [each.id for each in listed if each.registration.identity == registration.identity]
        # No registration can ask for an id that begins so.
        entry_id = same[0] if same else f"~{len(self._own) + 1}"
        entry = Entry(entry_id, registration, self._runtime.now_ns(), None)
        self._own[entry_id] = _Own(entry, events, 0.0)
        self._listing.put(entry)
        assert len(self._own) <= OWN_MAX
        return entry_id

    # Looking up

    def get(self, session: Session, entry_id: str) -> Entry:
        self._may(session, Action.READ, entry_id)
        self._refresh_own()
        entry = self._listing.get(entry_id)
        if entry is None or not entry.is_live(self._runtime.now_ns()):
            raise no_such_entry(entry_id)
        return entry

    async def look_up(
        self, session: Session, wanted: Wanted, *, after: str = "", limit: int | None = None
    ) -> EntryPage:
        """Live entries that are wanted, in the order of their ids."""
        may_read = self._readable(session)
        self._refresh_own()
        if self._searches >= SEARCHES_MAX:
            raise Busy(
                f"{self._searches} other searches are running", remedy="Ask again in a second."
            )
        self._searches += 1
        begun_s = self._runtime.elapsed_s()
        try:
            async with self._one_at_a_time:
                found = await self._search(wanted, after, limit, may_read)
            for listener in self.on_found:
                listener(wanted, len(found.entries), self._runtime.elapsed_s() - begun_s)
            return found
        finally:
            self._searches -= 1

    async def _search(
        self, wanted: Wanted, after: str, limit: int | None, may_read: Callable[[Entry], bool]
    ) -> EntryPage:
        found: list[Entry] = []
        while True:
            left = None if limit is None else limit - len(found)
            page = self._listing.look_up(
                wanted, self._runtime.now_ns(), after=after, limit=left, looked_at_max=LOOKED_AT_MAX
            )
            found += filter(may_read, page.entries)
            if page.next is None or len(found) == limit:
                return EntryPage(found, page.next)
            after = page.next
            await self._runtime.sleep(0)

    def _refresh_own(self) -> None:
        now_s = self._runtime.elapsed_s()
        for own in self._own.values():
            if own.asked_s and now_s < own.asked_s + OWN_EVENTS_S:
                continue
            own.asked_s = now_s
            names = sorted(set(own.events()))[:EVENTS_MAX]
            offered = tuple(Offered(name, (PERIOD,)) for name in names)
            if offered != own.entry.registration.events:
                registration = msgspec.structs.replace(own.entry.registration, events=offered)
                own.entry = msgspec.structs.replace(own.entry, registration=registration)
                self._listing.put(own.entry)

    # Keeping

    def _recover(self) -> None:
        """List what is on disk. What cannot be read is logged, and removed with the next sweep."""
        for key, value in self._port.own(_DIRECTORY).kept(KEY).items():
            self._note_size(key.removeprefix(KEY), len(value))
            try:
                entry = from_bytes(value)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                self._runtime.note(
                    "warning", "an entry of the directory could not be read", key=key, why=error
                )
                continue
            self._listing.put(entry)
        self._port.own(_DIRECTORY).count_registrations(KEY, self._owner_of)

    async def _write(self, entry_id: str, entry: Entry | None) -> None:
        value = None if entry is None else to_bytes(entry)
        if value is not None:
            self._check_room(entry_id, value)
        pending = self._begin_write(entry_id, entry)
        try:
            await self._port.keep(_DIRECTORY, f"{KEY}{entry_id}", value)
            # Answers come in the order of the questions, so the last one shown is the last on disk.
            self._show(entry_id, entry)
            self._note_size(entry_id, 0 if value is None else len(value))
        finally:
            pending.writes -= 1
            if not pending.writes:
                del self._pending[entry_id]
                for identity in pending.identities:
                    if self._claims.get(identity) == entry_id:
                        del self._claims[identity]

    def _begin_write(self, entry_id: str, entry: Entry | None) -> _Pending:
        pending = self._pending.setdefault(entry_id, _Pending())
        pending.entry = entry
        pending.writes += 1
        if entry is not None:
            identity = entry.registration.identity
            pending.identities.add(identity)
            self._claims[identity] = entry_id
        return pending

    def _show(self, entry_id: str, entry: Entry | None) -> None:
        if entry is None:
            self._listing.remove(entry_id)
        else:
            self._listing.put(entry)

    def _note_size(self, entry_id: str, size: int) -> None:
        self._bytes_total += size - self._bytes.pop(entry_id, 0)
        if size:
            self._bytes[entry_id] = size

    def _current(self, entry_id: str) -> Entry | None:
        """The entry as it is, or as it will be in a moment."""
        pending = self._pending.get(entry_id)
        return self._listing.get(entry_id) if pending is None else pending.entry

    def _holder(self, identity: Identity) -> str | None:
        """The id under which somebody is registered, or will be in a moment."""
        for entry_id in (self._claims.get(identity), self._listing.holder(identity)):
            if entry_id is None:
                continue
            pending = self._pending.get(entry_id)
            if pending is None or pending.entry is None:
                return entry_id
            if pending.entry.registration.identity == identity:  # else it gets another name
                return entry_id
        return None

    def _may(self, session: Session, action: Action, entry: str) -> None:
        self._port.check(session, action, f"{KEY}{entry}", self._owner_of(entry))

    def _owner_of(self, entry_id: str) -> Owner | None:
        """Who registered it; None if it is not there."""
        entry = self._current(entry_id)
        if entry is None or not entry.is_live(self._runtime.now_ns()):
            return None
        return entry.owner or SOMEBODY

    def _readable(self, session: Session) -> Callable[[Entry], bool]:
        """Which entries the session may read; raises NotAllowed for who can have none."""
        readable = self._port.readable(session, f"{KEY}*")
        if readable is None:
            self._port.check(session, Action.READ, f"{KEY}*")
            return lambda entry: True
        self._port.check(session, Action.READ, f"{KEY}own")

        def may_read(entry: Entry) -> bool:
            name = f"{KEY}{entry.id}"
            if readable.has_all_on(name, frozenset()):
                return True
            # Not each of its name is its own to a token with rights of its own.
            is_own = session.is_owner(entry.owner)
            return is_own and self._port.may(session, Action.READ, name, entry.owner)

        return may_read

    def _check_not_own(self, entry_id: str) -> None:
        if entry_id in self._own:
            raise BadRegistration(
                f"the entry {entry_id} is the broker's own",
                remedy="Register under another name; the broker's settings say what it offers.",
            )

    def _check_room(self, entry_id: str, value: bytes) -> None:
        if len(value) > ENTRY_BYTES_MAX:
            raise TooLarge(
                f"the registration takes {len(value):,} bytes",
                remedy=f"Keep it under {ENTRY_BYTES_MAX:,}: offer less, or register in parts.",
            )
        if self._bytes_total + len(value) - self._bytes.get(entry_id, 0) > DIRECTORY_BYTES_MAX:
            raise DirectoryFull(
                f"the directory is full: it has {self._bytes_total:,} bytes",
                remedy="Withdraw entries that are not needed, or let their leases end.",
            )
        if len(self._bytes) + len(self._pending) < ENTRIES_MAX:
            return  # however they overlap
        now_ns = self._runtime.now_ns()
        live = {entry.id for entry in self._listing if entry.is_live(now_ns)} | {*self._pending}
        if len(live - self._own.keys() | {entry_id}) > ENTRIES_MAX:
            raise DirectoryFull(
                f"the directory is full: it has {ENTRIES_MAX:,} entries",
                remedy="Withdraw entries that are not needed, or let their leases end.",
            )

    # Forgetting

    def _sweep(self) -> None:
        if self._runtime.is_stopping:
            return
        if not self._is_sweeping:
            self._is_sweeping = True
            self._runtime.spawn(self._sweep_once())
        self._runtime.call_later(SWEEP_S, self._sweep)

    async def _sweep_once(self) -> None:
        try:
            await self.sweep()
        finally:
            self._is_sweeping = False

    async def sweep(self) -> None:
        """Take off the disk what has lapsed, or what another entry took the place of."""
        if self._port.is_clock_in_doubt:
            return
        lapsed = [entry.id for entry in self._listing.lapsed(self._runtime.now_ns())]
        lapsed += [each for each in self._bytes if self._listing.get(each) is None]
        for start in range(0, len(lapsed), SWEPT_MAX):
            some = lapsed[start : start + SWEPT_MAX]
            removals = [self._remove(each) for each in some if each not in self._pending]
            await run_all(self._runtime, removals)

    async def _remove(self, entry_id: str) -> None:
        with suppress(TocsinError):  # one that the disk did not take is there at the next sweep
            await self._write(entry_id, None)


def no_such_entry(entry_id: str) -> NoSuchEntry:
    return NoSuchEntry(
        f"the directory has no entry {entry_id[:64]!r}",
        remedy="Register again; GET /directory lists what there is.",
    )
