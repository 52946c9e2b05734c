"""What is said between a broker and the processes that evaluate XPath and XQuery for it."""

from __future__ import annotations

from struct import Struct
from typing import Final, Literal

import msgspec

Language = Literal["xpath", "xquery"]

HEAD: Final = Struct(">I")  # the length of what follows
FRAME_BYTES_MAX: Final = 16 << 20  # a slice of a search is some 5 MB at most


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """It has started and closed itself in."""


class Task(msgspec.Struct, frozen=True, tag="task"):
    """Evaluate this for as many of the documents as the time allows, and for one at least."""

    expression: str
    namespaces: tuple[tuple[str, str], ...]
    documents: tuple[bytes, ...]
    budget_ns: int


class Verdicts(msgspec.Struct, frozen=True, tag="verdicts"):
    """Of the first documents, whether they are found."""

    found: tuple[bool, ...]


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The expression cannot be evaluated, whatever the document."""

    problem: str


Answer = Ready | Verdicts | Refused

_encode: Final = msgspec.msgpack.Encoder().encode
read_task: Final = msgspec.msgpack.Decoder(Task).decode
read_answer: Final = msgspec.msgpack.Decoder(Ready | Verdicts | Refused).decode


def frame(message: Task | Answer) -> bytes:
    body = _encode(message)
    assert len(body) <= FRAME_BYTES_MAX, len(body)
    return HEAD.pack(len(body)) + body
