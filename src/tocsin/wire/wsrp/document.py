"""The document of a resource's properties, and queries over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lxml import etree

from tocsin import safexml
from tocsin.errors import BadFilter
from tocsin.event.xpath import EXPRESSION_NS_MAX
from tocsin.event.xpath_cost import cost_ns
from tocsin.event.xpath_documents import Document
from tocsin.event.xpath_syntax import Call, finds_nodes, parse_xpath
from tocsin.wire.soap.element import element
from tocsin.wire.soap.fault import escaped
from tocsin.wire.soap.names import XPATH10
from tocsin.wire.wsn.messages import Expression, Name
from tocsin.wire.wsrp.faults import NO_DIALECT, NO_QUERY, NOT_EVALUATED, PropertyFaults

FOUND_MAX: Final = 10_000  # nodes in the answer to one query
FOUND_BYTES_MAX: Final = 4 << 20  # and their bytes

_DIALECTS: Final = frozenset({"", XPATH10, "http://www.w3.org/TR/1999/REC-xpath-19991116.html"})


@dataclass(frozen=True, slots=True)
class Property:
    """One property: its name, and the element that says it."""

    name: Name
    xml: bytes


@dataclass(frozen=True, slots=True)
class Properties:
    """All properties of one resource. `absent` are those that it might have and has not."""

    root: Name
    found: tuple[Property, ...]
    absent: frozenset[Name] = frozenset()

    def of(self, name: Name) -> list[bytes] | None:
        """The elements of this name; None if a resource of this kind has no such property."""
        found = [each.xml for each in self.found if each.name == name]
        return found if found or name in self.absent else None

    def document(self) -> bytes:
        return element("n", *self.root, b"".join(each.xml for each in self.found))


def query(document: bytes, asked: Expression, faults: PropertyFaults) -> bytes:
    """What an XPath 1.0 expression finds: elements as they are, everything else as text.

    It is judged by the same rules as filters before it is evaluated: libxml2 knows no deadline.
    """
    if asked.dialect not in _DIALECTS:
        raise faults.about(
            NO_DIALECT, f"the query dialect {asked.dialect[:200]!r} is not supported"
        )
    root = safexml.parse(document, what="the properties")
    evaluate = _evaluator(document, asked, faults)
    try:
        found = evaluate(root)
    except etree.XPathError as bad:
        raise faults.about(NOT_EVALUATED, f"the query could not be evaluated: {bad}") from None
    written = _written(found)
    if written is None:
        raise faults.about(NOT_EVALUATED, "the query finds too much")
    return written


def _evaluator(document: bytes, asked: Expression, faults: PropertyFaults) -> etree.XPath:
    namespaces = dict(asked.namespaces)
    try:
        tree = parse_xpath(asked.text, frozenset(namespaces))
    except BadFilter as error:
        raise faults.about(NO_QUERY, f"{error.problem}. {error.remedy}", error=error) from None
    # Unlike a filter's, the nodes that a query finds are wanted, and in order: as count() has them.
    whole = Call("count", (tree,)) if finds_nodes(tree) else tree
    if cost_ns(whole, Document(document).exact_size) > EXPRESSION_NS_MAX:
        raise faults.about(NOT_EVALUATED, "the query could take too long")
    try:
        return etree.XPath(asked.text, namespaces=namespaces, regexp=False, smart_strings=False)
    except (etree.XPathError, ValueError, TypeError) as bad:
        raise faults.about(NO_QUERY, f"the query cannot be used: {bad}") from None


def _written(found: object) -> bytes | None:
    if not isinstance(found, list):
        return escaped(_text(found))
    if len(found) > FOUND_MAX:
        return None
    pieces: list[bytes] = []
    size = 0
    for each in found:
        piece = _node(each)
        size += len(piece)
        if size > FOUND_BYTES_MAX:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def _node(node: object) -> bytes:
    if isinstance(node, etree._Element):
        return etree.tostring(node, with_tail=False)
    # Attributes and text are strings here; a namespace is a pair, of which the URI is its value.
    return escaped(node[1] if isinstance(node, tuple) else str(node))


def _text(value: object) -> str:
    """A truth, number or string as XPath's string() has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if value != value:
            return "NaN"
        if value in (float("inf"), float("-inf")):
            return "Infinity" if value > 0 else "-Infinity"
        return str(int(value)) if value == int(value) else repr(value)
    return str(value)
