"""Topics as WS-Topics sees them: a tree of names, each in a namespace or in none.

A topic that is no path of XML names cannot be an element, and so is in no tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from tocsin.errors import BadXml
from tocsin.safexml import parse
from tocsin.wire.soap.fault import quoted
from tocsin.wire.soap.names import TOCSIN
from tocsin.wire.soap.topics import TopicName

Step = tuple[str, str]
"""Namespace and local name of one level."""

UNNAMED: Final = f"{TOCSIN}:topics"
"""Where root topics stand that name no namespace: the schema of TopicSet asks for one. Whoever
subscribes with it gets them, as events without a namespace pass for any."""

NODES_MAX: Final = 10_000  # a TopicSet of about a megabyte
NAMESPACE_CHARS_MAX: Final = 1_024
NAMESPACES_MAX: Final = 256  # each is declared once, at the start of the document
_NAMESPACES_KEPT: Final = 1_024  # judged before

_FIRST = (
    "A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
NAME: Final = re.compile(f"[{_FIRST}][{_FIRST}0-9.\u00b7\u0300-\u036f\u203f\u2040-]*")
"""A name of XML without a colon."""


def steps_of(topic: TopicName) -> tuple[Step, ...] | None:
    """The levels of a topic; None if they cannot all be elements."""
    bound = dict(topic.namespaces)
    steps: list[Step] = []
    for level in topic.text.strip("/").split("/"):
        prefix, _, name = level.rpartition(":")
        namespace = bound.get(prefix, "") if prefix else ""
        if not steps and not namespace:
            namespace = UNNAMED
        if not NAME.fullmatch(name) or not _is_namespace(namespace):
            return None
        steps.append((namespace, name))
    return tuple(steps)


@lru_cache(maxsize=_NAMESPACES_KEPT)
def _is_namespace(uri: str) -> bool:
    """Whether a document may declare it: a publisher may have called anything a namespace."""
    if not uri:
        return True
    try:
        parse(b'<p:a xmlns:p="%b"/>' % quoted(uri[: NAMESPACE_CHARS_MAX + 1]))
    except BadXml:
        return False
    return len(uri) <= NAMESPACE_CHARS_MAX and "\ufffd" not in uri


class TopicNode:
    """One level. What is below a topic may be topics where it is none itself."""

    __slots__ = ("children", "is_topic")

    def __init__(self) -> None:
        self.children: dict[Step, TopicNode] = {}
        self.is_topic = False


class TopicTree:
    """Topics by their levels, as many as there is room for."""

    def __init__(self, nodes_max: int = NODES_MAX) -> None:
        self.top = TopicNode()
        self.is_full = False  # some topic found no room
        self._nodes = 0
        self._nodes_max = nodes_max
        self._namespaces: set[str] = set()

    def __len__(self) -> int:
        return self._nodes

    def add(self, steps: Sequence[Step]) -> bool:
        """True if the topic is in the tree now."""
        if not self._has_room(steps):
            self.is_full = True
            return False
        node = self.top
        for step in steps:
            child = node.children.get(step)
            if child is None:
                child = node.children[step] = TopicNode()
                self._nodes += 1
            node = child
        self._namespaces.update(namespace for namespace, _ in steps if namespace)
        node.is_topic = True
        return True

    def _has_room(self, steps: Sequence[Step]) -> bool:
        node: TopicNode | None = self.top
        missing = 0
        for step in steps:
            node = None if node is None else node.children.get(step)
            missing += node is None
        fresh = {namespace for namespace, _ in steps if namespace} - self._namespaces
        has_names = len(self._namespaces) + len(fresh) <= NAMESPACES_MAX
        return self._nodes + missing <= self._nodes_max and has_names

    def part(self, is_in: Callable[[str], bool]) -> TopicTree:
        """The topics for whose path of local names this holds."""
        part = TopicTree(self._nodes_max)
        for steps in self.topics():
            if is_in("/".join(name for _, name in steps)):
                part.add(steps)
        return part

    @property
    def namespaces(self) -> list[str]:
        """Those that some level is in."""
        return sorted(self._namespaces)

    def topics(self) -> Iterator[tuple[Step, ...]]:
        """Every topic, those above before those below."""
        yield from _topics(self.top, ())


def _topics(node: TopicNode, path: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    if node.is_topic:
        yield path
    for step, child in node.children.items():
        yield from _topics(child, (*path, step))
