"""Normal form: a filter as a few conjunctions, each split into what an index answers and the rest.

A conjunction is a region (a closed interval of doubles for each attribute it names) and, where some
condition is none that the index can answer exactly, a residual filter that only the candidates are
asked. A text that must be equal, begin or end so, and a topic pattern, are attributes of their own,
which an event has or has not: a row then needs nothing but intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nextafter

from tocsin.event.facets import TEXT, predicate_kind
from tocsin.event.filter import (
    All,
    AnyOf,
    Filter,
    Not,
    Operator,
    Predicate,
    Sql,
    TextIs,
    TopicIs,
    TopicMatches,
    XPath,
)
from tocsin.event.filter_eval import comparand
from tocsin.event.topic_levels import MANY

CONJUNCTIONS_MAX = 64  # a filter of more keeps some alternatives as a residual
AFFIX_CHARS_MAX = 64  # an event's text is looked up once per length in use, so lengths are few

EXISTS = "?"
FORM = "t"  # the text form that CloudEvents filters compare, beside the facets
TOPIC = "topic"
EQUAL, BEGINS, ENDS = "=", "^", "$"

AttributeKey = tuple[str, str, str]
"""(name, kind, text). The kind is that of a facet; or TEXT or FORM followed by EQUAL, BEGINS or
ENDS, with the text; or EXISTS; or TOPIC, with the pattern and no name."""

Interval = tuple[float, float]
PRESENT: Interval = (1.0, 1.0)
ANY_VALUE: Interval = (-inf, inf)
NEVER: Interval = (inf, -inf)

# Looking a member up in its Enum, or hashing it, takes longer than the comparison it is for.
_EQ, _NE, _LT, _LE, _GT, _GE = (Operator(text) for text in ("=", "!=", "<", "<=", ">", ">="))
_EXISTS = Operator.EXISTS
_AFFIXES = {Operator.PREFIX: BEGINS, Operator.SUFFIX: ENDS}


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Every interval holds, and the residual too if there is one."""

    region: dict[AttributeKey, Interval]
    residual: Filter | None


def conjunctions(filter: Filter) -> list[Conjunction]:
    """At least one of these holds exactly when the filter does; there is none if it never can."""
    found = (_conjunction(leaves) for leaves in _branches(filter))
    return [conjunction for conjunction in found if conjunction is not None]


_Leaves = tuple[Filter, ...]
_JOINED = (All, AnyOf, Not)


def _branches(filter: Filter) -> list[_Leaves]:
    """The disjunctive normal form; what would make too many branches stays one leaf."""
    match filter:
        case All(parts):
            return _product(parts)
        case AnyOf(parts):
            union = [leaves for part in parts for leaves in _branches(part)]
            few = len(union) <= CONJUNCTIONS_MAX or all(map(_is_existence, parts))
            return union if few else [(filter,)]
        case Not(part):
            return _denied_branches(part)
        case _:
            return [(filter,)]


def _is_existence(part: Filter) -> bool:
    """A row that asks for a name alone is shared by all who ask for it: a profile of concepts may
    have thousands."""
    return isinstance(part, Predicate) and part.operator is _EXISTS


def _product(parts: tuple[Filter, ...]) -> list[_Leaves]:
    if not any(isinstance(part, _JOINED) for part in parts):
        return [parts]
    product: list[_Leaves] = [()]
    for part in parts:
        branches = _branches(part)
        if len(product) * len(branches) > CONJUNCTIONS_MAX:
            branches = [(part,)]
        product = [left + right for left in product for right in branches]
    return product


def _denied_branches(part: Filter) -> list[_Leaves]:
    match part:
        case Not(inner):
            return _branches(inner)
        case All(parts):
            return _branches(AnyOf(tuple(Not(each) for each in parts)))
        case AnyOf(parts):
            return _branches(All(tuple(Not(each) for each in parts)))
        case _:
            return [(Not(part),)]


def _conjunction(leaves: _Leaves) -> Conjunction | None:
    """The leaves joined; None if they contradict each other in plain sight."""
    region: dict[AttributeKey, Interval] = {}
    residual: list[Filter] = []
    for leaf in leaves:
        terms, is_exact = _terms(leaf)
        for key, (lo, hi) in terms:
            if key in region:
                lo, hi = max(lo, region[key][0]), min(hi, region[key][1])
            if lo > hi:
                return None
            region[key] = (lo, hi)
        if not is_exact:
            residual.append(leaf)
    if len(residual) > 1:
        return Conjunction(region, All(tuple(residual)))
    return Conjunction(region, residual[0] if residual else None)


_Terms = list[tuple[AttributeKey, Interval]]
_NO_TERMS: _Terms = []


def _terms(leaf: Filter) -> tuple[_Terms, bool]:
    """Intervals that must hold where the leaf does, and whether they say all that it says."""
    if isinstance(leaf, Predicate):
        return _predicate_terms(leaf)
    match leaf:
        case TextIs(name, operator, text):
            return _text_terms(name, FORM, operator, text)
        case TopicIs(pattern):
            if all(level == MANY for level in pattern.levels):
                return _NO_TERMS, True
            return [(("", TOPIC, "/".join(pattern.levels)), PRESENT)], True
        case TopicMatches() | Sql() | XPath() | Not() | All() | AnyOf():
            return _NO_TERMS, False


def _predicate_terms(leaf: Predicate) -> tuple[_Terms, bool]:
    name, operator = leaf.name, leaf.operator
    if operator is _EXISTS:
        return [((name, EXISTS, ""), ANY_VALUE)], True
    kind = predicate_kind(leaf.value, leaf.unit)
    wanted = comparand(leaf)
    if kind is None or wanted is None:
        return [((name, EXISTS, ""), NEVER)], True
    if isinstance(wanted, str):
        return _text_terms(name, TEXT, operator, wanted)
    if operator is _NE:
        return _must_exist(name)
    return [((name, kind, ""), _interval(operator, float(wanted)))], True


def _text_terms(name: str, kind: str, operator: Operator, text: str) -> tuple[_Terms, bool]:
    if operator is _EQ:
        return [((name, kind + EQUAL, text), PRESENT)], True
    affix = _AFFIXES.get(operator)
    if affix is None:
        return _must_exist(name)
    if len(text) <= AFFIX_CHARS_MAX:
        return [((name, kind + affix, text), PRESENT)], True
    part = text[:AFFIX_CHARS_MAX] if affix == BEGINS else text[-AFFIX_CHARS_MAX:]
    return [((name, kind + affix, part), PRESENT)], False


def _must_exist(name: str) -> tuple[_Terms, bool]:
    """Nothing is known but that no predicate holds for an event without the attribute."""
    return [((name, EXISTS, ""), ANY_VALUE)], False


def _interval(operator: Operator, number: float) -> Interval:
    if operator is _EQ:
        return number, number
    if operator is _LE:
        return -inf, number
    if operator is _GE:
        return number, inf
    if operator is _LT:
        return -inf, nextafter(number, -inf)
    assert operator is _GT, operator
    return nextafter(number, inf), inf
