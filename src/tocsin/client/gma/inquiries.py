"""Inquiries: what a consumer asks and gets one reply to, on the connection of its subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tocsin.client.gma.call import Call
from tocsin.client.gma.dialing import cannot_reach, refused
from tocsin.client.gma.line import Line
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m

Ask = Callable[[c.Conversation], m.QueryRequest | m.EventNamesRequest]


async def inquire(line: Line, ask: Ask) -> m.Reply:
    """The reply that says Success; raises if it does not, or none comes."""
    line.keeps = True  # who asks once asks again
    reused = line.is_open
    call = await line.open(is_urgent=True)
    reply = await _reply(line, call, ask)
    if reply is None and reused:
        # What was kept open was closed at the other end; to ask twice does no harm.
        call = await line.open(is_urgent=True)
        reply = await _reply(line, call, ask)
    if reply is None:
        raise cannot_reach(line.address, call.why or "the connection was closed")
    if reply.returned != m.SUCCESS:
        raise refused(line.address, reply.detail)
    return reply


async def _reply(line: Line, call: Call, ask: Ask) -> m.Reply | None:
    try:
        async with asyncio.timeout(line.timeout_s):
            return await call.inquire(ask(call.connection.conversation))
    except TimeoutError:
        if not call.users:
            call.connection.abort("it did not reply")
        raise cannot_reach(line.address, f"no reply within {line.timeout_s:g} s") from None
