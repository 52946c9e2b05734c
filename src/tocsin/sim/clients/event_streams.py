"""Readers of `/events/stream`: they follow the log by server-sent events, as a browser does.

A reader knows its place by the last `id` that came, and sends it back as Last-Event-ID when it
connects again: so it must lose nothing and get nothing twice, whatever became of the connection.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec

from tocsin.errors import TocsinError
from tocsin.services.streams.event_stream import EventStream
from tocsin.sim.checks.stream import StreamCheck
from tocsin.sim.clients.connection import Connection, ConnectionTransport
from tocsin.sim.machine import Machine
from tocsin.sim.workload import POOL, wants
from tocsin.sim.world import Violation

RECONNECT_MS_MAX: Final = 60
AWAY_MS: Final = (200, 600)  # meanwhile the log may be trimmed
FILTERS: Final = {b"": POOL[0], b"filter=level%20%3E%3D%205": POOL[3]}

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class StreamTransport(ConnectionTransport):
    """The broker's end of the connection."""

    def __init__(self, connection: Connection, reader: EventStreamReader) -> None:
        super().__init__(connection)
        self._reader = reader

    def write(self, data: bytes) -> None:
        self._connection.to_client(partial(self._reader.arrived, self, data))

    begin = write


class EventStreamReader:
    """One reader over all its connections."""

    def __init__(self, machine: Machine, number: int) -> None:
        self._machine = machine
        self._world = machine.world
        self._query, want = machine.world.random.choice(list(FILTERS.items()))
        self._peer = f"reader-{number}.example:5000"
        self._principal = machine.principal_of(f"stream {number}")
        self._name = f"event stream {number}"
        self._check = StreamCheck(
            self._name, machine.checks.log, lambda event: wants(want, event), machine.checks.access
        )
        self._last_event_id: str | None = None
        if machine.access is not None and machine.access.replays(self._name):
            self._last_event_id = "0"
        self._transport: StreamTransport | None = None
        self._received = b""

    # Connecting

    def start(self) -> None:
        process, services = self._machine.process, self._machine.services
        if process is None or services is None or process.is_stopping:
            self._world.soon(1, RECONNECT_MS_MAX, self.start)
            return
        connection = Connection(self._machine, self)
        transport = self._transport = StreamTransport(connection, self)
        self._received = b""
        last = self._last_event_id
        self._check.after = None if last is None else int(last)
        self._check.connect(services.port.head, services.port.first)
        caller = self._machine.session(self._principal, "http", self._peer)
        self._check.reads_by(caller)
        session = services.event_stream(caller, transport, self._query, last)
        connection.session = session
        try:
            session.start()
        except TocsinError:
            self._world.seen["event stream refused"] += 1
            connection.hang_up()
            return
        self._tick(connection, session)

    def _tick(self, connection: Connection, session: EventStream) -> None:
        process = self._machine.process
        if connection.session is session and process is not None and connection.is_up:
            after_ms = session.tick() * 1e3 + 1
            process.later(after_ms, after_ms, partial(self._tick, connection, session))

    def disconnected(self) -> None:
        self._transport = None
        if self._last_event_id is not None:
            self._world.seen["event stream resumed"] += 1
        if self._world.fault(0.3):
            self._world.soon(*AWAY_MS, self.start)
        else:
            self._world.soon(1, RECONNECT_MS_MAX, self.start)

    # Reading

    def arrived(self, transport: StreamTransport, data: bytes) -> None:
        if transport is not self._transport:
            return
        *blocks, self._received = (self._received + data).split(b"\n\n")
        for block in blocks:
            self._read(dict(line.partition(b": ")[::2] for line in block.split(b"\n")))

    def _read(self, fields: dict[bytes, bytes]) -> None:
        name, data = fields.get(b"event", b""), fields.get(b"data")
        if b"retry" in fields:
            self._begun(int(fields[b"id"]))
        elif name == b"dropped" and data is not None:
            self._world.seen["stream says what it lost"] += 1
            self._check.dropped(_decode(data)["dropped"])
        elif not name and data is not None:
            event = _decode(data)
            seq = int(fields[b"id"])
            self._world.trace(f"{self._name} got {seq}")
            self._check.got(seq, event["source"], event["id"])
        if b"id" in fields:
            self._last_event_id = fields[b"id"].decode()

    def _begun(self, place: int) -> None:
        if place != self._check.after:
            raise Violation(f"{self._name} begins after {place}, and not {self._check.after}")

    def what_is_owed(self) -> str | None:
        return self._check.what_is_owed()
