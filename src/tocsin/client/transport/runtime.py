"""What the client's protocol code runs on: byte streams, sleep, threads.

That code is written once, as coroutines that await nothing but a `Runtime`. On `BLOCKING`, below,
they run on blocking sockets, never suspend and need no event loop: `run` drives one to its end.
On asyncio they run by `async_runtime`. So `Publisher` and `tocsin pub` need neither a thread nor
asyncio, whose import takes longer than all the rest of the command.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tocsin.client.transport import startup_wait
from tocsin.client.transport.address import Address
from tocsin.errors import CannotReachBroker, TocsinError

if TYPE_CHECKING:
    import ssl

    from tocsin.client.transport.arrivals import ArrivalQueue

CONNECT_TIMEOUT_S = 10.0
READ_BYTES = 256 * 1024
NO_ANSWER = "it does not answer"
TIMEOUT_S_MIN = 0.001  # a socket takes 0 for "do not block"

T = TypeVar("T")


class Stream(Protocol):
    """One open connection. What goes wrong is an OSError; TimeoutError is one."""

    async def write(self, data: bytes, timeout_s: float) -> None:
        """Send all of it."""

    async def read(self, timeout_s: float) -> bytes:
        """What arrives next; b"" at the end."""

    def interrupt(self) -> None:
        """Wake whoever reads here, as if the peer had closed."""

    def close(self) -> None: ...


class Runtime(Protocol):
    """The effects of the client."""

    async def connect(self, address: Address, tls: ssl.SSLContext | None) -> Stream:
        """Open a connection, with TLS if there is a context for it."""

    async def sleep(self, seconds: float) -> None: ...

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call what may block."""

    async def take(self, queue: ArrivalQueue[T], timeout_s: float) -> T | None:
        """The next message of a queue; None if none came in time."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that awaits nothing but `BLOCKING`."""
    try:
        work.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    raise AssertionError("a coroutine on the blocking runtime was suspended")


class BlockingStream:
    """A blocking socket."""

    def __init__(self, opened: socket.socket) -> None:
        self.socket = opened

    async def write(self, data: bytes, timeout_s: float) -> None:
        self.socket.settimeout(max(timeout_s, TIMEOUT_S_MIN))
        self.socket.sendall(data)

    async def read(self, timeout_s: float) -> bytes:
        self.socket.settimeout(max(timeout_s, TIMEOUT_S_MIN))
        return self.socket.recv(READ_BYTES)

    def interrupt(self) -> None:
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self.socket.close()


class BlockingRuntime:
    """Waits in the thread that calls."""

    async def connect(self, address: Address, tls: ssl.SSLContext | None) -> BlockingStream:
        opened = socket.create_connection((address.host, address.port), CONNECT_TIMEOUT_S)
        try:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                opened = tls.wrap_socket(opened, server_hostname=address.host)
        except BaseException:
            opened.close()
            raise
        return BlockingStream(opened)

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 (there is no event loop)

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        return function(*arguments)

    async def take(self, queue: ArrivalQueue[T], timeout_s: float) -> T | None:
        return queue.take(timeout_s)


BLOCKING = BlockingRuntime()


def connect(address: Address) -> socket.socket:
    """A blocking socket to the broker, with TLS if its address asks for it."""
    stream = run(connect_stream(BLOCKING, address))
    assert isinstance(stream, BlockingStream)
    return stream.socket


async def connect_stream(runtime: Runtime, address: Address) -> Stream:
    """A connection to the broker; CannotReachBroker says why there is none."""
    context = None
    if address.tls:
        from tocsin.client.transport.tls import client_context

        credentials = address.credentials
        shown = None if credentials is None else credentials.certificate
        context = client_context(address.ca_file, shown)
    while True:
        try:
            return await runtime.connect(address, context)
        except ConnectionRefusedError as error:
            if startup_wait.is_over(address.host):
                waited = startup_wait.explanation(address.host)
                raise cannot_reach(address, f"{_reason(error)}{waited}") from None
        except OSError as error:
            raise _connect_error(address, error) from None
        await runtime.sleep(startup_wait.PAUSE_S)


def lost_connection(address: Address, error: OSError) -> TocsinError:
    """Why a connection broke; a peer that refuses our certificate says it that late."""
    if address.tls:
        from tocsin.client.transport.tls import is_refusal, refused_alert

        if is_refusal(error):
            return refused_alert(str(address), error)
    why = NO_ANSWER if isinstance(error, TimeoutError) else str(error) or NO_ANSWER
    return cannot_reach(address, why)


def _connect_error(address: Address, error: OSError) -> TocsinError:
    if address.tls:
        import ssl

        from tocsin.client.transport.tls import handshake_failed

        if isinstance(error, ssl.SSLError):
            return handshake_failed(address, error)
    return cannot_reach(address, _reason(error))


def _reason(error: OSError) -> str:
    """The system's few words, without its number."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()  # asyncio's own words repeat the address
    return error.strerror or str(error) or NO_ANSWER


def cannot_reach(address: Address, why: object) -> CannotReachBroker:
    """The error for a broker that is not there, or that speaks something else."""
    return CannotReachBroker(
        f"cannot reach a broker at {address}: {why}",
        remedy="Start one with `tocsin serve`, or give the address of the one you mean: "
        "--broker URL, TOCSIN_BROKER, or broker=URL in Python.",
    )
