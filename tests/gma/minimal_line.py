"""One connection of the producer/consumer protocol: frames, requests with their replies, a port.

What the paper leaves open about it is listed in minimal_wire.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, Queue

from minimal_messages import REPLY_TO, Message, NotInThePaper, Reply, Request
from minimal_wire import read, write

FRAME_BYTES_MAX = 16 << 20
REPLY_S_MAX = 10.0
CONNECT_S_MAX = 5.0
STOP_S_MAX = 5.0


class LineClosed(Exception):
    """The connection ended while something was still expected on it."""


def connect(address: str) -> socket.socket:
    """A connection to "host:port"."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=CONNECT_S_MAX)
    connection.settimeout(None)
    return connection


def read_exactly(connection: socket.socket, size: int) -> bytes:
    """That many bytes, or those that came before the connection ended."""
    received = bytearray()
    while len(received) < size:
        try:
            chunk = connection.recv(size - len(received))
        except OSError:
            chunk = b""
        if not chunk:
            break
        received += chunk
    return bytes(received)


def receive(connection: socket.socket) -> bytes | None:
    """One frame, or None if the connection ended between two."""
    head = read_exactly(connection, 4)
    if not head:
        return None
    if len(head) < 4:
        raise NotInThePaper(f"the connection ended within a count: {head!r}")
    (size,) = struct.unpack("!I", head)
    if size > FRAME_BYTES_MAX:
        raise NotInThePaper(f"a message of {size} bytes is announced")
    body = read_exactly(connection, size)
    if len(body) < size:
        raise NotInThePaper(f"the connection ended after {len(body)} of {size} bytes: {body!r}")
    return body


@dataclass
class Waiting:
    """A request that has no reply yet, and what is done with the reply before the next message."""

    reply_type: type
    then: Callable[[Reply], None]
    replies: Queue[Reply | None] = field(default_factory=Queue)


class Conversation:
    """One connection: requests with their replies, and everything else handed to `handle`.

    A thread reads. What it cannot understand ends the connection, and `close` raises it.
    """

    request_ids = itertools.count(1)

    def __init__(
        self,
        connection: socket.socket,
        handle: Callable[[Conversation, Message], None],
        *,
        passes_foreign: bool = False,
    ) -> None:
        self.connection = connection
        self.handle = handle
        self.passes_foreign = passes_foreign
        self.problem: NotInThePaper | None = None
        self.ended = threading.Event()
        self.sending = threading.Lock()
        self.waiting: dict[str, Waiting] = {}
        self.reader = threading.Thread(target=self.run, daemon=True)

    def start(self) -> Conversation:
        self.reader.start()
        return self

    def next_request_id(self) -> str:
        return str(next(self.request_ids))

    def send(self, message: Message) -> None:
        body = write(message)
        try:
            with self.sending:
                self.connection.sendall(struct.pack("!I", len(body)) + body)
        except OSError as problem:
            raise LineClosed(f"not sent, {problem}: {body!r}") from None

    def ask(self, request: Request, then: Callable[[Reply], None] = lambda reply: None) -> Reply:
        """The reply to a request, whatever it returned."""
        waiting = Waiting(REPLY_TO[type(request)], then)
        self.waiting[request.request_id] = waiting
        self.send(request)
        if self.ended.is_set():
            waiting.replies.put(None)  # behind the reply, if it came before the end
        try:
            reply = waiting.replies.get(timeout=REPLY_S_MAX)
        except Empty:
            raise LineClosed(f"no reply within {REPLY_S_MAX} s to {request}") from None
        if reply is None:
            raise self.problem or LineClosed(f"the connection ended before the reply to {request}")
        return reply

    def run(self) -> None:
        try:
            while (body := receive(self.connection)) is not None:
                self.take(read(body, passes_foreign=self.passes_foreign))
        except NotInThePaper as problem:
            self.problem = problem
        except LineClosed:
            pass  # The peer went while we answered it; what waits on this connection learns below.
        finally:
            self.ended.set()
            for waiting in list(self.waiting.values()):
                waiting.replies.put(None)
            hang_up(self.connection)

    def take(self, message: Message) -> None:
        if not isinstance(message, Reply):
            self.handle(self, message)
            return
        waiting = self.waiting.pop(message.request_id, None)
        if waiting is None or not isinstance(message, waiting.reply_type):
            raise NotInThePaper(f"a reply to no request of ours: {message}")
        waiting.then(message)
        waiting.replies.put(message)

    def close(self) -> None:
        """Hang up, and raise what was not understood, if anything was not."""
        hang_up(self.connection)
        self.reader.join(STOP_S_MAX)
        self.connection.close()
        if self.problem is not None:
            raise self.problem


def hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class Listener:
    """A listening port: each connection becomes a conversation, all closed together."""

    def __init__(
        self, handle: Callable[[Conversation, Message], None], *, passes_foreign: bool = False
    ) -> None:
        self.handle = handle
        self.passes_foreign = passes_foreign
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.conversations: list[Conversation] = []
        self.acceptor = threading.Thread(target=self.run, daemon=True)
        self.acceptor.start()

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            conversation = Conversation(connection, self.handle, passes_foreign=self.passes_foreign)
            self.conversations.append(conversation.start())

    def close(self) -> None:
        hang_up(self.listener)
        self.acceptor.join(STOP_S_MAX)
        self.listener.close()
        close_all(self.conversations)


def close_all(conversations: list[Conversation]) -> None:
    """Close every one, then raise the first problem that any of them had."""
    problems: list[NotInThePaper] = []
    for conversation in conversations:
        try:
            conversation.close()
        except NotInThePaper as problem:
            problems.append(problem)
    if problems:
        raise problems[0]
