"""The directory of a running broker: kept with its log, and found again after a restart.

A registration is answered, and shown to others, once it is on disk. Until then it is `coming`: who
asks meanwhile for the same entry is treated as if it were there, so that of two at the same moment
the second replaces the first.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

import msgspec

from tocsin.broker.broker import Broker
from tocsin.broker.effects import Level, Token
from tocsin.errors import BadRegistration, Busy, DirectoryFull, NoSuchEntry, TocsinError, TooLarge
from tocsin.wire.directory.entry import (
    Entry,
    Identity,
    Offered,
    Registration,
    from_bytes,
    leased,
    to_bytes,
)
from tocsin.wire.directory.listing import Found, Listing, Wanted
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

Offering = Callable[[], Iterable[EventName]]


class House(Protocol):
    """What the directory needs of the node that it is a part of."""

    loop: asyncio.AbstractEventLoop
    broker: Broker
    stopping: bool

    def now_ns(self) -> int: ...

    def note(self, level: Level, message: str, **fields: object) -> None: ...

    async def ask(self, call: Callable[[Token, int], None]) -> Any: ...


class _Own(msgspec.Struct):
    """An entry of the broker itself, and where its list of events comes from."""

    entry: Entry
    events: Offering
    asked_s: float


class _Coming:
    """How an entry will be when what is under way to the disk has arrived."""

    __slots__ = ("entry", "identities", "writes")

    def __init__(self) -> None:
        self.entry: Entry | None = None
        self.identities: set[Identity] = set()
        self.writes = 0


class Directory:
    """Who offers which events, and where."""

    def __init__(self, node: House) -> None:
        self._node = node
        self._listing = Listing()
        self._coming: dict[str, _Coming] = {}
        self._claims: dict[Identity, str] = {}  # who of those that are coming is which
        self._own: dict[str, _Own] = {}
        self._one_at_a_time = asyncio.Lock()  # a filter over all entries takes a while
        self._searches = 0
        self._bytes: dict[str, int] = {}  # on disk, by id
        self._bytes_total = 0
        self._recover()
        self._sweeping: asyncio.Task[None] | None = None
        self.on_found: list[Callable[[Wanted, int, float], None]] = []  # how many, in what time
        node.loop.call_later(SWEEP_S, self._sweep)

    # Registering

    async def register(
        self, registration: Registration, entry_id: str | None = None
    ) -> tuple[Entry, bool]:
        """The entry, once it is on disk; True if there was none before."""
        holder = self._holder(registration.identity)
        if entry_id is None:
            entry_id = holder or secrets.token_hex(12)
        elif holder not in (None, entry_id):
            raise BadRegistration(
                f"{registration.name!r} on {registration.host} is already registered as {holder}",
                remedy="Replace that entry, withdraw it, or register under another name.",
            )
        self._check_not_own(entry_id)
        now_ns = self._node.now_ns()
        was = self._standing(entry_id)
        is_new = was is None or not was.is_live(now_ns)
        entry = leased(entry_id, registration, now_ns)
        if was is not None and not is_new:
            entry = msgspec.structs.replace(entry, registered_ns=was.registered_ns)
        await self._write(entry_id, entry)
        return entry, is_new

    async def renew(self, entry_id: str) -> Entry:
        """The entry with its whole lease before it; NoSuchEntry if that has ended."""
        self._check_not_own(entry_id)
        now_ns = self._node.now_ns()
        was = self._standing(entry_id)
        if was is None or not was.is_live(now_ns):
            raise no_such_entry(entry_id)
        entry = was.renewed(now_ns)
        await self._write(entry_id, entry)
        return entry

    async def withdraw(self, entry_id: str) -> None:
        """Remove the entry, and answer once that is on disk."""
        self._check_not_own(entry_id)
        was = self._standing(entry_id)
        if was is None or not was.is_live(self._node.now_ns()):
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
        entry = Entry(entry_id, registration, self._node.now_ns(), None)
        self._own[entry_id] = _Own(entry, events, 0.0)
        self._listing.put(entry)
        assert len(self._own) <= OWN_MAX
        return entry_id

    # Looking up

    def get(self, entry_id: str) -> Entry:
        self._refresh_own()
        entry = self._listing.get(entry_id)
        if entry is None or not entry.is_live(self._node.now_ns()):
            raise no_such_entry(entry_id)
        return entry

    async def look_up(self, wanted: Wanted, *, after: str = "", limit: int | None = None) -> Found:
        """Live entries that are wanted, in the order of their ids."""
        self._refresh_own()
        if self._searches >= SEARCHES_MAX:
            raise Busy(
                f"{self._searches} other searches are running", remedy="Ask again in a second."
            )
        self._searches += 1
        begun_s = time.perf_counter()
        try:
            async with self._one_at_a_time:
                found = await self._search(wanted, after, limit)
            for listener in self.on_found:
                listener(wanted, len(found.entries), time.perf_counter() - begun_s)
            return found
        finally:
            self._searches -= 1

    async def _search(self, wanted: Wanted, after: str, limit: int | None) -> Found:
        found: list[Entry] = []
        while True:
            left = None if limit is None else limit - len(found)
            page = self._listing.look_up(
                wanted, self._node.now_ns(), after=after, limit=left, looked_at_max=LOOKED_AT_MAX
            )
            found += page.entries
            if page.next is None or len(found) == limit:
                return Found(found, page.next)
            after = page.next
            await asyncio.sleep(0)

    def _refresh_own(self) -> None:
        now_s = self._node.loop.time()
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
        """List what is on disk. What cannot be read is said, and goes with the next sweep."""
        for key, value in self._node.broker.kept(KEY).items():
            self._note_size(key.removeprefix(KEY), len(value))
            try:
                entry = from_bytes(value)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                self._node.note(
                    "warning", "an entry of the directory could not be read", key=key, why=error
                )
                continue
            self._listing.put(entry)

    async def _write(self, entry_id: str, entry: Entry | None) -> None:
        value = None if entry is None else to_bytes(entry)
        if value is not None:
            self._check_room(entry_id, value)
        coming = self._come(entry_id, entry)
        node, key = self._node, f"{KEY}{entry_id}"
        try:
            await node.ask(lambda token, now_ns: node.broker.keep(key, value, token, now_ns))
            # Answers come in the order of the questions, so the last one shown is the last on disk.
            self._show(entry_id, entry)
            self._note_size(entry_id, 0 if value is None else len(value))
        finally:
            coming.writes -= 1
            if not coming.writes:
                del self._coming[entry_id]
                for identity in coming.identities:
                    if self._claims.get(identity) == entry_id:
                        del self._claims[identity]

    def _come(self, entry_id: str, entry: Entry | None) -> _Coming:
        coming = self._coming.setdefault(entry_id, _Coming())
        coming.entry = entry
        coming.writes += 1
        if entry is not None:
            identity = entry.registration.identity
            coming.identities.add(identity)
            self._claims[identity] = entry_id
        return coming

    def _show(self, entry_id: str, entry: Entry | None) -> None:
        if entry is None:
            self._listing.remove(entry_id)
        else:
            self._listing.put(entry)

    def _note_size(self, entry_id: str, size: int) -> None:
        self._bytes_total += size - self._bytes.pop(entry_id, 0)
        if size:
            self._bytes[entry_id] = size

    def _standing(self, entry_id: str) -> Entry | None:
        """The entry as it is, or as it will be in a moment."""
        coming = self._coming.get(entry_id)
        return self._listing.get(entry_id) if coming is None else coming.entry

    def _holder(self, identity: Identity) -> str | None:
        """The id under which somebody is registered, or will be in a moment."""
        for entry_id in (self._claims.get(identity), self._listing.holder(identity)):
            if entry_id is None:
                continue
            coming = self._coming.get(entry_id)
            if coming is None or coming.entry is None:
                return entry_id
            if coming.entry.registration.identity == identity:  # else it gets another name
                return entry_id
        return None

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
        if len(self._bytes) + len(self._coming) < ENTRIES_MAX:
            return  # however they overlap
        now_ns = self._node.now_ns()
        live = {entry.id for entry in self._listing if entry.is_live(now_ns)} | {*self._coming}
        if len(live - self._own.keys() | {entry_id}) > ENTRIES_MAX:
            raise DirectoryFull(
                f"the directory is full: it has {ENTRIES_MAX:,} entries",
                remedy="Withdraw entries that are not needed, or let their leases end.",
            )

    # Forgetting

    def _sweep(self) -> None:
        if self._node.stopping:
            return
        if self._sweeping is None or self._sweeping.done():
            self._sweeping = self._node.loop.create_task(self.sweep())
        self._node.loop.call_later(SWEEP_S, self._sweep)

    async def sweep(self) -> None:
        """Take off the disk what has lapsed, or what another entry took the place of."""
        if self._node.broker.clock.doubt is not None:
            return
        lapsed = [entry.id for entry in self._listing.lapsed(self._node.now_ns())]
        lapsed += [each for each in self._bytes if self._listing.get(each) is None]
        for start in range(0, len(lapsed), SWEPT_MAX):
            some = lapsed[start : start + SWEPT_MAX]
            writes = [self._write(each, None) for each in some if each not in self._coming]
            for result in await asyncio.gather(*writes, return_exceptions=True):
                # One that the disk did not take is there at the next sweep.
                if isinstance(result, BaseException) and not isinstance(result, TocsinError):
                    raise result


def no_such_entry(entry_id: str) -> NoSuchEntry:
    return NoSuchEntry(
        f"the directory has no entry {entry_id[:64]!r}",
        remedy="Register again; GET /directory lists what there is.",
    )
