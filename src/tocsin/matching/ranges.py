"""Ranges: which values of one facet a conjunction of predicates lets through, exactly.

Numbers are a closed interval of doubles: `< v` ends at the double before v, so nothing is lost at
the bound. Texts are a half-open interval in code point order: the text that follows s at once is
s with a NUL after it, so `<= s` ends before that, and a prefix is an interval too. Both hold the
values taken out by `!=`, and a text also what it must end with and contain.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from math import inf, nextafter

from tocsin.event.filter import Operator
from tocsin.event.filter_eval import text_holds

_NUMBER_MAX = sys.float_info.max
_LAST_CHARACTER = chr(sys.maxunicode)


@dataclass(frozen=True, slots=True)
class NumberRange:
    """The doubles from `low` to `high`, both included, without those in `out`."""

    low: float = -_NUMBER_MAX
    high: float = _NUMBER_MAX
    out: frozenset[float] = frozenset()

    @property
    def is_empty(self) -> bool:
        return self.low > self.high

    def __and__(self, other: NumberRange) -> NumberRange:
        low, high = max(self.low, other.low), min(self.high, other.high)
        out = self.out | other.out
        while low in out and low <= high:
            low = nextafter(low, inf)
        while high in out and low <= high:
            high = nextafter(high, -inf)
        return NumberRange(low, high, frozenset(each for each in out if low < each < high))

    def contains(self, other: NumberRange) -> bool:
        """True if every number of the other range is in this one."""
        if other.is_empty:
            return True
        if not (self.low <= other.low and other.high <= self.high):
            return False
        return all(not other.low <= each <= other.high or each in other.out for each in self.out)


def number_range(how: Operator, value: float) -> NumberRange:
    """The numbers that are so compared with the value."""
    match how:
        case Operator.EQ:
            return NumberRange(value, value)
        case Operator.LT:
            return NumberRange(high=nextafter(value, -inf))
        case Operator.LE:
            return NumberRange(high=value)
        case Operator.GT:
            return NumberRange(low=nextafter(value, inf))
        case Operator.GE:
            return NumberRange(low=value)
    assert how is Operator.NE, how
    return NumberRange() & NumberRange(out=frozenset({value}))


@dataclass(frozen=True, slots=True)
class TextRange:
    """The texts from `low` up to and without `end`, not in `out`, that pass every test."""

    low: str = ""
    end: str | None = None  # None: there is no end
    out: frozenset[str] = frozenset()
    tests: frozenset[tuple[Operator, str]] = frozenset()  # PREFIX, SUFFIX, CONTAINS

    @property
    def only(self) -> str | None:
        """The one text between the bounds, if there is just one."""
        return self.low if self.end == self.low + "\0" else None

    @property
    def is_empty(self) -> bool:
        if self.end is not None and self.low >= self.end:
            return True
        only = self.only
        return only is not None and not self._passes_tests(only)

    def has(self, text: str) -> bool:
        """True if the text is one of these."""
        between = self.low <= text and (self.end is None or text < self.end)
        return between and text not in self.out and self._passes_tests(text)

    def __and__(self, other: TextRange) -> TextRange:
        low = max(self.low, other.low)
        ends = [end for end in (self.end, other.end) if end is not None]
        end = min(ends) if ends else None
        out = self.out | other.out
        while low in out and (end is None or low < end):
            low += "\0"
        return TextRange(low, end, out, self.tests | other.tests)

    def contains(self, other: TextRange) -> bool:
        """True only if every text of the other range is in this one."""
        if other.is_empty:
            return True
        if other.only is not None:
            return self.has(other.only)
        if self.low > other.low:
            return False
        if self.end is not None and (other.end is None or other.end > self.end):
            return False
        if any(other.has(each) for each in self.out):
            return False
        return all(other._implies(how, text) for how, text in self.tests)

    def _implies(self, how: Operator, text: str) -> bool:
        # Both bounds of a prefix are in the interval, so that one needs no test of its own.
        if how is Operator.PREFIX:
            return True
        if how is Operator.SUFFIX:
            return any(own is how and known.endswith(text) for own, known in self.tests)
        return any(text in known for _, known in self.tests)

    def _passes_tests(self, text: str) -> bool:
        return all(text_holds(text, how, wanted) for how, wanted in self.tests)


def text_range(how: Operator, value: str) -> TextRange:
    """The texts that are so compared with the value."""
    after = value + "\0"
    match how:
        case Operator.EQ:
            return TextRange(value, after)
        case Operator.LT:
            return TextRange(end=value)
        case Operator.LE:
            return TextRange(end=after)
        case Operator.GT:
            return TextRange(after)
        case Operator.GE:
            return TextRange(value)
        case Operator.NE:
            return TextRange() & TextRange(out=frozenset({value}))
    tested = TextRange(tests=frozenset({(how, value)}))
    if how is not Operator.PREFIX:
        return tested
    return replace(tested, low=value, end=_after_prefix(value))


def _after_prefix(prefix: str) -> str | None:
    """The first text after all that begin with the prefix."""
    stem = prefix.rstrip(_LAST_CHARACTER)
    return stem[:-1] + chr(ord(stem[-1]) + 1) if stem else None


@dataclass(frozen=True, slots=True)
class FlagRange:
    """Which of true and false."""

    flags: frozenset[bool] = frozenset({True, False})

    @property
    def is_empty(self) -> bool:
        return not self.flags

    def __and__(self, other: FlagRange) -> FlagRange:
        return FlagRange(self.flags & other.flags)

    def contains(self, other: FlagRange) -> bool:
        return self.flags >= other.flags


def flag_range(how: Operator, value: bool) -> FlagRange:
    """The truths that are so compared with the value."""
    return FlagRange(frozenset({value if how is Operator.EQ else not value}))


Range = NumberRange | TextRange | FlagRange


def both(one: Range | None, other: Range) -> Range:
    """What two ranges of one facet have in common; None stands for no bound yet."""
    match one, other:
        case None, _:
            return other
        case NumberRange(), NumberRange():
            return one & other
        case TextRange(), TextRange():
            return one & other
        case FlagRange(), FlagRange():
            return one & other
    raise AssertionError("a facet has values of one type")


def contains(wide: Range, narrow: Range) -> bool:
    """True only if every value of the narrow range is in the wide one."""
    match wide, narrow:
        case NumberRange(), NumberRange():
            return wide.contains(narrow)
        case TextRange(), TextRange():
            return wide.contains(narrow)
        case FlagRange(), FlagRange():
            return wide.contains(narrow)
    raise AssertionError("a facet has values of one type")
