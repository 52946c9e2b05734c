"""XML for a person to read."""

from __future__ import annotations

from lxml import etree

from tocsin import safexml
from tocsin.errors import BadXml


def pretty(data: bytes) -> str:
    """Indented; what is no XML of ours is shown as it is."""
    try:
        root = safexml.parse(safexml.to_utf8(data), what="the message")
    except BadXml:
        return data.decode("utf-8", "replace")
    etree.indent(root)
    return etree.tostring(root, encoding="unicode")


def one_line(data: bytes) -> str:
    """On a line of its own, which is the same to XML outside of text."""
    return " ".join(data.decode("utf-8", "replace").split("\n")).replace("\r", "")
