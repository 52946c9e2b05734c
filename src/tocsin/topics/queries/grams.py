"""Three characters in a row, without case: what the index of substrings is made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tocsin.topics.queries.requirement import (
    NOTHING,
    AllOf,
    AnyOf,
    Requirement,
    Text,
    all_of,
    any_of,
)

GRAM_CHARS: Final = 3
GRAMS_OF_TEXT_MAX: Final = 12  # of a longer text only some must occur: they are as good
GRAMS_MAX: Final = 96  # of one query


# The index takes letters for parts of a word, and ASCII punctuation and spaces for what stands
# between words. So each ASCII character is written as a letter. Some other character may be written
# so too: that makes a candidate more, which is then looked at.
_AS_LETTERS: Final = {code: 0x100 + code for code in range(0x80)}


def folded(text: str) -> str:
    """Equal for texts that RE2 takes for equal where case does not count."""
    return text.casefold()


def grams_of(lines: Iterable[str]) -> set[str]:
    """All that occur within a line, as the index has them."""
    found: set[str] = set()
    for line in lines:
        text = folded(line).translate(_AS_LETTERS)
        found |= {text[at : at + GRAM_CHARS] for at in range(len(text) - GRAM_CHARS + 1)}
    return found


def in_grams(wanted: Requirement) -> Requirement:
    """The same in grams: what has the texts has these; NOTHING where that would be too many."""
    found = _in_grams(wanted)
    return found if _count(found) <= GRAMS_MAX else NOTHING


def _in_grams(wanted: Requirement) -> Requirement:
    match wanted:
        case Text(text):
            grams = sorted(grams_of([text]))
            step = max(1, -(-len(grams) // GRAMS_OF_TEXT_MAX))
            return all_of(Text(gram) for gram in grams[::step])
        case AllOf(parts):
            return all_of(_in_grams(part) for part in parts)
        case AnyOf(parts):
            return any_of(_in_grams(part) for part in parts)


def _count(wanted: Requirement) -> int:
    return 1 if isinstance(wanted, Text) else sum(map(_count, wanted.parts))
