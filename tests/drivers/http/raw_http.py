"""HTTP as bytes on a socket, for tests of what well-behaved clients never send."""

from __future__ import annotations

import http.client
import json
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from served import Served

PATIENCE_S = 20.0


@dataclass
class Answer:
    """One answer, read whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Raw:
    """A connection on which a test says exactly what it wants."""

    def __init__(self, address: str, *, receive_buffer: int | None = None) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect((host, int(port)))
        self.file = self.socket.makefile("rb")

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.socket.close()

    def send(self, data: bytes) -> Raw:
        self.socket.sendall(data)
        return self

    def answer(self, method: str = "GET") -> Answer:
        """The next answer on this connection."""
        response = http.client.HTTPResponse(_Held(self.file), method=method)  # type: ignore[arg-type]
        response.begin()
        body = response.read()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, body)

    def hang_up(self) -> Raw:
        """Send no more, but listen on; the broker may have been quicker."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
        return self

    def rest(self) -> bytes:
        """Everything until the broker closes the connection."""
        data = b""
        with suppress(ConnectionError):
            while piece := self.file.read1(65536):
                data += piece
        return data

    def is_closed_within(self, seconds: float) -> bool:
        """True if the broker hangs up by then, whatever it says before that."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.socket.settimeout(max(0.01, end - time.monotonic()))
            try:
                if not self.socket.recv(65536):
                    return True
            except TimeoutError:
                return False
            except ConnectionError:
                return True
        return False


class _Held:
    """http.client closes the file of each response; this one goes on to the next."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def makefile(self, *_: object) -> Any:
        return _Unclosed(self._file)


class _Unclosed:
    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def close(self) -> None:
        pass


def structured(event_id: str, **members: object) -> bytes:
    event = {"specversion": "1.0", "id": event_id, "source": "/raw", "type": "t", **members}
    return json.dumps(event).encode()


def post(body: bytes, content_type: str = "application/cloudevents+json", extra: str = "") -> bytes:
    """A request that publishes."""
    head = (
        "POST /events HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
    )
    return head.encode() + body


def get(target: str, extra: str = "") -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{extra}\r\n".encode()


def once(address: str, request: bytes, method: str = "GET") -> Answer:
    """One request on a connection of its own."""
    with Raw(address) as raw:
        return raw.send(request).answer(method)


def complaints(running: Served) -> list[str]:
    """Lines of the log that tell of a failure of ours."""
    wrong = (" error ", "Traceback", "Exception", "Task was destroyed", "never retrieved")
    return [line for line in running.said().splitlines() if any(word in line for word in wrong)]
