"""Answers that are waited for: no longer than somebody waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from tocsin.errors import ShuttingDown

if TYPE_CHECKING:
    from tocsin.drivers.http.door import Door


async def while_wanted(request: Request, door: Door, answer: Coroutine[Any, Any, Any]) -> Any:
    """Wait as long as somebody waits for us, and the broker runs."""
    await request.body()  # so that what is received next is that the client has left
    waiting = asyncio.ensure_future(answer)
    ends = [asyncio.ensure_future(request.receive()), asyncio.ensure_future(door.closing.wait())]
    try:
        await asyncio.wait([waiting, *ends], return_when=asyncio.FIRST_COMPLETED)
        if waiting.done():
            return waiting.result()
        raise ShuttingDown("the request was cancelled", remedy="Ask again.")
    finally:
        for task in (waiting, *ends):
            task.cancel()
