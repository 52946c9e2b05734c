"""Who talks in a benchmark of performance events: a broker or a bare relay, and the clients.

The relay is the machine's limit: it cuts frames, passes them on and answers with bytes made ready.
Each party is a process of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, ClassVar, cast

from lxml import etree

import gma_load as gma
import load
from served import Served, served
from tocsin.store.reader import Reader
from tocsin.wire.framing import HEAD, HEAD_BYTES, framed
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.write import write

BROKER, RELAY, PARSER = "broker", "relay", "parsing relay"
WRITE_BUFFER_BYTES = 1 << 20  # of a relay to one consumer, before it reads no more
HEAR_S = 60.0
DRAIN_S = 60.0
READ_AT_ONCE = 5_000


# The machine's limit


class Relay(asyncio.Protocol):
    """Passes whole frames on to every consumer and answers each with a reply made ready."""

    consumers: ClassVar[set[asyncio.Transport]] = set()
    producers: ClassVar[set[asyncio.Transport]] = set()
    full: ClassVar[set[asyncio.Protocol]] = set()  # consumers that do not read as fast

    def __init__(self, *, parses: bool) -> None:
        self._parses = parses
        self._rest = b""
        self._produces = False
        self._greeted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        self.consumers.discard(self._transport)
        self.producers.discard(self._transport)
        self.resume_writing()

    def data_received(self, data: bytes) -> None:
        if not self._greeted:
            self._greet(data)
            return
        if self._rest:
            data = self._rest + data
        start, frames, end = 0, 0, len(data)
        while end - start >= HEAD_BYTES:
            after = start + HEAD_BYTES + HEAD.unpack_from(data, start)[0]
            if after > end:
                break
            if self._parses:
                etree.fromstring(data[start + HEAD_BYTES : after])
            start = after
            frames += 1
        self._rest = data[start:]
        if frames:
            whole = data[:start]
            for consumer in self.consumers:
                consumer.write(whole)
            self._transport.write(gma.REPLY * frames)

    def pause_writing(self) -> None:
        if not self._produces:
            self.full.add(self)
            for producer in self.producers:
                producer.pause_reading()

    def resume_writing(self) -> None:
        self.full.discard(self)
        if not self.full:
            for producer in self.producers:
                producer.resume_reading()

    def _greet(self, data: bytes) -> None:
        """A request comes alone, and in one piece: it is small, and waits for its reply."""
        self._greeted = True
        self._produces = b"acknowledge" in data
        (self.producers if self._produces else self.consumers).add(self._transport)
        options = m.Options(acknowledge="yes")
        reply = m.SubscribeReply("1", subscription_id="1", options=options)
        self._transport.write(framed(write(reply)))


def relay(pipe: Pipe, *, parses: bool) -> None:
    """Tells its port, then relays until it is ended."""

    async def work() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: Relay(parses=parses), "127.0.0.1", 0, backlog=1_024
        )
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    gma.run(work())


# Processes


@dataclass
class Party:
    """A process, and the pipe to it."""

    process: BaseProcess
    pipe: Pipe

    def hear(self) -> Any:
        if not self.pipe.poll(HEAR_S):
            raise SystemExit(f"process {self.process.name} says nothing")
        try:
            return self.pipe.recv()
        except EOFError:
            raise SystemExit(f"process {self.process.name} failed") from None


def start(
    work: Callable[..., None], *before: object, after: tuple[object, ...] = (), **named: object
) -> Party:
    """Run `work(*before, pipe, *after)` in a process of its own."""
    ours, theirs = gma.FORK.Pipe()
    process = gma.FORK.Process(
        target=work, args=(*before, theirs, *after), kwargs=named, name=work.__name__, daemon=True
    )
    process.start()
    theirs.close()
    return Party(process, ours)


def end(parties: Iterable[Party]) -> None:
    for party in parties:
        party.process.kill()
        party.process.join()
        party.pipe.close()


# Whom the clients talk to


@dataclass(frozen=True)
class Target:
    """What the clients talk to."""

    address: gma.Address
    pid: int
    broker: Served | None = None

    def cpu_s(self) -> float:
        return load.cpu_s(self.pid)

    def memory_mb(self) -> dict[str, float]:
        """Resident now, and the most there was."""
        wanted = {"VmRSS": "now", "VmHWM": "peak"}
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        pairs = [line.split(":", 1) for line in lines]
        return {wanted[name]: int(text.split()[0]) / 1024 for name, text in pairs if name in wanted}

    def check_stored(self, sent: int) -> None:
        """Every event of this run is in the log, and none twice."""
        if self.broker is None:
            return
        self.broker.stop()
        stored = ids_on_disk(self.broker.directory)
        if len(stored) != sent or len(set(stored)) != sent:
            raise SystemExit(f"{sent} sent, {len(stored)} stored, {len(set(stored))} of them new")


@contextlib.contextmanager
def target(kind: str) -> Iterator[Target]:
    if kind == BROKER:
        with served() as broker:
            host, _, port = broker.frames.rpartition(":")
            try:
                yield Target((host, int(port)), broker.pid, broker)
            except SystemExit:
                print(f"the broker ({broker.process.poll()}): {broker.said()}", file=sys.stderr)
                raise
        return
    party = start(relay, parses=kind == PARSER)
    try:
        port = party.hear()
        assert party.process.pid is not None
        yield Target(("127.0.0.1", port), party.process.pid)
    finally:
        end([party])


def ids_on_disk(directory: Path) -> list[str]:
    reader = Reader.open(directory)
    found: list[str] = []
    reached = 0
    while True:
        page = reader.read(reached, READ_AT_ONCE)
        if page.corrupt:
            raise SystemExit(f"corrupt records: {page.corrupt}")
        if not page.events:
            reader.close()
            return found
        found += [stored.event.id for stored in page.events]
        reached = page.next


# The clients


@dataclass
class Company:
    """The clients of one run, connected and ready."""

    at: Target
    counts: gma.Counts
    consumers: list[Party]
    producers: list[Party]
    first_consumer: int

    def begin(self) -> None:
        for producer in self.producers:
            producer.pipe.send("go")

    def published(self) -> int:
        return sum(self.counts[gma.FIRST_FREE : self.first_consumer])

    def delivered(self) -> list[int]:
        return list(self.counts[self.first_consumer :])

    def stop(self) -> list[Any]:
        """What each producer tells at its end."""
        self.counts[gma.STOP] = 1
        return [producer.hear() for producer in self.producers]

    def drain(self, sent: int) -> float:
        """Wait until every consumer has everything; how long that took in seconds."""
        start = time.perf_counter()
        while min(self.delivered()) < sent and time.perf_counter() < start + DRAIN_S:
            time.sleep(0.005)
        took_s = time.perf_counter() - start
        if self.delivered() != [sent] * len(self.delivered()):
            raise SystemExit(f"{sent} sent, delivered {self.delivered()}")
        return took_s

    def dismiss(self) -> list[int]:
        """Ask the consumers how it was: the times that events took, if they looked."""
        took_ns: list[int] = []
        for consumer in self.consumers:
            consumer.pipe.send("tell")
            whole, times = consumer.hear()
            if not whole:
                raise SystemExit("a consumer got something that is no whole event")
            took_ns += times
        return took_ns


@contextlib.contextmanager
def company(
    at: Target,
    *,
    work: Any,
    processes: int,
    settings: tuple[object, ...],
    consumers: Sequence[gma.Periods],
    timed: bool = False,
) -> Iterator[Company]:
    """So many producer processes that do `work`, and consumers, a process for each item."""
    first_consumer = gma.FIRST_FREE + processes
    counts = gma.counts_for(processes + sum(map(len, consumers)))
    parties: list[Party] = []
    try:
        slot = first_consumer
        for periods_s in consumers:
            after = (periods_s,)
            parties.append(start(gma.consume, at.address, slot, counts, after=after, timed=timed))
            slot += len(periods_s)
        for number in range(processes):
            place = gma.FIRST_FREE + number
            parties.append(start(work, at.address, place, counts, after=settings))
        for party in parties:
            party.hear()
        split = len(consumers)
        yield Company(at, counts, parties[:split], parties[split:], first_consumer)
    finally:
        end(parties)
