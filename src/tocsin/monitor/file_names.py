"""Names of files: which of those that activities reported is meant by a name in a query.

A name matches by its last parts: `a.txt` and `results/a.txt` mean `/data/run7/results/a.txt`. A
name that begins with a slash is matched as a whole. `*`, `?` and `[...]` stand for anything within
one part of the path.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

WILD: Final = frozenset("*?[")
LAST_CHARACTER: Final = "\U0010ffff"


def base_of(name: str) -> str:
    """The last part of a path; of a directory, its name."""
    return name.rstrip("/").rpartition("/")[2]


def resolved(name: str, directory: str | None) -> str:
    """Where the file is: under the directory that its run worked in, unless it says more."""
    plain = name.removeprefix("./").rstrip("/")
    if plain.startswith("/") or "://" in plain or not directory:
        return plain
    return f"{directory.rstrip('/')}/{plain}"


@dataclass(frozen=True, slots=True)
class AskedName:
    """A name that somebody asks for, ready to be compared."""

    parts: tuple[str, ...]
    is_whole: bool

    def fits(self, path: str) -> bool:
        """True if the path is meant."""
        parts = _parts(path)
        if len(parts) < len(self.parts) or (self.is_whole and len(parts) != len(self.parts)):
            return False
        if self.is_whole and not path.startswith("/") and "://" not in path:
            return False
        last = parts[-len(self.parts) :]
        return all(map(_same, self.parts, last))

    def may_fit(self, name: str) -> bool:
        """True if the name as it was reported, in whichever directory, may be meant."""
        parts = _parts(name.removeprefix("./"))
        count = min(len(parts), len(self.parts))
        return all(map(_same, self.parts[-count:], parts[-count:]))

    @property
    def base_from(self) -> str:
        """What the last part of every path that is meant begins with."""
        return _literal(self.parts[-1])

    @property
    def base_until(self) -> str:
        """What it ends with."""
        return _literal(self.parts[-1][::-1].replace("]", "["))[::-1]

    @property
    def is_wild(self) -> bool:
        return not WILD.isdisjoint(self.parts[-1])


def asked_name(text: str) -> AskedName | None:
    """The name that is asked for; None if it names nothing."""
    parts = _parts(text.removeprefix("./"))
    return AskedName(parts, text.startswith("/")) if parts else None


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


def _same(pattern: str, part: str) -> bool:
    return pattern == part or (not WILD.isdisjoint(pattern) and fnmatchcase(part, pattern))


def _literal(text: str) -> str:
    """The text up to its first wildcard."""
    ends = [text.index(each) for each in WILD if each in text]
    return text[: min(ends)] if ends else text
