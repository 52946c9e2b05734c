"""Inquiries: what a consumer asks and gets one reply to, all on one connection that is kept."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Final

from tocsin.client.gma.address import PeerAddress
from tocsin.client.gma.connection import PeerConnection
from tocsin.client.gma.dialing import cannot_reach, dial, refused
from tocsin.client.gma.numbering import Numbering
from tocsin.errors import CannotReachBroker
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m

FRAME_BYTES_MAX: Final = 16 << 20

Ask = Callable[[c.Conversation], m.QueryRequest | m.EventNamesRequest]


class Inquiries:
    """Of the loop's thread alone."""

    def __init__(
        self,
        address: PeerAddress,
        context: ssl.SSLContext | None,
        numbering: Numbering,
        timeout_s: float,
    ) -> None:
        self._address = address
        self._numbering = numbering
        self._context = context
        self._timeout_s = timeout_s
        self._dialing = asyncio.Lock()
        self._connection: PeerConnection | None = None
        self._waiting: dict[str, asyncio.Future[m.Reply]] = {}

    async def ask(self, ask: Ask) -> m.Reply:
        """The reply that says Success; raises if it does not, or none comes."""
        reused = self._connection is not None and self._connection.is_open
        try:
            reply = await self._once(ask)
        except CannotReachBroker:
            if not reused:
                raise
            # What was kept open was closed at the other end; to ask twice does no harm.
            reply = await self._once(ask)
        if reply.returned != m.SUCCESS:
            raise refused(self._address, reply.detail)
        return reply

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close("the consumer closes")

    async def _once(self, ask: Ask) -> m.Reply:
        connection = await self._open()
        request = ask(connection.conversation)
        future = asyncio.get_running_loop().create_future()
        self._waiting[request.request_id] = future
        try:
            connection.send(request)
            async with asyncio.timeout(self._timeout_s):
                reply: m.Reply = await future
        except TimeoutError:
            connection.abort("it did not reply")
            why = f"no reply within {self._timeout_s:g} s"
            raise cannot_reach(self._address, why) from None
        finally:
            self._waiting.pop(request.request_id, None)
        return reply

    async def _open(self) -> PeerConnection:
        async with self._dialing:
            if self._connection is None or not self._connection.is_open:
                self._connection = await dial(
                    self._address, self._context, self._peer, self._timeout_s
                )
            return self._connection

    def _peer(self) -> PeerConnection:
        conversation = self._numbering.conversation(c.CONSUMER)
        self._connection = PeerConnection(
            self, conversation, frame_bytes_max=FRAME_BYTES_MAX, accepted=False
        )
        return self._connection

    # What the connection tells

    def opened(self) -> None:
        pass

    def has_room(self) -> None:
        pass

    def closed(self, why: str) -> None:
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(cannot_reach(self._address, why))

    def happened(self, happening: c.Happening) -> None:
        assert self._connection is not None, "it is what tells"
        match happening:
            case c.Answered(_, reply):
                future = self._waiting.get(reply.request_id)
                if future is not None and not future.done():
                    future.set_result(reply)
            case c.Refusal(reply):
                self._connection.send(reply)
            case c.SubscribeAsked(request):
                detail = "nothing can be asked on this connection"
                self._connection.send(self._connection.conversation.refuse(request, detail))
            case _:
                pass
