"""LinkConnections: the open connections to other brokers, and one timer for their deadlines."""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from time import monotonic
from typing import Final, Protocol

from tocsin.broker.runtime import Runtime
from tocsin.config import OverlaySettings
from tocsin.drivers.listeners.budget import ReceiveBudget, Share
from tocsin.services.repeated_log import RepeatedLog

SWEEP_S: Final = 0.25  # one timer for all connections; deadlines are seconds, so this is fine
TURN_S: Final = 0.005  # for those that send more than can be handled at once, all together
BUSY_S: Final = 0.005
CLOSING_S: Final = 0.7  # for what is under way; whoever is not done then is cut off
_POLL_S: Final = 0.01


class Connection(Protocol):
    """One that is open."""

    def tick(self, now_s: float) -> None: ...

    def excuse(self, late_s: float) -> None: ...

    def hand_on(self, until_s: float) -> bool: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class LinkConnections:
    """Those that others opened and those that we opened. Without any, no timer runs."""

    def __init__(self, settings: OverlaySettings, runtime: Runtime, budget: ReceiveBudget) -> None:
        self.settings = settings
        self.loop = asyncio.get_running_loop()
        self._log = RepeatedLog(runtime)
        self.warn = self._log.warn
        self.is_closing = False
        self._budget = budget
        self._open: set[Connection] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._sweep_due_s = 0.0
        self._behind: deque[Connection] = deque()  # have more than could be handed on in one turn
        self._next: asyncio.Handle | None = None

    def __len__(self) -> int:
        return len(self._open)

    @property
    def has_timer(self) -> bool:
        return self._sweep is not None

    def share(self) -> Share:
        """What one connection holds of the budget for received bytes."""
        return self._budget.share()

    def add(self, connection: Connection) -> None:
        self._open.add(connection)
        if self._sweep is None:
            self._set_sweep()

    def hand_on_later(self, connection: Connection) -> None:
        """It has more than it may hand on in this turn of the loop."""
        self._behind.append(connection)
        if self._next is None:
            self._next = self.loop.call_soon(self._hand_on)

    def _hand_on(self) -> None:
        """All that are behind share the time of one turn, each after the others."""
        began_s = monotonic()
        for _ in range(len(self._behind)):
            connection = self._behind.popleft()
            if connection.hand_on(began_s + TURN_S):
                self._behind.append(connection)
            if monotonic() - began_s >= TURN_S:
                self._next = self.loop.call_soon(self._hand_on)
                return
        # Those that are left wait until what they sent before has been performed.
        later = self.loop.call_later
        self._next = later(BUSY_S, self._hand_on) if self._behind else None

    def remove(self, connection: Connection) -> None:
        self._open.discard(connection)

    def note_failure(self, cause: Exception, peer: str) -> None:
        """Write a failure of ours to the log, with the place where it happened."""
        frames = traceback.extract_tb(cause.__traceback__)[-4:]
        where = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
        text = f"{type(cause).__name__}: {cause}"
        message, reason = "a link to another broker failed", (type(cause).__name__, where)
        self._log.note("error", message, reason, error=text, where=where, peer=peer)

    def note_full(self, setting: str, connections: int) -> None:
        """Somebody is sent away, because there are as many as the setting allows."""
        message = f"the link listener has as many connections as {setting} allows"
        self._log.note("warning", message, (), connections=connections)

    async def close(self) -> None:
        """Let what is under way end, and cut off who is not done soon."""
        self.is_closing = True
        for connection in list(self._open):
            connection.close()
        deadline_s = self.loop.time() + CLOSING_S
        while self._open and self.loop.time() < deadline_s:
            await asyncio.sleep(_POLL_S)
        for connection in list(self._open):
            connection.abort()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        if self._next is not None:
            self._next.cancel()
            self._next = None
        await asyncio.sleep(0)

    def _set_sweep(self) -> None:
        self._sweep = self.loop.call_later(SWEEP_S, self._turn)
        self._sweep_due_s = self.loop.time() + SWEEP_S

    def _turn(self) -> None:
        now_s = self.loop.time()
        late_s = now_s - self._sweep_due_s
        self._sweep = None
        if self._open:
            self._set_sweep()
        for connection in list(self._open):
            if late_s > SWEEP_S:  # what came meanwhile is read before it is judged
                connection.excuse(late_s)
            connection.tick(now_s)
