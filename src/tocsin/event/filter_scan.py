"""Reading a filter's text from left to right: where we are, what stands there, what it is worth.

Names, quoted texts, numbers and units are the same in both ways to write a filter, so they are read
here; `filter_text` and `filter_brackets` put them together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tocsin.errors import BadFilter
from tocsin.errors.suggest import nearest
from tocsin.event.facets import NUMBER_TEXT_CHARS_MAX, number_of
from tocsin.event.filter import Operator
from tocsin.event.value import UNITS, Scalar

_LONG_UNITS = [unit for unit in UNITS if len(unit) > 2]  # short ones are like anything

FILTER_CHARS_MAX = 8_192
FILTER_DEPTH_MAX = 32
FILTER_PREDICATES_MAX = 256
NAME_CHARS_MAX = 128

NAME = re.compile(r"[\w.-]+")
WORD = re.compile(r"[\w./:@+-]+")
QUOTE = re.compile(r"['\"]")
BACKQUOTE = re.compile("`")
_UNIT = re.compile(r"%|[\w/]+")
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NUMBER_ONLY = re.compile(_NUMBER)
_NUMBER_THEN_UNIT = re.compile(rf"({_NUMBER})([^0-9.+-].*)")
_QUOTED = {
    mark: re.compile(rf"{mark}((?:[^{mark}\\]|\\.)*){mark}", re.DOTALL) for mark in ("'", '"', "`")
}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "`": "`"}
_SPACE = re.compile(r"\s*")
_THING = re.compile(r"[\w./:@+-]+|[=<>!~&|]+|\S")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SHOWN_MAX = 40


@dataclass(slots=True)
class Scanner:
    """A place in a filter's text, and how many predicates were read on the way there."""

    text: str
    position: int = 0
    predicates: int = 0

    @classmethod
    def over(cls, text: str) -> Scanner:
        """A scanner at the start of the text; BadFilter if it is not fit to be read at all."""
        scanner = cls(text)
        if len(text) > FILTER_CHARS_MAX:
            scanner.text = text[:_SHOWN_MAX]
            raise scanner.refused(
                f"the filter has {len(text)} characters",
                remedy=f"Write at most {FILTER_CHARS_MAX}, or make several subscriptions.",
            )
        if broken := _SURROGATE.search(text):
            scanner.text = _SURROGATE.sub("?", text)
            raise scanner.refused(
                "the filter has half of a surrogate pair",
                remedy="Send valid UTF-8.",
                at=broken.start(),
            )
        return scanner

    def peek(self, pattern: re.Pattern[str]) -> str:
        """What the pattern finds after white space; empty if it finds nothing here."""
        self._skip_space()
        found = pattern.match(self.text, self.position)
        return found[0] if found else ""

    def take(self, pattern: re.Pattern[str]) -> str:
        """As `peek`, and goes past it."""
        found = self.peek(pattern)
        self.position += len(found)
        return found

    def at_end(self) -> bool:
        self._skip_space()
        return self.position == len(self.text)

    def count_predicate(self) -> None:
        """To be called for each predicate read."""
        self.predicates += 1
        if self.predicates > FILTER_PREDICATES_MAX:
            raise self.refused(
                f"the filter has more than {FILTER_PREDICATES_MAX} conditions",
                remedy="Make several subscriptions.",
            )

    def expected(self, what: str, *, remedy: str = "") -> BadFilter:
        """The error that something else stands here than what was expected."""
        here = self.peek(_THING)
        found = repr(_shortened(here)) if here else "the end"
        return self.refused(f"found {found} where {what} was expected", remedy=remedy)

    def refused(self, problem: str, *, remedy: str = "", at: int | None = None) -> BadFilter:
        """The error, at this place or at the one given."""
        position = self.position if at is None else at
        return BadFilter(
            f"{problem}, at character {position + 1} of the filter",
            remedy=remedy or "A filter is written like: load5 >= 5 and system = Linux.",
            text=self.text,
            position=position,
        )

    def _skip_space(self) -> None:
        skipped = _SPACE.match(self.text, self.position)
        assert skipped is not None, "the pattern also fits nothing"
        self.position = skipped.end()


def take_quoted(scanner: Scanner) -> str:
    """The text between the quotes that open here, its escapes undone."""
    scanner.at_end()
    start = scanner.position
    found = _QUOTED[scanner.text[start]].match(scanner.text, start)
    if found is None:
        raise scanner.refused("the quote that opens here is never closed", remedy="Close it.")
    scanner.position = found.end()
    inside = start + 1

    def undone(escape: re.Match[str]) -> str:
        code, letter = escape.groups()
        meant = chr(int(code, 16)) if code else _ESCAPED.get(letter, "")
        if not meant or _SURROGATE.match(meant):
            raise scanner.refused(
                f"there is no escape {escape[0]!r}",
                remedy=r"Write \\ for a backslash; \n, \t, \r, \' and \u00e9 are the others.",
                at=inside + escape.start(),
            )
        return meant

    return _ESCAPE.sub(undone, found[1])


def take_name(scanner: Scanner, what: str = "an attribute name") -> str:
    """An attribute's name, bare or between backquotes."""
    quoted = scanner.peek(BACKQUOTE)
    start = scanner.position
    name = take_quoted(scanner) if quoted else scanner.take(NAME)
    if not name:
        raise scanner.expected(what)
    check_name(scanner, name, start)
    return name


def check_name(scanner: Scanner, name: str, start: int) -> None:
    if len(name) > NAME_CHARS_MAX:
        raise scanner.refused(
            f"the attribute name {_shortened(name)!r} is too long",
            remedy=f"Names have at most {NAME_CHARS_MAX} characters.",
            at=start,
        )


def read_value(scanner: Scanner, word: str, start: int) -> tuple[Scalar, str | None]:
    """What a bare word is worth: true, false, a number, a number with its unit, or its own text."""
    if word.lower() in ("true", "false"):
        return word.lower() == "true", None
    if _NUMBER_ONLY.fullmatch(word):
        return _number(scanner, word, start), None
    joined = _NUMBER_THEN_UNIT.fullmatch(word)
    if joined and joined[2].strip() in UNITS:
        return _number(scanner, joined[1], start), joined[2].strip()
    return word, None


def take_unit(scanner: Scanner) -> str | None:
    """The unit that follows a number, if one does."""
    unit = scanner.peek(_UNIT)
    if not unit or unit.lower() in ("and", "or"):
        return None
    if unit not in UNITS:
        alike = [known for known in UNITS if known.lower() == unit.lower() and len(unit) > 1]
        meant = alike[0] if alike else nearest(unit, ("and", "or", *_LONG_UNITS))
        units = f"Did you mean {meant}?" if meant else f"Units are: {', '.join(UNITS)}."
        raise scanner.expected("and, or, a unit or the end", remedy=units)
    scanner.position += len(unit)
    return unit


def check_comparison(scanner: Scanner, how: Operator, value: Scalar, start: int) -> None:
    """Refuses an order between truths: there is none, so the filter could never be true."""
    if isinstance(value, bool) and how not in (Operator.EQ, Operator.NE):
        raise scanner.refused(
            "true and false are compared only with = and !=",
            remedy="Put quotes around it if the text is meant.",
            at=start,
        )


def _number(scanner: Scanner, text: str, start: int) -> int | float:
    if len(text) > NUMBER_TEXT_CHARS_MAX:
        raise scanner.refused("the number is too long", remedy="Round it.", at=start)
    number = float(text) if re.search("[.eE]", text) else int(text)
    if number_of(number) is None:
        raise scanner.refused("the number is too large", remedy="Use a larger unit.", at=start)
    return number


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 3] + "..."
