"""Filters as the list of objects that a subscriber sends: the way back from reading them."""

from __future__ import annotations

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
from tocsin.event.filter_text import format_filter

_DIALECT_OF = {
    Operator.EQ: "exact",
    Operator.PREFIX: "prefix",
    Operator.SUFFIX: "suffix",
}
_XPATH_DEFAULTS = {"soap": "1.1", "wsa": ""}


def write_filters(wanted: Filter) -> list[object]:
    """The list that `read_filters` reads as this filter, unless it is past the limits there.

    A text of `filter_text` may nest deeper than a list may, so keep what a subscriber wrote.
    """
    if wanted == EVERYTHING:
        return []
    if isinstance(wanted, All) and len(wanted.parts) > 1:
        return [_write(part) for part in wanted.parts]
    return [_write(wanted)]


def _write(wanted: Filter) -> object:
    match wanted:
        case TextIs(name, how, text):
            return {_DIALECT_OF[how]: {name: text}}
        case Sql(expression):
            return {"sql": expression}
        case XPath(expression, ()) if wanted == XPath(expression):
            return {"xpath": expression}
        case XPath(expression, namespaces, on, soap, wsa):
            versions = {"soap": soap, "wsa": wsa}
            given = {key: text for key, text in versions.items() if text != _XPATH_DEFAULTS[key]}
            bound = {"namespaces": dict(namespaces)} if namespaces else {}
            return {"xpath": {"expression": expression, **bound, "on": on, **given}}
        case TopicIs(pattern):
            return {"topic": str(pattern)}
        case TopicMatches(expression):
            return {"topic": {"dialect": "regex", "expression": expression}}
        case Not(part):
            return {"not": _write(part)}
        case All(parts) if parts:
            return {"all": [_write(part) for part in parts]}
        case AnyOf(parts) if parts:
            return {"any": [_write(part) for part in parts]}
        case Predicate() | All() | AnyOf():
            return {"filter": format_filter(wanted)}
