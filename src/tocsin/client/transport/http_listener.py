"""HttpListener: a small HTTP server in threads that hands whole requests to a handler.

HTTP/1.0 and 1.1, keep-alive, chunked bodies and 100-continue, as the stacks that send notifications
use them.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from threading import BoundedSemaphore, Event, Lock, Thread, current_thread
from typing import Final, NamedTuple

from tocsin.client.closeable import Closeable
from tocsin.client.transport.http1 import MessageReader
from tocsin.errors import BadSetting, TocsinError

REQUEST_BYTES_MAX: Final = 16 << 20
CONNECTIONS_MAX: Final = 64
READ_BYTES: Final = 64 << 10
ACCEPT_POLL_S: Final = 0.2
IDLE_S: Final = 120.0
JOIN_S: Final = 5.0
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class HttpAnswer(NamedTuple):
    """The response to a request."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


Handler = Callable[[str, str, dict[str, str], bytes], HttpAnswer]
"""Given the method, the path, the headers and the body. What it raises is answered with 500."""


class HttpListener(Closeable):
    """Listens from the start until `close`."""

    def __init__(
        self, host: str, port: int, handler: Handler, *, connections_max: int = CONNECTIONS_MAX
    ) -> None:
        try:
            self._socket = socket.create_server(
                (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
            )
        except OSError as error:
            raise BadSetting(
                f"cannot listen on {host}:{port}: {error.strerror or error}",
                remedy="Name a free port of this machine, or port 0 for any.",
            ) from None
        self._socket.settimeout(ACCEPT_POLL_S)
        self.port: int = self._socket.getsockname()[1]
        self._handler = handler
        self._closing = Event()
        self._lock = Lock()
        self._room = BoundedSemaphore(connections_max)
        self._open: dict[socket.socket, Thread] = {}
        self._acceptor = Thread(target=self._accept, name="tocsin-listener", daemon=True)
        self._acceptor.start()

    def close(self) -> None:
        """Stop listening, close every connection and end the threads."""
        self._closing.set()
        with suppress(OSError):  # wakes the acceptor on Linux; elsewhere its poll does
            self._socket.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._socket.close()
        with self._lock:
            serving = dict(self._open)
        for opened in serving:
            # Reading ends; an answer that is on its way still goes out.
            with suppress(OSError):
                opened.shutdown(socket.SHUT_RD)
        for thread in serving.values():
            if thread is not current_thread():  # a callback may close its own client
                thread.join(JOIN_S)

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                opened, _ = self._socket.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            if not self._room.acquire(blocking=False):
                with suppress(OSError):
                    opened.sendall(_written(HttpAnswer(503, headers=RETRY_SOON), close=True))
                opened.close()
                continue
            thread = Thread(target=self._serve, args=(opened,), daemon=True)
            with self._lock:
                self._open[opened] = thread
            thread.start()

    def _serve(self, opened: socket.socket) -> None:
        try:
            opened.settimeout(IDLE_S)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            rest = b""
            while not self._closing.is_set():
                reader = MessageReader(response=False)
                body = self._read(opened, reader, rest)
                if body is None:
                    return
                last = _is_last(reader) or self._closing.is_set()
                opened.sendall(_written(self._answer(reader, body), close=last))
                if last:
                    return
                rest = reader.rest
        except OSError:
            return
        except TocsinError:
            with suppress(OSError):
                opened.sendall(_written(HttpAnswer(400), close=True))
        finally:
            with self._lock:
                self._open.pop(opened, None)
            opened.close()
            self._room.release()

    def _read(self, opened: socket.socket, reader: MessageReader, rest: bytes) -> bytes | None:
        """The body of the next request; None if the sender has gone or goes on too long."""
        body = [reader.feed(rest)] if rest else []
        size = sum(map(len, body))
        asked = False
        while not reader.complete:
            if reader.has_head and not asked and "expect" in reader.headers:
                opened.sendall(_CONTINUE)
                asked = True
            data = opened.recv(READ_BYTES)
            if not data:
                return None
            body.append(reader.feed(data))
            size += len(body[-1])
            if size > REQUEST_BYTES_MAX:
                opened.sendall(_written(HttpAnswer(413), close=True))
                return None
        return b"".join(body)

    def _answer(self, reader: MessageReader, body: bytes) -> HttpAnswer:
        method, target, _ = reader.start_line.split(" ", 2)
        try:
            return self._handler(method, target.partition("?")[0], reader.headers, body)
        except Exception:
            import logging

            logging.getLogger("tocsin.client").exception("the handler of a pushed request failed")
            return HttpAnswer(500)


RETRY_SOON: Final = (("Retry-After", "1"),)


def _is_last(reader: MessageReader) -> bool:
    is_old = reader.start_line.endswith("HTTP/1.0")
    return is_old or reader.headers.get("connection", "").lower() == "close"


def _written(answer: HttpAnswer, *, close: bool) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    if answer.status != HTTPStatus.NO_CONTENT:
        lines.append(f"Content-Length: {len(answer.body)}")
    if close:
        lines.append("Connection: close")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + answer.body
