"""Patterns of topic levels as tiny regular languages: membership, inclusion, overlap.

A pattern is a tuple of levels; `*` stands for exactly one level and `**` for any number, also none.
Every other level stands for itself. Topic levels never hold a `*`, so nothing needs escaping.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

ONE = "*"
MANY = "**"

# Inclusion can need exponentially many sets of states for patterns made to be awkward
# (`**/x/*/*/*/*/*`); patterns that people write need a few dozen. Past this many the answer is no,
# which is always safe: a pattern not known to cover another is only a saving missed.
INCLUSION_STEPS_MAX = 1_024
ANSWERS_KEPT = 4_096

_FRESH = ONE  # As a letter: a level that neither pattern names, so that only wildcards take it.


def fits(pattern: tuple[str, ...], topic: tuple[str, ...]) -> bool:
    """True if the topic is in the pattern's language."""
    at = position = 0
    # Only the latest `**` ever needs another try: it can take whatever an earlier one would have.
    retry_at, retry_position = -1, 0
    while position < len(topic):
        if at < len(pattern) and pattern[at] == MANY:
            retry_at, retry_position = at, position
            at += 1
        elif at < len(pattern) and pattern[at] in (ONE, topic[position]):
            at += 1
            position += 1
        elif retry_at >= 0:
            retry_position += 1
            at, position = retry_at + 1, retry_position
        else:
            return False
    return all(level == MANY for level in pattern[at:])


@lru_cache(maxsize=ANSWERS_KEPT)
def overlaps(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """True if some topic fits both patterns."""
    seen: set[tuple[int, int]] = set()
    waiting = [(0, 0)]
    while waiting:
        pair = waiting.pop()
        if pair in seen:
            continue
        seen.add(pair)
        i, j = pair
        if i == len(one) and j == len(other):
            return True
        waiting.extend(_steps_together(one[i:], other[j:], i, j))
    return False


def _steps_together(
    one: tuple[str, ...], other: tuple[str, ...], i: int, j: int
) -> Iterator[tuple[int, int]]:
    if one and one[0] == MANY:
        yield i + 1, j
        if other:
            yield i, j + 1
    if other and other[0] == MANY:
        yield i, j + 1
        if one:
            yield i + 1, j
    if one and other and (one[0] == other[0] or ONE in (one[0], other[0])):
        yield i + 1, j + 1


@lru_cache(maxsize=ANSWERS_KEPT)
def includes(wide: tuple[str, ...], narrow: tuple[str, ...]) -> bool:
    """True only if every topic that fits `narrow` fits `wide`; exact up to INCLUSION_STEPS_MAX.

    A level that nobody named is the hardest one to accept: only wildcards take it. So it is enough
    to follow `narrow` with such a level in the place of each of its wildcards, once for every
    number of levels that a `**` may stand for, and to keep the set of places (a bit mask) where
    `wide` may then be.
    """
    finish = 1 << len(wide)
    seen: set[tuple[int, int]] = set()
    waiting = [(0, _settled(wide, 1))]
    while waiting:
        step = waiting.pop()
        if step in seen:
            continue
        if len(seen) >= INCLUSION_STEPS_MAX:
            return False
        seen.add(step)
        at, places = step
        if not places:
            return False
        if at == len(narrow):
            if not places & finish:
                return False
        elif narrow[at] == MANY:
            waiting.append((at + 1, places))
            waiting.append((at, _after(wide, places, _FRESH)))
        else:
            waiting.append((at + 1, _after(wide, places, narrow[at])))
    return True


def _after(pattern: tuple[str, ...], places: int, letter: str) -> int:
    """Where the pattern may be once it has taken one more level."""
    moved = 0
    for index, level in enumerate(pattern):
        if not places >> index & 1:
            continue
        if level == MANY:
            moved |= 1 << index
        elif level in (ONE, letter):
            moved |= 1 << (index + 1)
    return _settled(pattern, moved)


def _settled(pattern: tuple[str, ...], places: int) -> int:
    """The places with those added that are reached by letting a `**` stand for nothing."""
    for index, level in enumerate(pattern):
        if level == MANY and places >> index & 1:
            places |= 1 << (index + 1)
    return places
