"""KeptResource: a registered resource as it is found again after a restart."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from tocsin.event.event import Value
from tocsin.event.subscription import Owner
from tocsin.event.value import Quantity
from tocsin.overlay.discovery.requests import ModelType, Registration, parse_registration
from tocsin.overlay.time_of_day import Zones

KEY: Final = "discovery/resource/"


class KeptResource(msgspec.Struct, frozen=True, kw_only=True):
    """What a client registered, its latest values, and when its lease ends."""

    id: str
    model: Literal["static", "dynamic"]
    advertisement: str
    values: dict[str, bool | int | float | str | Quantity]
    kind: str
    address: str
    lease_ns: int | None
    registered_ns: int
    updated_ns: int | None
    expires_ns: int | None
    owner: Owner | None = None  # who registered it, if they had signed in

    def is_live(self, now_ns: int) -> bool:
        return self.expires_ns is None or now_ns < self.expires_ns

    def with_values(self, values: dict[str, Value], now_ns: int) -> KeptResource:
        """The same with other values, and its whole lease before it."""
        expires_ns = None if self.lease_ns is None else now_ns + self.lease_ns
        return msgspec.structs.replace(
            self, values=values, updated_ns=now_ns, expires_ns=expires_ns
        )

    def registration(self, zones: Zones, now_ns: int) -> Registration:
        """For the core; BadFilter or BadDiscovery if the advertisement describes no region.

        The zones are those of this moment: who updates a resource gets the hour after the clocks
        were changed.
        """
        return parse_registration(
            self.id,
            ModelType(self.model),
            self.advertisement,
            values=self.values,
            kind=self.kind,
            address=self.address,
            lease_ns=None if self.expires_ns is None else max(0, self.expires_ns - now_ns),
            zones=zones,
        )


to_bytes = msgspec.msgpack.Encoder().encode
from_bytes = msgspec.msgpack.Decoder(KeptResource).decode
