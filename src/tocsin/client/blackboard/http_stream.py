"""HttpSubscription: a broker's blackboard as a stream of server-sent events, kept up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from tocsin.client.asking import query
from tocsin.client.blackboard.kept_up import KeptUp
from tocsin.client.blackboard.link import Delivered
from tocsin.client.transport.address import Address
from tocsin.client.transport.connection import Connection, cannot_reach
from tocsin.client.transport.sse import POSITION, StreamReader
from tocsin.wire.blackboard.messages import Message

IDLE_S = 45.0  # three of the broker's heartbeats


class _Told(msgspec.Struct):
    """A message as it is delivered, whatever else is with it."""

    pairs: dict[str, str]
    id: str = ""
    source: str = ""
    time: str | None = None
    seq: int = 0


_decode = msgspec.json.Decoder(_Told).decode


def delivered(data: bytes | str, seq: int = 0) -> Delivered | None:
    """One delivery, from the JSON in which it comes; None if it is something else."""
    try:
        told = _decode(data)
    except msgspec.DecodeError:
        return None
    return Delivered(told.seq or seq, Message(told.pairs, told.id, told.source, told.time))


class HttpSubscription(KeptUp):
    """Reads a stream that has no end."""

    def __init__(self, address: Address, concepts: tuple[str, ...], after: int | None) -> None:
        super().__init__(address, concepts, after)
        self._connection = Connection(address)
        self._parts: Iterator[bytes] | None = None
        self._reader = StreamReader()
        self._wait_s = 0.0
        self._heard_at = 0.0

    def _read(self, wait_s: float) -> list[Delivered]:
        self._wait_s = wait_s
        if self._parts is None:
            target = "/blackboard/stream" + query(
                concepts=",".join(self._concepts), after=self._after
            )
            accept = [("Accept", "text/event-stream")]
            self._parts = self._connection.stream(
                target, headers=accept, idle_s=IDLE_S, waiting=lambda: self._wait_s
            )
            self._heard_at = time.monotonic()
        part = next(self._parts, None)
        if part is None:
            raise cannot_reach(self._address, "it ended the stream")
        if part:
            self._heard_at = time.monotonic()
        elif time.monotonic() - self._heard_at > IDLE_S:
            raise cannot_reach(self._address, "it does not answer")
        came: list[Delivered] = []
        for message in self._reader.feed(part):
            # The first tells where the stream begins: it is on the broker's list by then.
            self._in_force = True
            if message.seq or message.kind == POSITION:
                self._after = max(self._after or 0, message.seq)
            if message.kind != POSITION and (told := delivered(message.data, message.seq)):
                came.append(told)
        return came

    def _hang_up(self) -> None:
        self._parts = None
        self._reader = StreamReader()
        self._connection.close()

    def close(self) -> None:
        self._closed = True
        with suppress(OSError):
            self._connection.interrupt()
