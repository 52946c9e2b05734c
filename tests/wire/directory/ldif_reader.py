"""A reader of LDIF content and of distinguished names, from RFC 2849 and RFC 4514 alone."""

from __future__ import annotations

import base64
import re

Attributes = dict[str, list[str]]
Level = dict[str, str]


def read_ldif(text: str) -> list[tuple[str, Attributes]]:
    """Each entry's distinguished name, and its attributes."""
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith(" "):
            lines[-1] += line[1:]
        else:
            lines.append(line)
    assert lines[0] == "version: 1"
    entries: list[tuple[str, Attributes]] = []
    fresh = True
    for line in lines[1:]:
        if not line:
            fresh = True
            continue
        name, value = _value(line)
        if fresh:
            assert name == "dn", line
            entries.append((value, {}))
            fresh = False
        else:
            entries[-1][1].setdefault(name, []).append(value)
    return entries


def _value(line: str) -> tuple[str, str]:
    found = re.fullmatch(r"([A-Za-z][A-Za-z0-9-]*):(:?) *(.*)", line)
    assert found is not None, line
    name, is_encoded, value = found.groups()
    if is_encoded:
        return name, base64.b64decode(value, validate=True).decode()
    assert value.isascii()
    assert value[:1] not in (":", "<")
    return name, value


def read_name(text: str) -> list[Level]:
    """The levels of a distinguished name, the lowest first, each with its attributes."""
    levels: list[Level] = []
    for level in _split(text, ","):
        found: Level = {}
        for part in _split(level, "+"):
            attribute, _, value = part.partition("=")
            found[attribute] = _plain(value)
        levels.append(found)
    return levels


def _split(text: str, separator: str) -> list[str]:
    parts = [""]
    position = 0
    while position < len(text):
        if text[position] == "\\":
            parts[-1] += text[position : position + 2]
            position += 2
        elif text[position] == separator:
            parts.append("")
            position += 1
        else:
            parts[-1] += text[position]
            position += 1
    return parts


def _plain(value: str) -> str:
    """The value without escapes. What must be escaped and is not is a mistake."""
    assert not value.startswith((" ", "#"))
    assert not re.search(r"(?<!\\) $", value), value
    out = b""
    position = 0
    while position < len(value):
        character = value[position]
        if character != "\\":
            assert character not in '",;<>+\0', value
            out += character.encode()
            position += 1
        elif re.match("[0-9A-Fa-f]{2}", value[position + 1 : position + 3]):
            out += bytes.fromhex(value[position + 1 : position + 3])
            position += 3
        else:
            out += value[position + 1].encode()
            position += 2
    return out.decode()
