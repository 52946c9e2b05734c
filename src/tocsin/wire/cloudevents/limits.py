"""How large an event may be."""

from __future__ import annotations

from dataclasses import dataclass

ATTRIBUTE_NAME_CHARS_MAX = 64  # CloudEvents: SHOULD NOT exceed 20
MEDIA_TYPE_CHARS_MAX = 1024  # those seen are remembered, so they must be short
INT64_MAX = (1 << 63) - 1  # the largest number that every log and dialect can hold
JSON_DEPTH_MAX = 64  # of the payload; far below where a parser's recursion ends


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may bring; the broker's settings fill it."""

    event_bytes_max: int = 1 << 20
    batch_events_max: int = 10_000
    attributes_max: int = 64
    attribute_text_max: int = 8 << 10  # an attribute travels in a header line, and those end here
