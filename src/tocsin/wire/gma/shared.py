"""What every consumer of performance events gets of a stored event, made once for all of them."""

from __future__ import annotations

from tocsin.event.stored import Stored
from tocsin.wire.gma.normal import content_of


def performance_element(stored: Stored) -> bytes:
    """The event as the one element inside an Event message."""
    content = stored.performance
    if content is None:
        content = stored.performance = content_of(stored.event, stored.received_ns)
    return content
