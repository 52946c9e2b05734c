"""The ids of this broker and of its log."""

from __future__ import annotations

from typing import Final

import msgspec

from tocsin.access.session import internal
from tocsin.broker.port import BrokerPort

KEY: Final = "link/identity"

_SERVICE: Final = internal("link")


class Ids(msgspec.Struct, frozen=True):
    """Both are made once, and kept with the log: who has other ones has lost its data."""

    broker: str
    log: str


async def ids_of(port: BrokerPort) -> Ids:
    """The ids of this broker; they are on disk when this returns."""
    kept = port.own(_SERVICE).kept(KEY).get(KEY)
    if kept is not None:
        return msgspec.json.decode(kept, type=Ids)
    ids = Ids(port.runtime.new_id(), port.runtime.new_id())
    await port.keep(_SERVICE, KEY, msgspec.json.encode(ids))
    return ids
