"""The words and signs of an expression, each with its place in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

from tocsin.errors import BadFilter
from tocsin.event.cesql.tree import RANK_OF

KEYWORDS = frozenset({"AND", "OR", "XOR", "NOT", "LIKE", "EXISTS", "IN", "TRUE", "FALSE"})

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    | (?P<string>'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*")
    | (?P<word>[A-Za-z0-9_]+)
    | (?P<sign><=|>=|<>|!=|[=<>+*/%(),-])""",
    re.VERBOSE | re.DOTALL,
)


class Kind(Enum):
    SIGN = auto()
    KEYWORD = auto()
    NAME = auto()
    INTEGER = auto()
    STRING = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is the keyword in capitals, the string without its quotes, else as written."""

    kind: Kind
    text: str
    position: int

    @property
    def is_binary_operator(self) -> bool:
        return self.kind in (Kind.SIGN, Kind.KEYWORD) and self.text in RANK_OF


def tokens_of(text: str) -> list[Token]:
    """All of them, and an END; BadFilter at the first character that begins none."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise _unknown(text, position)
        if found.lastgroup != "space":
            tokens.append(_token(found.lastgroup, found[0], position))
        position = found.end()
    tokens.append(Token(Kind.END, "", len(text)))
    return tokens


def _token(group: str | None, text: str, position: int) -> Token:
    if group == "string":
        quote = text[0]
        # Only the quote itself is escaped: a backslash before % or _ is for LIKE to read.
        inner = re.sub(rf"\\(\\|{quote})|{quote}{quote}", _unescaped, text[1:-1])
        return Token(Kind.STRING, inner, position)
    if group == "sign":
        return Token(Kind.SIGN, text, position)
    if text.isdigit():
        return Token(Kind.INTEGER, text, position)
    if text.upper() in KEYWORDS:
        return Token(Kind.KEYWORD, text.upper(), position)
    return Token(Kind.NAME, text, position)


def _unescaped(found: re.Match[str]) -> str:
    return found[0] if found[1] == "\\" else found[0][1]


def _unknown(text: str, position: int) -> BadFilter:
    if text[position] in "'\"":
        return BadFilter(
            "a string has no end",
            remedy="Close it with the quote it began with.",
            text=text,
            position=position,
        )
    return BadFilter(
        f"{text[position]!r} means nothing in CloudEvents SQL",
        remedy="Put text between quotes.",
        text=text,
        position=position,
    )
