"""Pages of the log: events that pass a filter and that the caller may read."""

from __future__ import annotations

from typing import Final

import msgspec

from tocsin.access.decision import Readable
from tocsin.access.session import Session
from tocsin.broker.log import StoreReader
from tocsin.broker.port import BrokerPort
from tocsin.event.filter import EVERYTHING, Filter
from tocsin.event.filter_eval import matches
from tocsin.event.stored import Stored

LIMIT_MAX: Final = 1_000
LIMIT_DEFAULT: Final = 100
SCANNED_MAX: Final = (
    20_000  # events that one call looks at for a filter; `next` says how far it got
)
PAGE: Final = 1_000
PAGE_BYTES: Final = 8 << 20


class EventPage(msgspec.Struct, frozen=True):
    """Some events, how far was looked, and what was damaged on the way."""

    events: list[Stored]
    next: int
    corrupt: list[int]


async def read_page(
    port: BrokerPort, session: Session, after: int, limit: int, filter: Filter
) -> EventPage:
    """The events past `after` that pass, `limit` at most, that the session may read when it is
    answered: the log is read in its turn, and a right may end meanwhile."""
    readable = port.readable(session)
    page = await port.read(
        session, "events", lambda log: _scan(log, after, limit, filter, readable)
    )
    port.report_corrupt(page.corrupt)
    return msgspec.structs.replace(page, events=port.still_readable(session, page.events))


def _scan(
    log: StoreReader, after: int, limit: int, filter: Filter, readable: Readable | None
) -> EventPage:
    takes_all = filter == EVERYTHING and readable is None
    found: list[Stored] = []
    corrupt: list[int] = []
    reached, scanned = after, 0
    while len(found) < limit and scanned < SCANNED_MAX:
        page_max = limit if takes_all else PAGE
        page = log.read(reached, page_max, PAGE_BYTES)
        corrupt.extend(page.corrupt)
        scanned += len(page.events) + len(page.corrupt)
        if page.next <= reached or not (page.events or page.corrupt):
            return EventPage(found, max(page.next, reached), corrupt)
        for stored in page.events:
            if readable is not None and not readable.has_event(stored.event):
                continue
            if filter == EVERYTHING or matches(filter, stored.event):
                found.append(stored)
                if len(found) == limit:
                    seen = [seq for seq in corrupt if seq <= stored.seq]
                    return EventPage(found, stored.seq, seen)
        reached = page.next
        if takes_all:
            break
    return EventPage(found, reached, corrupt)
