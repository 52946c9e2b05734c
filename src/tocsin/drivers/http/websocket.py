"""A WebSocket of this door: the handshake, pings, whole text messages in, and events out.

wsproto does the handshake and reads the client's frames. What goes out is framed once for all
readers of an event, which wsproto cannot do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, ClassVar, Final

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    TextMessage,
)
from wsproto.events import Request as Handshake
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from tocsin.drivers.http.connection import Connection
from tocsin.drivers.http.frames import text_frame
from tocsin.drivers.http.request import Request
from tocsin.drivers.http.session import socket_session
from tocsin.drivers.http.streaming import WRITE_BUFFER_BYTES
from tocsin.errors import BadRequest
from tocsin.event.stored import Stored
from tocsin.wire.websocket import FrameHeads

if TYPE_CHECKING:
    from tocsin.drivers.node import Node

PING_S: Final = 30.0
PONG_S_MAX: Final = 20.0  # then nobody is there
TURN_S: Final = 0.005  # of one socket, before others get a turn
PARTS_MAX: Final = 10_000  # of one message
_REASON_BYTES_MAX = 123  # of a close frame (RFC 6455, 5.5)


class Answer:
    """Something that was asked over a socket, until there is an answer to it."""

    __slots__ = ("_socket", "response")

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self.response: bytes | None = None

    def give(self, body: bytes) -> None:
        self.response = text_frame(body)
        self._socket.answered()


class Socket(ABC):
    """One WebSocket, in both directions."""

    takes_over = True
    may_last = True
    subprotocol: ClassVar[str]

    def __init__(self, connection: Connection, request: Request, node: Node) -> None:
        self.name = f"socket to {connection.peer}"
        self._connection = connection
        self._request = request
        self._node = node
        self._port = node.port
        self._session = socket_session(connection, request.headers)
        self._protocol = WSConnection(ConnectionType.SERVER)
        self._heads = FrameHeads(self._text_max())
        self._stream: int | None = None
        self._open = False
        self._parts: list[str] = []
        self._characters = 0
        self._answers: deque[Answer] = deque()
        self._held = False  # not read from, because too much of it is under way
        self._heard = self._protocol.events()
        self._more = False  # of what came, some is not looked at yet
        self._is_hearing = False
        self._ping_due_s = inf
        self._pong_due_s = inf

    # What each kind of socket does

    @abstractmethod
    def _begin(self) -> None:
        """The handshake is well; refuse by raising, or open a stream."""

    @abstractmethod
    def _text(self, text: str) -> None:
        """The client said something."""

    @abstractmethod
    def write(self, events: list[Stored]) -> bool:
        """Events of the stream; False if the transport is full."""

    # Told by the connection

    def start(self) -> None:
        connection = self._connection
        handshake = self._read_handshake()
        offered = self.subprotocol in handshake.subprotocols
        accepted = AcceptConnection(
            subprotocol=self.subprotocol if offered else None,
            extra_headers=[(b"x-content-type-options", b"nosniff")],
        )
        answer = self._protocol.send(accepted)
        self._begin()
        self._open = True
        assert connection.transport is not None
        connection.transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        connection.write(answer)
        self._ping_due_s = connection.door.now_s + PING_S

    def _read_handshake(self) -> Handshake:
        request = self._request
        headers = list(request.headers.items())
        try:
            self._protocol.initiate_upgrade_connection(headers, request.target.decode("latin-1"))
            event = next(iter(self._protocol.events()), None)
        except (RemoteProtocolError, LocalProtocolError) as error:
            raise _no_handshake(str(error)) from None
        if not isinstance(event, Handshake):
            raise _no_handshake("it is not an upgrade request")
        return event

    def received(self, data: bytes) -> None:
        if not self._open:
            return
        if self._heads.announces_too_much(data):
            self._close(CloseReason.MESSAGE_TOO_BIG, "the message is too large")
            return
        try:
            self._protocol.receive_data(data)
        except (RemoteProtocolError, LocalProtocolError) as error:
            self._close(CloseReason.PROTOCOL_ERROR, str(error))
            return
        self._more = True
        self._hear()

    def _hear(self) -> None:
        """Take what came, for a short while and as far as answers may wait; the rest in a later
        turn, so that one client's burst keeps nobody else waiting."""
        if self._is_hearing or not self._open:
            return
        self._is_hearing = True
        loop = self._connection.door.loop
        until_s = loop.time() + TURN_S
        try:
            while self._open and not self._is_full():
                event = next(self._heard, None)
                if event is None:
                    self._heard = self._protocol.events()
                    self._more = False
                    break
                self._handle(event)
                if loop.time() > until_s:
                    loop.call_soon(self._hear)
                    break
        except (RemoteProtocolError, LocalProtocolError) as error:
            self._close(CloseReason.PROTOCOL_ERROR, str(error))
        finally:
            self._is_hearing = False
        self._hold_if_full()

    def writable(self) -> None:
        self._hear()
        if self._held:
            self._hold_if_full()
            if self._pong_due_s != inf:  # it may have come while we did not read
                self._pong_due_s = self._connection.door.now_s + PONG_S_MAX
        if self._stream is not None:
            self._port.stream_ready(self._stream)

    def ended_by_client(self) -> None:
        self._connection.close()

    def lost(self) -> None:
        self._open = False
        if self._stream is not None:
            stream, self._stream = self._stream, None
            self._port.close_stream(stream)

    def tick(self, now_s: float) -> float:
        if now_s >= self._pong_due_s:
            self._connection.abort()
            return inf
        if now_s >= self._ping_due_s and self._open:
            self._connection.write(self._protocol.send(Ping()))
            self._ping_due_s = now_s + PING_S
            self._pong_due_s = min(self._pong_due_s, now_s + PONG_S_MAX)
        return min(self._ping_due_s, self._pong_due_s)

    def stop(self) -> None:
        self.end("the broker is stopping")

    # Told by the client

    def _handle(self, event: Event) -> None:
        if isinstance(event, TextMessage):
            self._take(event)
        elif isinstance(event, BytesMessage):
            self._close(CloseReason.UNSUPPORTED_DATA, "send JSON as text")
        elif isinstance(event, Ping):
            self._connection.write(self._protocol.send(event.response()))
        elif isinstance(event, Pong):
            self._pong_due_s = inf
        elif isinstance(event, CloseConnection):
            self._close(event.code, event.reason or "")

    def _take(self, event: TextMessage) -> None:
        self._characters += len(event.data)
        if self._characters > self._text_max():
            self._close(CloseReason.MESSAGE_TOO_BIG, "the message is too large")
            return
        self._parts.append(event.data)
        if not event.message_finished and not self._connection.hold(self._characters):
            self._close(CloseReason.TRY_AGAIN_LATER, "too much is being received; try again later")
            return
        if len(self._parts) > PARTS_MAX:
            self._close(CloseReason.MESSAGE_TOO_BIG, "the message comes in too many parts")
            return
        if event.message_finished:
            text = "".join(self._parts)
            self._parts.clear()
            self._characters = 0
            self._connection.hold(0)
            self._text(text)

    def _text_max(self) -> int:
        return self._connection.door.event_limits.event_bytes_max

    def _new_answer(self) -> Answer:
        answer = Answer(self)
        self._answers.append(answer)
        return answer

    def answered(self) -> None:
        """There is some answer. They leave in the order of the questions."""
        answers = self._answers
        while answers and (response := answers[0].response) is not None:
            answers.popleft()
            if self._open:
                self._connection.write(response)
        if self._more:
            self._hear()
        if self._held:
            self._hold_if_full()

    def _hold_if_full(self) -> None:
        """Read no more while as much as allowed waits for the disk, or our answers for the client:
        one that sends and never reads would have us keep every answer."""
        transport = self._connection.transport
        is_full = self._more or self._is_full()
        if transport is None or transport.is_closing() or self._held is is_full:
            return
        self._held = is_full
        if self._held:
            transport.pause_reading()
        else:
            transport.resume_reading()

    def _is_full(self) -> bool:
        connection = self._connection
        waiting = len(self._answers) >= connection.door.limits.pipelined_max
        return waiting or connection.write_paused

    # Told by the node

    def dropped(self, count: int) -> None:
        self._say(b'{"dropped":%d}' % count)

    def end(self, reason: str) -> None:
        self._close(CloseReason.GOING_AWAY, reason)

    def _say(self, body: bytes) -> None:
        if self._open:
            self._connection.write(text_frame(body))

    def _close(self, code: int, reason: str) -> None:
        if not self._open:
            return
        self.lost()
        short = reason.encode()[:_REASON_BYTES_MAX].decode(errors="ignore")
        with suppress(LocalProtocolError):  # if the close frame has been sent already
            self._connection.write(self._protocol.send(CloseConnection(code=code, reason=short)))
        self._connection.close()


def _no_handshake(problem: str) -> BadRequest:
    return BadRequest(
        f"this is not a WebSocket handshake: {problem}",
        remedy="Open it with a WebSocket client, or read the stream with any HTTP client.",
    )
