"""Writing a filter as people do, so that reading it again gives the same filter."""

from __future__ import annotations

import re

from tocsin.event.filter import (
    All,
    AnyOf,
    Filter,
    Not,
    Operator,
    Predicate,
    Sql,
    TextIs,
    TopicIs,
    TopicMatches,
    XPath,
)
from tocsin.event.value import Scalar

KEYWORDS = frozenset({"and", "or", "not", "exists", "prefix", "suffix", "contains", "topic"})
# These are names unless what follows makes them something else; written bare they would mislead.
CONTEXT_WORDS = frozenset({"text", "sql", "xpath", "concept", "everything", "nothing"})

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_PLAIN_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_./:@+-]*")
_PLAIN_PATTERN = re.compile(r"[A-Za-z0-9_*][A-Za-z0-9_./:@+*-]*")
_ESCAPES = str.maketrans(
    {"\\": "\\\\", "'": "\\'", "`": "\\`", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
)


def format_filter(wanted: Filter) -> str:
    """The filter as text. `parse_filter` reads it back; the empty text is every event."""
    return "" if wanted == All(()) else _written(wanted)


def _written(wanted: Filter) -> str:
    match wanted:
        case Predicate(name, Operator.EXISTS):
            return f"exists {_name(name)}"
        case Predicate(name, how, value, unit):
            return f"{_name(name)} {how.value} {_value(value)}" + (f" {unit}" if unit else "")
        case TopicIs(pattern):
            return f"topic {_pattern(str(pattern))}"
        case TopicMatches(expression):
            return f"topic regex:{_quoted(expression)}"
        case TextIs(name, how, text):
            return f"text {_name(name)} {how.value} {_quoted(text)}"
        case Sql(expression):
            return f"sql {_quoted(expression)}"
        case XPath():
            return _xpath(wanted)
        case All(parts):
            return " and ".join(map(_grouped, parts)) if parts else "everything"
        case AnyOf(parts):
            return " or ".join(map(_grouped, parts)) if parts else "nothing"
        case Not(part):
            return f"not {_grouped(part)}"


def _xpath(wanted: XPath) -> str:
    text = f"xpath {_quoted(wanted.expression)}"
    for prefix, uri in wanted.namespaces:
        text += f" with {_quoted(f'{prefix}={uri}')}"
    if wanted.on != "payload" or wanted.soap != "1.1" or wanted.wsa:
        text += f" on {wanted.on}"
    if wanted.soap != "1.1" or wanted.wsa:
        text += f" {_quoted(wanted.soap)} {_quoted(wanted.wsa)}"
    return text


def _grouped(part: Filter) -> str:
    return f"({_written(part)})" if isinstance(part, All | AnyOf) and part.parts else _written(part)


def _name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in KEYWORDS | CONTEXT_WORDS:
        return name
    return f"`{name.translate(_ESCAPES)}`"


def _value(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    misread = value.lower() in KEYWORDS or value.lower() in ("true", "false")
    return value if _PLAIN_WORD.fullmatch(value) and not misread else _quoted(value)


def _pattern(pattern: str) -> str:
    misread = pattern.lower() in KEYWORDS or ":" in pattern  # as in full:x, a dialect's name
    return pattern if _PLAIN_PATTERN.fullmatch(pattern) and not misread else _quoted(pattern)


def _quoted(text: str) -> str:
    return f"'{text.translate(_ESCAPES)}'"
