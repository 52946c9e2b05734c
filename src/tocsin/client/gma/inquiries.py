"""Inquiries: what a consumer asks and gets one reply to, on the connection of its subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tocsin.client.gma.dialing import cannot_reach, is_ours, refused
from tocsin.client.gma.line import Line
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m

Ask = Callable[[c.Conversation], m.QueryRequest | m.EventNamesRequest]


async def inquire(line: Line, ask: Ask, plainer: Ask | None = None) -> m.Reply:
    """The reply that says Success; raises if it does not, or none comes.

    `plainer` asks for the same without the filter, for a peer that does not bear one.
    """
    line.keeps = True  # who asks once asks again
    found = await _asked(line, ask)
    if plainer is not None and not line.knows_us and _is_foreign(line, found):
        found = await _asked(line, plainer)
    if isinstance(found, str):
        raise cannot_reach(line.address, found)
    if found.returned != m.SUCCESS:
        raise refused(line.address, found.detail)
    return found


def _is_foreign(line: Line, found: m.Reply | str) -> bool:
    """True if the peer hung up, or refused in words that are not ours."""
    if isinstance(found, str):
        return True
    return found.returned != m.SUCCESS and not is_ours(refused(line.address, found.detail))


async def _asked(line: Line, ask: Ask) -> m.Reply | str:
    """The reply, or why the connection was closed without one."""
    was_open = line.is_open
    found = await _asked_once(line, ask)
    # What was kept open may have been closed at the other end; to ask twice does no harm.
    return await _asked_once(line, ask) if was_open and isinstance(found, str) else found


async def _asked_once(line: Line, ask: Ask) -> m.Reply | str:
    call = await line.open(is_urgent=True)
    try:
        async with asyncio.timeout(line.timeout_s):
            reply = await call.inquire(ask(call.connection.conversation))
    except TimeoutError:
        if not call.users:
            call.connection.abort("it did not reply")
        raise cannot_reach(line.address, f"no reply within {line.timeout_s:g} s") from None
    return reply or call.why or "the connection was closed"
