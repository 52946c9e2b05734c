"""Attribute values in HTTP headers: percent-encoding as the CloudEvents HTTP binding has it."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

# Printable ASCII but for the space, the double quote and the percent sign (binding, 3.1.3.2).
_SAFE = "".join(map(chr, range(0x21, 0x7F))).replace('"', "").replace("%", "")
_is_safe = re.compile(r"[!#$&-~]*").fullmatch
_ESCAPE = re.compile(r"\\(.)")


def encoded(text: str) -> str:
    """The text as a header value: printable ASCII without a space, so no line can end in it."""
    return text if _is_safe(text) else quote(text, safe=_SAFE)


def decoded(value: str) -> str:
    """The text that a header value carries. UnicodeDecodeError if it is not UTF-8.

    HTTP hands over bytes as Latin-1; older senders put UTF-8 there without encoding it.
    """
    if value.isascii() and "%" not in value and value[:1] != '"':
        return value
    if len(value) >= 2 and value[0] == value[-1] == '"':
        value = _ESCAPE.sub(r"\1", value[1:-1])
    if not value.isascii():
        value = value.encode("latin-1", "replace").decode()
    return unquote_to_bytes(value).decode()


def encoded_url(url: str) -> str:
    """The URL as a header value; what is percent-encoded in it stays as it is."""
    return quote(url, safe=_SAFE + "%")
