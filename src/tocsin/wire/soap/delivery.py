"""A notification as its parts: what every consumer of one format shares, and what is its own.

The bytes that an event makes in one format are made once, however many consumers speak it. A
message is `ConsumerParts.start`, the event's header blocks, the body up to where some formats name
the subscription, that name, and the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.event.subscription import SoapTerms
from tocsin.wire.soap.envelope import BODY_START, ENVELOPE_END, envelope_start
from tocsin.wire.soap.fault import escaped

Form = tuple[str, str, str, str, bool]


@dataclass(frozen=True, slots=True)
class EventParts:
    """An event, or several, in one format."""

    action: str
    header: bytes  # header blocks
    before: bytes  # the body, up to the place of the subscription's reference
    after: bytes = b""  # the rest of the body


@dataclass(frozen=True, slots=True)
class ConsumerParts:
    """What messages to one consumer have of their own."""

    start: bytes
    reference: bytes = b""  # the subscription, where the format names it


def form_of(terms: SoapTerms) -> Form:
    """Consumers with the same of these share their pieces."""
    return terms.spec, terms.soap, terms.wsa, terms.form, terms.bookmarks


def consumer_parts(terms: SoapTerms, address: str, reference: bytes = b"") -> ConsumerParts:
    """The beginning of every message to a consumer."""
    start = envelope_start(terms.soap)
    if terms.wsa:
        start += b'<a:To xmlns:a="%b">%b</a:To>' % (terms.wsa.encode(), escaped(address))
    return ConsumerParts(start + terms.references.encode(), reference)


def message(own: ConsumerParts, pieces: EventParts) -> bytes:
    """The whole envelope."""
    return b"".join(
        (
            own.start,
            pieces.header,
            BODY_START,
            pieces.before,
            own.reference,
            pieces.after,
            ENVELOPE_END,
        )
    )
