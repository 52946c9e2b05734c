"""XQuery over XML descriptors: what is accepted, and what must occur, where that is plain.

Saxon evaluates it in a process of its own. XQuery is read here only as far as it is XPath 1.0, or a
`for ... where ... return` or `some ... satisfies` around that: of the rest nothing is known, and
every document is looked at.
"""

from __future__ import annotations

import re
from typing import Final

from tocsin.errors import BadFilter, BadTopicQuery
from tocsin.event.xpath_syntax import Expression, finds_nodes, parse_xpath
from tocsin.topics.queries.requirement import NOTHING, Requirement, all_of
from tocsin.topics.queries.xml_values import required_values

QUERY_BYTES_MAX: Final = 8 << 10
BRACKETS_DEPTH_MAX: Final = 100  # 30,000 end the process that evaluates it

_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_DECLARED: Final = re.compile(
    r"\s*declare\s+namespace\s+([A-Za-z_][\w.-]*)\s*=\s*(?:'[^'&]*'|\"[^\"&]*\")\s*;"
)
# Comments, constructors, templates, entities: where quotes may be something else than quotes.
_UNREAD: Final = re.compile(r"\(:|\(#|<[^\W\d]|<[!?/]|[`{&]")
_EXISTS: Final = re.compile(r"(?<![\w.$@:/-])exists(?=\s*\()")
_NAME: Final = r"\$([A-Za-z_][\w.-]*)"
_LOOP: Final = re.compile(
    rf"\s*for\s+{_NAME}\s+in\s(?P<of>.*?)(?:\swhere\s(?P<where>.*?))?\sreturn\s.*", re.DOTALL
)
_SOME: Final = re.compile(
    rf"\s*some\s+{_NAME}\s+in\s(?P<of>.*?)\ssatisfies\s(?P<where>.*)", re.DOTALL
)
_CLAUSES: Final = re.compile(
    r"(?<![\w.$@:/-])(?:for|let|where|order|group|count|return|some|every|satisfies|if|typeswitch"
    r"|switch|try|function|window)(?=[\s($])"
)
_LOOPS: Final = (
    (["for", "return"], _LOOP),
    (["for", "where", "return"], _LOOP),
    (["some", "satisfies"], _SOME),
)


def check_xquery(query: str) -> Requirement:
    """What must occur in a document for which its value is true. BadTopicQuery if it is too long
    or too deep."""
    size = len(query.encode("utf-8", "replace"))
    if size > QUERY_BYTES_MAX:
        raise BadTopicQuery(
            f"the XQuery has {size} bytes", remedy=f"Write at most {QUERY_BYTES_MAX}."
        )
    depth = _depth(query)
    if depth > BRACKETS_DEPTH_MAX:
        raise BadTopicQuery(
            f"the XQuery nests {depth} brackets", remedy=f"Nest at most {BRACKETS_DEPTH_MAX}."
        )
    return _required(query)


def _depth(query: str) -> int:
    """How deep brackets are inside each other, whatever they are in: text counts as well."""
    depth = deepest = 0
    for char in query:
        if char in "([{<":
            depth += 1
            deepest = max(deepest, depth)
        elif char in ")]}>" and depth:
            depth -= 1
    return deepest


def _required(query: str) -> Requirement:
    prefixes: set[str] = set()
    at = 0
    while declared := _DECLARED.match(query, at):
        prefixes.add(declared[1])
        at = declared.end()
    body = query[at:]
    if _UNREAD.search(body):
        return NOTHING
    # The same with nothing in its texts that looks like XQuery. In XPath 1.0 a count is the nearest
    # to `exists`: it takes nodes alone as well.
    blank = _EXISTS.sub("count", _QUOTED.sub(_blanked, body))
    body = _EXISTS.sub("count", body)
    if len(blank) != len(body):
        return NOTHING
    clauses = [found for found in _CLAUSES.findall(blank) if found != "count"]
    for words, form in _LOOPS:
        if clauses == words and (loop := form.fullmatch(blank)) and not _is_sequence(blank):
            return _of_loop(body, loop, prefixes)
    return _of_xpath(body, prefixes)


def _blanked(quoted: re.Match[str]) -> str:
    return "'" + "_" * (len(quoted[0]) - 2) + "'"


def _is_sequence(blank: str) -> bool:
    """True if a comma joins several values, of which a loop may be one."""
    depth = 0
    for char in blank:
        depth += (char in "([") - (char in ")]")
        if char == "," and depth <= 0:
            return True
    return False


def _of_loop(body: str, loop: re.Match[str], prefixes: set[str]) -> Requirement:
    """What is looped over must have a node for which the condition is true."""
    over = _parsed(body[slice(*loop.span("of"))], prefixes)
    if over is None or not finds_nodes(over):
        return NOTHING
    found = [required_values(over)]
    if loop["where"] is not None:
        start, end = loop.span("where")
        variable = re.compile(rf"\${re.escape(loop[1])}(?![\w.-])")
        # For what must occur it does not matter which node it is.
        condition = _parsed(_outside_quotes(body[start:end], variable), prefixes)
        if condition is not None:
            found.append(required_values(condition))
    return all_of(found)


def _outside_quotes(text: str, variable: re.Pattern[str]) -> str:
    parts: list[str] = []
    at = 0
    for quoted in _QUOTED.finditer(text):
        parts += [variable.sub(".", text[at : quoted.start()]), quoted[0]]
        at = quoted.end()
    return "".join((*parts, variable.sub(".", text[at:])))


def _of_xpath(text: str, prefixes: set[str]) -> Requirement:
    tree = _parsed(text, prefixes)
    return NOTHING if tree is None else required_values(tree)


def _parsed(text: str, prefixes: set[str]) -> Expression | None:
    try:
        return parse_xpath(text, frozenset(prefixes))
    except BadFilter:
        return None
