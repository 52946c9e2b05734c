"""Many small pieces of text as fewer, larger ones: a long document is sent while it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

CHUNK_CHARS: Final = 65_536


def chunks(pieces: Iterable[str]) -> Iterator[bytes]:
    """The pieces in UTF-8, gathered until there are enough of them."""
    gathered: list[str] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= CHUNK_CHARS:
            yield "".join(gathered).encode()
            gathered.clear()
            size = 0
    if gathered:
        yield "".join(gathered).encode()
