"""What all connections of the HTTP listener share: limits, the clock, the sweep of deadlines."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable
from typing import Any, Final, Protocol

from tocsin.access.session import Session
from tocsin.access.sign_in.guarded_sign_in import GuardedSignIn
from tocsin.broker.effects import Level
from tocsin.broker.engine import Replier
from tocsin.config import HttpSettings
from tocsin.drivers.http.answers import ResponseHeads
from tocsin.drivers.http.connection_limiter import (
    CROWDED_IDLE_S,
    ConnectionLimiter,
    LimitedConnection,
    PeerConnected,
)
from tocsin.drivers.http.exchange import Exchange
from tocsin.drivers.http.guard import Guard
from tocsin.drivers.http.head_cache import HeadCache
from tocsin.drivers.http.request import Request
from tocsin.drivers.listeners.budget import ReceiveBudget
from tocsin.drivers.listeners.connection_quotas import ConnectionQuotas
from tocsin.drivers.logger import WriteLog
from tocsin.drivers.tls.site_context import certificate_session
from tocsin.errors import NotSignedIn, QuotaReached, TocsinError
from tocsin.event.event import Event
from tocsin.wire.cloudevents.limits import Limits

SWEEP_S: Final = 0.25  # one timer for all connections; deadlines are seconds, so this is fine

Publish = Callable[[Session, list[Event], Replier], None]
MakeExchange = Callable[[Any, Request], Exchange]  # for a connection


class Admitted(LimitedConnection, Protocol):
    """A connection that may ask for something."""

    session: Session


class HttpServer:
    """The connections of one listener, and their deadlines."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        limits: HttpSettings,
        event_limits: Limits,
        guard: Guard,
        publish: Publish,
        exchange: MakeExchange,
        note: WriteLog,
        budget: ReceiveBudget,
        per_peer_max: int,
        peer_connected: PeerConnected,
        sign_in: GuardedSignIn | None = None,
        quotas: ConnectionQuotas | None = None,
    ) -> None:
        self.loop = loop
        self.limits = limits
        self.event_limits = event_limits
        self.guard = guard
        self.publish = publish
        self.sign_in = sign_in
        self.quotas = quotas  # of connections; None where there are none
        self.exchange = exchange
        self.note = note
        self.budget = budget
        self.heads = HeadCache()
        self.limiter = ConnectionLimiter(limits.connections_max, per_peer_max, note, peer_connected)
        self.connections = self.limiter.connections
        self.closing = asyncio.Event()
        self.unreadable = 0  # publishes that never reached the broker
        self.response_heads = ResponseHeads(time.time())
        self.now_s = loop.time()
        self._sweep: asyncio.TimerHandle | None = loop.call_later(SWEEP_S, self._turn)

    def admit(self, connection: Admitted, host: str, tls: object) -> TocsinError | None:
        """None if it may send any request; else its answer, unless it only probes. Whoever shows a
        certificate by TLS has signed in with it."""
        refusal = self.limiter.admit(connection, host)
        try:
            connection.session = certificate_session(connection.session, tls)
            if refusal is None and self.quotas is not None:
                self.quotas.connected(connection, connection.session)
        except (NotSignedIn, QuotaReached) as error:
            return refusal or error
        return refusal

    def forget(self, connection: LimitedConnection) -> None:
        """It is gone."""
        self.limiter.forget(connection)
        if self.quotas is not None:
            self.quotas.lost(connection)

    def note_failure(self, message: str, cause: BaseException, **fields: object) -> None:
        """Write a failure of ours to the log, with the place where it happened."""
        frames = traceback.extract_tb(cause.__traceback__)[-4:]
        where = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
        level: Level = "error"
        self.note(level, message, error=f"{type(cause).__name__}: {cause}", where=where, **fields)

    def close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None

    def _turn(self) -> None:
        self._sweep = self.loop.call_later(SWEEP_S, self._turn)
        self.now_s = now_s = self.loop.time()
        self.response_heads.turn(time.time())
        for connection in [each for each in self.connections if each.deadline_s <= now_s]:
            connection.deadline_passed(now_s)
        if self.limiter.is_crowded:
            for connection in list(self.connections):
                connection.close_if_idle(now_s, CROWDED_IDLE_S)
