"""HttpSubscription: a broker's blackboard as a stream of server-sent events, kept up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Self

import msgspec

from tocsin.client.asking import query
from tocsin.client.blackboard.link import Delivered
from tocsin.client.pipeline import COME_BACK
from tocsin.client.transport.address import Address
from tocsin.client.transport.connection import Connection, cannot_reach
from tocsin.client.transport.sse import POSITION, StreamReader
from tocsin.errors import BrokerRefused, CannotReachBroker, TocsinError
from tocsin.wire.blackboard.messages import Message

IDLE_S = 45.0  # three of the broker's heartbeats
RETRY_S = 0.5


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


class HttpSubscription:
    """Goes on after the last message it handed out when the connection broke."""

    def __init__(self, address: Address, concepts: tuple[str, ...], after: int | None) -> None:
        self._connection = Connection(address)
        self._concepts = concepts
        self._after = after
        self._parts: Iterator[bytes] | None = None
        self._reader = StreamReader()
        self._wait_s = 0.0
        self._heard_at = 0.0
        self._closed = False

    def take(self, wait_s: float) -> list[Delivered]:
        """Raises what the broker refuses; one that is away is asked again, in time or next time."""
        deadline = time.monotonic() + wait_s
        while not self._closed:
            left_s = deadline - time.monotonic()
            try:
                came = self._read(max(left_s, 0.001))
            except TocsinError as error:
                self._hang_up()
                if isinstance(error, BrokerRefused) and error.status not in COME_BACK:
                    raise
                if not isinstance(error, BrokerRefused | CannotReachBroker):
                    raise
                time.sleep(max(0.0, min(RETRY_S, deadline - time.monotonic())))
                came = []
            if came or time.monotonic() >= deadline:
                return came
        return []

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
            self._hang_up()
            return []
        if part:
            self._heard_at = time.monotonic()
        elif time.monotonic() - self._heard_at > IDLE_S:
            raise cannot_reach(self._connection.address, "it does not answer")
        came: list[Delivered] = []
        for message in self._reader.feed(part):
            if message.seq:
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
