"""What content filters see of an XML payload: its elements that hold text, by name.

As in performance events (paper 002), an element is a name and a value, and may say `units` and
`accuracy`. Namespaces are left out; an inner element is named with those around it: `disk.free`.
The root's own name is not part of it. Of several with one name the first counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from tocsin import safexml
from tocsin.errors import BadXml
from tocsin.event.value import Quantity

MEMBERS_MAX = 1_000
DEPTH_MAX = 20


def xml_members(data: bytes) -> dict[str, str | Quantity]:
    """The values by name; none if this is no XML."""
    try:
        root = safexml.parse(data)
    except BadXml:
        return {}
    found: dict[str, str | Quantity] = {}
    for name, element in _leaves(root, "", 0):
        if len(found) >= MEMBERS_MAX:
            break
        if name not in found:
            found[name] = _value(element)
    return found


def _leaves(
    parent: etree._Element, prefix: str, depth: int
) -> Iterator[tuple[str, etree._Element]]:
    for child in parent:
        name = prefix + str(child.tag).rpartition("}")[2]
        if not len(child):
            yield name, child
        elif depth < DEPTH_MAX:
            yield from _leaves(child, f"{name}.", depth + 1)


def _value(element: etree._Element) -> str | Quantity:
    text = (element.text or "").strip()
    units, accuracy = element.get("units"), element.get("accuracy")
    if units is None and accuracy is None:
        return text
    return Quantity(text, units, accuracy)
