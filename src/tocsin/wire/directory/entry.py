"""Entries of the directory: a producer or a consumer, and what it offers (paper 002, section 2)."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from tocsin.event.event import Value
from tocsin.event.subscription import Owner
from tocsin.wire.gma.names import EventName

Kind = Literal["producer", "consumer"]
KINDS: tuple[Kind, ...] = get_args(Kind)

Identity = tuple[Kind, str, str]


class Offered(msgspec.Struct, frozen=True):
    """Events of one name that a producer sends or a consumer takes, and what can be set."""

    name: EventName
    parameters: tuple[str, ...] = ()


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody says of itself. Without an address it is not to be connected to."""

    kind: Kind
    name: str
    host: str
    address: str | None = None
    events: tuple[Offered, ...] = ()
    attributes: dict[str, Value] = {}
    lease_ns: int

    @property
    def identity(self) -> Identity:
        """Who registers again under the same one replaces its earlier entry."""
        return self.kind, self.name, self.host.lower()


class Entry(msgspec.Struct, frozen=True):
    """A registration in the directory. One without an end is the broker's own."""

    id: str
    registration: Registration
    registered_ns: int
    expires_ns: int | None
    owner: Owner | None = None  # who registered it, if they had signed in

    def is_live(self, now_ns: int) -> bool:
        return self.expires_ns is None or now_ns < self.expires_ns

    def renewed(self, now_ns: int) -> Entry:
        """The same with its whole lease before it."""
        return msgspec.structs.replace(self, expires_ns=now_ns + self.registration.lease_ns)


def leased(
    entry_id: str, registration: Registration, now_ns: int, owner: Owner | None = None
) -> Entry:
    """The entry of a registration that was accepted now."""
    return Entry(entry_id, registration, now_ns, now_ns + registration.lease_ns, owner)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Entry).decode


def to_bytes(entry: Entry) -> bytes:
    """The stored form."""
    return _encode(entry)


def from_bytes(data: bytes) -> Entry:
    """What `to_bytes` wrote; msgspec.DecodeError if it did not."""
    return _decode(data)
