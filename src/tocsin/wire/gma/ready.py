"""Replies around an event that is written already."""

from __future__ import annotations

from tocsin.wire.gma.messages import QueryReply
from tocsin.wire.gma.write import write

_END = b"</QueryReply>"


def query_reply(request_id: str, content: bytes) -> bytes:
    """The reply to a query, with the event as it stands in the log."""
    reply = write(QueryReply(request_id))
    assert reply.endswith(_END)
    return b"%b%b%b" % (reply[: -len(_END)], content, _END)
