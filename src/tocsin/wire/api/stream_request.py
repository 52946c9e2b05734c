"""What a stream is asked for: which events, and from where in the log."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.errors import BadRequest
from tocsin.event.concept_filter import concepts_filter
from tocsin.event.filter import Filter
from tocsin.wire.api.query import Query, whole_number

ALL_CONCEPTS = "Concept"  # what every other one is a kind of


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """Every event after `after` that passes the filter; without `after`, from now on."""

    filter: Filter
    after: int | None

    def position(self, head: int) -> int:
        """Where to go on if the connection breaks before the first event."""
        return head if self.after is None else min(self.after, head)


def read_stream_request(query: bytes, last_event_id: str | None) -> StreamRequest:
    """From the URL, and the header with which a browser resumes: that one wins, being newer."""
    asked = Query.parse(query, ("filter", "after"))
    return StreamRequest(asked.filter(), _after(asked, last_event_id))


def read_board_request(query: bytes, last_event_id: str | None) -> StreamRequest:
    """The same for the blackboard: `concepts` are names with commas between; all without."""
    asked = Query.parse(query, ("concepts", "after"))
    text = asked.text("concepts")
    names = [ALL_CONCEPTS] if text is None else [name.strip() for name in text.split(",")]
    return StreamRequest(concepts_filter(names), _after(asked, last_event_id))


def _after(asked: Query, last_event_id: str | None) -> int | None:
    text = last_event_id or asked.text("after")
    try:
        return None if text is None else whole_number("after", text)
    except BadRequest:
        if last_event_id is None:
            raise
        raise BadRequest(
            f"Last-Event-ID is {last_event_id[:40]!r}",
            remedy="Send back the `id` of the last event that came, a whole number.",
        ) from None
