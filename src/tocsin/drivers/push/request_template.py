"""The requests we send: what stays the same for a subscription, and what an event adds to it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tocsin import __version__
from tocsin.broker.delivery.address import SOAP_TCP, SinkAddress
from tocsin.broker.delivery.soap_messages import (
    RenderCache,
    SoapTemplate,
    envelope,
    soap_template,
    whole_request,
)
from tocsin.event.stored import Stored
from tocsin.event.subscription import BLACKBOARD, Config, SinkCredential, Subscription
from tocsin.wire.blackboard.write import messages_of, profile_of
from tocsin.wire.cloudevents.webhook import SIGNING, handshake_headers, parse_secret, sign
from tocsin.wire.cloudevents.write import (
    BATCH_TYPE,
    STRUCTURED_TYPE,
    batch,
    binary_of,
    structured_of,
)
from tocsin.wire.dime import envelope_message

# A body up to this size is copied behind its head and written at once; a larger one is written by
# itself, so that a fan-out of it shares one copy.
JOINED_BYTES_MAX = 64 << 10
# How far apart the subscribers of an event may be and still share its bytes.
KEPT_MAX = 1_024
KEPT_BYTES_MAX = 8 << 20


class BoardProfile(msgspec.Struct, frozen=True):
    """Which pairs a subscriber of the blackboard gets; None for all that there are."""

    profile: frozenset[str] | None


class RequestTemplate(msgspec.Struct, frozen=True):
    """What is the same in every request for one subscription."""

    subscription: Subscription
    lines: bytes
    batched: bool
    structured: bool
    secret: bytes | None
    hidden: bytes = b""  # of the credential in `lines`: what must not come back in an error
    soap: SoapTemplate | None = None  # of a Web-services consumer
    board: BoardProfile | None = None  # of a subscriber of the blackboard


Unseal = Callable[[str, str], str]
"""A secret as it is kept, and whom it is for, into what is sent or signed with."""


def kept_in_clear(text: str, about: str) -> str:
    """The same text, for who keeps no secrets."""
    del about
    return text


def request_template(
    sink: SinkAddress, subscription: Subscription, unseal: Unseal = kept_in_clear
) -> RequestTemplate:
    """The template of a subscription; raises BadSubscription if its secret cannot be used."""
    config = subscription.config
    lines = _first_lines("POST", sink) + f"tocsin-subscription: {subscription.id}\r\n"
    if subscription.soap is not None:
        head = soap_template(subscription)
        http = b"" if sink.scheme == SOAP_TCP else lines.encode("ascii")
        return RequestTemplate(subscription, http, False, False, None, soap=head)
    shown = credential_line(config.credential, subscription.sink or "", unseal)
    lines += shown
    hidden = shown.partition(": ")[2].strip().rpartition(" ")[2].encode("ascii")
    batched = config.batch > 1
    if config.mode == BLACKBOARD:
        board = BoardProfile(profile_of(subscription))
        lines += "content-type: application/json\r\n"
        secret = signing_secret(config, unseal)
        return RequestTemplate(
            subscription, lines.encode("ascii"), batched, False, secret, hidden, board=board
        )
    structured = config.mode == "structured" and not batched
    if batched:
        lines += f"content-type: {BATCH_TYPE}\r\n"
    elif structured:
        lines += f"content-type: {STRUCTURED_TYPE}\r\n"
    secret = signing_secret(config, unseal)
    return RequestTemplate(subscription, lines.encode("ascii"), batched, structured, secret, hidden)


def signing_secret(config: Config, unseal: Unseal) -> bytes | None:
    return None if config.secret is None else parse_secret(unseal(config.secret, SIGNING))


def credential_line(credential: SinkCredential | None, sink: str, unseal: Unseal) -> str:
    """The header line that the sink wants to see, if any; it opens for its own sink alone."""
    return "" if credential is None else f"{unseal(credential.sealed, sink)}\r\n"


def _first_lines(method: str, sink: SinkAddress) -> str:
    return (
        f"{method} {sink.target} HTTP/1.1\r\n"
        f"host: {sink.authority()}\r\n"
        f"user-agent: tocsin/{__version__}\r\n"
    )


class RenderedEvents:
    """What an event adds to any request, for the events sent lately, the oldest first."""

    __slots__ = ("_bytes", "by_seq")

    def __init__(self) -> None:
        self.by_seq: dict[int, tuple[Stored, bytes]] = {}
        self._bytes = 0

    def add(self, stored: Stored, tail: bytes) -> None:
        by_seq = self.by_seq
        while len(by_seq) >= KEPT_MAX or (by_seq and self._bytes + len(tail) > KEPT_BYTES_MAX):
            self._bytes -= len(by_seq.pop(next(iter(by_seq)))[1])
        former = by_seq.pop(stored.seq, None)
        self._bytes += len(tail) - (len(former[1]) if former is not None else 0)
        by_seq[stored.seq] = (stored, tail)


class RequestCache:
    """What was rendered for one subscriber of an event, for the next of them."""

    __slots__ = ("binary", "soap", "structured")

    def __init__(self) -> None:
        self.binary = RenderedEvents()
        self.structured = RenderedEvents()
        self.soap = RenderCache()


def request(
    head: RequestTemplate, events: list[Stored], cache: RequestCache, clock: Callable[[], float]
) -> tuple[bytes, bytes]:
    """The bytes of a POST, and the rest of them if they are many. A signature tells the time."""
    first = events[0]
    if head.soap is not None:
        if len(events) == 1:
            return whole_request(head.lines, head.soap, first, cache.soap), b""
        block, body = envelope(head.soap, events, cache.soap)
        if not head.lines:
            return envelope_message(head.soap.terms.soap, body), b""  # not by HTTP
        tail, rest = _tail(b"%d" % first.seq, block, body)
        return head.lines + tail, rest
    if head.batched or head.board is not None or head.secret is not None:
        return _own_request(head, events, clock)
    known = cache.structured if head.structured else cache.binary
    kept = known.by_seq.get(first.seq)
    if kept is not None and kept[0] is first:
        return head.lines + kept[1], b""
    block, body = (b"", structured_of(first)) if head.structured else binary_of(first)
    tail, rest = _tail(b"%d" % first.seq, block, body)
    if not rest:
        known.add(first, tail)
    return head.lines + tail, rest


def _own_request(
    head: RequestTemplate, events: list[Stored], clock: Callable[[], float]
) -> tuple[bytes, bytes]:
    """A batch or a signed request, of which nothing is the same for another subscriber."""
    first = events[0]
    block, sequence = b"", b"%d" % first.seq
    if head.board is not None:
        body = messages_of(events, head.board.profile, batched=head.batched)
    elif head.batched:
        body = batch(events)
    elif head.structured:
        body = structured_of(first)
    else:
        block, body = binary_of(first)
    if head.batched:
        sequence += b"-%d" % events[-1].seq
    if head.secret is not None:
        block += sign(head.secret, message_id(head.subscription.id, sequence), int(clock()), body)
    tail, rest = _tail(sequence, block, body)
    return head.lines + tail, rest


def _tail(sequence: bytes, block: bytes, body: bytes) -> tuple[bytes, bytes]:
    lines = b"tocsin-sequence: %b\r\n%bcontent-length: %d\r\n\r\n" % (sequence, block, len(body))
    return (lines, body) if len(body) > JOINED_BYTES_MAX else (lines + body, b"")


def message_id(subscription_id: str, sequence: bytes) -> str:
    """What the sink may remember to know a repetition: the same for every attempt."""
    return f"msg_{subscription_id}_{sequence.decode()}"


def handshake_request(
    sink: SinkAddress, origin: str, callback: str | None, shown: str = ""
) -> bytes:
    """The bytes of the OPTIONS request that asks a sink whether it wants events. `shown` is the
    line of its credential."""
    lines = (_first_lines("OPTIONS", sink) + shown).encode("ascii")
    return lines + handshake_headers(origin, callback_url=callback) + b"\r\n"
