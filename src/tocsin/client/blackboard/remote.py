"""What links over a connection have in common: request bodies, deliveries, and subscriptions that
are active when they are made, as one in process is, and reconnect when the connection breaks."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Self

import msgspec

from tocsin.client.blackboard.link import Delivered
from tocsin.client.closeable import Closeable
from tocsin.client.transport.address import Address
from tocsin.client.transport.retry import is_transient
from tocsin.client.transport.runtime import cannot_reach
from tocsin.credentials.secret import Secret
from tocsin.errors import TocsinError
from tocsin.wire.blackboard.messages import Message

START_S_MAX = 10.0  # a broker that takes longer to answer counts as unreachable
RETRY_S = 0.5
REQUEST_BYTES_MAX = 4 << 20  # a quarter of what brokers usually take

_encode = msgspec.json.Encoder().encode


def in_requests(messages: Sequence[Message]) -> Iterator[bytes]:
    """All of them, in order; one that is too large by itself stands alone."""
    texts: list[bytes] = []
    size = 0
    for message in messages:
        text = _encode(message)
        if texts and size + len(text) > REQUEST_BYTES_MAX:
            yield b"[" + b",".join(texts) + b"]"
            texts, size = [], 0
        texts.append(text)
        size += len(text) + 1
    if texts:
        yield b"[" + b",".join(texts) + b"]"


class _Delivery(msgspec.Struct):
    """A message as it is delivered, whatever else is with it."""

    pairs: dict[str, str]
    id: str = ""
    source: str = ""
    time: str | None = None
    seq: int = 0


_decode = msgspec.json.Decoder(_Delivery).decode


def delivered(data: bytes | str, seq: int = 0) -> Delivered | None:
    """One delivery, from the JSON in which it comes; None if it is something else."""
    try:
        found = _decode(data)
    except msgspec.DecodeError:
        return None
    return Delivered(found.seq or seq, Message(found.pairs, found.id, found.source, found.time))


class RemoteLink(Closeable):
    """What links to a broker share."""

    is_remote = True

    def __init__(self, address: Address) -> None:
        self.address = address
        if address.tls:
            # Here, and not in a thread at the first request: a fork meanwhile would hang the child.
            import ssl  # noqa: F401

    @property
    def name(self) -> str:
        return str(self.address)

    @property
    def hidden(self) -> Secret | None:
        """The token that is shown to the broker, which no message may have in it."""
        credentials = self.address.credentials
        return None if credentials is None else credentials.hidden()

    def publish(self, messages: Sequence[Message]) -> int:
        return sum(self._publish(body) for body in in_requests(messages))

    @abstractmethod
    def _publish(self, body: bytes) -> int:
        """Send one request; how many of its messages are new."""


class ReconnectingSubscription(Closeable):
    """When the connection broke, it goes on after the last message it handed out."""

    def __init__(self, address: Address, concepts: tuple[str, ...], after: int | None) -> None:
        self._address = address
        self._concepts = concepts
        self._after = after
        self._active = False
        self._early: list[Delivered] = []
        self._closed = False

    @abstractmethod
    def _read(self, wait_s: float) -> list[Delivered]:
        """What comes next, connected first if need be; `_active` once the broker says so."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Close the connection; the next read opens another."""

    def started(self) -> Self:
        """Itself, once the broker has it; raises a refusal, and CannotReachBroker."""
        deadline = time.monotonic() + START_S_MAX
        try:
            while not self._active:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    raise cannot_reach(self._address, "it does not answer")
                self._early += self._read(left_s)
        except BaseException:
            self._disconnect()
            raise
        return self

    def take(self, wait_s: float) -> list[Delivered]:
        """Raises a refusal; a broker that cannot be reached is tried again until then."""
        if self._early:
            came, self._early = self._early, []
            return came
        deadline = time.monotonic() + wait_s
        while not self._closed:
            try:
                came = self._read(max(0.001, deadline - time.monotonic()))
            except TocsinError as error:
                self._disconnect()
                if not is_transient(error):
                    raise
                time.sleep(max(0.0, min(RETRY_S, deadline - time.monotonic())))
                came = []
            if came or time.monotonic() >= deadline:
                return came
        return []
