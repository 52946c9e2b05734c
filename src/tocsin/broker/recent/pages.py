"""Reading a part of the log page by page, so that other questions come between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tocsin.broker.log import Page, StoreReader
from tocsin.event.stored import Stored

PAGE_EVENTS = 1_000

Reading = Callable[[Callable[[StoreReader], Page]], Awaitable[Page]]
"""Asks the log something, on behalf of whoever wants to know."""


async def read_pages(
    read: Reading, after: int, through: int, take: Callable[[list[Stored]], None]
) -> None:
    """Hand over the events of (after, through], and perhaps some that follow them."""
    while after < through:
        page = await read(_page(after))
        take(page.events)
        if page.next <= after:
            return
        after = page.next


def _page(after: int) -> Callable[[StoreReader], Page]:
    return lambda reader: reader.read(after, PAGE_EVENTS)
