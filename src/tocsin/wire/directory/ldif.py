"""LDIF, the text form of LDAP entries (RFC 2849), for values of any kind."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from typing import Final

LINE_CHARS_MAX: Final = 76
VERSION: Final = "version: 1\n"

# What RFC 2849 calls a SAFE-STRING, less control characters, which a terminal would obey, and less
# a space at the end, which nobody would see.
_SAFE = re.compile(r"(?:[!-9;=-~](?:[ -~]*[!-~])?)?")

Attributes = Iterable[tuple[str, str]]


def record(name: str, attributes: Attributes) -> str:
    """An entry: its distinguished name, then an attribute a line; an empty line before it."""
    lines = [_line("dn", name), *(_line(*attribute) for attribute in attributes)]
    return "\n" + "".join(lines)


def _line(attribute: str, value: str) -> str:
    if _SAFE.fullmatch(value):
        return _folded(f"{attribute}: {value}")
    return _folded(f"{attribute}:: {b64encode(value.encode()).decode()}")


def _folded(line: str) -> str:
    """The line in pieces that begin with a space, but for the first."""
    if len(line) <= LINE_CHARS_MAX:
        return f"{line}\n"
    rest = line[LINE_CHARS_MAX:]
    step = LINE_CHARS_MAX - 1
    pieces = [rest[start : start + step] for start in range(0, len(rest), step)]
    return "\n ".join([line[:LINE_CHARS_MAX], *pieces]) + "\n"
