"""Messages as JSON arrays that a broker takes: no more bytes in one request than it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tocsin.wire.blackboard.messages import Message

REQUEST_BYTES_MAX = 4 << 20  # a quarter of what brokers usually take

_encode = msgspec.json.Encoder().encode


def in_requests(messages: Sequence[Message]) -> Iterator[bytes]:
    """All of them, in order; one that is too large by itself stands alone."""
    texts: list[bytes] = []
    size = 0
    for message in messages:
        text = _encode(message)
        if texts and size + len(text) > REQUEST_BYTES_MAX:
            yield b"[" + b",".join(texts) + b"]"
            texts, size = [], 0
        texts.append(text)
        size += len(text) + 1
    if texts:
        yield b"[" + b",".join(texts) + b"]"
