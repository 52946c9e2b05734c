"""Payloads kept to the byte: where an element stands in the message, cut out so that it means the
same alone.

Nearly always the elements wanted are the only children of elements with one name (`Body`,
`Message`), and a search for that name finds them. Where it could find something else as well
(comments, CDATA, the same name elsewhere) every tag is counted: the message is well-formed, so its
tags can be told apart by how they begin.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from lxml import etree

from tocsin.wire.soap.envelope import Envelope, split
from tocsin.wire.soap.fault import SoapFault, quoted

Element = etree._Element

NAMESPACES_IN_SCOPE_MAX: Final = 256  # around one element; some stacks declare all they know
SOUGHT_BYTES_MAX: Final = 64 << 20  # times a prefix is looked for; past it all are declared

_START_TAG = re.compile(
    rb"""<(?P<name>[^\s/>]+)(?P<rest>(?:\s+[^\s=]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(?P<empty>/?)>"""
)
_ATTRIBUTE = re.compile(rb"""\s+([^\s=]+)\s*=\s*(?:"[^"]*"|'[^']*')""")
_TOKEN = re.compile(
    rb"""<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|(?P<end></[^>]*>)
    |(?P<start><(?:[^<>"']++|"[^"]*+"|'[^']*+')*>)""",
    re.DOTALL | re.VERBOSE,
)
_NAMES_KEPT = 256
_SLASH: Final = ord("/")


def cut_out(envelope: Envelope, wanted: Sequence[Element]) -> list[bytes]:
    """The bytes of each element, in document order, with the namespaces that it inherits and uses
    declared on it. What declares all it uses stays as it was sent."""
    return cut_from(envelope.raw, wanted)


def cut_from(raw: bytes, wanted: Sequence[Element]) -> list[bytes]:
    """As `cut_out`, of a document that need be no envelope; `raw` is what was parsed, in UTF-8."""
    if not wanted:
        return []
    pieces = _by_parents(raw, wanted) or _by_offsets(raw, wanted)
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
    if any(element.tail and not element.tail.isspace() for element in wanted):
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


def _by_offsets(raw: bytes, wanted: Sequence[Element]) -> list[bytes]:
    following = wanted[0].getroottree().getroot().iter(etree.Element)
    sought = set(wanted)
    found: dict[Element, bytes] = {}
    open_elements: list[tuple[Element, int]] = []
    for token in _TOKEN.finditer(raw):
        if token.lastgroup == "start":
            element, start = next(following), token.start()
            if raw[token.end() - 2] != _SLASH:
                open_elements.append((element, start))
                continue
        elif token.lastgroup == "end":
            element, start = open_elements.pop()
        else:
            continue
        if element in sought:
            found[element] = raw[start : token.end()]
            if len(found) == len(sought):
                break
    return [found[element] for element in wanted]


def _in_scope(piece: bytes, element: Element) -> bytes:
    """The piece with the declarations that it needs from around it."""
    parent = element.getparent()
    inherited = {} if parent is None else parent.nsmap
    if len(inherited) > NAMESPACES_IN_SCOPE_MAX:
        raise SoapFault(
            "Sender", f"an element stands in the scope of {len(inherited)} namespace declarations"
        )
    looks = len(piece) * len(inherited) <= SOUGHT_BYTES_MAX
    # A prefix may be used in any name, and in values such as xsi:type: look for it anywhere.
    needed = [
        (b"xmlns" if prefix is None else b"xmlns:" + prefix.encode(), uri)
        for prefix, uri in inherited.items()
        if prefix is None or not looks or _names(piece, prefix.encode())
    ]
    if not needed:
        return piece
    tag = _START_TAG.match(piece)
    assert tag is not None, "an element begins with its start tag"
    own = set(_ATTRIBUTE.findall(tag["rest"]))
    missing = b"".join(
        b' %b="%b"' % (declared, quoted(uri)) for declared, uri in needed if declared not in own
    )
    at = tag.end("name")
    return piece[:at] + missing + piece[at:] if missing else piece


def _names(piece: bytes, prefix: bytes) -> bool:
    """True if the prefix may be used: it stands before a colon, and at the start of a word."""
    return piece.find(prefix + b":") >= 0 and _use_of(prefix).search(piece) is not None


@lru_cache(maxsize=NAMESPACES_IN_SCOPE_MAX)
def _use_of(prefix: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?<![\w.\-\x80-\xff])%b:" % re.escape(prefix))
