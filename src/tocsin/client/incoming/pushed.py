"""The requests that a pushed consumer gets, and the answers it gives. No sockets."""

from __future__ import annotations

import json

from tocsin.client.incoming.consumed import (
    ConsumedEvent,
    from_binary,
    from_members,
    from_structured,
)
from tocsin.client.outgoing import BATCH_MEDIA_TYPE, EVENT_MEDIA_TYPE
from tocsin.errors import BadEvent

REQUEST_BYTES_MAX = 16 * 1024 * 1024
CONNECTIONS_MAX = 16
QUEUE_EVENTS_MAX = 100
TAKEN_WAIT_S = 20.0  # less than a broker waits for an answer, so that it hears ours

TAKEN = b"HTTP/1.1 204 No Content\r\n\r\n"
NOT_TAKEN = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
BAD = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
BAD_METHOD = b"HTTP/1.1 405 Method Not Allowed\r\nAllow: POST, OPTIONS\r\nContent-Length: 0\r\n\r\n"
TOO_LARGE = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def pushed_events(headers: dict[str, str], body: bytes) -> list[ConsumedEvent]:
    """The events in a pushed request, whichever of the three modes it is in."""
    essence = headers.get("content-type", "").partition(";")[0].strip().lower()
    if essence == BATCH_MEDIA_TYPE:
        try:
            batch = json.loads(body)
        except ValueError:
            batch = None
        if not isinstance(batch, list) or not all(isinstance(event, dict) for event in batch):
            raise BadEvent("the batch is not a JSON array of events", remedy="Send one.")
        return [from_members(members, b"") for members in batch]
    if essence == EVENT_MEDIA_TYPE:
        seq = headers.get("tocsin-sequence", "")
        return [from_structured(body, int(seq) if seq.isdecimal() else 0)]
    if "ce-id" not in headers:
        raise BadEvent("the request is not a CloudEvent", remedy="Send one.")
    return [from_binary(headers, body)]


def handshake_answer(headers: dict[str, str]) -> bytes:
    """Yes to a broker that asks whether events are wanted here (CloudEvents abuse protection)."""
    origin = headers.get("webhook-request-origin", "*")
    return (
        f"HTTP/1.1 200 OK\r\nWebHook-Allowed-Origin: {origin}\r\n"
        "WebHook-Allowed-Rate: *\r\nAllow: POST, OPTIONS\r\nContent-Length: 0\r\n\r\n"
    ).encode("latin-1")
