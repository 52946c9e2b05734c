"""Distinguished names: written so that any value survives, and read where people give a suffix.

RFC 4514, without what no suffix has: values in hexadecimal, numeric attribute types.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from tocsin.errors import BadRequest

SUFFIX_CHARS_MAX: Final = 512
LEVELS_MAX: Final = 16

_SPECIAL = re.compile(r'[\\",;<>+=\x00-\x1f\x7f]')
_PART = re.compile(
    r" *([A-Za-z][A-Za-z0-9-]*) *= *((?:[^\\\",;<>+\x00]|\\[0-9A-Fa-f]{2}|\\[ -/:-@\[-`{-~])*)"
)
_ESCAPED = re.compile(r"((?:\\[0-9A-Fa-f]{2})+)|\\(.)")

# Which class an entry of the suffix itself has, by the attribute that names it. All but `domain`
# (RFC 4524, cosine) are of RFC 4519 (core).
SUFFIX_CLASSES: Final = {
    "dc": "domain",
    "o": "organization",
    "ou": "organizationalUnit",
    "c": "country",
    "l": "locality",
    "st": "locality",
}


class Part(msgspec.Struct, frozen=True):
    """One level of a name: an attribute and its value."""

    attribute: str
    value: str

    def __str__(self) -> str:
        return f"{self.attribute}={escaped(self.value)}"


Suffix = tuple[Part, ...]


def joined(*parts: str | Part) -> str:
    """A distinguished name, the lowest level first."""
    return ",".join(map(str, parts))


def escaped(value: str) -> str:
    """The value as it stands in a distinguished name."""
    text = _SPECIAL.sub(_escape, value)
    if text[:1] in (" ", "#"):
        text = f"\\{text}"
    if value[-1:] == " " and len(value) > 1:
        text = f"{text[:-1]}\\ "
    return text


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return f"\\{character}" if character.isprintable() else f"\\{ord(character):02X}"


def read_suffix(text: str) -> Suffix:
    """The suffix that entries are under; BadRequest if it is not valid."""
    if len(text) > SUFFIX_CHARS_MAX:
        raise _refused(text, f"is longer than {SUFFIX_CHARS_MAX} characters")
    parts: list[Part] = []
    position = 0
    while True:
        found = _PART.match(text, position)
        if found is None:
            raise _refused(text, f"cannot be read from character {position + 1} on")
        parts.append(_part(text, found[1].lower(), _unescaped(text, found[2])))
        position = found.end()
        if position == len(text):
            break
        if text[position] != ",":
            raise _refused(text, f"cannot be read from character {position + 1} on")
        position += 1
    if len(parts) > LEVELS_MAX:
        raise _refused(text, f"has more than {LEVELS_MAX} levels")
    return tuple(parts)


def _part(text: str, attribute: str, value: str) -> Part:
    if attribute not in SUFFIX_CLASSES:
        raise _refused(text, f"has {attribute}=, and only {', '.join(SUFFIX_CLASSES)} are known")
    if not value or not value.isprintable():
        raise _refused(text, f"has nothing visible after {attribute}=")
    if attribute == "dc" and not re.fullmatch(r"[A-Za-z0-9_-]+", value):
        raise _refused(text, "has a dc= that is not part of a domain name")
    if attribute == "c" and not re.fullmatch(r"[A-Za-z]{2}", value):
        raise _refused(text, "has a c= that is not a country code")
    return Part(attribute, value)


def _unescaped(text: str, written: str) -> str:
    # Spaces around a value mean nothing, unless the last one is escaped.
    stripped = written.rstrip(" ")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    if backslashes % 2:
        stripped += " "

    def plain(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[2]
        try:
            return bytes.fromhex(found[1].replace("\\", "")).decode()
        except UnicodeDecodeError:
            raise _refused(text, "has escaped bytes that are not UTF-8") from None

    return _ESCAPED.sub(plain, stripped)


def _refused(text: str, problem: str) -> BadRequest:
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    return BadRequest(
        f"the suffix {shown!r} {problem}",
        remedy="Write it as dc=example,dc=org or o=grid, with a backslash before a comma inside.",
    )
