"""Topics written: as one TopicSet, as the TopicNamespace of each namespace, as expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tocsin.wire.soap.fault import quoted
from tocsin.wire.soap.names import TOPICS13
from tocsin.wire.wsn.messages import Expression
from tocsin.wire.wstopics.tree import Step, TopicNode, TopicTree

EMPTY_TOPIC_SET: Final = b'<wstop:TopicSet xmlns:wstop="%b"/>' % TOPICS13.encode()

_IS_TOPIC: Final = b' wstop:topic="true"'


def topic_set(tree: TopicTree) -> bytes:
    """wstop:TopicSet: the tree as elements, of which topics are marked as such."""
    if not tree.top.children:
        return EMPTY_TOPIC_SET
    prefixes = _prefixes(tree)
    declared = b"".join(
        b' xmlns:%b="%b"' % (prefix.encode(), quoted(uri)) for uri, prefix in prefixes.items()
    )
    inside = b"".join(_elements(tree.top, prefixes))
    start = b'<wstop:TopicSet xmlns:wstop="%b"%b>' % (TOPICS13.encode(), declared)
    return b"%b%b</wstop:TopicSet>" % (start, inside)


def _prefixes(tree: TopicTree) -> dict[str, str]:
    return {uri: f"t{number}" for number, uri in enumerate(tree.namespaces)}


def _elements(node: TopicNode, prefixes: Mapping[str, str]) -> Iterator[bytes]:
    for (namespace, name), child in node.children.items():
        tag = (f"{prefixes[namespace]}:{name}" if namespace else name).encode()
        yield b"<%b%b" % (tag, _IS_TOPIC if child.is_topic else b"")
        if child.children:
            yield b">"
            yield from _elements(child, prefixes)
            yield b"</%b>" % tag
        else:
            yield b"/>"


def topic_namespace(tree: TopicTree, uri: str) -> bytes | None:
    """wstop:TopicNamespace: the topics that a namespace defines; None if it is none of the tree's.

    A name in a namespace of its own below another topic is defined there, with that topic as its
    parent (WS-Topics 1.3, section 5.3).
    """
    prefixes = _prefixes(tree)
    if uri not in prefixes:
        return None
    declared = b"".join(
        b' xmlns:%b="%b"' % (prefix.encode(), quoted(each)) for each, prefix in prefixes.items()
    )
    found: dict[str, bytes] = {}
    # The schema has each name once. Roots come first, and so are never the ones left out.
    for (namespace, name), node, parent in sorted(
        _defined(tree.top, (), prefixes), key=lambda each: len(each[2])
    ):
        if namespace == uri and name not in found:
            found[name] = _definition(name, node, parent)
    inside = b"".join(found.values())
    return b'<wstop:TopicNamespace xmlns:wstop="%b"%b targetNamespace="%b">%b%b' % (
        TOPICS13.encode(),
        declared,
        quoted(uri),
        inside,
        b"</wstop:TopicNamespace>",
    )


def _defined(
    node: TopicNode, path: tuple[Step, ...], prefixes: Mapping[str, str]
) -> Iterator[tuple[Step, TopicNode, str]]:
    """Every level that has a namespace, and the path of the topic above it."""
    for step, child in node.children.items():
        if step[0]:
            yield step, child, _path(path, prefixes)
        yield from _defined(child, (*path, step), prefixes)


def _path(steps: tuple[Step, ...], prefixes: Mapping[str, str]) -> str:
    return "/".join(
        f"{prefixes[namespace]}:{name}" if namespace else name for namespace, name in steps
    )


def _definition(name: str, node: TopicNode, parent: str = "") -> bytes:
    above = b' parent="%b"' % quoted(parent) if parent else b""
    start = b'<wstop:Topic name="%b"%b' % (quoted(name), above)
    below = b"".join(
        _definition(each, child)
        for (namespace, each), child in node.children.items()
        if not namespace
    )
    return b"%b>%b</wstop:Topic>" % (start, below) if below else start + b"/>"


def expressions(tree: TopicTree, dialect: str) -> list[Expression]:
    """What together stands for all topics: each root with everything below, in the Full dialect."""
    return [
        Expression(f"tns:{name}//.", dialect, (("tns", namespace),))
        for namespace, name in tree.top.children
    ]
