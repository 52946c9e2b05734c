"""Sender: sends to one sink, over at most one connection, one request at a time."""

from __future__ import annotations

import asyncio
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Any, Protocol

from tocsin.broker.delivery.address import SinkAddress
from tocsin.broker.delivery.answer import DELIVERED
from tocsin.broker.delivery.outcome import Failed, Outcome
from tocsin.broker.delivery.sinks import Sink
from tocsin.broker.effects import Push
from tocsin.drivers.logger import WriteLog
from tocsin.drivers.push.guard import Guard, family
from tocsin.drivers.push.request_template import Unseal
from tocsin.errors import SinkRefused

CONNECT_S_MAX = 10.0
NO_CONNECTION = "no connection to the sink in time"
NO_TURN = "too many other sinks are being connected"
NOTHING = (b"", b"")

Done = Callable[[int, Outcome], None]
"""Writes to the broker's own log: level, message, then fields by name."""


Send = Callable[[Push, Done], None]


class SoapSender(Protocol):
    """Sends to Web-services consumers that want more than a POST whose status is the answer."""

    reliably: Send | None  # to consumers that acknowledge by number
    into_boxes: Send | None  # to message boxes of this broker

    def send(self, push: Push, done: Done) -> bool:
        """False if the push is for a consumer that wants just that."""

    def close(self) -> None: ...


class PushContext(Protocol):
    """What the senders of one pusher share."""

    loop: asyncio.AbstractEventLoop
    guard: Guard
    note: WriteLog
    clock: Callable[[], float]
    closing: set[Any]  # connections that are being closed in good order
    shared: dict[str, Any]  # caches of one kind of sender, by its name
    soap: SoapSender
    unseal: Unseal

    @property
    def turns(self) -> Collection[object]: ...

    def tls(self) -> ssl.SSLContext: ...

    async def opening(self) -> None: ...

    def closed(self) -> None: ...


class PushSink(Sink, Protocol):
    """A sink that can be sent to: what is registered as `tocsin.sinks`."""

    def open_sender(
        self, context: PushContext, lane: int, url: str, address: SinkAddress
    ) -> Sender: ...


class Sender(Protocol):
    """Sends pushes to one sink, each answered by one call of its `done`."""

    number: int
    address: str
    used_at_s: float
    deadline_s: float  # by when the push under way must be answered

    @property
    def is_busy(self) -> bool: ...

    @property
    def is_open(self) -> bool: ...

    @property
    def is_idle(self) -> bool: ...

    def push(self, push: Push, done: Done) -> None:
        """Send; `done(push.lane, outcome)` is called once, later. Only when the one before is
        done."""

    def close_subscription(self, subscription_id: str) -> None:
        """Nothing more of this subscription comes."""

    def expire(self) -> None:
        """The time for an answer is over."""

    def drain(self) -> None:
        """The broker stops: close in good order, where the protocol has one."""

    def close(self) -> None:
        """Close everything. A push under way is not reported."""


class SinkConnection(Protocol):
    """One connection to a sink."""

    @property
    def closed(self) -> bool: ...

    def send(self, head: bytes, rest: bytes) -> None: ...

    def give_up_waiting(self) -> None: ...

    def close(self) -> None: ...


class ConnectionSender(ABC):
    """A sender over TCP or TLS, which connects again when it must."""

    __slots__ = (
        "_connection",
        "_context",
        "_done",
        "_is_connecting",
        "_opening",
        "_request",
        "_retried",
        "address",
        "deadline_s",
        "number",
        "sink",
        "used_at_s",
    )

    def __init__(self, context: PushContext, number: int, address: str, sink: SinkAddress) -> None:
        self.number = number
        self.address = address
        self.sink = sink
        self.deadline_s = 0.0
        self.used_at_s = 0.0
        self._context = context
        self._connection: SinkConnection | None = None
        self._opening: asyncio.Task[None] | None = None
        self._is_connecting = False  # its turn to connect has come
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

    @abstractmethod
    def push(self, push: Push, done: Done) -> None: ...

    def close_subscription(self, subscription_id: str) -> None:  # noqa: B027
        """There is nothing to say about it."""

    def drain(self) -> None:  # noqa: B027
        """There is no order to close in."""

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
        if self._connection is not None:
            self._connection.give_up_waiting()
        else:
            self._stop_opening()
            self._finish(Failed(NO_CONNECTION if self._is_connecting else NO_TURN))

    def close(self) -> None:
        self._done = None
        self._stop_opening()
        if self._connection is not None:
            self._connection.close()

    # What the connection reports.

    def answered(self, status: int, head: bytes, body: bytes) -> None:
        self._finish(DELIVERED[status])
        self._make_room()

    def _make_room(self) -> None:
        if self._context.turns and self.is_idle:
            self.close()  # others wait, and this one has had its turn

    def broken(self, reason: str, *, stale: bool) -> None:
        if stale and not self._retried:
            self._retried = True
            self._open()
            return
        # The sink took the connection, so it runs; what it does with the request counts.
        self._finish(Failed(reason, reachable=True))

    def lost(self) -> None:
        if self._connection is not None:  # else it was lost before it was ours
            self._connection = None
            self._context.closed()

    def _finish(self, outcome: Outcome) -> None:
        done, self._done = self._done, None
        if done is not None:
            self._request = NOTHING
            done(self.number, outcome)

    # Connecting.

    def _open(self) -> None:
        assert self._opening is None
        self._is_connecting = False
        self._opening = self._context.loop.create_task(self._connect())

    def _stop_opening(self) -> None:
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()

    async def _connect(self) -> None:
        await self._context.opening()
        self._is_connecting = True
        try:
            connection = await self._dial()
        except asyncio.CancelledError:
            self._context.closed()
            raise
        except SinkRefused as refusal:
            self._context.note("warning", refusal.problem, sink=self.address)
            self._not_connected(refusal.problem)
        except TimeoutError:
            self._not_connected(NO_CONNECTION)
        except ssl.SSLError as error:
            self._not_connected(_tls_problem(error))
        except OSError as error:
            self._not_connected(f"no connection to the sink: {error.strerror or error}")
        except Exception as error:
            # A bug, but a lane that never hears back would stand still for ever.
            self._context.note("error", "connecting to a sink failed", error=repr(error))
            self._not_connected(f"no connection to the sink: {error!r}")
        else:
            self._connected(connection)

    def _connected(self, connection: SinkConnection) -> None:
        self._opening = None
        if connection.closed:
            self._context.closed()
            self._finish(
                Failed("the sink closed the connection right after its answer", reachable=True)
            )
            return
        self._connection = connection
        connection.send(*self._request)

    def _not_connected(self, reason: str) -> None:
        self._opening = None
        self._context.closed()
        self._finish(Failed(reason))

    async def _dial(self) -> SinkConnection:
        """A connection to the first of the sink's addresses that answers."""
        loop = self._context.loop
        until = min(loop.time() + CONNECT_S_MAX, self.deadline_s)
        async with asyncio.timeout_at(until):
            addresses = await self._context.guard.addresses(self.sink)
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
            del failure  # it has this frame, and with it the sender: that would be a cycle

    @abstractmethod
    def _new_connection(self) -> SinkConnection: ...

    async def _dial_one(self, address: str) -> SinkConnection:
        sink = self.sink
        _, connection = await self._context.loop.create_connection(
            self._new_connection,  # type: ignore[type-var]
            address,
            sink.port,
            family=family(address),
            flags=socket.AI_NUMERICHOST,
            ssl=self._context.tls() if sink.tls else None,
            # The certificate must be for the name that was subscribed, wherever it led us.
            server_hostname=sink.host.removesuffix(".") if sink.tls else None,
        )
        return connection


def _tls_problem(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the sink's TLS certificate is not trusted: {error.verify_message}"
    return f"TLS with the sink failed: {error.reason or error}"
