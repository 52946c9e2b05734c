"""DirectResults: results of discovery that go straight to the broker of whoever asked.

Paper 001, section 6.3.2: that saves messages between brokers, and needs a connection for each pair.
One is kept open for a while after it was used. What is not acknowledged is sent once more by a new
connection: the other side may have crashed since the first was opened. What does not get through
then is missed by the requester's broker, which reports its answer as incomplete.

Requests say where their results shall be sent, and anybody may have written that. So this broker
connects only to addresses that its operator has named; other results go the way of the request.
"""

from __future__ import annotations

from dataclasses import replace

from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Tasks
from tocsin.errors import BadLinkMessage, PeerFailed, TocsinError
from tocsin.services.discovery.core_driver import CoreDriver
from tocsin.services.link.connection import Connection
from tocsin.services.link.direct_connection import DirectConnection, Lost, Package
from tocsin.services.link.options import LinkOptions
from tocsin.services.link.transport import Connector, Transport
from tocsin.wire.link.codec import LinkMessage, encode, other_version
from tocsin.wire.link.discovery_messages import DiscoveryMessage
from tocsin.wire.link.messages import PROTOCOL_VERSION, Direct, MessageBase

OPEN_MAX = 256
NOTE_S = 60.0  # between two lines in the log about connections that failed
WAITING_MAX = 1_000  # messages for one broker, until there is a connection
WAITING_BYTES_MAX = 8 << 20  # for one broker, until they are acknowledged,
WAITING_BYTES_TOTAL_MAX = 64 << 20  # and for all

_To = tuple[str, str]  # a broker, and its address


class DirectResults:
    """Both directions, of one broker."""

    def __init__(
        self,
        port: BrokerPort,
        connector: Connector,
        broker: str,
        driver: CoreDriver,
        options: LinkOptions,
    ) -> None:
        self._runtime = port.runtime
        self._connector = connector
        self._broker = broker
        self._driver = driver
        named = (each.strip() for setting in options.peers for each in setting.split(","))
        self._allowed = {*named, *options.direct_addresses}  # what it may connect to
        self._acknowledge_s = 2 * options.heartbeat_s  # one that is busy answers late
        self._tasks = Tasks(port.runtime)
        self._outgoing: dict[_To, DirectConnection] = {}
        self.dropped = 0
        self._failed = 0  # connections, since the start
        self._noted_s: float | None = None

    # To others

    def may_connect_to(self, address: str) -> bool:
        return address in self._allowed

    def send(self, broker: str, address: str, message: DiscoveryMessage) -> None:
        assert address in self._allowed
        self._send((broker, address), Package(encode(message)))

    def _send(self, to: _To, package: Package) -> None:
        connection = self._outgoing.get(to)
        if connection is None:
            if len(self._outgoing) >= OPEN_MAX:
                self.dropped += 1
                return
            connection = self._open(to)
        if self._has_room(connection, len(package.frame)):
            connection.put(package)
        else:
            self.dropped += 1
            self._note_failed(to[0], _too_much(to[0]))

    def _has_room(self, connection: DirectConnection, size: int) -> bool:
        waiting_bytes = connection.waiting_bytes + size
        if connection.waiting_for_connection >= WAITING_MAX or waiting_bytes > WAITING_BYTES_MAX:
            return False
        total = sum(each.waiting_bytes for each in self._outgoing.values())
        return total + size <= WAITING_BYTES_TOTAL_MAX

    def _open(self, to: _To) -> DirectConnection:
        def over(lost: Lost) -> None:
            del self._outgoing[to]
            self._send_again(to, lost)

        connection = DirectConnection(self._runtime, self._acknowledge_s, over)
        self._outgoing[to] = connection
        self._tasks.spawn(self._connect(to, connection))
        return connection

    async def _connect(self, to: _To, connection: DirectConnection) -> None:
        broker, address = to

        def opened(transport: Transport) -> DirectConnection:
            connection.begin(transport, Direct(PROTOCOL_VERSION, self._broker, broker))
            return connection

        try:
            await self._connector.connect(address, opened)
        except TocsinError as error:
            connection.fail(error)

    def _send_again(self, to: _To, lost: Lost) -> None:
        """What was lost for the first time. Its receiver takes each result once."""
        again = [each for each in lost.packages if not (each.is_again or lost.is_final)]
        if len(again) < len(lost.packages):
            self.dropped += len(lost.packages) - len(again)
            self._note_failed(to[0], lost.error)
        for package in again:
            self._send(to, replace(package, is_again=True))

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

    # From others

    def take(self, connection: Connection, message: LinkMessage) -> bool:
        """True if the connection is for results: since before, or as this first message says."""
        if connection.is_direct:
            self._receive(message)
        elif isinstance(message, Direct):
            self._accept(connection, message)
        return connection.is_direct

    def _accept(self, connection: Connection, message: Direct) -> None:
        if message.protocol != PROTOCOL_VERSION:
            raise other_version(message.broker, message.protocol)
        if message.to != self._broker:
            raise BadLinkMessage(
                f"results for broker {message.to}", remedy=f"This is broker {self._broker}."
            )
        connection.broker = message.broker
        connection.is_direct = True

    def _receive(self, message: LinkMessage) -> None:
        if isinstance(message, MessageBase):
            raise BadLinkMessage(
                f"{type(message).__name__} on a connection for results",
                remedy="Both sides have to be Tocsin brokers of versions that fit each other.",
            )
        self._driver.receive_direct(message)

    def close(self) -> None:
        self._tasks.cancel()
        for connection in self._outgoing.values():
            connection.close()
        self._outgoing.clear()


def _too_much(broker: str) -> PeerFailed:
    return PeerFailed(
        f"as many results wait for {broker} as may wait",
        remedy="It reads too slowly; its clients get answers that say they are incomplete.",
    )
