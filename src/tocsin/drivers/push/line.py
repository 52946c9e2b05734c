"""Line: the way to one sink. It has at most one connection and one request under way."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Collection
from typing import Protocol

from tocsin.broker.delivery.outcome import Failed, Outcome
from tocsin.broker.delivery.trust import Sink
from tocsin.drivers.push.answer import DELIVERED, refusal
from tocsin.drivers.push.connection import Connection, Familiar
from tocsin.drivers.push.envelope_connection import EnvelopeConnection
from tocsin.drivers.push.gma_connection import GmaConnection
from tocsin.drivers.push.gma_farewell import Farewell
from tocsin.drivers.push.guard import Guard, family
from tocsin.drivers.push.letterhead import Letterhead
from tocsin.errors import SinkRefused

CONNECT_S_MAX = 10.0
NO_CONNECTION = "no connection to the sink in time"
NO_TURN = "too many other sinks are being connected"
NOTHING = (b"", b"")
LETTERHEADS_MAX = 64  # subscriptions of one sink whose first lines are kept

Way = Connection | EnvelopeConnection | GmaConnection
"""What a line sends by: HTTP, envelopes on plain TCP, or performance events in frames."""

Done = Callable[[int, Outcome], None]
Note = Callable[..., None]
"""Writes to the broker's own log: level, message, then fields by name."""


class Exchange(Protocol):
    """What the lines of one pusher share."""

    loop: asyncio.AbstractEventLoop
    guard: Guard
    note: Note
    clock: Callable[[], float]
    familiar: Familiar
    farewells: set[Farewell]

    @property
    def turns(self) -> Collection[object]: ...

    def tls(self) -> ssl.SSLContext: ...

    async def opening(self) -> None: ...

    def closed(self) -> None: ...


class Line:
    """Sends requests to one sink, each answered by one call of its `done`."""

    __slots__ = (
        "_connection",
        "_dialling",
        "_done",
        "_exchange",
        "_opening",
        "_request",
        "_retried",
        "address",
        "deadline_s",
        "head",
        "letterheads",
        "number",
        "sink",
        "used_at_s",
    )

    def __init__(self, exchange: Exchange, number: int, address: str, sink: Sink) -> None:
        self.number = number
        self.address = address
        self.sink = sink
        self.letterheads: dict[str, Letterhead] = {}
        self.deadline_s = 0.0
        self.used_at_s = 0.0
        self.head = b""  # of the latest answer
        self._exchange = exchange
        self._connection: Way | None = None
        self._opening: asyncio.Task[None] | None = None
        self._dialling = False  # its turn to connect has come
        self._request = NOTHING
        self._retried = False
        self._done: Done | None = None

    @property
    def is_busy(self) -> bool:
        return self._done is not None

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    @property
    def is_idle(self) -> bool:
        return self._connection is not None and self._done is None

    def ask(self, request: tuple[bytes, bytes], done: Done, deadline_s: float) -> None:
        """Send a request; `done` is called once, later. Only when the one before is done."""
        assert self._done is None, "one request at a time"
        self._done = done
        self._request = request
        self._retried = False
        self.deadline_s = deadline_s
        connection = self._connection
        if connection is not None:
            connection.send(request[0], request[1])
        else:
            self._open()

    def expire(self) -> None:
        """The time for an answer is over."""
        if self._connection is not None:
            self._connection.give_up_waiting()
        else:
            self._stop_opening()
            self._finish(Failed(NO_CONNECTION if self._dialling else NO_TURN))

    def hang_up(self) -> None:
        """Close everything. A request under way is not reported."""
        self._done = None
        self._stop_opening()
        if self._connection is not None:
            self._connection.close()

    # What the connection tells.

    def answered(self, status: int, head: bytes, body: bytes) -> None:
        self.head = head
        outcome: Outcome | None = DELIVERED.get(status)
        if outcome is None:
            outcome = refusal(status, head, body, self._exchange.clock())
        self._finish(outcome)
        self._make_room()

    def _make_room(self) -> None:
        if self._exchange.turns and self.is_idle:
            self.hang_up()  # others wait, and this one has had its turn

    def broken(self, reason: str, *, stale: bool) -> None:
        if stale and not self._retried:
            self._retried = True
            self._open()
            return
        # The sink took the connection, so it is there; what it does with the request counts.
        self._finish(Failed(reason, reachable=True))

    def lost(self) -> None:
        if self._connection is not None:  # else it was lost before it was ours
            self._connection = None
            self._exchange.closed()

    def _finish(self, outcome: Outcome) -> None:
        done, self._done = self._done, None
        if done is not None:
            self._request = NOTHING
            done(self.number, outcome)

    # Connecting.

    def _open(self) -> None:
        assert self._opening is None
        self._dialling = False
        self._opening = self._exchange.loop.create_task(self._connect())

    def _stop_opening(self) -> None:
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()

    async def _connect(self) -> None:
        await self._exchange.opening()
        self._dialling = True
        try:
            connection = await self._dial()
        except asyncio.CancelledError:
            self._exchange.closed()
            raise
        except SinkRefused as refusal:
            self._exchange.note("warning", refusal.problem, sink=self.address)
            self._not_connected(refusal.problem)
        except TimeoutError:
            self._not_connected(NO_CONNECTION)
        except ssl.SSLError as error:
            self._not_connected(_tls_problem(error))
        except OSError as error:
            self._not_connected(f"no connection to the sink: {error.strerror or error}")
        except Exception as error:
            # A bug, but a lane that never hears back would stand still for ever.
            self._exchange.note("error", "connecting to a sink failed", error=repr(error))
            self._not_connected(f"no connection to the sink: {error!r}")
        else:
            self._connected(connection)

    def _connected(self, connection: Way) -> None:
        self._opening = None
        if connection.closed:
            self._exchange.closed()
            self._finish(
                Failed("the sink closed the connection right after its answer", reachable=True)
            )
            return
        self._connection = connection
        connection.send(*self._request)

    def _not_connected(self, reason: str) -> None:
        self._opening = None
        self._exchange.closed()
        self._finish(Failed(reason))

    async def _dial(self) -> Way:
        """A connection to the first of the sink's addresses that answers."""
        loop = self._exchange.loop
        until = min(loop.time() + CONNECT_S_MAX, self.deadline_s)
        async with asyncio.timeout_at(until):
            addresses = await self._exchange.guard.addresses(self.sink)
        failure: OSError | None = None
        for index, address in enumerate(addresses):
            # Each gets its share of what is left, so that a dead first one leaves time for others.
            share_s = (until - loop.time()) / (len(addresses) - index)
            try:
                async with asyncio.timeout(share_s):
                    return await self._dial_one(address)
            except OSError as error:  # TimeoutError is one
                failure = error
        assert failure is not None, "the guard gives at least one address"
        try:
            raise failure
        finally:
            del failure  # it has this frame, and with it the line: that would be a cycle

    def _new_connection(self) -> Way:
        return Connection(self, self._exchange.familiar)

    async def _dial_one(self, address: str) -> Way:
        sink = self.sink
        _, connection = await self._exchange.loop.create_connection(
            self._new_connection,
            address,
            sink.port,
            family=family(address),
            flags=socket.AI_NUMERICHOST,
            ssl=self._exchange.tls() if sink.tls else None,
            # The certificate must be for the name that was subscribed, wherever it led us.
            server_hostname=sink.host.removesuffix(".") if sink.tls else None,
        )
        return connection


def _tls_problem(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the sink's TLS certificate is not trusted: {error.verify_message}"
    return f"TLS with the sink failed: {error.reason or error}"
