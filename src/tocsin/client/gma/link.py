"""Link: keeps one subscription with a peer that we called up, from one connection to the next.

The paper has nothing but the parameters in a request, and a peer may hang up on more. One that
never agreed to our extensions, and hangs up or refuses in words that are not ours, is asked once
more without them.
"""

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
from tocsin.client.gma.dialing import cannot_reach, dial, is_ours, refused
from tocsin.client.gma.numbering import Numbering
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

    def asks(self, conversation: c.Conversation, *, is_plain: bool) -> m.SubscribeRequest:
        """What is asked of the peer on each connection; plainly, with nothing but the paper's."""

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


class _Call:
    """One connection, and how far it has come."""

    def __init__(self, link: Link, numbering: Numbering, plays: str, is_plain: bool) -> None:
        loop = asyncio.get_running_loop()
        self._link = link
        self.is_plain = is_plain
        self.subscription: c.Subscription | None = None
        self.replied: asyncio.Future[None] = loop.create_future()
        self.gone: asyncio.Future[str] = loop.create_future()
        self.goodbye = asyncio.Event()
        self.connection = PeerConnection(
            self, numbering.conversation(plays), frame_bytes_max=FRAME_BYTES_MAX, accepted=False
        )

    def opened(self) -> None:
        pass

    def has_room(self) -> None:
        if self.subscription is not None:
            self._link.member.has_room()

    def closed(self, why: str) -> None:
        self.subscription = None
        if not self.gone.done():  # a loop that ends cancels it
            self.gone.set_result(why)
        self.replied.cancel()
        self.goodbye.set()

    def happened(self, happening: c.Happening) -> None:
        connection, member = self.connection, self._link.member
        match happening:
            case c.Subscribed(subscription):
                self.subscription = subscription
                if not self.replied.done():
                    self.replied.set_result(None)
                member.agreed(connection, subscription)
            case c.Refused(_, detail):
                if not self.replied.done():
                    self.replied.set_exception(refused(self._link.address, detail))
            case c.EventArrived(_, message):
                member.arrived(message)
            case c.Answered(_, m.EventReply() as reply):
                member.answered(reply)
            case c.Answered(m.UnsubscribeRequest(), _):
                self.goodbye.set()
            case c.Ended(_, reply):
                connection.send(reply)
                self._link.left_by_peer(connection)
            case c.Refusal(reply):
                connection.send(reply)
            case c.SubscribeAsked(request) | c.Asked(request):
                detail = "nothing can be asked on this connection; it carries one subscription"
                connection.send(connection.conversation.refuse(request, detail))
            case c.Answered() | c.Stale():
                pass


class Link:
    """Of the loop's thread alone. `run` is its whole life."""

    def __init__(
        self,
        address: PeerAddress,
        context: ssl.SSLContext | None,
        member: Member,
        *,
        numbering: Numbering,
        timeout_s: float,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.address = address
        self.member = member
        self._context = context
        self._numbering = numbering
        self._timeout_s = timeout_s
        self._chance = chance
        self._loop = asyncio.get_running_loop()
        self._over: str | None = None
        self._wake = asyncio.Event()
        self._call: _Call | None = None
        self._was_understood = False

    async def run(self) -> None:
        """Connect, subscribe, and do so again whenever it breaks, until it is over."""
        attempt = 0
        while self._over is None:
            began_s = self._loop.time()
            try:
                if not await self._once(is_plain=False) and self._over is None:
                    await self._once(is_plain=True)
            except (CannotReachBroker, BrokerRefused) as error:
                if self._over is None and not self.member.lost(error):
                    self._over = error.problem
            if self._over is None:
                attempt = 0 if self._loop.time() - began_s >= STEADY_S else attempt + 1
                await self._pause(pause_s(attempt, self._chance()))
        self.member.over(self._over)

    async def end(self, why: str) -> None:
        """Take leave of the peer, if it is there, and end."""
        if self._over is not None:
            return
        self._over = why
        self._wake.set()
        call = self._call
        if call is None:
            return
        if call.connection.is_open and call.subscription is not None:
            conversation = call.connection.conversation
            call.connection.send(conversation.unsubscribe(call.subscription))
            with suppress(TimeoutError):
                async with asyncio.timeout(GOODBYE_S_MAX):
                    await call.goodbye.wait()
        call.connection.close(why)
        call.replied.cancel()

    def drop(self, why: str) -> None:
        """Give this connection up, and try another."""
        if self._call is not None:
            self._call.connection.abort(why)

    def left_by_peer(self, connection: PeerConnection) -> None:
        """The peer has ended the subscription."""
        why = f"{self.address} ended the subscription"
        if not self.member.comes_back:
            self._over = self._over or why
        connection.close(why)

    async def _once(self, *, is_plain: bool) -> bool:
        """One connection, until it breaks, which raises; False if plainer words are worth a try."""
        call = _Call(self, self._numbering, self.member.plays, is_plain)
        self._call = call
        await dial(self.address, self._context, lambda: call.connection, self._timeout_s)
        try:
            if self._over is not None:
                return True
            conversation = call.connection.conversation
            call.connection.send(self.member.asks(conversation, is_plain=is_plain))
            if not await self._agreed(call):
                return False
            raise cannot_reach(self.address, await call.gone)
        finally:
            call.connection.close("it is over")

    async def _agreed(self, call: _Call) -> bool:
        """True if the peer agreed, False if plainer words are worth a try; raises otherwise."""
        may_be_plainer = not call.is_plain and not self._was_understood
        try:
            async with asyncio.timeout(self._timeout_s):
                await call.replied
        except TimeoutError:
            call.connection.abort("it did not reply")
            why = f"it did not reply to a SubscribeRequest within {self._timeout_s:g} s"
            raise cannot_reach(self.address, why) from None
        except BrokerRefused as error:
            if may_be_plainer and not is_ours(error):
                return False
            raise
        except asyncio.CancelledError:
            if not call.gone.done():
                if self._over is None:
                    raise
            elif may_be_plainer and self._over is None:
                return False
            return True
        self._was_understood = self._was_understood or not call.is_plain
        return True

    async def _pause(self, length_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(length_s):
                await self._wake.wait()
