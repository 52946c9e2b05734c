"""Performance clients: a producer whose events are acknowledged, and a consumer of them.

Both talk to the session that ships, in whole messages. A reply is looked at when it leaves: the
event that it is for must be on disk by then.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from functools import partial
from typing import Final

from tocsin.access.session import Session
from tocsin.errors import TocsinError
from tocsin.event.event import Event
from tocsin.services.performance.session import PerformanceSession
from tocsin.sim.checks.stream import StreamCheck
from tocsin.sim.clients.connection import Connection
from tocsin.sim.machine import Machine
from tocsin.sim.process import Process
from tocsin.sim.runtime import SimSignal
from tocsin.sim.world import Violation
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.conversation import CONSUMER, PRODUCER
from tocsin.wire.gma.names import EventName
from tocsin.wire.gma.read import read
from tocsin.wire.gma.write import write

RECONNECT_MS_MAX: Final = 60
PACE_MS: Final = 20.0
NAME: Final = EventName("SimulatedLoad")
PARAMETERS: Final = m.Parameters(NAME)
STAMP: Final = "2026-11-18T09:00:00.000Z"


class _Link:
    """One connection: the broker's session at its end, which takes messages in turn."""

    def __init__(self, client: PerformanceClient, machine: Machine, process: Process) -> None:
        assert process.services is not None
        self._client = client
        self._process = process
        self._waiting: list[bytes] = []
        self._is_taking = False
        self._writable: list[SimSignal] = []
        self.connection = Connection(machine, client)
        self.connection.session = self
        caller = machine.session(
            machine.principal_of(client.name), "frames", f"{client.name}.example:5000"
        )
        client.signed_in(caller)
        self._session = PerformanceSession(process.services.performance, self, caller)

    # The client's end

    def send_message(self, message: m.Message) -> None:
        self.connection.to_broker(partial(self._arrive, write(message)))

    def _arrive(self, data: bytes) -> None:
        self._waiting.append(data)
        if not self._is_taking:
            self._take()

    def _take(self) -> None:
        messages, self._waiting = self._waiting, []
        if messages:
            self._is_taking = True
            self._process.call(lambda _: self._session.take(messages), self._taken)

    def _taken(self, result: object) -> None:
        self._is_taking = False
        if isinstance(result, TocsinError):
            self.connection.abort()
        elif isinstance(result, Exception):
            raise result
        else:
            self._take()

    # The transport of the session

    def send(self, messages: list[bytes], *, paced: bool = False) -> bool:
        for data in messages:
            message = read(data)
            self._client.departing(message)
            self.connection.to_client(partial(self._client.arrived, self, message))
        return not self.connection.is_full

    def wait_writable(self) -> Awaitable[None]:
        signal = SimSignal()
        self._writable.append(signal)
        return signal

    # The connection at the broker

    def writable(self) -> None:
        waiting, self._writable = self._writable, []
        for signal in waiting:
            signal.answer(None)
        self._session.writable()

    def lost(self) -> None:
        self._session.lost()
        self.writable()

    def stop(self) -> None:
        self._session.end()
        self.connection.close()


class PerformanceClient(ABC):
    """One peer, which connects again when the connection is lost."""

    def __init__(self, machine: Machine, name: str) -> None:
        self.name = name
        self._machine = machine
        self._world = machine.world
        self._log = machine.checks.log
        self._link: _Link | None = None

    def start(self) -> None:
        process = self._machine.process
        if process is None or process.is_stopping:
            self._world.soon(1, RECONNECT_MS_MAX, self.start)
            return
        self._link = _Link(self, self._machine, process)
        self._link.send_message(self._request(process))

    def signed_in(self, session: Session) -> None:  # noqa: B027
        """The next connection is in this session."""

    def sign_in_again(self) -> None:
        """Where rights may be missing: by another connection, and perhaps another credential."""
        if self._machine.access is not None and self._link is not None:
            self._link.connection.hang_up()

    def disconnected(self) -> None:
        self._link = None
        self._world.soon(1, RECONNECT_MS_MAX, self.start)

    @abstractmethod
    def _request(self, process: Process) -> m.SubscribeRequest:
        """The first message."""

    @abstractmethod
    def departing(self, message: m.Message) -> None:
        """A message leaves the broker."""

    def arrived(self, link: _Link, message: m.Message) -> None:
        if link is not self._link:
            return
        if isinstance(message, m.SubscribeReply) and message.returned != m.SUCCESS:
            if self._machine.access is not None:
                self._world.seen["access: a performance client was refused"] += 1
                self.sign_in_again()
                return
            raise Violation(f"{self.name} may not subscribe: {message.detail}")
        if isinstance(message, m.UnsubscribeRequest):
            self._world.seen["performance session ended by the broker"] += 1
            self.sign_in_again()
        else:
            self._receive(link, message)

    @abstractmethod
    def _receive(self, link: _Link, message: m.Message) -> None: ...

    def what_is_owed(self) -> str | None:
        return None


class PerformanceProducer(PerformanceClient):
    """Sends an event when the one before is acknowledged, and again what was not."""

    def __init__(self, machine: Machine, number: int, events: int) -> None:
        super().__init__(machine, f"producer-{number}-{machine.host.split('.')[0]}")
        self._next = 1
        self._last = events
        self._subscription = ""

    @property
    def is_done(self) -> bool:
        return self._next > self._last

    def _request(self, process: Process) -> m.SubscribeRequest:
        options = m.Options(role=PRODUCER, acknowledge=self.name)
        return m.SubscribeRequest("0", "own", PARAMETERS, options=options)

    def departing(self, message: m.Message) -> None:
        if isinstance(message, m.EventReply) and message.returned == m.SUCCESS:
            self._world.seen["performance event acknowledged"] += 1
            self._world.trace(f"{self.name} {message.request_id} is acknowledged")
            self._log.check_stored_as(
                f"gma://{self.name}", f"{self.name}/{message.request_id}", "performance"
            )

    def _receive(self, link: _Link, message: m.Message) -> None:
        if isinstance(message, m.SubscribeReply):
            assert message.subscription_id is not None
            self._subscription = message.subscription_id
        elif isinstance(message, m.EventReply):
            if message.returned == m.SUCCESS:
                self._next = max(self._next, int(message.request_id) + 1)
            else:
                self._world.seen["performance event refused"] += 1
                self.sign_in_again()
        self._world.soon(0, PACE_MS, partial(self._send, link))

    def _send(self, link: _Link) -> None:
        if link is self._link and not self.is_done:
            element = m.Element("Load", float(self._next))
            event = m.PerformanceEvent(NAME, STAMP, (element,))
            number = str(self._next)
            link.send_message(m.EventMessage(self._subscription, event, request_id=number))


class PerformanceConsumer(PerformanceClient):
    """Follows all events of the producers from where it was."""

    is_done = True

    def __init__(self, machine: Machine, number: int) -> None:
        super().__init__(machine, f"consumer-{number}-{machine.host.split('.')[0]}")
        self._check = StreamCheck(
            f"performance {self.name}", self._log, _is_load, machine.checks.access
        )

    def signed_in(self, session: Session) -> None:
        self._check.reads_by(session)

    def _request(self, process: Process) -> m.SubscribeRequest:
        port = process.node.port
        after = self._check.connect(port.head, port.first)
        options = m.Options(role=CONSUMER, after=after, context=True)
        return m.SubscribeRequest("0", "own", PARAMETERS, options=options)

    def departing(self, message: m.Message) -> None:
        """Events are looked at when they arrive."""

    def _receive(self, link: _Link, message: m.Message) -> None:
        if not isinstance(message, m.EventMessage):
            return
        if message.error is not None:
            assert message.error_detail is not None
            self._check.dropped(int(message.error_detail.split()[0]))
        else:
            context = message.context
            assert context is not None
            self._world.trace(f"{self.name} got {context.seq}")
            self._world.seen["performance event received"] += 1
            self._check.got(context.seq, context.source, context.id)

    def what_is_owed(self) -> str | None:
        return self._check.what_is_owed()


def _is_load(event: Event) -> bool:
    return event.type == NAME.type
