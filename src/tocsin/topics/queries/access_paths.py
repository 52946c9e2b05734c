"""Access paths: where in the catalog's indexes to look for what may match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tocsin.topics.queries.requirement import Requirement
from tocsin.topics.queries.words import Term

Key = str | float | int
Kind = Literal["number", "text", "flag"]
Column = Literal["uuid", "topic", "creator", "institution", "created", "expires", "duration"]


@dataclass(frozen=True, slots=True)
class Range:
    """From `low` to `high`, where they are not None."""

    low: Key | None = None
    high: Key | None = None
    is_low_open: bool = False
    is_high_open: bool = False

    @classmethod
    def exactly(cls, key: Key) -> Range:
        return cls(key, key)

    @property
    def is_one(self) -> bool:
        return self.low is not None and self.low == self.high


@dataclass(frozen=True, slots=True)
class ByProperty:
    """Those with a property of this name with a value in the range."""

    name: str
    kind: Kind
    range: Range


@dataclass(frozen=True, slots=True)
class ByColumn:
    """Those of which this is in the range."""

    column: Column
    range: Range


@dataclass(frozen=True, slots=True)
class ByWords:
    """Those in which all terms occur."""

    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class ByGrams:
    """Those in which these grams occur."""

    required: Requirement


@dataclass(frozen=True, slots=True)
class ByXmlValue:
    """Those whose XML document has this value or name."""

    value: str


@dataclass(frozen=True, slots=True)
class Everything:
    """All of them, as a scan."""


AccessPath = ByProperty | ByColumn | ByWords | ByGrams | ByXmlValue | Everything


def beginning_with(prefix: str) -> Range:
    """The texts, in the order of their code points, that begin with the prefix."""
    for at in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[at])
        if code < 0x10FFFF:
            # Surrogates are no characters.
            following = 0xE000 if code == 0xD7FF else code + 1
            return Range(prefix, prefix[:at] + chr(following), is_high_open=True)
    return Range(prefix or None)
