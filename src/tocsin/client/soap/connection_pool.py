"""POST over HTTP/1.1 to any address: connections are kept, and what is safe is tried again.

A request of which nothing was sent is always safe to repeat, and so is one that was answered with
503. One whose answer was lost is repeated only if its caller says that twice does no harm.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import Final

from tocsin.client.soap.security import Security
from tocsin.client.transport.address import Address, locate
from tocsin.client.transport.http1 import MessageReader, request_bytes
from tocsin.client.transport.refusal import Response
from tocsin.client.transport.renewal import renew_if_due
from tocsin.client.transport.retry import RETRY_STATUSES, pauses_s
from tocsin.client.transport.runtime import BLOCKING, READ_BYTES, connect, run
from tocsin.errors import CannotReachBroker, TlsFailed, TocsinError

Headers = Sequence[tuple[str, str]]

IDLE_CONNECTIONS_MAX: Final = 4  # idle connections to one host
ANSWER_BYTES_MAX: Final = 64 << 20


class _NothingSent(Exception):
    """There is no connection, so the request is still all ours."""


class ConnectionPool:
    """Many threads may post at once; each has a connection to itself while it does.

    Credentials are shown to the service of `home` alone, and not where its references point.
    """

    def __init__(self, home: Address | None = None, security: Security | None = None) -> None:
        """`security` is for whom the credentials of `home` are, and for nobody else."""
        self._home = home
        self._security = security
        self._lock = Lock()
        self._idle: dict[Address, list[socket.socket]] = {}
        self._closed = False

    def post(
        self,
        url: str,
        body: bytes,
        headers: Headers,
        *,
        timeout_s: float,
        patience_s: float = 0.0,
        repeatable: bool = False,
    ) -> Response:
        """The answer, whatever its status; CannotReachBroker if there is none in the end."""
        address, target = locate(url)
        security = None
        if self._home is not None and address.origin == self._home.origin:
            address, security = self._home, self._security
            run(renew_if_due(BLOCKING, address))
        pauses = pauses_s(patience_s)
        while True:
            response: Response | None = None
            # Signed for each attempt: what came before is not taken again.
            content = body if security is None else security.secured(body, address)
            data = request_bytes(address, "POST", target, body=content, headers=headers)
            try:
                response = self._once(address, data, timeout_s)
                if response.status not in RETRY_STATUSES:
                    return response
            except _NothingSent as error:
                why, may_repeat = str(error), True
            except TlsFailed:
                raise
            except (OSError, TocsinError) as error:
                why, may_repeat = _reason(error), repeatable
            pause_s = next(pauses, None) if response is not None or may_repeat else None
            if pause_s is None:
                if response is not None:
                    return response
                raise _unreachable(url, why)
            time.sleep(pause_s)

    def close(self) -> None:
        """Close what is idle; what is under way closes when it is done."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, {}
        for each in [kept for some in idle.values() for kept in some]:
            each.close()

    def _once(self, address: Address, data: bytes, timeout_s: float) -> Response:
        opened = self._take(address)
        kept = False
        try:
            deadline = time.monotonic() + timeout_s
            opened.settimeout(timeout_s)
            opened.sendall(data)
            response, kept = _receive(opened, deadline)
        finally:
            if kept:
                self._keep(address, opened)
            else:
                opened.close()
        return response

    def _take(self, address: Address) -> socket.socket:
        while True:
            with self._lock:
                idle = self._idle.get(address)
                opened = idle.pop() if idle else None
            if opened is None:
                break
            if not _is_stale(opened):
                return opened
            opened.close()
        try:
            return connect(address)
        except TlsFailed:
            raise
        except CannotReachBroker as error:
            raise _NothingSent(_reason(error)) from None

    def _keep(self, address: Address, opened: socket.socket) -> None:
        with self._lock:
            idle = self._idle.setdefault(address, [])
            if not self._closed and len(idle) < IDLE_CONNECTIONS_MAX:
                idle.append(opened)
                return
        opened.close()


def _is_stale(opened: socket.socket) -> bool:
    """An idle connection that can be read was closed at its other end, or is out of step."""
    with suppress(OSError, ValueError):
        return bool(select.select([opened], [], [], 0)[0])
    return True


def _receive(opened: socket.socket, deadline: float) -> tuple[Response, bool]:
    """The answer, and whether the connection may be used again."""
    reader = MessageReader(response=True)
    body: list[bytes] = []
    size = 0
    while not reader.complete:
        opened.settimeout(max(deadline - time.monotonic(), 0.001))
        data = opened.recv(READ_BYTES)
        if not data:
            if reader.end():
                break
            raise ConnectionError("the connection was closed")
        body.append(reader.feed(data))
        size += len(body[-1])
        if size > ANSWER_BYTES_MAX:
            raise ConnectionError("the answer has no end")
    kept = (
        reader.headers.get("connection", "").lower() != "close"
        and reader.start_line.startswith("HTTP/1.1")
        and not reader.rest
        and ("content-length" in reader.headers or "transfer-encoding" in reader.headers)
    )
    return Response(reader.status, reader.headers, b"".join(body)), kept


def _reason(error: Exception) -> str:
    if isinstance(error, CannotReachBroker):
        return error.problem.partition(": ")[2] or error.problem
    if isinstance(error, TocsinError):
        return error.problem
    return "it does not answer" if isinstance(error, TimeoutError) else str(error)


def _unreachable(url: str, why: str) -> CannotReachBroker:
    return CannotReachBroker(
        f"cannot reach {url[:200]}: {why}",
        remedy="Check the address, and that the service runs; `tocsin serve` starts a broker.",
    )
