"""LinkConnections: the open connections to other brokers, and one timer for their deadlines."""

from __future__ import annotations

import asyncio
import traceback
from typing import Final, Protocol

from tocsin.broker.runtime import Runtime
from tocsin.config import OverlaySettings
from tocsin.drivers.budget import ReceiveBudget, Share
from tocsin.services.performance.limited_log import LimitedLog

SWEEP_S: Final = 0.25  # one timer for all connections; deadlines are seconds, so this is fine
CLOSING_S: Final = 0.7  # for what is under way; whoever is not done then is cut off
_POLL_S: Final = 0.01


class Connection(Protocol):
    """One that is open."""

    def tick(self, now_s: float) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class LinkConnections:
    """Those that others opened and those that we opened. Without any, no timer runs."""

    def __init__(self, settings: OverlaySettings, runtime: Runtime, budget: ReceiveBudget) -> None:
        self.settings = settings
        self.loop = asyncio.get_running_loop()
        self.warn = LimitedLog(runtime).warn
        self.note = runtime.note
        self.is_closing = False
        self._budget = budget
        self._open: set[Connection] = set()
        self._sweep: asyncio.TimerHandle | None = None

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
            self._sweep = self.loop.call_later(SWEEP_S, self._turn)

    def remove(self, connection: Connection) -> None:
        self._open.discard(connection)

    def note_failure(self, cause: Exception, peer: str) -> None:
        """Write a failure of ours to the log, with the place where it happened."""
        frames = traceback.extract_tb(cause.__traceback__)[-4:]
        where = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
        text = f"{type(cause).__name__}: {cause}"
        self.note("error", "a link to another broker failed", error=text, where=where, peer=peer)

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
        await asyncio.sleep(0)

    def _turn(self) -> None:
        self._sweep = self.loop.call_later(SWEEP_S, self._turn) if self._open else None
        now_s = self.loop.time()
        for connection in list(self._open):
            connection.tick(now_s)
