"""Filter: which events somebody asked for.

`filter_eval.matches` says what each of these types means, and every index must equal it. A filter
is a tree. The leaves are what one event is asked; `All`, `AnyOf` and `Not` join them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tocsin.event.topic import TopicPattern
from tocsin.event.value import Scalar


class Operator(Enum):
    """How a predicate compares; the value is how people write it."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    PREFIX = "prefix"
    SUFFIX = "suffix"
    CONTAINS = "contains"
    EXISTS = "exists"


@dataclass(frozen=True, slots=True, eq=False)
class Predicate:
    """`[attribute, operator, value]` of paper 001. False for an event without the attribute."""

    name: str
    operator: Operator
    value: Scalar = ""
    unit: str | None = None

    # To Python 1 equals True, but `a = 1` and `a = true` let different events pass. Filters are
    # compared and used as keys, so the difference has to show.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Predicate) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.name, self.operator, isinstance(self.value, bool), self.value, self.unit


@dataclass(frozen=True, slots=True)
class TopicIs:
    """The event's topic fits the pattern."""

    pattern: TopicPattern


@dataclass(frozen=True, slots=True)
class TopicMatches:
    """The event's whole topic is what a regular expression (RE2) says."""

    expression: str


@dataclass(frozen=True, slots=True)
class TextIs:
    """CloudEvents `exact`, `prefix` and `suffix`: on the attribute's string form."""

    name: str
    operator: Operator  # EQ, PREFIX or SUFFIX
    text: str


@dataclass(frozen=True, slots=True)
class Sql:
    """A CloudEvents SQL expression; compiled where it is evaluated, by its text."""

    expression: str


@dataclass(frozen=True, slots=True)
class XPath:
    """An XPath 1.0 expression over the event as XML; compiled where it is evaluated."""

    expression: str
    namespaces: tuple[tuple[str, str], ...] = ()  # prefix and URI
    on: str = "payload"  # or envelope, or topic
    soap: str = "1.1"  # of the envelope
    wsa: str = ""


@dataclass(frozen=True, slots=True)
class All:
    """Every part holds. No part at all: every event passes."""

    parts: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part holds."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class ByConcept(AnyOf):
    """A profile of concepts (paper 004): one of them is there. Nothing else of the event is asked
    for, which is how it differs from the same alternatives written out."""

    def names(self) -> frozenset[str]:
        return frozenset(part.name for part in self.parts if isinstance(part, Predicate))


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Filter


Filter = Predicate | TopicIs | TopicMatches | TextIs | Sql | XPath | All | AnyOf | Not

EVERYTHING = All(())
NOTHING = AnyOf(())
