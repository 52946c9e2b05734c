"""Requests to Web-services consumers: an event in the consumer's own specification and versions.

What an event makes in one format is made once and shared by every consumer of that format; a
consumer adds its address, its reference headers and the name of its subscription.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import SoapTerms, Subscription
from tocsin.wire.soap.delivery import Face, Form, Pieces, face, form_of
from tocsin.wire.soap.envelope import BODY_START, ENVELOPE_END, http_headers
from tocsin.wire.wse import deliver as wse
from tocsin.wire.wsn import deliver as wsn

FORMATS_MAX: Final = 64  # kept at once; there are about as many combinations that anybody uses
KEPT_MAX: Final = 1_024
KEPT_BYTES_MAX: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class SoapHead:
    """What all messages of one subscription have in common."""

    terms: SoapTerms
    face: Face
    form: Form


@dataclass(frozen=True, slots=True)
class Rendered:
    """An event in one format, with the HTTP header lines that belong to it."""

    pieces: Pieces
    lines: bytes
    before: bytes  # the message between what the consumer adds
    after: bytes


def soap_head(subscription: Subscription) -> SoapHead:
    """The beginning of every message of a subscription that has SOAP terms."""
    terms, sink = subscription.soap, subscription.sink
    assert terms is not None
    reference = b""
    if terms.spec.startswith("wsn"):
        reference = wsn.own_reference(terms, subscription.id)
    return SoapHead(terms, face(terms, sink or "", reference), form_of(terms))


class Renderings:
    """What was rendered for one consumer of an event, for the next of them."""

    __slots__ = ("_by_form", "_bytes")

    def __init__(self) -> None:
        self._by_form: dict[Form, dict[int, tuple[Stored, Rendered]]] = {}
        self._bytes = 0

    def of(self, head: SoapHead, stored: Stored) -> Rendered:
        by_seq = self._by_form.get(head.form)
        if by_seq is None:
            if len(self._by_form) >= FORMATS_MAX:
                self._forget()
            by_seq = self._by_form[head.form] = {}
        kept = by_seq.get(stored.seq)
        if kept is not None and kept[0] is stored:
            return kept[1]
        made = render([stored.event], head.terms)
        self._bytes += len(made.before) + len(made.after)
        if self._bytes > KEPT_BYTES_MAX or len(by_seq) >= KEPT_MAX:
            self._forget()
            by_seq = self._by_form[head.form] = {}
            self._bytes = len(made.before) + len(made.after)
        by_seq[stored.seq] = (stored, made)
        return made

    def _forget(self) -> None:
        self._by_form.clear()
        self._bytes = 0


def render(events: Sequence[Event], terms: SoapTerms) -> Rendered:
    """The events in the format that the terms ask for."""
    room = wse if terms.spec.startswith("wse") else wsn
    pieces = room.pieces(events, terms)
    lines = "".join(
        f"{name}: {value}\r\n" for name, value in http_headers(terms.soap, pieces.action)
    )
    before = pieces.header + BODY_START + pieces.before
    return Rendered(pieces, lines.encode("latin-1"), before, pieces.after + ENVELOPE_END)


def envelope(
    head: SoapHead, events: list[Stored], renderings: Renderings, more_headers: bytes = b""
) -> tuple[bytes, bytes]:
    """The HTTP header lines of a message, and the message."""
    if len(events) == 1:
        made = renderings.of(head, events[0])
    else:
        made = render([stored.event for stored in events], head.terms)
    own = head.face
    return made.lines, b"".join((own.start, more_headers, made.before, own.reference, made.after))
