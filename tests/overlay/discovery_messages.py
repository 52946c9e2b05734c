"""Messages of resource discovery as a neighbour sends them, and a broker that gets them."""

from __future__ import annotations

import msgspec

from overlay.discovery_runs import OPTIONS
from overlay.network import S
from tocsin.overlay.discovery.core import DiscoveryCore
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.wire.link.discovery_messages import (
    Advertise,
    Bound,
    Discover,
    Result,
)

NOW = 1_000 * S


def core_with_neighbours(options: DiscoveryOptions = OPTIONS) -> DiscoveryCore:
    core = DiscoveryCore("me", options)
    for name in ("left", "right"):
        core.link_up(name, NOW)
    return core


def advertise(broker: str = "far", resource: str = "r", row: tuple[Bound, ...] = ()) -> Advertise:
    rows = (row or (Bound("a", "n", None, 9.0),),)
    return Advertise(
        adv_id=f"{broker}/{resource}/1"[-256:],
        broker=broker,
        resource_id=resource,
        model="dynamic",
        rows=rows,
    )


def discover(name: str = "q", **changes: object) -> Discover:
    asked = Discover(
        request_id=name,
        host="left",
        region=(Bound("a", "n", 1.0, None),),
        model="dynamic",
        issued_ns=NOW,
        shared_until_ns=NOW + 5 * S,
        expires_ns=NOW + 10 * S,
        max_age_ns=5 * S,
    )
    return msgspec.structs.replace(asked, **changes)


def result(resource: str = "r") -> Result:
    return Result(
        adv_id=f"far/{resource}/1",
        broker="far",
        resource_id=resource,
        attributes={"a": 5},
        as_of_ns=1,
    )
