"""The `filters` of a CloudEvents subscription.

A list of objects, all of which must hold; each has one key, which names its dialect. The Cloud-
Events Subscriptions API has `exact`, `prefix`, `suffix`, `all`, `any`, `not` and `sql`; `filter` (a
text in the language of `filter_text`), `topic` (a pattern), `xpath` and `concepts` (names)
are ours. An error names the position by its path, as in `filters[2].any[0]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tocsin.errors import BadFilter, TocsinError
from tocsin.event.concept_filter import CONCEPTS_MAX, concepts_filter
from tocsin.event.filter import (
    All,
    AnyOf,
    Filter,
    Not,
    Operator,
    Sql,
    TextIs,
    XPath,
)
from tocsin.event.filter_scan import NAME_CHARS_MAX
from tocsin.event.filter_text import parse_filter, parse_topic_filter

FILTERS_DEPTH_MAX = 16
FILTERS_NODES_MAX = 512

_SHOWN_MAX = 40

_TEXT_DIALECTS: Mapping[str, Operator] = {
    "exact": Operator.EQ,
    "prefix": Operator.PREFIX,
    "suffix": Operator.SUFFIX,
}
_XPATH_KEYS = frozenset({"expression", "namespaces", "on", "soap", "wsa"})

_Found = TypeVar("_Found")


@dataclass(slots=True)
class _Position:
    """Where in the list we are, and how many nodes may still come in all of it."""

    path: str
    depth: int
    nodes_left: list[int]  # one number, shared by every position

    def at(self, step: str) -> _Position:
        return _Position(self.path + step, self.depth, self.nodes_left)

    def inside(self, dialect: str) -> _Position:
        return _Position(f"{self.path}.{dialect}", self.depth + 1, self.nodes_left)


def read_filters(filters: list[object]) -> Filter:
    """The filter that the list writes; BadFilter, and the path to it, where it writes none."""
    root = _Position("filters", 0, [FILTERS_NODES_MAX])
    if not isinstance(filters, list):
        raise _refused(root, f"is {_kind(filters)}", "Give a list of filters.")
    parts = tuple(_read(each, root.at(f"[{index}]")) for index, each in enumerate(filters))
    return parts[0] if len(parts) == 1 else All(parts)


def _read(member: object, position: _Position) -> Filter:
    _count(position)
    if position.depth >= FILTERS_DEPTH_MAX:
        raise _refused(position, f"is nested more than {FILTERS_DEPTH_MAX} deep", "Flatten it.")
    if not isinstance(member, dict):
        raise _refused(position, f"is {_kind(member)}", f"Give an object with one of: {_known()}.")
    if len(member) != 1:
        found = ", ".join(_shortened(key) for key in list(member)[:4]) or "none"
        raise _refused(
            position, f"has {len(member)} dialects ({found})", f"Give exactly one of: {_known()}."
        )
    [(dialect, content)] = member.items()
    reader = _READERS.get(dialect)
    if reader is None:
        raise _refused(
            position,
            f"has {_shortened(dialect)!r}, which is not a filter dialect of this broker",
            f"It has: {_known()}.",
        )
    return reader(dialect, content, position.inside(dialect))


def _read_texts(dialect: str, content: object, position: _Position) -> Filter:
    if not isinstance(content, dict) or not content:
        raise _refused(position, f"is {_kind(content)}", "Give an object of attribute and text.")
    leaves: list[Filter] = []
    for name, text in content.items():
        inside = position.at(f".{_shortened(name)}")
        _count(inside)
        if not name or len(name) > NAME_CHARS_MAX:
            raise _refused(
                inside,
                "has an attribute name that is empty or too long",
                f"Names have 1 to {NAME_CHARS_MAX} characters.",
            )
        if not isinstance(text, str) or not text:
            raise _refused(inside, f"is {_kind(text)}", "Give a text that is not empty.")
        leaves.append(TextIs(name, _TEXT_DIALECTS[dialect], text))
    return leaves[0] if len(leaves) == 1 else All(tuple(leaves))


def _read_all(_dialect: str, content: object, position: _Position) -> Filter:
    return All(_read_list(content, position))


def _read_any(_dialect: str, content: object, position: _Position) -> Filter:
    return AnyOf(_read_list(content, position))


def _read_list(content: object, position: _Position) -> tuple[Filter, ...]:
    if not isinstance(content, list) or not content:
        raise _refused(position, f"is {_kind(content)}", "Give a list of at least one filter.")
    return tuple(_read(each, position.at(f"[{index}]")) for index, each in enumerate(content))


def _read_not(_dialect: str, content: object, position: _Position) -> Filter:
    return Not(_read(content, position))


def _read_sql(_dialect: str, content: object, position: _Position) -> Filter:
    from tocsin.event.cesql import compile_sql

    expression = _text(content, position)
    _within(position, compile_sql, expression)
    return Sql(expression)


def _read_xpath(_dialect: str, content: object, position: _Position) -> Filter:
    if not isinstance(content, dict):
        return _checked_xpath(position, XPath(_text(content, position)))
    if "expression" not in content or not _XPATH_KEYS.issuperset(content):
        raise _refused(
            position,
            f"has the keys {', '.join(_shortened(key) for key in list(content)[:6])}",
            f"Give a text, or an object of expression and {', '.join(sorted(_XPATH_KEYS))}.",
        )
    namespaces = content.get("namespaces", {})
    if not isinstance(namespaces, dict):
        raise _refused(position.at(".namespaces"), f"is {_kind(namespaces)}", "Give an object.")
    texts = {
        key: _text(value, position.at(f".{key}"))
        for key, value in content.items()
        if key != "namespaces"
    }
    bound = tuple(
        (prefix, _text(uri, position.at(f".namespaces.{_shortened(prefix)}")))
        for prefix, uri in sorted(namespaces.items())
    )
    return _checked_xpath(position, XPath(namespaces=bound, **texts))


def _checked_xpath(position: _Position, wanted: XPath) -> Filter:
    from tocsin.event.xpath import check_xpath

    return _within(position, lambda _text: check_xpath(wanted), wanted.expression)


def _read_filter(_dialect: str, content: object, position: _Position) -> Filter:
    return _counted(position, _within(position, parse_filter, _text(content, position)))


def _read_topic(_dialect: str, content: object, position: _Position) -> Filter:
    if not isinstance(content, dict):
        return _within(position, parse_topic_filter, _text(content, position))
    if content.keys() != {"dialect", "expression"}:
        raise _refused(
            position,
            f"has the keys {', '.join(_shortened(key) for key in list(content)[:4])}",
            "Give a pattern, or an object of dialect and expression.",
        )
    dialect = _text(content["dialect"], position.at(".dialect"))
    expression = _text(content["expression"], position.at(".expression"))
    read = partial(parse_topic_filter, dialect=dialect)
    return _counted(position, _within(position, read, expression))


def _read_concepts(_dialect: str, content: object, position: _Position) -> Filter:
    if not isinstance(content, list) or not content:
        raise _refused(position, f"is {_kind(content)}", "Give a list of at least one concept.")
    if len(content) > CONCEPTS_MAX:
        raise _refused(
            position, f"has {len(content)} concepts", f"At most {CONCEPTS_MAX} are one profile."
        )
    names = [_text(each, position.at(f"[{index}]")) for index, each in enumerate(content)]
    return _within(position, lambda _names: concepts_filter(names), ", ".join(names[:4]))


_Reader = Callable[[str, object, _Position], Filter]

_READERS: Mapping[str, _Reader] = {
    "exact": _read_texts,
    "prefix": _read_texts,
    "suffix": _read_texts,
    "all": _read_all,
    "any": _read_any,
    "not": _read_not,
    "sql": _read_sql,
    "xpath": _read_xpath,
    "filter": _read_filter,
    "topic": _read_topic,
    "concepts": _read_concepts,
}


def _within(position: _Position, read: Callable[[str], _Found], text: str) -> _Found:
    """What `read` makes of the text; its error also says where in the list the text is."""
    try:
        return read(text)
    except TocsinError as bad:
        raise BadFilter(
            f"{position.path}: {bad.problem}",
            remedy=bad.remedy,
            text=bad.text if isinstance(bad, BadFilter) else text,
            position=bad.position if isinstance(bad, BadFilter) else 0,
        ) from None


def _text(content: object, position: _Position) -> str:
    if not isinstance(content, str):
        raise _refused(position, f"is {_kind(content)}", "Give a text.")
    return content


def _size(wanted: Filter) -> int:
    """How many nodes the filter has."""
    match wanted:
        case All(parts) | AnyOf(parts):
            return 1 + sum(map(_size, parts))
        case Not(part):
            return 1 + _size(part)
    return 1


def _counted(position: _Position, found: Filter) -> Filter:
    """What a member's text turned out to hold; the member itself is counted already."""
    _count(position, _size(found) - 1)
    return found


def _count(position: _Position, nodes: int = 1) -> None:
    position.nodes_left[0] -= nodes
    if position.nodes_left[0] < 0:
        raise _refused(
            position,
            f"is too many: {FILTERS_NODES_MAX} conditions and groups are the limit",
            "Make several subscriptions.",
        )


def _refused(position: _Position, problem: str, remedy: str) -> BadFilter:
    return BadFilter(f"{position.path} {problem}", remedy=remedy)


def _known() -> str:
    return ", ".join(_READERS)


def _kind(value: object) -> str:
    """What a JSON value is, for a message."""
    if value is None:
        return "null"
    if value in ("", [], {}):
        return "empty"
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return names.get(type(value), "a number")


def _shortened(name: str) -> str:
    return name if len(name) <= _SHOWN_MAX else name[: _SHOWN_MAX - 3] + "..."
