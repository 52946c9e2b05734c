"""What a client asks a producer for, and what it is granted, in any specification."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tocsin.client.soap.subscription import Expires
from tocsin.event.instant import NS_PER_S, xs_duration, xs_duration_ns
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.expiry import read_expiry
from tocsin.wire.wsn.messages import Expression

LEASE: Final = "PT1H"


@dataclass(frozen=True, slots=True)
class SubscribeRequest:
    """Without a consumer the source itself keeps the notifications."""

    consumer: EndpointReference | None
    end_to: EndpointReference | None
    topic: Expression | None
    content: Expression | None
    expires: str | None
    raw: bool | None
    mode: str | None


@dataclass(frozen=True, slots=True)
class Granted:
    """Where a subscription is managed, for how long, and the context to pull with, if any."""

    manager: EndpointReference
    lease_s: float | None
    context: str | None = None


def expires_text(expires: Expires) -> str | None:
    """How long, as the specifications write it."""
    if isinstance(expires, timedelta):
        expires = expires.total_seconds()
    if isinstance(expires, (int, float)):
        return xs_duration(int(expires * NS_PER_S))
    return expires


def lease_s(granted: str | None, asked: str | None, now_ns: int) -> float | None:
    """How long was granted; None if that has no end or cannot be read.

    A moment is by the producer's clock. One that is over by ours shows that the clocks differ, and
    then what was asked for is the better guess.
    """
    expiry = None if granted is None else read_expiry(granted, now_ns, milliseconds=True)
    if expiry is not None and expiry.expires_ns > now_ns:
        return (expiry.expires_ns - now_ns) / NS_PER_S
    if expiry is None or asked is None:
        return None
    length_ns = xs_duration_ns(asked)
    return length_ns / NS_PER_S if length_ns is not None and length_ns > 0 else None
