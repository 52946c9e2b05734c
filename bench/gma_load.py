"""Processes around a broker of performance events: raw producers, counting consumers, bare relays.

Everything on the wire is made ready beforehand and has one size, so that replies and events are
counted by their bytes and the broker is what is measured. Each process writes how far it is into
an array that all share; whoever measures reads all of them at the same moment.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from ctypes import Array, c_longlong
from multiprocessing.connection import Connection as Pipe
from typing import NoReturn, cast

import uvloop

from tocsin.wire.framing import HEAD, HEAD_BYTES, framed
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.names import EventName
from tocsin.wire.gma.read import read
from tocsin.wire.gma.write import write

NAME = EventName("UptimeCPULoad")
STAMP = "2000-11-09T21:51:45Z"  # as in the paper
TIMED_STAMP = "2000-11-09T21:51:00.000000000Z"  # its seconds are the sender's clock
MINUTE_NS = 60_000_000_000
NUMBER = "e000000000"  # of an acknowledged event; all are as long as this
STOP, FIRST_FREE = 0, 1  # places in the array: whether to stop, then one for each process
PACE_S = 0.002
LAST_REPLY_S = 30.0
_TIMED_PART = b"<TimeStamp>2000-11-09T21:51:"

FORK = multiprocessing.get_context("fork")
Counts = Array[c_longlong]
Address = tuple[str, int]
Periods = Sequence[float | None]
Acknowledged = Callable[["Producer", int], None]  # told how many more are


def counts_for(processes: int) -> Counts:
    return FORK.RawArray(c_longlong, FIRST_FREE + processes)


# What is said


def offer(nonce: str) -> bytes:
    """A producer's request: events will come, and each shall be acknowledged."""
    options = m.Options(role="producer", acknowledge=nonce)
    return framed(write(m.SubscribeRequest("1", "1", m.Parameters(NAME), options=options)))


def subscribe_request(period_s: float | None) -> bytes:
    """A consumer's request, for all events or for one per period and source."""
    elements = () if period_s is None else (m.Element("Period", period_s, "sec"),)
    options = m.Options(role="consumer")
    request = m.SubscribeRequest("1", "1", m.Parameters(NAME, elements), options=options)
    return framed(write(request))


class Frames:
    """Event messages of one producer, ready but for the number and, if wanted, the time."""

    def __init__(self, subscription_id: str, host: str, *, timed: bool = False) -> None:
        loads = (("Load1", 1.5), ("Load5", 1.6), ("Load15", 1.3))
        elements = *(m.Element(*each) for each in loads), m.Element("HostName", host)
        event = m.PerformanceEvent(NAME, TIMED_STAMP if timed else STAMP, elements)
        frame = framed(write(m.EventMessage(subscription_id, event, request_id=NUMBER)))
        self.size = len(frame)
        self._before, _, self._after = frame.partition(NUMBER.encode())
        self._until, _, self._end = self._after.partition(b"00.000000000Z")

    def block(self, first: int, count: int) -> bytes:
        before, after = self._before, self._after
        return b"".join([b"%be%09d%b" % (before, n, after) for n in range(first, first + count)])

    def one(self, number: int, now_ns: int) -> bytes:
        seconds, ns = divmod(now_ns % MINUTE_NS, 1_000_000_000)
        parts = (self._before, number, self._until, seconds, ns, self._end)
        return b"%be%09d%b%02d.%09dZ%b" % parts


REPLY = framed(write(m.EventReply(NUMBER)))


# Producers


class Producer(asyncio.Protocol):
    """One connection: offers events, sends them as it is told, counts what is acknowledged."""

    def __init__(self, nonce: str, host: str, acknowledged: Acknowledged, *, timed: bool) -> None:
        self._nonce = nonce
        self._host = host
        self._acknowledged = acknowledged
        self._timed = timed
        self._greeting = b""
        self._bytes = 0
        self.sent = 0
        self.acked = 0
        self.frames: Frames | None = None
        self.ready = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(offer(self._nonce))

    def connection_lost(self, exc: Exception | None) -> None:
        if self.acked < self.sent or self.frames is None:
            _die(f"a producer lost its connection with {self.sent - self.acked} under way: {exc}")

    def data_received(self, data: bytes) -> None:
        if self.frames is None:
            self._greet(data)
            return
        if b"Failure" in data:
            _die(f"an event was refused: {data[:600]!r}")
        self._bytes += len(data)
        acked = self._bytes // len(REPLY)
        new, self.acked = acked - self.acked, acked
        self._acknowledged(self, new)

    def send(self, count: int) -> None:
        assert self.frames is not None, "it is ready"
        self.transport.write(self.frames.block(self.sent, count))
        self.sent += count

    def send_now(self, now_ns: int) -> None:
        assert self.frames is not None, "it is ready"
        self.transport.write(self.frames.one(self.sent, now_ns))
        self.sent += 1

    def _greet(self, data: bytes) -> None:
        self._greeting += data
        reply = _whole(self._greeting)
        if reply is None:
            return
        answer = read(reply)
        match answer:
            case m.SubscribeReply(subscription_id=str(own), options=m.Options(acknowledge=str(_))):
                self.frames = Frames(own, self._host, timed=self._timed)
                self.ready.set_result(None)
            case _:
                _die(f"the offer was not taken: {answer}")


def flood(address: Address, slot: int, counts: Counts, pipe: Pipe, window: int) -> None:
    """One producer that keeps so many events under way until it is told to stop."""

    async def work() -> None:
        finished = asyncio.get_running_loop().create_future()

        def acknowledged(producer: Producer, new: int) -> None:
            counts[slot] = producer.acked
            if not counts[STOP]:
                if new:
                    producer.send(new)
            elif producer.acked == producer.sent and not finished.done():
                finished.set_result(None)

        producer = await _connected(address, f"flood{slot}", host(slot), acknowledged)
        _wait_for_start(pipe)
        producer.send(window)
        await finished
        pipe.send(producer.sent)

    run(work())


def pace(
    address: Address, slot: int, counts: Counts, pipe: Pipe, producers: int, period_s: float
) -> None:
    """So many producers that each send an event per period, not all at once, until told to stop.
    Tells how many were sent, and the times from sending to acknowledgement in ns."""
    under_way: dict[Producer, deque[int]] = {}
    took_ns: list[int] = []

    def acknowledged(producer: Producer, new: int) -> None:
        counts[slot] += new
        now_ns, waiting = time.monotonic_ns(), under_way[producer]
        took_ns.extend([now_ns - waiting.popleft() for _ in range(new)])

    async def work() -> None:
        for number in range(producers):
            nonce, name = f"pace{slot}-{number}", host(slot * 1_000 + number)
            producer = await _connected(address, nonce, name, acknowledged, timed=True)
            under_way[producer] = deque()
        _wait_for_start(pipe)
        await _send_in_turn(under_way, period_s, counts)
        deadline_s = time.monotonic() + LAST_REPLY_S
        while any(under_way.values()):
            if time.monotonic() > deadline_s:
                _die(f"{sum(map(len, under_way.values()))} events were not acknowledged")
            await asyncio.sleep(0.01)
        pipe.send((sum(producer.sent for producer in under_way), took_ns))

    run(work())


async def _send_in_turn(
    under_way: dict[Producer, deque[int]], period_s: float, counts: Counts
) -> None:
    order = list(under_way.items())
    gap_s = period_s / len(order)
    start_s = time.monotonic()
    turn = 0
    while not counts[STOP]:
        while start_s + turn * gap_s <= time.monotonic():
            producer, times = order[turn % len(order)]
            now_ns = time.monotonic_ns()
            times.append(now_ns)
            producer.send_now(now_ns)
            turn += 1
        await asyncio.sleep(PACE_S)


async def _connected(
    address: Address,
    nonce: str,
    host: str,
    acknowledged: Acknowledged,
    *,
    timed: bool = False,
) -> Producer:
    producer = Producer(nonce, host, acknowledged, timed=timed)
    await asyncio.get_running_loop().create_connection(lambda: producer, *address)
    await producer.ready
    return producer


def host(number: int) -> str:
    return f"node{number:05}.foo.gov"


# Consumers


class Consumer(asyncio.Protocol):
    """Counts events by their bytes; all have the size of the first."""

    def __init__(self, period_s: float | None, slot: int, counts: Counts) -> None:
        self._period_s = period_s
        self._slot = slot
        self._counts = counts
        self._greeting = b""
        self._greeted = False
        self._first = b""
        self._bytes = 0
        self.size = 0
        self.ready = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(subscribe_request(self._period_s))

    def connection_lost(self, exc: Exception | None) -> None:
        _die(f"a consumer lost its connection: {exc}")

    def data_received(self, data: bytes) -> None:
        if not self._greeted:
            data = self._greet(data)
        if not self.size:
            data = self._learn(data)
        if self.size and data:
            self._bytes += len(data)
            self._counts[self._slot] = self._bytes // self.size
            self.took(data)

    def took(self, data: bytes) -> None:
        """Called with all that is counted, wherever it was cut."""

    @property
    def is_whole(self) -> bool:
        """False if something of another size came between, or a message has not all come."""
        return not self.size or self._bytes % self.size == 0

    def _greet(self, data: bytes) -> bytes:
        self._greeting += data
        reply = _whole(self._greeting)
        if reply is None:
            return b""
        answer = read(reply)
        if not isinstance(answer, m.SubscribeReply) or answer.returned != m.SUCCESS:
            _die(f"the subscription was refused: {answer}")
        self._greeted = True
        self.ready.set_result(None)
        return self._greeting[HEAD_BYTES + len(reply) :]

    def _learn(self, data: bytes) -> bytes:
        self._first += data
        message = _whole(self._first)
        if message is None:
            return b""
        found = read(message)
        if not isinstance(found, m.EventMessage) or found.event is None or found.event.name != NAME:
            _die(f"that is no {NAME}: {message!r}")
        self.size = HEAD_BYTES + len(message)
        return self._first


class TimingConsumer(Consumer):
    """Keeps how long each event was under way, by the seconds in its time stamp."""

    def __init__(self, period_s: float | None, slot: int, counts: Counts) -> None:
        super().__init__(period_s, slot, counts)
        self._waiting = b""
        self.took_ns: list[int] = []

    def took(self, data: bytes) -> None:
        now_ns = time.monotonic_ns()
        data = self._waiting + data
        while len(data) >= self.size:
            at = data.index(_TIMED_PART) + len(_TIMED_PART)
            second, _, fraction = data[at : at + 12].partition(b".")
            sent_ns = int(second) * 1_000_000_000 + int(fraction)
            self.took_ns.append((now_ns - sent_ns) % MINUTE_NS)
            data = data[self.size :]
        self._waiting = data


def consume(
    address: Address, slot: int, counts: Counts, pipe: Pipe, periods_s: Periods, *, timed: bool
) -> None:
    """Consumers in one process, one for each period; their places in the array follow each other.
    Asked for it, tells whether all came whole, and how long the events were under way in ns."""
    kind = TimingConsumer if timed else Consumer

    async def work() -> None:
        consumers = [kind(period_s, slot + n, counts) for n, period_s in enumerate(periods_s)]
        for consumer in consumers:
            await asyncio.get_running_loop().create_connection(lambda c=consumer: c, *address)  # type: ignore[misc]
            await consumer.ready
        pipe.send("ready")
        while not pipe.poll():
            await asyncio.sleep(0.01)
        took_ns = [ns for each in consumers for ns in getattr(each, "took_ns", ())]
        pipe.send((all(each.is_whole for each in consumers), took_ns))
        os._exit(0)

    run(work())


def _wait_for_start(pipe: Pipe) -> None:
    pipe.send("ready")
    pipe.recv()


def _whole(data: bytes) -> bytes | None:
    """The first message, if all of it is there."""
    if len(data) < HEAD_BYTES or len(data) < HEAD_BYTES + HEAD.unpack_from(data)[0]:
        return None
    return data[HEAD_BYTES : HEAD_BYTES + HEAD.unpack_from(data)[0]]


def run(work: Coroutine[object, object, None]) -> None:
    gc.disable()  # nothing here has cycles worth the pauses
    uvloop.run(work)


def _die(problem: str) -> NoReturn:
    print(problem, file=sys.stderr, flush=True)
    os._exit(1)
