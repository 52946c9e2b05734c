"""Payloads kept to the byte: where an element stands in the message, cut out so that it means the
same alone.

Nearly always the elements wanted are the only children of elements with one name (`Body`,
`Message`), and a search for that name finds them. Where it could find something else as well
(comments, CDATA, the same name elsewhere) a second parse with expat tells the offsets for sure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from xml.parsers import expat

from lxml import etree

from tocsin.wire.soap.envelope import Envelope, split
from tocsin.wire.soap.fault import quoted

Element = etree._Element

_START_TAG = re.compile(
    rb"""<(?P<name>[^\s/>]+)(?P<rest>(?:\s+[^\s=]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(?P<empty>/?)>"""
)
_NAMES_KEPT = 256


def cut_out(envelope: Envelope, wanted: Sequence[Element]) -> list[bytes]:
    """The bytes of each element, in document order, with the namespaces that it inherits and uses
    declared on it. What declares all it uses stays as it was sent."""
    if not wanted:
        return []
    pieces = _by_parents(envelope.raw, wanted) or _by_offsets(envelope, wanted)
    return [_in_scope(piece, element) for piece, element in zip(pieces, wanted, strict=True)]


@lru_cache(maxsize=_NAMES_KEPT)
def _tags(name: str) -> tuple[re.Pattern[bytes], bytes]:
    raw = name.encode()
    start = rb"""<%b(?=[\s/>])(?:\s+[^\s=]+\s*=\s*(?:"[^"]*"|'[^']*'))*\s*>""" % re.escape(raw)
    return re.compile(start), b"</" + raw


def _by_parents(raw: bytes, wanted: Sequence[Element]) -> list[bytes] | None:
    """The content of the parents, if their name stands for them alone."""
    if b"<!" in raw or b"<?" in raw:
        return None
    parents = [element.getparent() for element in wanted]
    name: str | None = None
    for parent in parents:
        if parent is None or len(parent) != 1:
            return None
        local = split(parent.tag)[1]
        written = f"{parent.prefix}:{local}" if parent.prefix else local
        if name is None:
            name = written
        elif name != written:
            return None
    assert name is not None
    start, end = _tags(name)
    opened = [match.end() for match in start.finditer(raw)]
    if len(opened) != len(wanted) or raw.count(end) != len(wanted):
        return None
    pieces: list[bytes] = []
    for position in opened:
        close = raw.find(end, position)
        piece = raw[position:close].strip()
        # Text beside the element, or an end tag of a longer name, and this is not what it seems.
        if close < 0 or piece[:1] != b"<" or piece[-1:] != b">":
            return None
        if raw[close + len(end) : close + len(end) + 1] not in (b">", b" ", b"\n", b"\r", b"\t"):
            return None
        pieces.append(piece)
    return pieces


def _by_offsets(envelope: Envelope, wanted: Sequence[Element]) -> list[bytes]:
    raw = envelope.raw
    starts: list[int] = []
    ends: dict[int, int] = {}
    open_elements: list[int] = []
    parser = expat.ParserCreate()

    def begin(name: str, attributes: dict[str, str]) -> None:
        open_elements.append(len(starts))
        starts.append(parser.CurrentByteIndex)

    def finish(name: str) -> None:
        ends[open_elements.pop()] = parser.CurrentByteIndex

    parser.StartElementHandler = begin
    parser.EndElementHandler = finish
    parser.Parse(raw, True)
    root = envelope.body.getroottree().getroot()
    order = {element: index for index, element in enumerate(root.iter(etree.Element))}
    pieces: list[bytes] = []
    for element in wanted:
        index = order[element]
        start = starts[index]
        tag = _START_TAG.match(raw, start)
        assert tag is not None, "expat says that a start tag is here"
        # Of an empty element expat tells the end; of any other, where its end tag begins.
        end = tag.end() if tag["empty"] else raw.index(b">", ends[index]) + 1
        pieces.append(raw[start:end])
    return pieces


def _in_scope(piece: bytes, element: Element) -> bytes:
    """The piece with the declarations that it needs from around it."""
    parent = element.getparent()
    inherited = {} if parent is None else parent.nsmap
    missing = b""
    tag: re.Match[bytes] | None = None
    for prefix, uri in inherited.items():
        # A prefix may be used in any name, and in values such as xsi:type: look for it anywhere.
        if prefix is not None and not _names(piece, prefix.encode()):
            continue
        tag = tag or _START_TAG.match(piece)
        assert tag is not None, "an element begins with its start tag"
        declared = b"xmlns" if prefix is None else b"xmlns:" + prefix.encode()
        if not re.search(rb"\s%b\s*=" % re.escape(declared), tag["rest"]):
            missing += b' %b="%b"' % (declared, quoted(uri))
    if not missing:
        return piece
    assert tag is not None
    at = tag.end("name")
    return piece[:at] + missing + piece[at:]


def _names(piece: bytes, prefix: bytes) -> bool:
    """True if the prefix may be used: it stands before a colon, and at the start of a word."""
    if piece.find(prefix + b":") < 0:
        return False
    return re.search(rb"(?<![\w.\-\x80-\xff])%b:" % re.escape(prefix), piece) is not None
