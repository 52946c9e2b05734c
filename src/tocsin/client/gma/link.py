"""Link: keeps one subscription with a peer that we called up, from one connection to the next."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from tocsin.client.gma.address import PeerAddress
from tocsin.client.gma.connection import PeerConnection
from tocsin.client.gma.dialing import cannot_reach, dial, refused
from tocsin.client.gma.schedule import pause_s
from tocsin.errors import BrokerRefused, CannotReachBroker, TocsinError
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m

FRAME_BYTES_MAX: Final = 16 << 20
STEADY_S: Final = 10.0  # a connection that held so long was no failed attempt
GOODBYE_S_MAX: Final = 2.0  # for the reply to our goodbye

log = logging.getLogger("tocsin.gma")


class Member(Protocol):
    """Whose subscription it is."""

    plays: str
    comes_back: bool  # a peer that says goodbye does so for now, as a broker that is restarted

    def asks(self, conversation: c.Conversation) -> m.SubscribeRequest:
        """What is asked of the peer on each connection."""

    def agreed(self, connection: PeerConnection, subscription: c.Subscription) -> None:
        """The peer agreed: events may flow."""

    def arrived(self, message: m.EventMessage) -> None:
        """An event, or an error in its place."""

    def answered(self, reply: m.EventReply) -> None:
        """An answer to an event of ours."""

    def has_room(self) -> None:
        """The peer has read on."""

    def lost(self, error: TocsinError) -> bool:
        """There is no connection, or no agreement; True to try again."""

    def over(self, why: str) -> None:
        """It is over, and nothing is tried again."""


class Link:
    """Of the loop's thread alone. `run` is its whole life."""

    def __init__(
        self,
        address: PeerAddress,
        context: ssl.SSLContext | None,
        member: Member,
        *,
        timeout_s: float,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._address = address
        self._context = context
        self._member = member
        self._timeout_s = timeout_s
        self._chance = chance
        self._loop = asyncio.get_running_loop()
        self._over: str | None = None
        self._wake = asyncio.Event()
        self._connection: PeerConnection | None = None
        self._subscription: c.Subscription | None = None
        self._replied: asyncio.Future[None] = self._loop.create_future()
        self._gone: asyncio.Future[str] = self._loop.create_future()
        self._goodbye = asyncio.Event()

    async def run(self) -> None:
        """Connect, subscribe, and do so again whenever it breaks, until it is over."""
        attempt = 0
        while self._over is None:
            began_s = self._loop.time()
            try:
                await self._once()
            except (CannotReachBroker, BrokerRefused) as error:
                if self._over is None and not self._member.lost(error):
                    self._over = error.problem
            if self._over is None:
                attempt = 0 if self._loop.time() - began_s >= STEADY_S else attempt + 1
                await self._pause(pause_s(attempt, self._chance()))
        self._member.over(self._over)

    async def end(self, why: str) -> None:
        """Take leave of the peer, if it is there, and end."""
        connection, subscription = self._connection, self._subscription
        if self._over is not None:
            return
        self._over = why
        self._wake.set()
        if connection is not None and connection.is_open and subscription is not None:
            connection.send(connection.conversation.unsubscribe(subscription))
            with suppress(TimeoutError):
                async with asyncio.timeout(GOODBYE_S_MAX):
                    await self._goodbye.wait()
        if connection is not None:
            connection.close(why)
        self._replied.cancel()

    def drop(self, why: str) -> None:
        """Give this connection up, and try another."""
        if self._connection is not None:
            self._connection.abort(why)

    async def _once(self) -> None:
        self._replied = self._loop.create_future()
        self._gone = self._loop.create_future()
        self._subscription = None
        connection = await dial(self._address, self._context, self._peer, self._timeout_s)
        try:
            if self._over is not None:
                return
            connection.send(self._member.asks(connection.conversation))
            await self._reply(connection)
            why = await self._gone
            raise cannot_reach(self._address, why)
        finally:
            connection.close("it is over")

    async def _reply(self, connection: PeerConnection) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._replied
        except TimeoutError:
            connection.abort("it did not reply")
            why = f"it did not reply to a SubscribeRequest within {self._timeout_s:g} s"
            raise cannot_reach(self._address, why) from None
        except asyncio.CancelledError:
            if self._over is None:
                raise

    async def _pause(self, length_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(length_s):
                await self._wake.wait()

    def _peer(self) -> PeerConnection:
        conversation = c.Conversation(frozenset({self._member.plays}))
        self._connection = PeerConnection(
            self, conversation, frame_bytes_max=FRAME_BYTES_MAX, accepted=False
        )
        return self._connection

    # What the connection tells

    def opened(self) -> None:
        pass

    def has_room(self) -> None:
        if self._subscription is not None:
            self._member.has_room()

    def closed(self, why: str) -> None:
        if not self._gone.done():
            self._gone.set_result(why)
        if self._over is not None:
            self._replied.cancel()
        elif not self._replied.done():
            self._replied.set_exception(cannot_reach(self._address, why))
        self._subscription = None
        self._goodbye.set()

    def happened(self, happening: c.Happening) -> None:
        connection = self._connection
        assert connection is not None, "it is what tells"
        match happening:
            case c.Subscribed(subscription):
                if not self._replied.done():
                    self._replied.set_result(None)
                self._subscription = subscription
                self._member.agreed(connection, subscription)
            case c.Refused(_, detail):
                if not self._replied.done():
                    self._replied.set_exception(refused(self._address, detail))
            case c.EventArrived(_, message):
                self._member.arrived(message)
            case c.Answered(_, m.EventReply() as reply):
                self._member.answered(reply)
            case c.Answered(m.UnsubscribeRequest(), _):
                self._goodbye.set()
            case c.Ended(_, reply):
                connection.send(reply)
                why = f"{self._address} ended the subscription"
                if not self._member.comes_back:
                    self._over = self._over or why
                connection.close(why)
            case c.Refusal(reply):
                connection.send(reply)
            case c.SubscribeAsked(request) | c.Asked(request):
                detail = "nothing can be asked on this connection; it carries one subscription"
                connection.send(connection.conversation.refuse(request, detail))
            case c.Answered() | c.Stale():
                pass
