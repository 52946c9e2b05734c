"""Server-sent events, read in bulk: blocks of lines in, sequence numbers and data out."""

from __future__ import annotations

import re
from typing import NamedTuple

from tocsin.errors import TooLarge

BLOCK_BYTES_MAX = 64 * 1024 * 1024  # one event; the broker's own limit is far below

POSITION = "position"

_PAIRS = re.compile(rb"^id: ?([0-9]+)\ndata: ?(.*)$", re.MULTILINE)


class Message(NamedTuple):
    """One message of a stream; `kind` is empty for an event of the log.

    A message of the kind POSITION has no data: it says how far the stream has come.
    """

    kind: str
    seq: int
    data: bytes


class StreamReader:
    """Cuts messages from a stream, wherever the network cut it."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Message]:
        """Every message that is whole by now."""
        whole = self._whole(data)
        if not whole:
            return []
        if b"event:" not in whole and whole.count(b"\ndata:") == whole.count(b"\n\n"):
            # The usual case, at the speed of the pattern: one id and one data line each.
            pairs = _PAIRS.findall(whole)
            if len(pairs) == whole.count(b"\n\n"):
                return [Message("", int(seq), text) for seq, text in pairs]
        return [message for block in whole.split(b"\n\n") if (message := _message(block))]

    def _whole(self, data: bytes) -> bytes:
        buffer = self._rest + data if self._rest else data
        end = buffer.rfind(b"\n\n") + 2
        if end == 1:
            if len(buffer) > BLOCK_BYTES_MAX:
                raise TooLarge(
                    f"one message of the stream is over {BLOCK_BYTES_MAX} bytes",
                    remedy="Check that the address is that of a Tocsin broker.",
                )
            self._rest = buffer
            return b""
        self._rest = buffer[end:]
        return buffer[:end]


def _message(block: bytes) -> Message | None:
    kind = ""
    seq: int | None = None
    data: list[bytes] = []
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"id" and value.isdigit():
            seq = int(value)
        elif name == b"event":
            kind = value.decode("utf-8", "replace")
    if not data and not kind:
        # The place 0 is one too: that of a log with nothing in it yet.
        return None if seq is None else Message(POSITION, seq, b"")
    return Message(kind, seq or 0, b"\n".join(data))
