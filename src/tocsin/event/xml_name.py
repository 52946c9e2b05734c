"""What an event is called where names are XML names: its type, as a namespace and a local name.

A type that is a URI is cut before its last part; any other type is a name in a namespace of ours,
with `_xHHHH_` for each character that a name cannot have. Either way the type can be recovered.
"""

from __future__ import annotations

import re
from functools import lru_cache
from xml.sax.saxutils import quoteattr

from tocsin import safexml
from tocsin.errors import BadXml

TYPES = "urn:tocsin:type"  # the namespace of types that are no URIs
_SEPARATORS = "/#:"
_NOTHING = "_xFFFFFF_"  # the name of no text at all; no character has that number
_NAMES_KEPT = 4_096

_STARTS = (
    "A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = re.compile(f"[{_STARTS}][{_STARTS}0-9.\xb7\u0300-\u036f\u203f-\u2040-]*")
_ESCAPED = re.compile(r"_x([0-9A-F]{4,6})_")
_NOT_AT_START = re.compile(r"[^A-Za-z_]")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_.-]")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")


def is_xml_name(text: str) -> bool:
    """True for what can be the name of an element, without a prefix."""
    return _NAME.fullmatch(text) is not None


@lru_cache(maxsize=_NAMES_KEPT)
def is_namespace(text: str) -> bool:
    """True for what XML parsers take as a namespace: it must be a URI, and not a reserved one."""
    if not text or not text.isascii():
        return False
    try:
        root = safexml.parse(f"<x xmlns={quoteattr(text)}/>".encode())
    except BadXml:
        return False
    return root.tag == f"{{{text}}}x"


def name_uri(name: tuple[str, str]) -> str:
    """An element's name as one URI: what the event is, where its message does not say."""
    namespace, local = name
    if namespace == TYPES:
        return unescaped_name(local)
    if not namespace:
        return local
    return f"{namespace}{'' if namespace[-1] in _SEPARATORS else '/'}{local}"


@lru_cache(maxsize=_NAMES_KEPT)
def name_of_type(text: str) -> tuple[str, str]:
    """The namespace and local name of an event of this type; `name_uri` gives the type back."""
    if _URI.fullmatch(text):
        cut = max(text.rfind(each) for each in _SEPARATORS)
        namespace, local = text[: cut + 1], text[cut + 1 :]
        if text[cut] == "/":
            namespace = namespace[:-1]
        is_name = is_xml_name(local) and is_namespace(namespace)
        if is_name and name_uri((namespace, local)) == text:
            return namespace, local
    return TYPES, escaped_name(text)


def escaped_name(text: str) -> str:
    """An XML name from which the text can be recovered; a valid name stays as it is."""
    if "_x" not in text and is_xml_name(text):
        return text
    marked = _ESCAPED.sub(lambda found: f"_x005F_{found[0][1:]}", text)
    first, rest = marked[:1], marked[1:]
    return _NOT_AT_START.sub(_escape, first) + _NOT_IN_NAME.sub(_escape, rest) or _NOTHING


def unescaped_name(name: str) -> str:
    """The text that `escaped_name` made a name of."""
    return "" if name == _NOTHING else _ESCAPED.sub(_unescape, name)


def _escape(found: re.Match[str]) -> str:
    return f"_x{ord(found[0]):04X}_"


def _unescape(found: re.Match[str]) -> str:
    code = int(found[1], 16)
    return chr(code) if code <= 0x10FFFF else found[0]
