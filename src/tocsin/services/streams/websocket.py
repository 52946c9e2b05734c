"""A WebSocket session: the handshake, pings, whole text messages in, and events out.

wsproto does the handshake and reads the client's frames. What goes out is framed once for all
readers of an event, which wsproto cannot do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Final

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    Request,
    TextMessage,
)
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.errors import BadRequest
from tocsin.event.stored import Stored
from tocsin.services.streams.transport import SocketLimits, StreamTransport
from tocsin.wire.websocket import FrameHeads, text_frame

PING_S: Final = 30.0
PONG_S_MAX: Final = 20.0  # then nobody is there
TURN_S: Final = 0.005  # of one session, before others get a turn
PARTS_MAX: Final = 10_000  # of one message
_REASON_BYTES_MAX = 123  # of a close frame (RFC 6455, 5.5)
_TOO_LARGE = "the message is too large"


@dataclass(frozen=True, slots=True)
class UpgradeRequest:
    """The HTTP request that asks for a WebSocket."""

    target: str
    headers: list[tuple[bytes, bytes]]

    @property
    def query(self) -> bytes:
        return self.target.partition("?")[2].encode("latin-1")


class Reply:
    """The place of one answer among the others: they leave in the order of the messages."""

    __slots__ = ("_session", "frame")

    def __init__(self, session: WebSocketSession) -> None:
        self._session = session
        self.frame: bytes | None = None

    def send(self, body: bytes) -> None:
        self.frame = text_frame(body)
        self._session.replied()


class WebSocketSession(ABC):
    """One WebSocket, in both directions."""

    takes_over = True
    is_long_lived = True
    subprotocol: ClassVar[str]

    def __init__(
        self,
        port: BrokerPort,
        session: Session,
        limits: SocketLimits,
        transport: StreamTransport,
        request: UpgradeRequest,
    ) -> None:
        self.name = f"socket to {session.peer}"
        self._port = port
        self._session = session
        self._limits = limits
        self._transport = transport
        self._request = request
        self._protocol = WSConnection(ConnectionType.SERVER)
        self._heads = FrameHeads(limits.message_bytes_max)
        self._stream: int | None = None
        self._is_open = False
        self._parts: list[str] = []
        self._characters = 0
        self._replies: deque[Reply] = deque()
        self._is_paused = False  # not read from, because too much of it is in progress
        self._incoming = self._protocol.events()
        self._has_more = False  # of what was received, some is not processed yet
        self._is_processing = False
        self._ping_due_s = inf
        self._pong_due_s = inf

    # What each kind of session does

    @abstractmethod
    def _begin(self) -> None:
        """The handshake is valid; refuse by raising, or open a stream."""

    @abstractmethod
    def _message(self, text: str) -> None:
        """The client sent a whole message."""

    @abstractmethod
    def write(self, events: list[Stored]) -> bool:
        """Events of the stream; False if the connection is full."""

    # Called by the connection

    def start(self) -> None:
        request = self._read_request()
        offered = self.subprotocol in request.subprotocols
        accepted = AcceptConnection(
            subprotocol=self.subprotocol if offered else None,
            extra_headers=[(b"x-content-type-options", b"nosniff")],
        )
        response = self._protocol.send(accepted)
        self._begin()
        self._is_open = True
        self._transport.begin(response)
        self._ping_due_s = self._now_s() + PING_S

    def _read_request(self) -> Request:
        try:
            self._protocol.initiate_upgrade_connection(self._request.headers, self._request.target)
            event = next(iter(self._protocol.events()), None)
        except (RemoteProtocolError, LocalProtocolError) as error:
            raise _bad_handshake(str(error)) from None
        if not isinstance(event, Request):
            raise _bad_handshake("it is not an upgrade request")
        return event

    def received(self, data: bytes) -> None:
        if not self._is_open:
            return
        if self._heads.announces_too_much(data):
            self._close(CloseReason.MESSAGE_TOO_BIG, _TOO_LARGE)
            return
        try:
            self._protocol.receive_data(data)
        except (RemoteProtocolError, LocalProtocolError) as error:
            self._close(CloseReason.PROTOCOL_ERROR, str(error))
            return
        self._has_more = True
        self._process()

    def _process(self) -> None:
        """Handle what was received, for a short while and as far as replies may wait; the rest in
        a later turn, so that one client's burst keeps nobody else waiting."""
        if self._is_processing or not self._is_open:
            return
        self._is_processing = True
        until_s = self._now_s() + TURN_S
        try:
            while self._is_open and not self._is_full():
                event = next(self._incoming, None)
                if event is None:
                    self._incoming = self._protocol.events()
                    self._has_more = False
                    break
                self._handle(event)
                if self._now_s() > until_s:
                    self._port.runtime.call_later(0.0, self._process)
                    break
        except (RemoteProtocolError, LocalProtocolError) as error:
            self._close(CloseReason.PROTOCOL_ERROR, str(error))
        finally:
            self._is_processing = False
        self._pause_if_full()

    def writable(self) -> None:
        self._process()
        if self._is_paused:
            self._pause_if_full()
            if self._pong_due_s != inf:  # it may have come while we did not read
                self._pong_due_s = self._now_s() + PONG_S_MAX
        if self._stream is not None:
            self._port.stream_ready(self._stream)

    def ended_by_client(self) -> None:
        self._transport.close()

    def lost(self) -> None:
        self._is_open = False
        self._close_stream()

    def _close_stream(self) -> None:
        if self._stream is not None:
            stream, self._stream = self._stream, None
            self._port.close_stream(stream)

    def tick(self) -> float:
        now_s = self._now_s()
        if now_s >= self._pong_due_s:
            self._transport.abort()
            return inf
        if now_s >= self._ping_due_s and self._is_open:
            self._transport.write(self._protocol.send(Ping()))
            self._ping_due_s = now_s + PING_S
            self._pong_due_s = min(self._pong_due_s, now_s + PONG_S_MAX)
        return min(self._ping_due_s, self._pong_due_s) - now_s

    def stop(self) -> None:
        self.end("the broker is stopping")

    def _now_s(self) -> float:
        return self._port.runtime.elapsed_s()

    # What the client sends

    def _handle(self, event: Event) -> None:
        if isinstance(event, TextMessage):
            self._add_part(event)
        elif isinstance(event, BytesMessage):
            self._close(CloseReason.UNSUPPORTED_DATA, "send JSON as text")
        elif isinstance(event, Ping):
            self._transport.write(self._protocol.send(event.response()))
        elif isinstance(event, Pong):
            self._pong_due_s = inf
        elif isinstance(event, CloseConnection):
            self._close(event.code, event.reason or "")

    def _add_part(self, event: TextMessage) -> None:
        self._characters += len(event.data)
        if self._characters > self._limits.message_bytes_max:
            self._close(CloseReason.MESSAGE_TOO_BIG, _TOO_LARGE)
            return
        self._parts.append(event.data)
        if not event.message_finished and not self._transport.hold(self._characters):
            self._close(CloseReason.TRY_AGAIN_LATER, "too much is being received; try again later")
            return
        if len(self._parts) > PARTS_MAX:
            self._close(CloseReason.MESSAGE_TOO_BIG, "the message comes in too many parts")
            return
        if event.message_finished:
            text = "".join(self._parts)
            self._parts.clear()
            self._characters = 0
            self._transport.hold(0)
            self._message(text)

    def _new_reply(self) -> Reply:
        reply = Reply(self)
        self._replies.append(reply)
        return reply

    def replied(self) -> None:
        """Some reply is ready; those that have no other before them leave."""
        replies = self._replies
        while replies and (frame := replies[0].frame) is not None:
            replies.popleft()
            if self._is_open:
                self._transport.write(frame)
        if self._has_more:
            self._process()
        if self._is_paused:
            self._pause_if_full()

    def _pause_if_full(self) -> None:
        """Read no more while as much as allowed waits for the disk, or our replies for the client:
        one that sends and never reads would have us keep every reply."""
        is_full = self._has_more or self._is_full()
        if self._is_paused is is_full:
            return
        self._is_paused = is_full
        if is_full:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _is_full(self) -> bool:
        return len(self._replies) >= self._limits.unanswered_max or self._transport.is_full

    # Called by the broker

    def dropped(self, count: int) -> None:
        self._send_text(b'{"dropped":%d}' % count)

    def withheld(self, count: int) -> None:
        self._send_text(b'{"withheld":%d}' % count)

    def end(self, reason: str) -> None:
        self._close(CloseReason.GOING_AWAY, reason)

    def _send_text(self, body: bytes) -> None:
        if self._is_open:
            self._transport.write(text_frame(body))

    def _close(self, code: int, reason: str) -> None:
        if not self._is_open:
            return
        self.lost()
        short = reason.encode()[:_REASON_BYTES_MAX].decode(errors="ignore")
        with suppress(LocalProtocolError):  # if the close frame has been sent already
            self._transport.write(self._protocol.send(CloseConnection(code=code, reason=short)))
        self._transport.close()


def _bad_handshake(problem: str) -> BadRequest:
    return BadRequest(
        f"this is not a WebSocket handshake: {problem}",
        remedy="Open it with a WebSocket client, or read the stream with any HTTP client.",
    )
