"""What is indexed of an XML descriptor, and what of that an XPath expression needs.

Indexed are the names of elements and attributes, and the values of elements, attributes and texts,
if short. An expression such as `//instrument[@band = 'S']` is true only of documents that have the
name `instrument`, the name `band`, and the value `S`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from lxml import etree

from tocsin.event.xpath_syntax import Binary, Call, Expression, Literal, Path, Step, finds_nodes
from tocsin.topics.queries.requirement import NOTHING, Requirement, Text, all_of, any_of

VALUE_CHARS_MAX: Final = 64
_NAME: Final = "<"  # before a name; a value may begin so too, which costs a look and no more

_COMPARISONS: Final = frozenset({"=", "!=", "<", "<=", ">", ">="})
# Without a first node the first argument is the empty text, which has no part but the empty one.
_TEXT_TESTS: Final = frozenset({"contains", "starts-with"})


def values_of(root: etree._Element) -> set[str]:
    """All that the index has of this document, which has no comments."""
    found: set[str] = set()
    _add(root, found)
    return found


def required_values(expression: Expression) -> Requirement:
    """What the index has of every document for which the expression, as a truth, is true."""
    match expression:
        case Path(start, steps, predicates):
            inside = [required_values(each) for each in predicates]
            if isinstance(start, Path | Binary | Call):
                inside.append(required_values(start))
            return all_of((*inside, *_of_steps(steps)))
        case Binary("and", left, right):
            return all_of((required_values(left), required_values(right)))
        case Binary("or" | "|", left, right):
            return any_of((required_values(left), required_values(right)))
        case Binary(operator, left, right) if operator in _COMPARISONS:
            return all_of(_of_comparison(operator, left, right))
        case Call("boolean" | "count", (argument,)):  # no count of nothing is a truth or a place
            return required_values(argument)
        case Call(name, (sought, Literal(text, is_number=False))) if name in _TEXT_TESTS and text:
            return required_values(sought) if finds_nodes(sought) else NOTHING
    return NOTHING


def _of_steps(steps: Iterable[Step]) -> Iterator[Requirement]:
    for step in steps:
        if step.test != "*" and "(" not in step.test and step.axis != "namespace":
            yield Text(_NAME + step.test)
        yield from map(required_values, step.predicates)


def _of_comparison(operator: str, left: Expression, right: Expression) -> Iterator[Requirement]:
    """A comparison with a set of no nodes is false, unless with a truth."""
    sides = (left, right)
    if not all(isinstance(side, Literal) or finds_nodes(side) for side in sides):
        return
    for side, other in (sides, sides[::-1]):
        if isinstance(side, Literal):
            continue
        yield required_values(side)
        is_text = isinstance(other, Literal) and not other.is_number
        if operator == "=" and is_text and _finds_indexed(side):
            assert isinstance(other, Literal)
            if len(other.text) <= VALUE_CHARS_MAX:
                yield Text(other.text)


def _finds_indexed(expression: Expression) -> bool:
    """True if it finds elements, attributes and texts alone: no namespaces."""
    match expression:
        case Path(start, steps):
            last = steps[-1].axis if steps else "self"
            if last != "self":
                return last != "namespace"
            # `namespace::*/.` is a namespace too.
            if any(step.axis == "namespace" for step in steps):
                return False
            return not isinstance(start, Path | Binary | Call) or _finds_indexed(start)
        case Binary("|", left, right):
            return _finds_indexed(left) and _finds_indexed(right)
    return True  # id()


def _add(element: etree._Element, found: set[str]) -> str | None:
    """Add what this element has. Returns its value; None if that is too long."""
    found.add(_NAME + etree.QName(element).localname)
    for name, value in element.attrib.items():
        found.add(_NAME + etree.QName(name).localname)
        if len(value) <= VALUE_CHARS_MAX:
            found.add(value)
    parts: list[str | None] = [_text(element.text, found)]
    for child in element:
        parts.append(_add(child, found))
        parts.append(_text(child.tail, found))
    if any(part is None for part in parts):
        return None
    value = "".join(part for part in parts if part)
    if len(value) > VALUE_CHARS_MAX:
        return None
    found.add(value)
    return value


def _text(text: str | None, found: set[str]) -> str | None:
    if not text:
        return ""
    if len(text) > VALUE_CHARS_MAX:
        return None
    found.add(text)
    return text
