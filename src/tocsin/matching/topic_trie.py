"""Topic trie: which of the stored topic patterns fit a topic.

Patterns without a wildcard are one dictionary. The others are a trie by level, walked with the set
of all nodes that the levels so far can have led to: the cost is bounded by the trie and the depth
of the topic, whatever `**` does, since no node is visited twice at one level.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tocsin.event.topic_levels import MANY, ONE

Levels = tuple[str, ...]


@dataclass(slots=True)
class _Node:
    """After some levels of a pattern; `pattern` is the number of the one that ends here."""

    children: dict[str, _Node] = field(default_factory=dict)
    pattern: int | None = None
    stays: bool = False  # reached by **: any further level leaves us here


class TopicTrie:
    """Topic patterns by number."""

    def __init__(self) -> None:
        self._concrete: dict[str, int] = {}
        self._root = _Node()
        self._wild_count = 0

    def __len__(self) -> int:
        return len(self._concrete) + self._wild_count

    def add(self, levels: Levels, pattern: int) -> None:
        """Store a pattern that is not yet stored."""
        if _is_concrete(levels):
            self._concrete["/".join(levels)] = pattern
            return
        node = self._root
        for level in levels:
            child = node.children.get(level)
            if child is None:
                child = node.children[level] = _Node(stays=level == MANY)
            node = child
        node.pattern = pattern
        self._wild_count += 1

    def remove(self, levels: Levels) -> None:
        """Forget a stored pattern, and the nodes that led to it alone."""
        if _is_concrete(levels):
            del self._concrete["/".join(levels)]
            return
        path = [self._root]
        for level in levels:
            path.append(path[-1].children[level])
        path[-1].pattern = None
        self._wild_count -= 1
        for depth in range(len(levels), 0, -1):
            node = path[depth]
            if node.children or node.pattern is not None:
                break
            del path[depth - 1].children[levels[depth - 1]]

    def find(self, topic: str) -> list[int]:
        """The numbers of the patterns that fit; the empty topic has no levels."""
        concrete = self._concrete.get(topic)
        found = [] if concrete is None else [concrete]
        if not self._root.children:
            return found
        nodes = _with_none_of_many([self._root])
        for level in topic.split("/") if topic else ():
            nodes = _with_none_of_many(_after(nodes, level))
        found.extend(node.pattern for node in nodes if node.pattern is not None)
        return found


def _is_concrete(levels: Levels) -> bool:
    return ONE not in levels and MANY not in levels


def _after(nodes: list[_Node], level: str) -> list[_Node]:
    """Where one more level leads, from any of the nodes."""
    after: list[_Node] = []
    for node in nodes:
        if node.stays:
            after.append(node)
        for name in (level, ONE):
            child = node.children.get(name)
            if child is not None:
                after.append(child)
    return after


def _with_none_of_many(nodes: list[_Node]) -> list[_Node]:
    """The nodes, and those that a following ** reaches without a level; each once."""
    reached = {id(node): node for node in nodes}
    waiting = nodes
    while waiting:
        waiting = [
            child
            for node in waiting
            if (child := node.children.get(MANY)) is not None and id(child) not in reached
        ]
        reached.update((id(node), node) for node in waiting)
    return list(reached.values())
