"""Which topics are owned: those below a UUID that only a topic discovery node can have made.

A UUID of a topic is of version 8 (RFC 9562) with `70c` after it, which no other maker of UUIDs
writes by chance more than once in 4,096 of that version. How it follows from its creator is in
`tocsin.topics.advertisement`; here it is only recognised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

MARK: Final = "-870c-"

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-870c-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class OwnedTopic(msgspec.Struct, frozen=True):
    """A topic at or below the level that is the UUID of its owner's topic."""

    uuid: str
    above: tuple[str, ...]
    below: tuple[str, ...]


def is_topic_uuid(text: str) -> bool:
    return _UUID.fullmatch(text) is not None


def owned(topic: str) -> OwnedTopic | None:
    """Whose the topic is; None for one that nobody owns.

    Of several UUIDs the first counts: what is below an owned topic is its owner's, whatever
    somebody else calls a level there.
    """
    if MARK not in topic:
        return None
    levels = tuple(topic.split("/"))
    for at, level in enumerate(levels):
        if is_topic_uuid(level):
            return OwnedTopic(level, levels[:at], levels[at + 1 :])
    return None


def owned_uuid(topic: str) -> str | None:
    found = owned(topic)
    return None if found is None else found.uuid


def named_uuids(levels: Iterable[str]) -> tuple[str, ...]:
    """The UUIDs of topics among the levels of a pattern, in their order."""
    return tuple(level for level in levels if MARK in level and is_topic_uuid(level))
