"""A tap: the broker's own subscription at a publisher on demand, for one of its topics.

It is open while somebody wants what it brings, and paused while nobody does. A publisher that
cannot pause is subscribed to anew each time.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

import msgspec

from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.times import NS_PER_S

LEASE_S: Final = 3_600
"""Asked for, so that a publisher soon forgets a broker that is gone; renewed at half of it."""
LEASE_NS_MIN: Final = NS_PER_S  # shorter leases are renewed no more often for that


class Tap(msgspec.Struct, frozen=True, kw_only=True):
    """How things stand at the publisher, and how it is spoken to."""

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


def next_step(tap: Tap, *, wanted: bool, over: bool, now_ns: int) -> Step:
    """What brings the tap nearer to how it should be. `over`: the registration has ended."""
    if tap.reference is None:
        needless = over or not (wanted or tap.can_pause)
        return Step.NOTHING if needless else Step.SUBSCRIBE
    if over or not (wanted or tap.can_pause):
        return Step.UNSUBSCRIBE
    if wanted == tap.paused:
        return Step.RESUME if wanted else Step.PAUSE
    return Step.RENEW if tap.renew_ns is not None and tap.renew_ns <= now_ns else Step.NOTHING


def opened(tap: Tap, reference: EndpointReference, lease_ns: int | None, now_ns: int) -> Tap:
    """The publisher subscribed us, for so long."""
    return msgspec.structs.replace(
        tap, reference=reference, paused=False, renew_ns=renewal_ns(lease_ns, now_ns)
    )


def closed(tap: Tap) -> Tap:
    """There is no subscription of ours at the publisher any more, or none that we know of."""
    return msgspec.structs.replace(tap, reference=None, paused=False, renew_ns=None)


def renewal_ns(lease_ns: int | None, now_ns: int) -> int | None:
    """When to renew what lasts so long from now; None for what has no end."""
    return None if lease_ns is None else now_ns + max(lease_ns, LEASE_NS_MIN) // 2


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Tap).decode


def to_bytes(tap: Tap) -> bytes:
    """The stored form."""
    return _encode(tap)


def from_bytes(data: bytes) -> Tap:
    return _decode(data)
