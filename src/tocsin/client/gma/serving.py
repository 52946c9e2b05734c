"""Serving: the listening side of a producer, with the limits that all its guests share."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Final

from tocsin.client.gma.address import PeerAddress
from tocsin.client.gma.guest import Guest
from tocsin.client.gma.listening import CONNECTIONS_MAX, listen, say_goodbye
from tocsin.client.gma.loop import LoopThread
from tocsin.client.gma.numbering import Numbering
from tocsin.client.gma.offers import Offers
from tocsin.client.gma.unfinished import Unfinished

SUBSCRIPTIONS_MAX: Final = 10_000

log = logging.getLogger("tocsin.gma")


class Serving:
    """Of the loop's thread alone, but for `address` and `dropped`."""

    def __init__(self, thread: LoopThread, offers: Offers, numbering: Numbering) -> None:
        self.thread = thread
        self.numbering = numbering
        self.offers = offers
        self.unfinished = Unfinished()
        self.address: PeerAddress | None = None
        self.dropped = 0
        self._server: asyncio.Server | None = None
        self._guests: set[Guest] = set()

    async def open(self, address: PeerAddress, context: ssl.SSLContext | None) -> None:
        self._server, self.address = await listen(address, context, lambda: Guest(self).connection)

    async def close(self) -> None:
        """Let no more in, and end every subscription."""
        if self._server is not None:
            self._server.close()
        await say_goodbye(self._guests)

    def may_subscribe(self) -> bool:
        return sum(guest.subscriptions for guest in self._guests) < SUBSCRIPTIONS_MAX

    def lost(self, count: int) -> None:
        self.dropped += count

    def came(self, guest: Guest) -> bool:
        if len(self._guests) >= CONNECTIONS_MAX:
            log.warning("turned a connection away: there are %d", CONNECTIONS_MAX)
            return False
        self._guests.add(guest)
        return True

    def left(self, guest: Guest) -> None:
        self._guests.discard(guest)
