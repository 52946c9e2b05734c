"""The requests we send: what stays the same for a subscription, and what an event adds to it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tocsin import __version__
from tocsin.delivery.trust import Sink
from tocsin.event.stored import Stored
from tocsin.event.subscription import Subscription
from tocsin.wire.cloudevents.webhook import handshake_headers, parse_secret, sign
from tocsin.wire.cloudevents.write import (
    BATCH_TYPE,
    STRUCTURED_TYPE,
    batch,
    binary_of,
    structured_of,
)

# A body up to this size is copied behind its head and written at once; a larger one is written by
# itself, so that a fan-out of it shares one copy.
JOINED_BYTES_MAX = 64 << 10


class Letterhead(msgspec.Struct, frozen=True):
    """The first lines of every request for one subscription."""

    subscription: Subscription
    lines: bytes
    batched: bool
    structured: bool
    secret: bytes | None


def letterhead(sink: Sink, subscription: Subscription) -> Letterhead:
    """The letterhead of a subscription; raises BadSubscription if its secret cannot be used."""
    config = subscription.config
    lines = _first_lines("POST", sink) + f"tocsin-subscription: {subscription.id}\r\n"
    batched = config.batch > 1
    structured = config.mode == "structured" and not batched
    if batched:
        lines += f"content-type: {BATCH_TYPE}\r\n"
    elif structured:
        lines += f"content-type: {STRUCTURED_TYPE}\r\n"
    secret = None if config.secret is None else parse_secret(config.secret)
    return Letterhead(subscription, lines.encode("ascii"), batched, structured, secret)


def _first_lines(method: str, sink: Sink) -> str:
    return (
        f"{method} {sink.target} HTTP/1.1\r\n"
        f"host: {sink.authority()}\r\n"
        f"user-agent: tocsin/{__version__}\r\n"
    )


def request(
    head: Letterhead, events: list[Stored], clock: Callable[[], float]
) -> tuple[bytes, bytes]:
    """The bytes of a POST, and the rest of them if they are many. A signature tells the time."""
    first = events[0]
    if head.batched:
        block, body, sequence = b"", batch(events), b"%d-%d" % (first.seq, events[-1].seq)
    elif head.structured:
        block, body, sequence = b"", structured_of(first), b"%d" % first.seq
    else:
        block, body = binary_of(first)
        sequence = b"%d" % first.seq
    if head.secret is not None:
        block += sign(head.secret, message_id(head.subscription.id, sequence), int(clock()), body)
    if len(body) > JOINED_BYTES_MAX:
        start, rest = b"", body
    else:
        start, rest = body, b""
    return (
        b"%btocsin-sequence: %b\r\n%bcontent-length: %d\r\n\r\n%b"
        % (head.lines, sequence, block, len(body), start),
        rest,
    )


def message_id(subscription_id: str, sequence: bytes) -> str:
    """What the sink may remember to know a repetition: the same for every attempt."""
    return f"msg_{subscription_id}_{sequence.decode()}"


def handshake_request(sink: Sink, origin: str, callback: str | None) -> bytes:
    """The bytes of the OPTIONS request that asks a sink whether it wants events."""
    lines = _first_lines("OPTIONS", sink).encode("ascii")
    return lines + handshake_headers(origin, callback_url=callback) + b"\r\n"
