"""The description of reading the log: a page of JSON, or a stream of Arrow."""

from __future__ import annotations

from tocsin.wire.api import arrow
from tocsin.wire.api.openapi_parts import Json, operation, query, text, whole

_HEADERS = {
    arrow.FIRST: "the first event after `after` that is there; what is between is gone",
    arrow.NEXT: "the event through which the answer goes: pass it as `after` to go on",
    arrow.HEAD: "the last event there is",
}


def read_events() -> Json:
    """GET /events, by what the client accepts."""
    found = operation(
        "Read the log",
        {200: "EventsPage"},
        parameters=[
            query("after", "the sequence number to go on after", whole(0)),
            query("limit", "how many at most: 1 to 1,000, in Arrow to 100,000", whole(0, 100_000)),
            query("filter", "which events, in the filter language; not in Arrow", text()),
            query("columns", "in Arrow: which columns, as in seq,run,told.ExitCode", text()),
            query(
                arrow.CHECKED,
                "in Arrow: `yes` to have a file read to its end before any of it is given",
                text(),
            ),
        ],
    )
    answer = found["responses"]["200"]
    answer["content"][arrow.MEDIA_TYPE] = {}
    answer["headers"] = {
        name: {"description": f"in Arrow: {words}", "schema": whole(0)}
        for name, words in _HEADERS.items()
    }
    return found
