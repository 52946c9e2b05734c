"""Two messages compared element by element."""

from __future__ import annotations

from collections.abc import Mapping

from lxml import etree

Element = etree._Element


def differences(theirs: Element, ours: Element, path: str = "") -> list[str]:
    """What is not alike: names, namespaces, attributes, text, children; in header blocks, the
    order aside. Prefixes are nobody's concern, but those that a text uses mean the same."""
    where = f"{path}/{etree.QName(theirs).localname}"
    if theirs.tag != ours.tag:
        return [f"{path}: {theirs.tag} became {ours.tag}"]
    found: list[str] = []
    if dict(theirs.attrib) != dict(ours.attrib):
        found.append(f"{where}: {dict(theirs.attrib)} became {dict(ours.attrib)}")
    if _text(theirs) != _text(ours):
        found.append(f"{where}: {_text(theirs)} became {_text(ours)}")
    mine, yours = list(theirs), list(ours)
    if etree.QName(theirs).localname == "Header":
        mine, yours = sorted(mine, key=_name), sorted(yours, key=_name)
    if [child.tag for child in mine] != [child.tag for child in yours]:
        found.append(f"{where}: {_names(mine)} became {_names(yours)}")
        return found
    for one, other in zip(mine, yours, strict=True):
        found += differences(one, other, where)
    return found


def _name(element: Element) -> str:
    return str(element.tag)


def _names(elements: list[Element]) -> list[str]:
    return [str(element.tag) for element in elements]


def _text(element: Element) -> tuple[str, str | None]:
    """The text, and the namespace that a prefix in it stands for, if it has one in scope."""
    text = (element.text or "").strip()
    prefix, colon, _ = text.partition(":")
    return text, element.nsmap.get(prefix) if colon else None


def likened(message: bytes, replaced: Mapping[str, str]) -> Element:
    """The message with the texts of some elements, by local name, replaced by what they stand
    for: ids and times differ from day to day."""
    root = etree.fromstring(message)
    for element in root.iter("*"):
        stands_for = replaced.get(etree.QName(element).localname)
        if stands_for is not None:
            element.text = stands_for
        for name in element.attrib:
            if name in replaced:
                element.set(name, replaced[str(name)])
    return root
