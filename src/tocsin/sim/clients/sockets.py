"""WebSocket clients: they publish and follow the log by one connection, in the bytes of RFC 6455.

What leaves the broker is looked at when it leaves: what it acknowledges must be on disk by then.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from functools import partial
from math import isfinite
from typing import Any, Final

import msgspec
from wsproto import ConnectionType, WSConnection
from wsproto.events import CloseConnection, Ping, Request, TextMessage

from tocsin.access.session import anonymous
from tocsin.errors import TocsinError
from tocsin.event.event import Event
from tocsin.services.streams.transport import StreamTransport
from tocsin.services.streams.websocket import UpgradeRequest, WebSocketSession
from tocsin.sim.checks.stream import StreamCheck
from tocsin.sim.clients.connection import Connection, ConnectionTransport
from tocsin.sim.machine import Machine
from tocsin.sim.services import Services
from tocsin.sim.workload import POOL, draw_event, wants
from tocsin.sim.world import Violation
from tocsin.wire.cloudevents.write import structured

RECONNECT_MS_MAX: Final = 60
AWAY_MS: Final = (200, 600)  # meanwhile the log may be trimmed
PACE_MS: Final = 20.0
TRY_AGAIN: Final = {429, 500, 503, 507}
FILTERS: Final = {"": POOL[0], "&filter=level%20%3E%3D%205": POOL[3]}

Message = dict[str, Any]

_decode = msgspec.json.Decoder().decode


class SocketTransport(ConnectionTransport):
    """The broker's end of a WebSocket; the client's end of the protocol is here, too."""

    def __init__(self, connection: Connection, client: SocketClient) -> None:
        super().__init__(connection)
        self._client = client
        self.protocol = WSConnection(ConnectionType.CLIENT)
        self.unanswered: deque[Event] = deque()  # as the broker's end sees it
        self._is_closing = False

    def write(self, data: bytes) -> None:
        self.protocol.receive_data(data)
        for event in self.protocol.events():
            if isinstance(event, TextMessage):
                message = _decode(event.data)
                self._departing(message)
                self._connection.to_client(partial(self._client.arrived, message))
            elif isinstance(event, Ping):
                self._connection.to_client(partial(self.send, event.response()))
            elif isinstance(event, CloseConnection):
                self._is_closing = True
                self._client.closing()

    begin = write

    def _departing(self, message: Message) -> None:
        if "accepted" in message:
            self._client.acknowledged(self.unanswered.popleft(), message)
        elif self._client.is_refusal(message):
            self.unanswered.popleft()

    def send(self, event: Any) -> None:
        """The client sends this, unless the broker has begun to close."""
        if self._is_closing:
            return
        session = self._connection.session
        assert isinstance(session, WebSocketSession)
        self._connection.to_broker(partial(session.received, self.protocol.send(event)))


class SocketClient(ABC):
    """Publishes some events one after the other, or a few at a time, and reads what comes."""

    kind: str

    def __init__(self, machine: Machine, number: int, messages: int, in_flight_max: int) -> None:
        self._machine = machine
        self._world = machine.world
        self._log = machine.checks.log
        self._source = f"/{machine.host}/{self.kind.replace(' ', '-')}/{number}"
        self._peer = f"client-{number}.example:5000"
        self._principal = machine.principal_of(f"{self.kind} {number}")
        self._session = anonymous("websocket", self._peer)
        self._in_flight_max = in_flight_max
        self._transport: SocketTransport | None = None
        self._unanswered: deque[Event] = deque()  # in the order of sending
        self._left = [self._draw(number) for number in range(messages)]
        self._left.reverse()  # taken from the end
        if in_flight_max == 1:
            self._log.promise_order(self._source)

    @property
    def is_done(self) -> bool:
        return not self._left and not self._unanswered

    def _draw(self, number: int) -> Event:
        return draw_event(self._world.random, self._source, number)

    # Connecting

    def start(self) -> None:
        process, services = self._machine.process, self._machine.services
        if process is None or services is None or process.is_stopping:
            self._world.soon(1, RECONNECT_MS_MAX, self.start)
            return
        self._session = self._machine.session(self._principal, "websocket", self._peer)
        connection = Connection(self._machine, self)
        transport = self._transport = SocketTransport(connection, self)
        upgrade = _upgrade(transport.protocol, self._target(services))
        connection.session = session = self._open(services, transport, upgrade)
        try:
            session.start()
        except TocsinError:
            self._world.seen["socket refused"] += 1
            connection.hang_up()
            return
        process.later(*_in_ms(session.tick()), partial(self._tick, connection, session))
        self._world.soon(0, PACE_MS, partial(self._connected, transport))

    def _tick(self, connection: Connection, session: WebSocketSession) -> None:
        process = self._machine.process
        if connection.session is session and process is not None and connection.is_up:
            next_s = session.tick()
            if isfinite(next_s):
                process.later(*_in_ms(next_s), partial(self._tick, connection, session))

    def disconnected(self) -> None:
        """The client sees that the connection is over: what was not answered is sent again."""
        self._transport = None
        self._left += reversed(self._unanswered)
        self._unanswered.clear()
        if self._world.fault(0.3):
            self._world.seen["socket stays away"] += 1
            self._world.soon(*AWAY_MS, self.start)
        else:
            self._world.soon(1, RECONNECT_MS_MAX, self.start)

    def closing(self) -> None:
        self._world.seen[f"{self.kind} closed by the broker"] += 1

    @abstractmethod
    def _target(self, services: Services) -> str: ...

    @abstractmethod
    def _open(
        self, services: Services, transport: StreamTransport, upgrade: UpgradeRequest
    ) -> WebSocketSession: ...

    # Publishing

    def _connected(self, transport: SocketTransport) -> None:
        if transport is self._transport:
            for _ in range(self._in_flight_max - len(self._unanswered)):
                self._publish(transport)

    def _publish(self, transport: SocketTransport) -> None:
        if self._left and transport is self._transport:
            event = self._left.pop()
            self._unanswered.append(event)
            transport.unanswered.append(event)
            transport.send(TextMessage(data=self._written(event)))

    @abstractmethod
    def _written(self, event: Event) -> str:
        """The message that publishes the event."""

    def acknowledged(self, event: Event, message: Message) -> None:
        """An answer leaves the broker."""
        self._world.trace(f"{self._source} {event.id} is acknowledged by socket")
        self._world.seen[f"acknowledged by {self.kind}"] += 1
        self._log.check_published(event, message["first"], self.kind)

    def arrived(self, message: Message) -> None:
        """A message reaches the client."""
        transport = self._transport
        if transport is None:
            return
        if "accepted" in message:
            self._unanswered.popleft()
        elif self.is_refusal(message):
            event = self._unanswered.popleft()
            if not self._refused(message):
                self._left.append(event)
        else:
            self._event(message)
            return
        self._world.soon(0, PACE_MS, partial(self._publish, transport))

    def _refused(self, message: Message) -> bool:
        """True if the client lets it be."""
        if self._machine.may_refuse(self._problem(message)["status"]):
            self._world.seen[f"access: refused by {self.kind}"] += 1
            self.sign_in_again()
            return self._machine.gives_up()
        if self._problem(message)["status"] not in TRY_AGAIN:
            raise Violation(f"{self._source} was refused: {message}")
        self._world.seen[f"refused by {self.kind}"] += 1
        return False

    def sign_in_again(self) -> None:
        """By another connection: perhaps with another credential."""
        if self._transport is not None:
            self._transport.hang_up()

    def _problem(self, message: Message) -> Message:
        return message

    @abstractmethod
    def is_refusal(self, message: Message) -> bool: ...

    @abstractmethod
    def _event(self, message: Message) -> None:
        """What is no answer to a publication arrives."""

    @abstractmethod
    def what_is_owed(self) -> str | None: ...


class EventSocketClient(SocketClient):
    """A client of `/events/socket`."""

    kind = "event socket"

    def __init__(self, machine: Machine, number: int, messages: int) -> None:
        random = machine.world.random
        super().__init__(machine, number, messages, random.choice((1, 3)))
        self._filter, want = random.choice(list(FILTERS.items()))
        self._check = StreamCheck(
            f"event socket {number}",
            machine.checks.log,
            lambda event: wants(want, event),
            machine.checks.access,
        )

    def _target(self, services: Services) -> str:
        after = self._check.connect(services.port.head, services.port.first)
        self._check.reads_by(self._session)
        return f"/events/socket?after={after}{self._filter}"

    def _open(
        self, services: Services, transport: StreamTransport, upgrade: UpgradeRequest
    ) -> WebSocketSession:
        return services.event_socket(self._session, transport, upgrade)

    def _written(self, event: Event) -> str:
        return structured(event).decode()

    def is_refusal(self, message: Message) -> bool:
        return "code" in message and "specversion" not in message

    def _event(self, message: Message) -> None:
        if "dropped" in message:
            self._world.seen["socket says what it dropped"] += 1
            self._check.dropped(message["dropped"])
        else:
            seq = int(message["tocsinsequence"])
            self._world.trace(f"{self._source} got {seq}")
            self._check.got(seq, message["source"], message["id"])

    def what_is_owed(self) -> str | None:
        return self._check.what_is_owed()


def _upgrade(protocol: WSConnection, target: str) -> UpgradeRequest:
    raw = protocol.send(Request(host="broker.example", target=target))
    lines = [line.partition(b": ") for line in raw.split(b"\r\n")[1:-2]]
    return UpgradeRequest(target, [(name.lower(), value) for name, _, value in lines])


def _in_ms(seconds: float) -> tuple[float, float]:
    """A little later than that: rounded down, it would not be due yet."""
    return seconds * 1e3 + 1, seconds * 1e3 + 1
