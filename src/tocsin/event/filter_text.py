"""The filter language for people: `topic lead/*/radar and load5 >= 5 and system = Linux`.

    filter     =  either, or nothing at all: every event
    either     =  both, "or" both ...
    both       =  one, "and" one ...
    one        =  "not" one  |  "(" either ")"  |  brackets  |  condition
    condition  =  name operator value [unit]  |  name "exists"  |  "exists" name
               |  "topic" ["="] pattern  |  "topic" dialect:"pattern"
               |  "text" name operator value  |  "sql" "expression"  |  "everything"  |  "nothing"
               |  "concept" name
               |  "xpath" "expression" {"with" "prefix=uri"} ["on" document ["soap" "wsa"]]
    brackets   =  "[" name "," operator "," value "]", more of them after "," or ";"

docs/filters.md explains it with examples. Here it is read by one function for each line above.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from tocsin.errors import BadFilter, BadTopicPattern, UnknownConcept
from tocsin.errors.suggest import nearest
from tocsin.event.concept_filter import concepts_filter
from tocsin.event.filter import (
    EVERYTHING,
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
from tocsin.event.filter_brackets import OPEN as BRACKET
from tocsin.event.filter_brackets import take_brackets
from tocsin.event.filter_format import CONTEXT_WORDS, KEYWORDS, format_filter
from tocsin.event.filter_scan import (
    BACKQUOTE,
    FILTER_DEPTH_MAX,
    NAME,
    QUOTE,
    WORD,
    Scanner,
    check_comparison,
    read_value,
    take_name,
    take_quoted,
    take_unit,
)
from tocsin.event.topic import TopicPattern
from tocsin.event.value import Scalar

__all__ = ["format_filter", "parse_filter", "parse_topic_filter"]

_AND = re.compile(r"and\b(?![.-])", re.IGNORECASE)
_OR = re.compile(r"or\b(?![.-])", re.IGNORECASE)
_NOT = re.compile(r"not\b(?![.-])", re.IGNORECASE)
_WITH = re.compile(r"with\b(?![.-])", re.IGNORECASE)
_ON = re.compile(r"on\b(?![.-])", re.IGNORECASE)
_OPEN = re.compile(r"\(")
_CLOSE = re.compile(r"\)")
_SIGN = re.compile(r"[=<>!~&|]+")
_DIALECT = re.compile(r"(tocsin|simple|concrete|full|nats|regex):(?=['\"])", re.IGNORECASE)
_DIALECT_UNQUOTED = re.compile(
    r"(?:tocsin|simple|concrete|full|nats|regex):(?=[^\s)])", re.IGNORECASE
)
_BARE_PATTERN = re.compile(r"[^\s)'\"][^\s)]*")

_OPERATORS: Mapping[str, Operator] = {
    **{how.value: how for how in Operator},
    "==": Operator.EQ,
    "<>": Operator.NE,
}
_TEXT_OPERATORS = (Operator.PREFIX, Operator.SUFFIX, Operator.CONTAINS)
_TEXT_FORM_OPERATORS = (Operator.EQ, Operator.PREFIX, Operator.SUFFIX)  # what CloudEvents has

# What other languages write, and how it is written here.
_MEANT: Mapping[str, str] = {
    "=>": ">=",
    "=<": "<=",
    "===": "=",
    "!": "not",
    "~": "contains",
    "&": "and",
    "&&": "and",
    "|": "or",
    "||": "or",
    "is": "=",
    "eq": "=",
    "ne": "!=",
    "neq": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "like": "contains",
    "has": "contains",
    "startswith": "prefix",
    "endswith": "suffix",
}


# Words that may stand where something else was found, for a misspelt one.
_FIRST_WORDS = ("topic", "not", "exists", "text", "sql", "xpath", "concept", "everything")
_WORDS_AT: Mapping[str, tuple[str, ...]] = {
    "an operator": ("contains", "prefix", "suffix", "exists"),
    "a condition": _FIRST_WORDS,
    "and, or or the end": ("and", "or"),
    "and, or or )": ("and", "or"),
}


def parse_filter(text: str) -> Filter:
    """The filter that the text writes, in words or in brackets; BadFilter if it writes none."""
    scanner = Scanner.over(text)
    if scanner.at_end():
        return EVERYTHING
    found = _either(scanner, 0)
    if not scanner.at_end():
        raise _unexpected(scanner, "and, or or the end")
    return found


def parse_topic_filter(text: str, dialect: str = "tocsin") -> Filter:
    """Events whose topic fits the expression; BadTopicPattern if the dialect does not know it."""
    if dialect == "regex":
        from tocsin.event.topic_regex import compile_topic_regex

        compile_topic_regex(text)
        return TopicMatches(text)
    leaves = tuple(TopicIs(each) for each in TopicPattern.parse_alternatives(text, dialect))
    return leaves[0] if len(leaves) == 1 else AnyOf(leaves)


def _either(scanner: Scanner, depth: int) -> Filter:
    parts = [_both(scanner, depth)]
    while scanner.take(_OR):
        parts.append(_both(scanner, depth))
    return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))


def _both(scanner: Scanner, depth: int) -> Filter:
    parts = [_one(scanner, depth)]
    while scanner.take(_AND):
        parts.append(_one(scanner, depth))
    return parts[0] if len(parts) == 1 else All(tuple(parts))


def _one(scanner: Scanner, depth: int) -> Filter:
    if depth > FILTER_DEPTH_MAX:
        raise scanner.refused(
            f"the filter is nested more than {FILTER_DEPTH_MAX} deep",
            remedy="Leave out parentheses and nots that change nothing.",
        )
    if scanner.take(_NOT):
        return Not(_one(scanner, depth + 1))
    if scanner.take(_OPEN):
        inside = _either(scanner, depth + 1)
        if not scanner.take(_CLOSE):
            raise _unexpected(scanner, "and, or or )")
        return inside
    if scanner.peek(BRACKET):
        parts = take_brackets(scanner, _read_topic)
        return parts[0] if len(parts) == 1 else All(tuple(parts))
    scanner.count_predicate()
    return _condition(scanner)


def _condition(scanner: Scanner) -> Filter:
    if scanner.peek(BACKQUOTE):
        return _comparison(scanner, take_name(scanner))
    word = scanner.peek(NAME).lower()
    if word == "topic":
        return _topic(scanner)
    if word == "exists":
        scanner.take(NAME)
        return Predicate(take_name(scanner), Operator.EXISTS)
    if not word or word in KEYWORDS:
        raise _unexpected(scanner, "a condition")
    name = take_name(scanner)
    if word in CONTEXT_WORDS and not _operator_here(scanner):
        return _contextual(scanner, word)
    return _comparison(scanner, name)


def _comparison(scanner: Scanner, name: str) -> Predicate:
    how = _take_operator(scanner, name)
    if how is Operator.EXISTS:
        return Predicate(name, how)
    if how in _TEXT_OPERATORS:
        return Predicate(name, how, _take_text(scanner))
    value, unit, start = _take_value(scanner)
    check_comparison(scanner, how, value, start)
    return Predicate(name, how, value, unit)


def _take_value(scanner: Scanner) -> tuple[Scalar, str | None, int]:
    if scanner.peek(QUOTE):
        start = scanner.position
        return take_quoted(scanner), None, start
    word = scanner.peek(WORD)
    start = scanner.position
    if not word or word.lower() in ("and", "or", "not"):
        raise scanner.expected("a value", remedy="Put quotes around a text with other characters.")
    scanner.position += len(word)
    value, unit = read_value(scanner, word, start)
    if unit is None and isinstance(value, int | float) and not isinstance(value, bool):
        unit = take_unit(scanner)
    return value, unit, start


def _take_text(scanner: Scanner) -> str:
    """A value that is a text whatever it looks like."""
    if scanner.peek(QUOTE):
        return take_quoted(scanner)
    word = scanner.take(WORD)
    if not word:
        raise scanner.expected("a text", remedy="Put quotes around a text with other characters.")
    return word


def _take_operator(scanner: Scanner, name: str = "") -> Operator:
    found = _operator_here(scanner)
    if not found:
        raise _unexpected(scanner, "an operator", name)
    scanner.position += len(found)
    return _OPERATORS[found.lower()]


def _operator_here(scanner: Scanner) -> str:
    """The operator that stands here as it is written, or the empty text."""
    here = scanner.peek(_SIGN) or scanner.peek(NAME)
    return here if here.lower() in _OPERATORS else ""


def _topic(scanner: Scanner) -> Filter:
    scanner.take(NAME)
    # A word operator only as a whole word: in `topic contains/x` it is a level of the pattern.
    here = scanner.peek(_SIGN) or scanner.peek(_BARE_PATTERN)
    how = _OPERATORS.get(here.lower())
    if how is Operator.EXISTS or how in _TEXT_OPERATORS:
        return _comparison(scanner, "topic")
    if how not in (None, Operator.EQ):
        raise scanner.refused(
            f"topic {here} is not a comparison of topics",
            remedy="Write: not topic a/b. To compare the topic as a text, write `topic` != 'a/b'.",
        )
    scanner.position += len(here) if how else 0
    return _take_pattern(scanner)


def _take_pattern(scanner: Scanner) -> Filter:
    dialect = scanner.take(_DIALECT).rstrip(":").lower() or "tocsin"
    if scanner.peek(QUOTE):
        start = scanner.position
        return _read_topic(scanner, take_quoted(scanner), start, dialect)
    pattern = scanner.peek(_BARE_PATTERN)
    start = scanner.position
    if not pattern:
        raise scanner.expected("a topic pattern such as lead/*/radar")
    if named := scanner.peek(_DIALECT_UNQUOTED).lower():
        rest = pattern[len(named) :]
        raise scanner.refused(
            f"after the dialect {named} the pattern needs quotes",
            remedy=f"Write topic {named}'{rest}', or topic '{pattern}' for a topic of that name.",
        )
    scanner.position += len(pattern)
    return _read_topic(scanner, pattern, start, dialect)


def _read_topic(scanner: Scanner, text: str, start: int, dialect: str = "tocsin") -> Filter:
    try:
        return parse_topic_filter(text, dialect)
    except BadTopicPattern as bad:
        raise scanner.refused(bad.problem, remedy=bad.remedy, at=start) from None


def _contextual(scanner: Scanner, word: str) -> Filter:
    """A condition that begins with a word which elsewhere is an attribute's name."""
    if word == "everything":
        return EVERYTHING
    if word == "nothing":
        return AnyOf(())
    if word == "sql" and scanner.peek(QUOTE):
        at = scanner.position
        return _checked_sql(scanner, take_quoted(scanner), at)
    if word == "xpath" and scanner.peek(QUOTE):
        return _xpath(scanner)
    if word == "concept" and (scanner.peek(QUOTE) or scanner.peek(WORD)):
        return _concept(scanner)
    if word == "text" and (scanner.peek(NAME) or scanner.peek(BACKQUOTE)):
        return _text_condition(scanner)
    raise _unexpected(scanner, "an operator")


def _concept(scanner: Scanner) -> Filter:
    at = scanner.position
    try:
        return concepts_filter([_take_text(scanner)])
    except UnknownConcept as unknown:
        raise scanner.refused(unknown.problem, remedy=unknown.remedy, at=at) from None


def _text_condition(scanner: Scanner) -> TextIs:
    name = take_name(scanner)
    if _OPERATORS.get(_operator_here(scanner).lower()) not in _TEXT_FORM_OPERATORS:
        raise scanner.expected(
            "=, prefix or suffix", remedy="Leave out `text` to compare by value."
        )
    how = _take_operator(scanner)
    return TextIs(name, how, _take_text(scanner))


def _checked_sql(scanner: Scanner, expression: str, at: int) -> Sql:
    from tocsin.event.cesql import compile_sql

    try:
        compile_sql(expression)
    except BadFilter as bad:
        raise scanner.refused(bad.problem, remedy=bad.remedy, at=at) from None
    return Sql(expression)


def _xpath(scanner: Scanner) -> XPath:
    from tocsin.event.xpath import check_xpath

    at = scanner.position
    expression = take_quoted(scanner)
    namespaces: list[tuple[str, str]] = []
    while scanner.take(_WITH):
        prefix, sign, uri = _take_text(scanner).partition("=")
        if not sign:
            raise scanner.expected("'prefix=uri'")
        namespaces.append((prefix, uri))
    wanted = XPath(expression, tuple(namespaces))
    if scanner.take(_ON):
        wanted = replace(wanted, on=scanner.take(NAME).lower())
        if scanner.peek(QUOTE):
            soap = take_quoted(scanner)
            wanted = replace(wanted, soap=soap, wsa=_take_text(scanner))
    try:
        return check_xpath(wanted)
    except BadFilter as bad:
        raise scanner.refused(bad.problem, remedy=bad.remedy, at=at) from None


def _unexpected(scanner: Scanner, what: str, before: str = "") -> BadFilter:
    """The error that something else stands here, with what was probably meant."""
    here = scanner.peek(_SIGN) or scanner.peek(NAME)
    meant = _MEANT.get(here.lower()) or nearest(here, _WORDS_AT[what])
    if meant is None and before:
        meant = nearest(before, _FIRST_WORDS)
    if meant is not None:
        return scanner.expected(what, remedy=f"Did you mean {meant}?")
    return scanner.expected(what)
