"""What a stream is asked for: which events, and from where in the log."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.errors import BadRequest
from tocsin.event.filter import Filter
from tocsin.wire.api.query import Query, whole_number


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """Every event after `after` that passes the filter; without `after`, from now on."""

    filter: Filter
    after: int | None


def read_stream_request(query: bytes, last_event_id: str | None) -> StreamRequest:
    """From the URL, and the header with which a browser resumes: that one wins, being newer."""
    asked = Query.parse(query, ("filter", "after"))
    text = last_event_id or asked.text("after")
    try:
        after = None if text is None else whole_number("after", text)
    except BadRequest:
        if last_event_id is None:
            raise
        raise BadRequest(
            f"Last-Event-ID is {last_event_id[:40]!r}",
            remedy="Send back the `id` of the last event that came, a whole number.",
        ) from None
    return StreamRequest(asked.filter(), after)
