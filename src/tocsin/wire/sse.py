"""Server-sent events, as a browser reads them: https://html.spec.whatwg.org/#server-sent-events."""

from __future__ import annotations

from typing import Final

HEARTBEAT: Final = b":\n\n"  # a comment
_LINE_BREAKS: Final = bytes.maketrans(b"\r\n", b"  ")


def sse_event(data: bytes, *, name: bytes = b"", id: int | None = None) -> bytes:
    """One event. The data is JSON: line breaks are between its tokens only, and mean no more than
    a space there."""
    if b"\n" in data or b"\r" in data:
        data = data.translate(_LINE_BREAKS)
    id_line = b"" if id is None else b"id: %d\n" % id
    name_line = b"event: %b\n" % name if name else b""
    return b"%b%bdata: %b\n\n" % (id_line, name_line, data)


def sse_start(retry_ms: int, id: int | None = None) -> bytes:
    """What a stream begins with: when to come back, and from where in the log on."""
    id_line = b"" if id is None else b"id: %d\n" % id
    return b"retry: %d\n%b\n" % (retry_ms, id_line)
