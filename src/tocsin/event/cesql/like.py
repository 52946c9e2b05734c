"""LIKE: `%` is any text, `_` any one character, a backslash before either means itself.

Patterns come from strangers, so nothing here tries again: the time is the text's length times a
small constant, whatever the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_PIECE = re.compile(r"\\[%_]|[%_]|[^%_\\]+|\\", re.DOTALL)

_ANY_TEXT = "%"
_ANY_CHAR = "_"


def compile_like(pattern: str) -> Callable[[str], bool]:
    """The question whether a text fits the pattern."""
    pieces: list[str] = _PIECE.findall(pattern)
    if _ANY_CHAR in pieces:
        return _by_states(pieces)
    return _by_search(pieces)


def _by_search(pieces: list[str]) -> Callable[[str], bool]:
    """Without `_` there are only literal parts: each is taken where it is first found."""
    parts = [""]
    for piece in pieces:
        if piece == _ANY_TEXT:
            parts.append("")
        else:
            parts[-1] += _literal(piece)
    if len(parts) == 1:
        return parts[0].__eq__
    head, *middle, tail = parts

    def fits(text: str) -> bool:
        end = len(text) - len(tail)
        if end < len(head) or not text.startswith(head) or not text.endswith(tail):
            return False
        start = len(head)
        for part in middle:
            found = text.find(part, start, end)
            if found < 0:
                return False
            start = found + len(part)
        return True

    return fits


def _by_states(pieces: list[str]) -> Callable[[str], bool]:
    """Bit n of the state: the first n characters of the pattern may have been used up so far.

    All states step at once, as one integer (Baeza-Yates and Gonnet's shift-and).
    """
    places: dict[str, int] = {}
    any_char = loops = 0
    size = 0
    for piece in pieces:
        if piece == _ANY_TEXT:
            loops |= 1 << size
        elif piece == _ANY_CHAR:
            any_char |= 1 << size
            size += 1
        else:
            for char in _literal(piece):
                places[char] = places.get(char, 0) | 1 << size
                size += 1
    steps = {char: places_of | any_char for char, places_of in places.items()}

    def fits(text: str) -> bool:
        state = 1
        for char in text:
            state = (state & steps.get(char, any_char)) << 1 | state & loops
            if not state:
                return False
        return bool(state >> size & 1)

    return fits


def _literal(piece: str) -> str:
    return piece[1:] if len(piece) == 2 and piece[0] == "\\" else piece
