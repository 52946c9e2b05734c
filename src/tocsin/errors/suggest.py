"""What somebody who misspelt a word probably meant."""

from __future__ import annotations

from collections.abc import Collection

WORD_CHARS_MAX = 64  # longer ones are compared by their beginning
PREFIX_CHARS_MIN = 3


def nearest(word: str, known: Collection[str]) -> str | None:
    """The known word that is most like this one, or None if none is like it.

    Like it: a letter wrong, missing, too many or exchanged with its neighbour, about one in three;
    or one is the beginning of the other, as in `subscribe` for `sub`.
    """
    sought = word[:WORD_CHARS_MAX].lower()
    found: tuple[int, str] | None = None
    for each in known:
        distance = _distance(sought, each.lower())
        if distance <= max(1, max(len(sought), len(each)) // 3) and distance < len(each):
            found = min(found or (distance, each), (distance, each))
    if found is not None:
        return found[1]
    begun = [each for each in known if _is_beginning(sought, each.lower())]
    return max(begun, key=len) if begun else None


def _is_beginning(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= PREFIX_CHARS_MIN and long.startswith(short)


def _distance(one: str, other: str) -> int:
    """How many letters to change, add, drop or exchange with their neighbour."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            least = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                least = min(least, before[j - 2] + 1)
            row.append(least)
        before, last = last, row
    return last[-1]
