"""Line: the way to a peer that we call up, one connection at a time, for all who want one.

It dials when somebody needs a connection, and however many do, once at a time; after a connection
that broke or never came about there is a pause, which doubles.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from tocsin.client.gma.address import PeerAddress
from tocsin.client.gma.call import Call
from tocsin.client.gma.dialing import dial
from tocsin.client.gma.numbering import Numbering
from tocsin.client.gma.schedule import pause_s
from tocsin.errors import CannotReachBroker

STEADY_S: Final = 10.0  # a connection that held so long was no failed attempt
LINKS_MAX: Final = 200  # subscriptions on one connection; more get another


class Line:
    """Of the loop's thread alone."""

    def __init__(
        self,
        address: PeerAddress,
        context: ssl.SSLContext | None,
        plays: str,
        *,
        numbering: Numbering,
        timeout_s: float,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.address = address
        self.timeout_s = timeout_s
        self.keeps = False
        self.knows_us = False  # the peer has replied in words that are not in the paper
        self.links: set[object] = set()
        self._context = context
        self._plays = plays
        self._numbering = numbering
        self._chance = chance
        self._loop = asyncio.get_running_loop()
        self._call: Call | None = None
        self._dialing: asyncio.Task[Call] | None = None
        self._wanted = 0
        self._hurry = asyncio.Event()
        self._attempt = 0
        self._not_before_s = 0.0

    @property
    def is_open(self) -> bool:
        return self._call is not None and self._call.connection.is_open

    def another(self) -> Line:
        """One more to the same peer."""
        line = Line(
            self.address,
            self._context,
            self._plays,
            numbering=self._numbering,
            timeout_s=self.timeout_s,
            chance=self._chance,
        )
        line.knows_us = self.knows_us
        return line

    async def open(self, *, is_plain: bool = False, is_urgent: bool = False) -> Call:
        """The connection, after a pause if it has to be made anew and that is not urgent;
        CannotReachBroker if there is none."""
        if self._call is not None and self._call.connection.is_open:
            return self._call
        if self._dialing is None or self._dialing.done():
            self._hurry.clear()
            self._dialing = self._loop.create_task(self._dial(is_plain))
        if is_urgent:
            self._hurry.set()
        dialing = self._dialing
        self._wanted += 1
        try:
            return await asyncio.shield(dialing)
        except asyncio.CancelledError:
            if self._wanted == 1:
                self._abandon(dialing)
            raise
        finally:
            self._wanted -= 1

    def close(self) -> None:
        """Hang up, whatever is under way."""
        if self._dialing is not None:
            self._dialing.cancel()
        if self._call is not None:
            self._call.connection.close("this side closes")

    def hung_up(self, call: Call) -> None:
        if call is self._call:
            self._call = None
            self._fail(self._loop.time() - call.opened_s)

    def _abandon(self, dialing: asyncio.Task[Call]) -> None:
        dialing.cancel()
        self._dialing = None
        if self._call is not None:
            self._call.close_if_idle()

    def _fail(self, lasted_s: float) -> None:
        self._attempt = 0 if lasted_s >= STEADY_S else self._attempt + 1
        self._not_before_s = self._loop.time() + pause_s(self._attempt, self._chance())

    async def _dial(self, is_plain: bool) -> Call:
        left_s = self._not_before_s - self._loop.time()
        if left_s > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._hurry.wait()
        call = Call(self, self._numbering.conversation(self._plays), is_plain=is_plain)
        self._call = call
        try:
            await dial(self.address, self._context, lambda: call.connection, self.timeout_s)
        except CannotReachBroker:
            if self._call is call:
                self._call = None
                self._fail(0.0)
            raise
        return call


class Lines:
    """One side's lines to all whom it calls. Of the loop's thread alone."""

    def __init__(self, plays: str, numbering: Numbering, timeout_s: float) -> None:
        self._plays = plays
        self._numbering = numbering
        self._timeout_s = timeout_s
        self._lines: list[Line] = []

    def to(self, address: PeerAddress, context: ssl.SSLContext | None) -> Line:
        """The line to a peer; another one if so many share it already."""
        self._lines = [line for line in self._lines if line.links or line.keeps]
        for line in self._lines:
            if line.address == address and len(line.links) < LINKS_MAX:
                return line
        line = Line(
            address, context, self._plays, numbering=self._numbering, timeout_s=self._timeout_s
        )
        self._lines.append(line)
        return line

    def close(self) -> None:
        for line in self._lines:
            line.close()
