"""DirectResults: results of discovery that go straight to the broker of whoever asked.

Paper 001, section 6.3.2: that saves messages between brokers, and needs a connection for each pair.
One is kept open for a while after it was used. What does not get through is missed by the
requester's broker, which reports its answer as incomplete.

Requests say where their results shall be sent, and anybody may have written that. So this broker
connects only to addresses that its operator has named; other results go the way of the request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set
from dataclasses import dataclass, field

from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Tasks, Timer
from tocsin.errors import BadLinkMessage, PeerFailed, TocsinError
from tocsin.services.discovery.core_driver import CoreDriver
from tocsin.services.link.connection import Connection
from tocsin.services.link.transport import Connector, Transport
from tocsin.wire.link.codec import LinkMessage, encode, other_version
from tocsin.wire.link.discovery_messages import DiscoveryMessage
from tocsin.wire.link.messages import PROTOCOL_VERSION, Direct, MessageBase

IDLE_S = 10.0
OPEN_MAX = 256
NOTE_S = 60.0  # between two lines in the log about connections that failed
WAITING_MAX = 1_000  # messages for one broker, until there is a connection
WAITING_BYTES_MAX = 8 << 20  # for one broker, also while it reads slowly,
WAITING_BYTES_TOTAL_MAX = 64 << 20  # and for all


@dataclass(eq=False, slots=True)
class _Outgoing:
    """One connection to leave results by. Nothing is read from it."""

    transport: Transport | None = None
    unsent: deque[bytes] = field(default_factory=deque)  # until there is a connection
    unsent_bytes: int = 0
    timer: Timer | None = None
    is_over: bool = False
    is_busy: bool = False

    @property
    def waiting_bytes(self) -> int:
        return self.unsent_bytes + (0 if self.transport is None else self.transport.waiting)

    def received(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.abort()  # nothing is answered here

    def written(self) -> None:
        pass

    def ended(self, reason: str) -> None:
        self.is_over = True


class DirectResults:
    """Both directions, of one broker."""

    def __init__(
        self,
        port: BrokerPort,
        connector: Connector,
        broker: str,
        driver: CoreDriver,
        allowed: Set[str],
    ) -> None:
        """`allowed`: the addresses that this broker may connect to."""
        self._runtime = port.runtime
        self._connector = connector
        self._broker = broker
        self._driver = driver
        self._allowed = allowed
        self._tasks = Tasks(port.runtime)
        self._outgoing: dict[tuple[str, str], _Outgoing] = {}
        self.dropped = 0
        self._failed = 0  # connections, since the start
        self._noted_s: float | None = None

    # To others

    def may_connect_to(self, address: str) -> bool:
        return address in self._allowed

    def send(self, broker: str, address: str, message: DiscoveryMessage) -> None:
        assert address in self._allowed
        way = self._outgoing.get((broker, address))
        if way is None or way.is_over:
            if len(self._outgoing) >= OPEN_MAX:
                self.dropped += 1
                return
            way = self._outgoing[broker, address] = _Outgoing()
            self._tasks.spawn(self._connect(broker, address, way))
        frame = encode(message)
        if not self._has_room(way, len(frame)):
            self.dropped += 1
            self._note_failed(broker, _too_much(broker))
        elif way.transport is not None:
            way.transport.write(frame)
            self._keep_open(broker, address, way)
        else:
            way.unsent.append(frame)
            way.unsent_bytes += len(frame)

    def _has_room(self, way: _Outgoing, size: int) -> bool:
        if len(way.unsent) >= WAITING_MAX or way.waiting_bytes + size > WAITING_BYTES_MAX:
            return False
        others = sum(each.waiting_bytes for each in self._outgoing.values())
        return others + size <= WAITING_BYTES_TOTAL_MAX

    async def _connect(self, broker: str, address: str, way: _Outgoing) -> None:
        def opened(transport: Transport) -> _Outgoing:
            way.transport = transport
            transport.write(encode(Direct(PROTOCOL_VERSION, self._broker, broker)))
            for frame in way.unsent:
                transport.write(frame)
            way.unsent.clear()
            way.unsent_bytes = 0
            self._keep_open(broker, address, way)
            return way

        try:
            await self._connector.connect(address, opened)
        except TocsinError as error:
            self.dropped += len(way.unsent)
            self._outgoing.pop((broker, address), None)
            self._note_failed(broker, error)

    def _note_failed(self, broker: str, error: TocsinError) -> None:
        """At most once in a while: requests decide how often it is tried."""
        self._failed += 1
        now_s = self._runtime.elapsed_s()
        if self._noted_s is not None and now_s - self._noted_s < NOTE_S:
            return
        self._noted_s = now_s
        self._runtime.note(
            "warning",
            "results are not delivered",
            broker=broker,
            why=error.problem,
            failed=self._failed,
        )

    def _keep_open(self, broker: str, address: str, way: _Outgoing) -> None:
        if way.timer is not None:
            way.timer.cancel()
        way.timer = self._runtime.call_later(IDLE_S, lambda: self._hang_up(broker, address, way))

    def _hang_up(self, broker: str, address: str, way: _Outgoing) -> None:
        if self._outgoing.get((broker, address)) is way:
            del self._outgoing[broker, address]
        if way.transport is not None:
            way.transport.close()

    # From others

    def accept(self, connection: Connection, message: Direct) -> None:
        """This connection is for results."""
        if message.protocol != PROTOCOL_VERSION:
            raise other_version(message.broker, message.protocol)
        if message.to != self._broker:
            raise BadLinkMessage(
                f"results for broker {message.to}", remedy=f"This is broker {self._broker}."
            )
        connection.broker = message.broker
        connection.is_direct = True

    def receive(self, connection: Connection, message: LinkMessage) -> None:
        if isinstance(message, MessageBase):
            raise BadLinkMessage(
                f"{type(message).__name__} on a connection for results",
                remedy="Both sides have to be Tocsin brokers of versions that fit each other.",
            )
        self._driver.receive_direct(message)

    def close(self) -> None:
        self._tasks.cancel()
        for way in self._outgoing.values():
            if way.timer is not None:
                way.timer.cancel()
            if way.transport is not None:
                way.transport.close()
        self._outgoing.clear()


def _too_much(broker: str) -> PeerFailed:
    return PeerFailed(
        f"as many results wait for {broker} as may wait",
        remedy="It reads too slowly; its clients get answers that say they are incomplete.",
    )
