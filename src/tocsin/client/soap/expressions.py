"""What a subscriber wants, in the words of each specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tocsin.errors import NotInSpecification
from tocsin.event.topic import TopicPattern
from tocsin.wire.soap.names import TOPICS10_SIMPLE, TOPICS13, XPATH10, XPATH10_WSE11
from tocsin.wire.soap.topics import dialect_uri
from tocsin.wire.wsn.messages import Expression

_SHORT: Final = ("simple", "concrete", "full", "xpath")


def topic_expression(
    topics: Sequence[str], spec: str, namespaces: Mapping[str, str], dialect: str | None
) -> Expression | None:
    """The topics, of which any will do; None for every topic.

    Without a dialect they are paths in which `*` is one level and `**` any number of them. With one
    (its URI, or simple, concrete, full, xpath) the text is sent as it is.
    """
    if not topics:
        return None
    if dialect is not None:
        return _expression("|".join(topics), _uri(dialect, spec), namespaces)
    patterns = [TopicPattern.parse(topic) for topic in topics]
    if any(pattern.levels == ("**",) for pattern in patterns):
        return None
    if len(topics) == 1 and "*" not in topics[0]:
        is_root = "/" not in topics[0]
        return _expression(topics[0], _concrete(spec, is_root=is_root), namespaces)
    if spec == "wsn10":
        raise NotInSpecification(
            "WS-Notification 1.0 subscribes to one topic, or to all, and knows no wildcards",
            remedy="Name one topic, or choose version 1.2 or 1.3.",
        )
    text = "|".join(_full(pattern) for pattern in patterns)
    return _expression(text, _uri("full", spec), namespaces)


def xpath_expression(
    text: str | None, spec: str, namespaces: Mapping[str, str]
) -> Expression | None:
    """What the payload must be like."""
    if text is None:
        return None
    return _expression(text, XPATH10_WSE11 if spec == "wse11" else XPATH10, namespaces)


def one_topic(topic: str, spec: str, namespaces: Mapping[str, str]) -> Expression:
    """One topic by its path."""
    return _expression(topic, _concrete(spec, is_root="/" not in topic), namespaces)


def _expression(text: str, dialect: str, namespaces: Mapping[str, str]) -> Expression:
    # A prefix may stand anywhere in an XPath: declare whatever the text may mean.
    used = {prefix: uri for prefix, uri in namespaces.items() if f"{prefix}:" in text}
    return Expression(text, dialect, tuple(sorted(used.items())))


def _concrete(spec: str, *, is_root: bool) -> str:
    if spec == "wse04" and not is_root:
        return f"{TOPICS13}/TopicExpression/Concrete"  # the original's own knows no paths
    return dialect_uri(spec, is_root=is_root)


def _uri(dialect: str, spec: str) -> str:
    if dialect not in _SHORT:
        return dialect
    if dialect == "xpath":
        return XPATH10
    if spec == "wsn10" or (spec == "wse04" and dialect == "simple"):
        return TOPICS10_SIMPLE
    root = dialect_uri(spec if spec == "wsn12" else "wsn13", is_root=True).removesuffix("Simple")
    return root + dialect.capitalize()


def _full(pattern: TopicPattern) -> str:
    """The pattern in the Full dialect: `//` for any number of levels."""
    text, skipped = "", False
    for level in pattern.levels:
        if level == "**":
            skipped = True
            continue
        text += ("//" if skipped else "/" if text else "") + level
        skipped = False
    return f"{text}//." if skipped else text
