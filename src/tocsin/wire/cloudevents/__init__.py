"""CloudEvents 1.0: the JSON format, its batches, and the HTTP binding's binary mode.

Here the event is the message and every request stands for itself, so this room has no messages.py,
no normal.py and no conversation.py: `read` and `write` are all it needs. `webhook` holds what the
push of events adds: a signature, and the asking for consent.
"""

from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.cloudevents.read import read_events
from tocsin.wire.cloudevents.write import (
    batch,
    binary_headers,
    binary_of,
    structured,
    structured_of,
)

__all__ = [
    "Limits",
    "batch",
    "binary_headers",
    "binary_of",
    "read_events",
    "structured",
    "structured_of",
]
