"""Envelopes in MIME: MTOM's packages and SOAP with attachments, read as far as they are envelopes.

MTOM moves binary content out of an envelope into parts of its own, and leaves an `xop:Include` in
its place; the envelope that is meant is the one with that content in it, as base64 (XOP 1.0,
section 3.2), and that is what comes out of here. Attachments that nothing includes would be lost,
so a message with such is refused.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesHeaderParser
from typing import Final
from urllib.parse import unquote

from lxml import etree

from tocsin import safexml
from tocsin.wire.soap.fault import SoapFault

XOP: Final = "http://www.w3.org/2004/08/xop/include"
PARTS_MAX: Final = 100
HEADER_BYTES_MAX: Final = 8 << 10  # of one part
BOUNDARY_CHARS_MAX: Final = 70  # RFC 2046, section 5.1.1
UNSUPPORTED: Final = 415
ENVELOPE_BYTES_MAX: Final = 64 << 20  # of one that a client reads; a broker has a limit of its own

_INCLUDE: Final = f"{{{XOP}}}Include"
_PLAIN_ENCODINGS: Final = frozenset({"", "7bit", "8bit", "binary"})


@dataclass(frozen=True, slots=True)
class Part:
    """One part: what it is called, and what it holds."""

    content_id: str
    content_type: str
    charset: str
    data: bytes


def is_multipart(content_type: str) -> bool:
    """True if the body is several parts, of which one is the envelope."""
    return content_type[:10].lower() == "multipart/"


def envelope_in(body: bytes, content_type: str) -> bytes:
    """The envelope, whether it came in a package or alone."""
    if not is_multipart(content_type):
        return body
    return envelope_of_package(body, content_type, ENVELOPE_BYTES_MAX)[0]


def envelope_of_package(body: bytes, content_type: str, bytes_max: int) -> tuple[bytes, str]:
    """The envelope that a package is about, and its own content type; a SoapFault if there is none
    or if it would not be all."""
    header = _header(b"Content-Type: " + content_type.encode("latin-1", "replace"))
    if header.get_content_type() != "multipart/related":
        raise _unsupported(f"the message is {header.get_content_type()}, not multipart/related")
    parts = _parts(body, str(header.get_param("boundary") or ""))
    start = _content_id(str(header.get_param("start") or ""))
    root = next((part for part in parts if start and part.content_id == start), parts[0])
    others = {part.content_id: part for part in parts if part is not root}
    document = safexml.carried_as(root.data, root.charset) if root.charset else root.data
    if not others and XOP.encode() not in document:
        return document, root.content_type
    if len(others) != len(parts) - 1:
        raise SoapFault("Sender", "two parts of the message have the same Content-ID, or none")
    return _with_included(document, others, bytes_max), root.content_type


def _parts(body: bytes, boundary: str) -> list[Part]:
    if not 0 < len(boundary) <= BOUNDARY_CHARS_MAX:
        raise SoapFault("Sender", "the content type of the message names no usable boundary")
    delimiter = b"\r\n--" + boundary.encode("latin-1", "replace")
    # What comes before the first delimiter is no part, and that may be at the very beginning.
    pieces = (b"\r\n" + body).split(delimiter, PARTS_MAX + 2)
    if len(pieces) > PARTS_MAX + 2:
        raise SoapFault("Sender", f"the message has more than {PARTS_MAX} parts")
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise SoapFault("Sender", "the message ends before its last part does")
    found = [_part(piece) for piece in pieces[1:-1]]
    if not found:
        raise SoapFault("Sender", "the message has no part")
    return found


def _part(piece: bytes) -> Part:
    head, _, data = piece.partition(b"\r\n\r\n")
    if len(head) > HEADER_BYTES_MAX:
        raise SoapFault("Sender", f"a part has more than {HEADER_BYTES_MAX} bytes of headers")
    header = _header(head.partition(b"\r\n")[2])
    encoding = str(header.get("Content-Transfer-Encoding", "")).strip().lower()
    if encoding not in _PLAIN_ENCODINGS:
        raise _unsupported(f"a part is encoded as {encoding[:40]!r}; send it as binary")
    return Part(
        _content_id(str(header.get("Content-ID", ""))),
        str(header.get("Content-Type", "")),
        header.get_content_charset() or "",
        data,
    )


def _header(data: bytes) -> Message:
    return BytesHeaderParser().parsebytes(data + b"\r\n\r\n")


def _content_id(written: str) -> str:
    return written.strip().removeprefix("<").removesuffix(">")


def _with_included(document: bytes, others: dict[str, Part], bytes_max: int) -> bytes:
    tree = safexml.parse(document, what="the message")
    size = len(document)
    included: set[str] = set()
    for element in list(tree.iter(_INCLUDE)):
        named = unquote((element.get("href") or "").removeprefix("cid:"))
        part = others.get(named)
        if part is None:
            raise SoapFault("Sender", f"xop:Include names {named[:80]!r}, which is not a part")
        size += len(part.data) * 4 // 3 + 4
        if size > bytes_max:
            raise SoapFault("Sender", f"the envelope and what it includes exceed {bytes_max} bytes")
        included.add(named)
        _replace(element, b64encode(part.data).decode())
    left = [name for name in others if name not in included]
    if left:
        raise _unsupported(
            f"the message has {len(left)} attachments, which cannot be kept: "
            "send their content inside of the envelope, or as MTOM"
        )
    return etree.tostring(tree, encoding="utf-8")


def _replace(element: etree._Element, text: str) -> None:
    """The content in place of the element, which is all that its parent may hold."""
    parent = element.getparent()
    if parent is None or len(parent) != 1 or (parent.text or "").strip():
        raise SoapFault("Sender", "xop:Include is not alone in its element")
    parent.remove(element)
    parent.text = text


def _unsupported(reason: str) -> SoapFault:
    return SoapFault("Sender", reason, status=UNSUPPORTED)
