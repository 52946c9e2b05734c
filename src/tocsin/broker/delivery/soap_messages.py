"""Requests to Web-services consumers: an event in the consumer's own specification and versions.

What an event makes in one format is made once and shared by every consumer of that format; a
consumer adds its address, its reference headers and the name of its subscription.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tocsin.broker.delivery.address import SOAP_TCP
from tocsin.event.stored import Stored
from tocsin.event.subscription import SoapTerms, Subscription
from tocsin.wire.soap.delivery import ConsumerParts, EventParts, Form, consumer_parts, form_of
from tocsin.wire.soap.envelope import BODY_START, ENVELOPE_END, http_headers
from tocsin.wire.wse import deliver as wse
from tocsin.wire.wse.write import bookmark
from tocsin.wire.wsn import deliver as wsn

KEPT_MAX: Final = 4_096
KEPT_BYTES_MAX: Final = 8 << 20
NO_FORM: Final[Form] = ("", "", "", "", False)


@dataclass(frozen=True, slots=True)
class SoapTemplate:
    """What all messages of one subscription have in common."""

    terms: SoapTerms
    consumer_parts: ConsumerParts
    form: Form
    size: int  # of what the consumer adds to a message
    is_plain: bool  # a POST is all it wants, and its status the answer


@dataclass(frozen=True, slots=True)
class Rendered:
    """An event in one format, with the HTTP header lines that belong to it."""

    pieces: EventParts
    lines: bytes
    before: bytes  # the message between what the consumer adds
    after: bytes
    size: int  # of both


@lru_cache(maxsize=1_024)
def one_form(form: Form) -> Form:
    """The same object for the same form, so that `is` tells them apart."""
    return form


def soap_template(subscription: Subscription) -> SoapTemplate:
    """The beginning of every message of a subscription that has SOAP terms."""
    terms, sink = subscription.soap, subscription.sink
    assert terms is not None
    reference = b""
    if terms.spec.startswith("wsn"):
        reference = wsn.own_reference(terms, subscription.id)
    own = consumer_parts(terms, sink or "", reference)
    by_dime = (sink or "").lower().startswith(f"{SOAP_TCP}:")
    return SoapTemplate(
        terms,
        own,
        one_form(form_of(terms)),
        len(own.start) + len(own.reference),
        not (terms.form == "acked" or terms.reliable or terms.box or by_dime),
    )


class RenderCache:
    """What was rendered for one consumer of an event, for the next of them."""

    __slots__ = ("_bytes", "_kept", "_last")

    def __init__(self) -> None:
        self._kept: dict[tuple[int, Form], tuple[Stored, Rendered]] = {}
        self._last: tuple[Stored | None, Form, Rendered | None] = (None, NO_FORM, None)
        self._bytes = 0

    def again(self, head: SoapTemplate, stored: Stored) -> Rendered:
        """As `of`; quicker for who comes right after another consumer of the same event."""
        last, form, made = self._last
        if made is not None and last is stored and form is head.form:
            return made
        made = self.of(head, stored)
        self._last = (stored, head.form, made)
        return made

    def of(self, head: SoapTemplate, stored: Stored) -> Rendered:
        """The event in the format of this consumer, made now or before."""
        key = (stored.seq, head.form)
        kept = self._kept.get(key)
        if kept is not None and kept[0] is stored:
            return kept[1]
        made = render([stored], head.terms)
        if self._bytes + made.size > KEPT_BYTES_MAX or len(self._kept) >= KEPT_MAX:
            self._kept.clear()
            self._bytes = 0
        self._bytes += made.size
        self._kept[key] = (stored, made)
        return made


def render(events: Sequence[Stored], terms: SoapTerms) -> Rendered:
    """The events in the format that the terms ask for."""
    room = wse if terms.spec.startswith("wse") else wsn
    pieces = room.pieces([stored.event for stored in events], terms)
    lines = "".join(
        f"{name}: {value}\r\n" for name, value in http_headers(terms.soap, pieces.action)
    )
    bookmarked = bookmark(events[-1].seq) if terms.bookmarks else b""
    before = pieces.header + bookmarked + BODY_START + pieces.before
    after = pieces.after + ENVELOPE_END
    return Rendered(pieces, lines.encode("latin-1"), before, after, len(before) + len(after))


def envelope(
    head: SoapTemplate, events: list[Stored], cache: RenderCache, more_headers: bytes = b""
) -> tuple[bytes, bytes]:
    """The HTTP header lines of a message, and the message."""
    if len(events) == 1:
        made = cache.of(head, events[0])
    else:
        made = render(events, head.terms)
    own = head.consumer_parts
    return made.lines, b"".join((own.start, more_headers, made.before, own.reference, made.after))


def whole_request(
    first_lines: bytes, head: SoapTemplate, stored: Stored, cache: RenderCache
) -> bytes:
    """The bytes of a POST with one event: glued once, as every consumer's is another."""
    made = cache.again(head, stored)
    own = head.consumer_parts
    return b"".join(
        (
            first_lines,
            made.lines,
            b"tocsin-sequence: %d\r\ncontent-length: %d\r\n\r\n"
            % (stored.seq, made.size + head.size),
            own.start,
            made.before,
            own.reference,
            made.after,
        )
    )
