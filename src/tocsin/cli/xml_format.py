"""XML for display."""

from __future__ import annotations

from lxml import etree

from tocsin import safexml
from tocsin.errors import BadXml


def pretty(data: bytes) -> str:
    """Indented; what cannot be parsed is shown as it is."""
    try:
        root = safexml.parse(safexml.to_utf8(data), what="the message")
    except BadXml:
        return data.decode("utf-8", "replace")
    etree.indent(root)
    return etree.tostring(root, encoding="unicode")


def one_line(data: bytes) -> str:
    """On one line; outside of text, XML treats line breaks as spaces."""
    return " ".join(data.decode("utf-8", "replace").split("\n")).replace("\r", "")
