"""Goodbye: the last a consumer of performance events hears of us on a connection.

Each name that was open gets its UnsubscribeRequest. The connection is closed when the consumer has
answered them all: had we hung up before, its answers would meet a closed socket, and the reset that
comes back could take from it what it had not read yet.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from tocsin.errors import TocsinError
from tocsin.wire.framing import FrameCutter, framed
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.read import read
from tocsin.wire.gma.write import write

GOODBYE_S: Final = 2.0  # for the consumer's answers, and for what we wrote to leave
REPLIES_MAX: Final = 1_000  # to a consumer that ends things at the same time


class Goodbye(asyncio.Protocol):
    """Takes a connection over and ends it, in good order or soon; it is in `others` till then."""

    def __init__(
        self,
        transport: Any,
        conversation: c.Conversation,
        cutter: FrameCutter,
        others: set[Goodbye],
    ) -> None:
        self._transport = transport
        self._conversation = conversation
        self._cutter = cutter
        self._others = others
        self._replies = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """All goodbyes are sent: wait for the answers."""
        self._others.add(self)
        self._transport.set_protocol(self)
        self._timer = loop.call_later(GOODBYE_S, self.abort)
        self._close_if_answered()

    def abort(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._cutter.cut(data):
                self._receive(read(frame))
        except TocsinError:
            self.abort()  # it is over anyway
            return
        self._close_if_answered()

    def connection_lost(self, exc: Exception | None) -> None:
        self._others.discard(self)
        if self._timer is not None:
            self._timer.cancel()

    def _receive(self, message: m.Message) -> None:
        match self._conversation.receive(message):
            case c.Stale(answer=m.UnsubscribeRequest() as goodbye):
                self._send(goodbye)
            case c.Refusal(reply=reply) if self._replies < REPLIES_MAX:
                self._replies += 1
                self._send(reply)

    def _send(self, message: m.Message) -> None:
        self._transport.write(framed(write(message)))

    def _close_if_answered(self) -> None:
        if self._conversation.is_settled:
            self._transport.close()
