"""Upstream: the broker's own subscription at a publisher on demand, for one of its topics.

It is active while somebody wants those events, and paused while nobody does. At a publisher that
cannot pause, the broker subscribes again each time.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

import msgspec

from tocsin.event.instant import NS_PER_S
from tocsin.wire.soap.addressing import EndpointReference

LEASE_S: Final = 3_600
"""Asked for, so that a publisher soon forgets a broker that is gone; renewed at half of it."""
LEASE_NS_MIN: Final = NS_PER_S  # shorter leases are renewed no more often for that


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the subscription, and the versions that the publisher uses."""

    spec: str
    soap: str
    wsa: str
    reference: EndpointReference | None = None  # of our subscription there; None if there is none
    paused: bool = False
    can_pause: bool = True
    renew_ns: int | None = None


class Step(Enum):
    """What is to be asked of the publisher."""

    NOTHING = auto()
    SUBSCRIBE = auto()
    PAUSE = auto()
    RESUME = auto()
    RENEW = auto()
    UNSUBSCRIBE = auto()


def next_step(upstream: Upstream, *, wanted: bool, over: bool, now_ns: int) -> Step:
    """The next step towards what the subscription should be. `over`: the registration has ended."""
    if upstream.reference is None:
        needless = over or not (wanted or upstream.can_pause)
        return Step.NOTHING if needless else Step.SUBSCRIBE
    if over or not (wanted or upstream.can_pause):
        return Step.UNSUBSCRIBE
    if wanted == upstream.paused:
        return Step.RESUME if wanted else Step.PAUSE
    return (
        Step.RENEW
        if upstream.renew_ns is not None and upstream.renew_ns <= now_ns
        else Step.NOTHING
    )


def opened(
    upstream: Upstream, reference: EndpointReference, lease_ns: int | None, now_ns: int
) -> Upstream:
    """The publisher subscribed us, for so long."""
    return msgspec.structs.replace(
        upstream, reference=reference, paused=False, renew_ns=renewal_ns(lease_ns, now_ns)
    )


def closed(upstream: Upstream) -> Upstream:
    """There is no subscription of ours at the publisher any more, or none that we know of."""
    return msgspec.structs.replace(upstream, reference=None, paused=False, renew_ns=None)


def renewal_ns(lease_ns: int | None, now_ns: int) -> int | None:
    """When to renew what lasts so long from now; None for what has no end."""
    return None if lease_ns is None else now_ns + max(lease_ns, LEASE_NS_MIN) // 2


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Upstream).decode


def to_bytes(upstream: Upstream) -> bytes:
    """The stored form."""
    return _encode(upstream)


def from_bytes(data: bytes) -> Upstream:
    return _decode(data)
