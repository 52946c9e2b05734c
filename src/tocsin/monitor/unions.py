"""Unions: sets of texts that stay small however much is said, and in whatever order.

What is kept are the shortest, and among those of one length the first by their letters, as many
as fit. Of two that do not fit both, the shorter stays: had the longer one stayed, a text that was
left out in one order could have found room in another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

ITEMS_MAX: Final = 1_000
# A run's row is read and written with every batch that speaks of it: a mebibyte takes some 2 ms.
BYTES_MAX: Final = 256 << 10
BYTES_MAX_OF: Final = {"files": 1 << 20}  # with their texts, of which publishers cut each at 64 KiB
UTF8_BYTES_MAX: Final = 4  # of one character


def united(field: str, *sides: Iterable[str]) -> tuple[list[str], bool]:
    """The texts of all sides that fit, sorted; and whether some did not."""
    texts = sorted({each for side in sides for each in side})
    bytes_max = BYTES_MAX_OF.get(field, BYTES_MAX)
    if len(texts) <= ITEMS_MAX and sum(map(len, texts)) * UTF8_BYTES_MAX <= bytes_max:
        return texts, False
    kept: list[str] = []
    left_bytes = bytes_max
    for size, text in sorted((_size(each), each) for each in texts):
        left_bytes -= size
        if left_bytes < 0 or len(kept) == ITEMS_MAX:
            break
        kept.append(text)
    return sorted(kept), len(kept) < len(texts)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
