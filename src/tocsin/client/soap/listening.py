"""An address that takes notifications without a subscription: for one who is sent to directly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Self

from tocsin.client.soap.inbox import Inbox
from tocsin.client.soap.message import Message
from tocsin.client.soap.reception import Reception

POLL_S: Final = 0.5


class Listening:
    """Iterate over it, in one thread; `close` it, from any."""

    def __init__(self, reception: Reception, address: str, inbox: Inbox) -> None:
        self.address = address
        self._reception = reception
        self._inbox = inbox

    def take(self, timeout_s: float) -> Message | None:
        """The next message; None if none came in time."""
        return self._inbox.take(timeout_s)

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        while not self._inbox.is_over:
            message = self._inbox.take(POLL_S)
            if message is not None:
                return message
        raise StopIteration

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take nothing more."""
        self._reception.shut(self._inbox)
