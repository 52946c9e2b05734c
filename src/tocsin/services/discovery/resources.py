"""Resources of this broker's clients: kept with its log, and found again after a restart.

A registration is answered once it is on disk. The core knows it a moment earlier; if the disk does
not take it, the core is told to forget it again.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

import msgspec

from tocsin.access.decision import Action, Readable
from tocsin.access.session import Session, internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import run_all
from tocsin.errors import TocsinError, TooLarge
from tocsin.event.event import Value
from tocsin.event.subscription import SOMEBODY, Owner
from tocsin.overlay.discovery.resources import no_such_resource
from tocsin.overlay.time_of_day import Zones
from tocsin.services.discovery.core_driver import CoreDriver
from tocsin.services.discovery.kept_resource import KEY, KeptResource, from_bytes, to_bytes
from tocsin.wire.api.resource_request import ResourceRequest

RESOURCE_BYTES_MAX: Final = 64 << 10
SWEEP_S: Final = 30.0  # a lapsed resource is off the disk within a minute
SWEPT_MAX: Final = 1_000  # at a time, so that others get their commits in between

_SERVICE: Final = internal("discovery")


class Resources:
    """What is registered here, by id."""

    def __init__(self, port: BrokerPort, driver: CoreDriver, zones: Zones) -> None:
        self._port = port
        self._driver = driver
        self._zones = zones
        self._kept: dict[str, KeptResource] = {}
        self._sorted_ids: list[str] | None = None
        self._unreadable: list[str] = []  # keys on disk that nobody can use
        self._is_sweeping = False
        self._recover()
        port.runtime.call_later(SWEEP_S, self._sweep)

    def __len__(self) -> int:
        return len(self._kept)

    # Changing

    async def register(self, session: Session, asked: ResourceRequest) -> tuple[KeptResource, bool]:
        """The resource, once it is on disk; True if there was none before."""
        resource_id = asked.id or self._port.runtime.new_id()
        self._may(session, Action.MANAGE, resource_id)
        now_ns = self._driver.now_ns()
        was = self._live(resource_id, now_ns)
        kept = KeptResource(
            id=resource_id,
            model=asked.model,
            advertisement=asked.advertisement,
            values=asked.values or ({} if was is None or was.model == "static" else was.values),
            kind=asked.kind,
            address=asked.address,
            lease_ns=asked.lease_ns,
            registered_ns=now_ns if was is None else was.registered_ns,
            updated_ns=now_ns if asked.values else None if was is None else was.updated_ns,
            expires_ns=None if asked.lease_ns is None else now_ns + asked.lease_ns,
            owner=(session.owner if session.is_signed_in else None) if was is None else was.owner,
        )
        with self._port.registering(session, f"{KEY}{resource_id}"):
            await self._change(kept, was, now_ns)
        return kept, was is None

    async def update(
        self, session: Session, resource_id: str, values: dict[str, Value], *, merge: bool
    ) -> KeptResource:
        """Replace the values, or with `merge` those that are given; the lease is renewed."""
        self._may(session, Action.MANAGE, resource_id)
        now_ns = self._driver.now_ns()
        was = self._live(resource_id, now_ns)
        if was is None:
            raise no_such_resource(resource_id)
        if was.model == "static" and values:
            self._driver.perform(self._driver.core.update(resource_id, values, now_ns))
        kept = was.with_values({**was.values, **values} if merge else values, now_ns)
        if not kept.values and was.values:
            self._driver.perform(self._driver.core.update(resource_id, {}, now_ns))
        await self._change(kept, was, now_ns)
        return kept

    async def withdraw(self, session: Session, resource_id: str) -> None:
        """Remove it, and answer once that is on disk."""
        self._may(session, Action.MANAGE, resource_id)
        now_ns = self._driver.now_ns()
        was = self._live(resource_id, now_ns)
        if was is None:
            raise no_such_resource(resource_id)
        self._driver.perform(self._driver.core.withdraw(resource_id, now_ns))
        self._forget(resource_id)
        try:
            await self._port.keep(_SERVICE, f"{KEY}{resource_id}", None)
        except TocsinError:
            if resource_id not in self._kept:
                self._put_back(was)
            raise

    async def _change(self, kept: KeptResource, was: KeptResource | None, now_ns: int) -> None:
        value = to_bytes(kept)
        if len(value) > RESOURCE_BYTES_MAX:
            raise TooLarge(
                f"the resource takes {len(value):,} bytes",
                remedy=f"Keep it under {RESOURCE_BYTES_MAX:,}: leave out attributes.",
            )
        self._register_with_core(kept, now_ns)
        self._put(kept)
        try:
            await self._port.keep(_SERVICE, f"{KEY}{kept.id}", value)
        except TocsinError:
            if self._kept.get(kept.id) is kept:
                self._undo(kept, was)
            raise

    def _register_with_core(self, kept: KeptResource, now_ns: int) -> None:
        registration = kept.registration(self._zones, now_ns)
        self._driver.perform(self._driver.core.register(registration, now_ns))

    def _undo(self, kept: KeptResource, was: KeptResource | None) -> None:
        if was is not None and was.is_live(self._driver.now_ns()):
            self._put_back(was)
            return
        self._driver.perform(self._driver.core.withdraw(kept.id, self._driver.now_ns()))
        self._forget(kept.id)

    def _put_back(self, was: KeptResource) -> None:
        """As it is on disk. If its lease has ended meanwhile, the next sweep removes it there."""
        now_ns = self._driver.now_ns()
        if was.is_live(now_ns):
            self._register_with_core(was, now_ns)
        self._put(was)

    # Looking up

    def get(self, session: Session, resource_id: str) -> KeptResource:
        self._may(session, Action.READ, resource_id)
        kept = self._live(resource_id, self._driver.now_ns())
        if kept is None:
            raise no_such_resource(resource_id)
        return kept

    def page(
        self, session: Session, *, after: str, limit: int, kind: str | None, model: str | None
    ) -> tuple[list[KeptResource], str | None]:
        """Those that follow `after` in the order of their ids, and where to go on."""
        readable = self._port.readable(session, "resource/*")
        self._port.check(session, Action.READ, "resource/*" if readable is None else "resource/own")
        now_ns = self._driver.now_ns()
        if self._sorted_ids is None:
            self._sorted_ids = sorted(self._kept)
        found: list[KeptResource] = []
        ids = self._sorted_ids
        for place in range(bisect_right(ids, after), len(ids)):
            kept = self._kept[ids[place]]
            wanted = kind in (None, kept.kind) and model in (None, kept.model)
            if not wanted or not kept.is_live(now_ns):
                continue
            if readable is not None and not self._is_listed(session, readable, kept):
                continue
            if len(found) == limit:
                return found, found[-1].id
            found.append(kept)
        return found, None

    def _is_listed(self, session: Session, readable: Readable, kept: KeptResource) -> bool:
        """For who may not read all: its own, and those that it has a right to."""
        resource = f"resource/{kept.id}"
        if readable.has_all_on(resource, frozenset()):
            return True
        # Not each of its name is its own to a token with rights of its own.
        is_own = session.is_owner(kept.owner)
        return is_own and self._port.may(session, Action.READ, resource, kept.owner)

    def _live(self, resource_id: str, now_ns: int) -> KeptResource | None:
        kept = self._kept.get(resource_id)
        return kept if kept is not None and kept.is_live(now_ns) else None

    def _may(self, session: Session, action: Action, resource: str) -> None:
        self._port.check(session, action, f"resource/{resource}", self.owner_of(resource))

    def owner_of(self, resource_id: str) -> Owner | None:
        """Who registered it; None if it is not there."""
        kept = self._live(resource_id, self._driver.now_ns())
        return None if kept is None else kept.owner or SOMEBODY

    # Keeping

    def _put(self, kept: KeptResource) -> None:
        if kept.id not in self._kept:
            self._sorted_ids = None
        self._kept[kept.id] = kept

    def _forget(self, resource_id: str) -> None:
        if self._kept.pop(resource_id, None) is not None:
            self._sorted_ids = None

    def _recover(self) -> None:
        """Register what is on disk. What cannot be used is logged, and removed."""
        now_ns = self._driver.now_ns()
        for key, value in self._port.own(_SERVICE).kept(KEY).items():
            try:
                kept = from_bytes(value)
                if kept.is_live(now_ns):
                    self._register_with_core(kept, now_ns)
                self._put(kept)
            except (msgspec.DecodeError, UnicodeDecodeError, TocsinError) as error:
                self._unreadable.append(key)
                self._port.runtime.note(
                    "warning", "a resource could not be registered again", key=key, why=error
                )
        self._port.own(_SERVICE).count_registrations(KEY, self.owner_of)

    def _sweep(self) -> None:
        if self._port.runtime.is_stopping:
            return
        if not self._is_sweeping:
            self._is_sweeping = True
            self._port.runtime.spawn(self._sweep_once())
        self._port.runtime.call_later(SWEEP_S, self._sweep)

    async def _sweep_once(self) -> None:
        try:
            await self.sweep()
        finally:
            self._is_sweeping = False

    async def sweep(self) -> None:
        """Take off the disk what has lapsed; the core has ended its lease already."""
        now_ns = self._driver.now_ns()
        lapsed = [kept.id for kept in self._kept.values() if not kept.is_live(now_ns)]
        keys, self._unreadable = self._unreadable, []
        for resource_id in lapsed:
            self._forget(resource_id)
        keys += [f"{KEY}{resource_id}" for resource_id in lapsed]
        for start in range(0, len(keys), SWEPT_MAX):
            some = keys[start : start + SWEPT_MAX]
            await run_all(self._port.runtime, [self._remove(key) for key in some])

    async def _remove(self, key: str) -> None:
        if key.removeprefix(KEY) in self._kept:
            return  # it was registered again meanwhile
        try:
            await self._port.keep(_SERVICE, key, None)
        except TocsinError:
            self._unreadable.append(key)  # at the next sweep
