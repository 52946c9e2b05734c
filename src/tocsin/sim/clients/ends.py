"""Ends: somebody asks at the very moment when a right of his ends."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from tocsin.access.decision import Action
from tocsin.access.session import Session
from tocsin.errors import NotAllowed
from tocsin.event.instant import NS_PER_MS
from tocsin.sim.machine import Machine
from tocsin.sim.rights import Right
from tocsin.sim.site_access import SHORT_MS, SiteAccess

ASKED_MAX: Final = 4  # events about which somebody asks


class Ends:
    """Of the rights at one broker."""

    def __init__(self, machine: Machine, access: SiteAccess) -> None:
        self._machine = machine
        self._access = access
        self._world = machine.world

    def _now_ns(self) -> int:
        return self._access.model.now_ns() or self._world.now_ns

    def look(self, name: str, rights: Iterable[Right], expires_ns: int | None) -> None:
        """Somebody asks just before, when a right or a token ends, and just after."""
        ends = {right.expires_ns for right in rights} | {expires_ns}
        session = self._access.session(name, "http")
        for end_ns in sorted(end for end in ends if end is not None):
            in_ns = end_ns - self._now_ns()
            if 0 < in_ns < SHORT_MS[1] * NS_PER_MS:
                for moment_ns in (in_ns - 1, in_ns, in_ns + 1):
                    self._world.at(self._world.now_ns + moment_ns, partial(self._ask, session))

    def _ask(self, session: Session) -> None:
        """The checks see what the broker says."""
        node, log = self._machine.node, self._machine.checks.log
        if node is None or self._machine.checks.access is None:
            return
        self._world.seen["access: the moment of an end"] += 1
        port, latest = node.port, [log.events[seq] for seq in range(1, log.last + 1)[-ASKED_MAX:]]
        for action in (Action.SUBSCRIBE, Action.READ):
            port.may(session, action, "events")
        for event in latest:
            with suppress(NotAllowed):
                port.check_events(session, [event])
        access, readable = self._machine.checks.access, port.readable(session)
        permit = port.read_permit(session)
        for event in latest:
            # As it is asked of live events, and of a page of the log in whatever thread reads it.
            for allowed in (
                permit is None or permit.allows(event),
                readable is None or readable.has_event(event),
            ):
                access.check_read(session, event, is_allowed=allowed)
