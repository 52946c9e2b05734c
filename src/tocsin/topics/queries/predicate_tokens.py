"""The words and signs of a predicate on properties, each with its place in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from tocsin.errors import BadTopicQuery

KEYWORDS: Final = frozenset(
    {"AND", "OR", "NOT", "BETWEEN", "LIKE", "ESCAPE", "IN", "IS", "NULL", "TRUE", "FALSE"}
)
REMEDY: Final = "Write a predicate on properties, as in band = 'S' AND power >= 40."

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    | (?P<string>'(?:[^']|'')*')
    | (?P<quoted>"[^"]*")
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![A-Za-z0-9_.])
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<sign><>|<=|>=|!=|[=<>+*/(),-])""",
    re.VERBOSE | re.ASCII,
)


class Kind(Enum):
    SIGN = auto()
    KEYWORD = auto()
    NAME = auto()
    NUMBER = auto()
    STRING = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is the keyword in capitals, the string or name without its quotes, else as written."""

    kind: Kind
    text: str
    position: int


def tokens_of(text: str) -> list[Token]:
    """All of them, and an END; BadTopicQuery at the first character that begins none."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise _unknown(text, position)
        if found.lastgroup != "space":
            tokens.append(_token(str(found.lastgroup), found[0], position))
        position = found.end()
    tokens.append(Token(Kind.END, "", len(text)))
    return tokens


def _token(group: str, text: str, position: int) -> Token:
    match group:
        case "string":
            return Token(Kind.STRING, text[1:-1].replace("''", "'"), position)
        case "quoted":
            return Token(Kind.NAME, text[1:-1], position)
        case "number":
            return Token(Kind.NUMBER, text, position)
        case "sign":
            return Token(Kind.SIGN, "<>" if text == "!=" else text, position)
    if text.upper() in KEYWORDS:
        return Token(Kind.KEYWORD, text.upper(), position)
    return Token(Kind.NAME, text, position)


def _unknown(text: str, position: int) -> BadTopicQuery:
    if text[position] in "'\"":
        return BadTopicQuery(
            "a quoted text has no end",
            remedy="Close it with the quote it began with; a ' inside is written twice.",
            text=text,
            position=position,
        )
    return BadTopicQuery(
        f"{text[position]!a} means nothing in a predicate on properties",
        remedy=REMEDY,
        text=text,
        position=position,
    )
