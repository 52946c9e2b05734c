"""What must occur in everything that a query finds: texts, joined by and and or."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """This must occur."""

    text: str


@dataclass(frozen=True, slots=True)
class AllOf:
    """Each of these; nothing in particular if there are none."""

    parts: tuple[Requirement, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of these, of which there are two or more."""

    parts: tuple[Requirement, ...]


Requirement = Text | AllOf | AnyOf
NOTHING = AllOf(())


def all_of(parts: Iterable[Requirement]) -> Requirement:
    """Flat, and each part once."""
    flat: dict[Requirement, None] = {}
    for part in parts:
        flat.update(dict.fromkeys(part.parts if isinstance(part, AllOf) else (part,)))
    return next(iter(flat)) if len(flat) == 1 else AllOf(tuple(flat))


def any_of(parts: Iterable[Requirement]) -> Requirement:
    """Nothing in particular, if one of the parts may be met by everything."""
    flat: dict[Requirement, None] = {}
    for part in parts:
        if part == NOTHING:
            return NOTHING
        flat.update(dict.fromkeys(part.parts if isinstance(part, AnyOf) else (part,)))
    if not flat:
        return NOTHING
    return next(iter(flat)) if len(flat) == 1 else AnyOf(tuple(flat))


def choices(wanted: Requirement) -> list[tuple[str, ...]]:
    """Each is a set of texts of which one must occur: where to look, one choice being enough."""
    match wanted:
        case Text(text):
            return [(text,)]
        case AllOf(parts):
            return [choice for part in parts for choice in choices(part)]
        case AnyOf(parts):
            # Of each part its first choice: a part that has none makes the whole have none.
            firsts = [next(iter(choices(part)), None) for part in parts]
            if None in firsts:
                return []
            return [tuple(dict.fromkeys(text for first in firsts if first for text in first))]
