"""Connection: carries bytes between a client and a session of the broker, in their order, until it
is closed, cut, or its process ends."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from tocsin.event.instant import NS_PER_MS
from tocsin.sim.machine import Machine
from tocsin.sim.world import Action

FAULT = 0.04
BLOCKED_MS_MAX = 80
NOTICED_MS_MAX = 20  # until the broker sees that a client is gone


class BrokerSide(Protocol):
    """The session at the broker."""

    def writable(self) -> None: ...

    def lost(self) -> None: ...

    def stop(self) -> None: ...


class ClientSide(Protocol):
    """Whoever connected."""

    def disconnected(self) -> None: ...


class Connection:
    """One connection to the process that runs now."""

    def __init__(self, machine: Machine, client: ClientSide) -> None:
        assert machine.process is not None
        self.is_full = False
        self.session: BrokerSide | None = None
        self._process = machine.process
        self._world = machine.world
        self._network = machine.network
        self._client = client
        self._has_client = True
        self._has_broker = True
        self._is_paused = False
        self._held: deque[Action] = deque()  # arrived, and not read
        self._to_client_ns = self._to_broker_ns = 0
        self._process.connections[self] = None

    @property
    def is_up(self) -> bool:
        return self._has_broker

    # Called by the client

    def to_broker(self, action: Action) -> None:
        """The broker gets something."""

        def arrive() -> None:
            self._held.append(action)
            self._read()

        self._to_broker_ns = max(self._to_broker_ns, self._due_ns())
        self._world.at(self._to_broker_ns, arrive)

    def _read(self) -> None:
        while self._held and self._has_broker and not self._is_paused:
            self._held.popleft()()

    def hang_up(self) -> None:
        self._lose_client()
        self._world.soon(0, NOTICED_MS_MAX, self.abort)

    # Called by the session at the broker

    def to_client(self, action: Action) -> None:
        """The client gets something; or the connection is cut, or blocks."""
        if not self._has_broker:
            return
        self._in_order(action)
        if self._world.fault(FAULT):
            self._world.seen["connection cut"] += 1
            self._world.soon(0, 5, self.hang_up)
        if not self.is_full and self._world.fault(FAULT * 3):
            self._world.seen["connection blocked"] += 1
            self.is_full = True
            self._process.later(1, BLOCKED_MS_MAX, self._unblock)

    def _in_order(self, action: Action) -> None:
        self._to_client_ns = max(self._to_client_ns, self._due_ns())
        self._world.at(self._to_client_ns, lambda: action() if self._has_client else None)

    def _unblock(self) -> None:
        self.is_full = False
        if self._has_broker and self.session is not None:
            self.session.writable()

    def close(self) -> None:
        """Once everything has arrived."""
        if self._has_broker:
            self._leave_broker()
            self._in_order(self._lose_client)

    def abort(self) -> None:
        """The broker's side ends, and the session is notified."""
        if self._has_broker and self.session is not None:
            self._leave_broker()
            self.session.lost()
            self._in_order(self._lose_client)

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self._process.later(0, 0, self._read)

    # Called by the process

    def stop(self) -> None:
        if self.session is not None:
            self.session.stop()

    def process_ended(self) -> None:
        if self._has_broker:
            self._leave_broker()
            self._world.soon(0, 5, self._lose_client)

    def _leave_broker(self) -> None:
        self._has_broker = False
        self._held.clear()
        self._process.connections.pop(self, None)

    def _lose_client(self) -> None:
        if self._has_client:
            self._has_client = False
            self._client.disconnected()

    def _due_ns(self) -> int:
        return self._world.now_ns + int(self._network.delay_ms() * NS_PER_MS)


class ConnectionTransport:
    """The broker's end of a connection, as its sessions of streams and sockets use it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.close = connection.close
        self.hang_up = connection.hang_up
        self.abort = connection.abort
        self.pause_reading = connection.pause_reading
        self.resume_reading = connection.resume_reading

    @property
    def is_full(self) -> bool:
        return self._connection.is_full

    def hold(self, size: int) -> bool:
        return True

    def count_refused(self) -> None:
        """No metric is looked at here."""
