"""The only XML parser for untrusted input: `parse`.

No document type, so no entities; nothing is fetched; depth and attributes have limits here, names
(50,000 bytes) and single texts (10 MB) have libxml2's. How large a whole document may be is for the
caller to say. Comments and processing instructions are left out of the tree, so that a child is
always an element and a text is never cut in two by a comment.

Most messages are small and plain, and pay for counting two characters and nothing more.

libxml2 keeps every distinct name it has met in a dictionary of the thread, and at some 100 MB takes
no new ones any more: a stranger who sends nothing but new names would block the parser for ever.
lxml cannot drop them, so the dictionary is exchanged after every `NAMES_BYTES_MAX` of XML.
"""

from __future__ import annotations

import ctypes
import re
from functools import lru_cache

from lxml import etree

from tocsin.errors import BadXml

DEPTH_MAX = 100  # elements inside each other; real notifications have about 20
ATTRIBUTES_MAX = 256  # of one element, namespace declarations included

NAMES_BYTES_MAX = 32 << 20  # of XML, all of which may be names, before they are forgotten

_PROBLEM_CHARS_MAX = 200
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
    # Without a mark, the first character of a document is still known.
    (b"<\x00\x00\x00", "utf-32-le"),
    (b"\x00\x00\x00<", "utf-32-be"),
    (b"<\x00", "utf-16-le"),
    (b"\x00<", "utf-16-be"),
)
_MARKS = tuple(mark for mark, _ in _BYTE_ORDER_MARKS)
_DECLARATION = re.compile(
    rb"<\?xml\s+version\s*=\s*(?:'1\.[0-9]+'|\"1\.[0-9]+\")"
    rb"(?:\s+encoding\s*=\s*(?:'([A-Za-z][\w.-]*)'|\"([A-Za-z][\w.-]*)\"))?"
    rb"(?:\s+standalone\s*=\s*(?:'(?:yes|no)'|\"(?:yes|no)\"))?\s*\?>"
)
_UTF_8_NAMES = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})
_WIDE_NAMES = re.compile(r"(?:utf-?(?:16|32)|ucs-?[24]|iso-10646-ucs-[24])(?:-?[bl]e)?")
# Python decodes more than these, and not all of it is an encoding of text.
_OTHER_NAMES = re.compile(
    r"iso-8859-\d{1,2}|latin-?1|windows-125\d|cp125\d|koi8-[ru]|shift_jis|euc-(?:jp|kr)"
    r"|iso-2022-jp|gb2312|gbk|gb18030|big5|ibm\d{3}|macintosh"
)

_DOCTYPE = b"<!DOCTYPE"
_NAME_BEGINS = re.compile(rb"[^\s!?/<>\"']")
_TAG_PARTS = re.compile(rb"\"[^\"]*\"|'[^']*'|[=>\"']")
# Bounded, since every round of a group takes memory until the match ends. A possessive group would
# not, but Python before 3.11.5 matches those wrongly.
_PROLOG = re.compile(rb"(?:\s+|<\?.*?\?>|<!--.*?-->){1,1000}", re.DOTALL)


def _new_parser() -> etree.XMLParser[etree._Element]:
    return etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        no_network=True,
        huge_tree=False,
        recover=False,
        remove_comments=True,
        remove_pis=True,
        collect_ids=False,
    )


class _Parsing:
    """The parser in use, and how much XML its thread's dictionary may hold the names of."""

    def __init__(self) -> None:
        self.parser = _new_parser()
        self.bytes = 0

    def count(self, size: int) -> None:
        self.bytes += size
        if self.bytes > NAMES_BYTES_MAX:
            self._forget_names()

    def _forget_names(self) -> None:
        """Begin with a new dictionary. Documents that there are hold on to the one they came from.

        lxml looks for it among the values of its thread, which only C can reach, and if there is
        none takes up that of the next parser it sees: so that must be a new one, and used at once.
        """
        self.bytes = 0
        values = _thread_values()
        if values:
            ctypes.cast(values, ctypes.py_object).value.pop("_ParserDictionaryContext", None)
        self.parser = _new_parser()
        etree.fromstring(b"<x/>", self.parser)


_thread_values = ctypes.pythonapi.PyThreadState_GetDict
_thread_values.argtypes = ()
_thread_values.restype = (
    ctypes.c_void_p
)  # borrowed: an object here would be let go of once too often

_parsing = _Parsing()


def parse(data: bytes, *, what: str = "the XML", depth_max: int = DEPTH_MAX) -> etree._Element:
    """The root element of the document; BadXml if it is malformed or over a limit."""
    data = to_utf8(data)
    _parsing.count(len(data))
    has_doctype_text = _DOCTYPE in data  # which a comment or a CDATA section may hold
    if has_doctype_text and _has_document_type(data):
        raise _no_document_type(what)
    if data.count(b"=") > ATTRIBUTES_MAX:
        _check_attributes(data, what)
    try:
        root = etree.fromstring(data, _parsing.parser)
    except (etree.XMLSyntaxError, ValueError) as bad:
        raise BadXml(
            f"{what} is not well-formed: {str(bad)[:_PROBLEM_CHARS_MAX]}",
            remedy="Send one complete XML document.",
        ) from None
    if has_doctype_text and root.getroottree().docinfo.internalDTD is not None:
        raise _no_document_type(what)
    # An element that holds another has an end tag, so this many end tags is the least.
    if data.count(b"</") >= depth_max and depth_exceeds(root, depth_max):
        raise BadXml(
            f"{what} nests more than {depth_max} elements", remedy="Send a flatter document."
        )
    return root


def parser_of_parsed(size: int) -> etree.XMLParser[etree._Element]:
    """The parser for a library that writes and parses again what was parsed here, `size` bytes."""
    _parsing.count(size)
    return _parsing.parser


def to_utf8(data: bytes) -> bytes:
    """The document in UTF-8, without byte order mark and without XML declaration."""
    first = data[:2]
    if first[:1] == b"<" and first not in (b"<?", b"<\x00"):
        return data
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            is_mark = mark[-1:] != b"<" and mark[:1] != b"<"
            return _undeclared(_recoded(data[len(mark) if is_mark else 0 :], encoding))
    declared = _DECLARATION.match(data)
    if declared is None:
        return data
    name = (declared[1] or declared[2] or b"utf-8").decode("ascii").lower()
    if name in _UTF_8_NAMES:
        return data[declared.end() :]
    return _undeclared(_recoded(data, _codec(name)))


def carried_as(data: bytes, charset: str) -> bytes:
    """The document in UTF-8, where what carried it says how it is encoded.

    That counts more than the document's own declaration and less than a byte order mark (RFC 7303,
    section 3); a name that we do not know, or that is clearly wrong, does not count.
    """
    name = charset.lower()
    if data.startswith(_MARKS) or not (name in _UTF_8_NAMES or _OTHER_NAMES.fullmatch(name)):
        return data
    try:
        text = data.decode("utf-8" if name in _UTF_8_NAMES else name)
    except (UnicodeError, LookupError):
        return data
    return _undeclared(text.encode())


def depth_exceeds(root: etree._Element, depth: int) -> bool:
    """True if more elements than this stand inside each other."""
    return bool(_deeper_than(depth)(root))


def after_prolog(data: bytes) -> bytes:
    """The document from its first element on; what comes before is blank or for nobody."""
    at = 0
    while found := _PROLOG.match(data, at):
        at = found.end()
    return data[at:]


def _undeclared(data: bytes) -> bytes:
    declared = _DECLARATION.match(data)
    return data[declared.end() :] if declared else data


def _codec(name: str) -> str:
    if _OTHER_NAMES.fullmatch(name):
        return name
    if _WIDE_NAMES.fullmatch(name):
        # It has been read as far as its declaration, so it cannot be what that says.
        return "utf-8"
    raise BadXml(f"the XML is encoded as {name[:40]!r}", remedy="Send it as UTF-8.")


def _recoded(data: bytes, encoding: str) -> bytes:
    if encoding == "utf-8":
        return data
    try:
        return data.decode(encoding).encode()
    except (UnicodeError, LookupError):
        raise BadXml(
            f"the XML is not in the encoding it says, {encoding}", remedy="Send it as UTF-8."
        ) from None


def _has_document_type(data: bytes) -> bool:
    return after_prolog(data).startswith(_DOCTYPE)


def _no_document_type(what: str) -> BadXml:
    return BadXml(
        f"{what} has a document type declaration",
        remedy="Leave out <!DOCTYPE ...>, and write entities as the characters they stand for.",
    )


def _check_attributes(data: bytes, what: str) -> None:
    for piece in data.split(b"<"):
        if piece.count(b"=") <= ATTRIBUTES_MAX:
            continue
        if _NAME_BEGINS.match(piece) and _attributes_in(piece) > ATTRIBUTES_MAX:
            raise BadXml(
                f"{what} has an element with more than {ATTRIBUTES_MAX} attributes",
                remedy="Send the values as elements.",
            )


def _attributes_in(piece: bytes) -> int:
    """How many attributes the start tag has that the piece begins with; 0 if it is none."""
    attributes = 0
    for part in _TAG_PARTS.finditer(piece):
        match part[0]:
            case b"=":
                attributes += 1
            case b">":
                return attributes
            case b'"' | b"'":
                return 0  # a quote that is never closed
    return 0


@lru_cache(maxsize=8)
def _deeper_than(depth: int) -> etree.XPath:
    return etree.XPath(f"boolean({'/*' * (depth + 1)})")
