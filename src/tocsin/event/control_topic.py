"""The topics of control messages, by which topics are discovered (paper 003, sections 4 to 6).

Nothing on them is an event: it is not stored, and no subscription gets it. So nobody publishes
events on topics below `Services/Discovery` and `Entity`, and nobody subscribes to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from tocsin.errors import BadControlMessage, ReservedTopic
from tocsin.event.event import Event
from tocsin.event.filter import All, AnyOf, Filter, Operator, Predicate, TextIs, TopicIs

ENTITY_LEVELS: Final = ("Entity",)
DISCOVERY_LEVELS: Final = ("Services", "Discovery")
TOPIC_CHARS_MAX: Final = 128
BODY_BYTES_MAX: Final = 1 << 20
FLOOD_HOPS_MAX: Final = 7  # links that a client's message for everybody may cross
EVERY_BROKER: Final = "*"

_NAME = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_SHOWN_MAX = 80
_RESERVED = ("Entity", "Services/Discovery")  # every such topic begins with one of these


class ControlGroup(StrEnum):
    """What a control message is about, by the beginning of its topic."""

    TOPICS = "topics"  # for topic discovery nodes: advertisements, and requests for them
    NODES = "nodes"  # for topic discovery nodes: requests for them, and for new topics
    RIGHTS = "rights"  # for all brokers, by brokers alone: who may do what on topics of others
    ENTITY = "entity"  # for one entity


TOPICS: Final = "Services/Discovery/Topics"
NODES: Final = "Services/Discovery/TopicDiscoveryNode"
RIGHTS: Final = "Services/Discovery/Rights"

_BEGINNINGS: Final = {TOPICS: ControlGroup.TOPICS, NODES: ControlGroup.NODES}


@dataclass(frozen=True, slots=True)
class ControlTopic:
    """Where a control message goes. `name`: of the entity, or of the one topic discovery node that
    is meant; empty for all of them."""

    group: ControlGroup
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """BadControlMessage for a topic that carries no control messages."""
        if text == RIGHTS:
            return cls(ControlGroup.RIGHTS)
        beginning, _, name = text.rpartition("/")
        if (group := _BEGINNINGS.get(text)) is not None:
            return cls(group)
        group = ControlGroup.ENTITY if beginning == "Entity" else _BEGINNINGS.get(beginning)
        if group is None or not _NAME.fullmatch(name):
            raise BadControlMessage(
                f"{text[:_SHOWN_MAX]!r} is not a topic of control messages",
                remedy=f"Use {TOPICS}, {NODES}, either with /TDN-ID after it, or Entity/ID.",
            )
        return cls(group, name)


def entity_topic(entity: str) -> str:
    """Where messages for this entity go."""
    return f"Entity/{entity}"


def check_events(events: Iterable[Event]) -> None:
    """ReservedTopic if an event is on a topic where control messages go. Every event that is
    published comes by here."""
    for event in events:
        topic = event.topic
        if topic.startswith(_RESERVED) and _is_reserved(tuple(topic.split("/"))):
            raise ReservedTopic(
                f"no event can be on the topic {topic[:_SHOWN_MAX]!r}: control messages go there",
                remedy="Send control messages by POST /topics/messages, or use another topic.",
            )


def check_filter(filter: Filter) -> None:
    """ReservedTopic for a filter that names a topic on which no event can be."""
    for levels in _named(filter):
        if _is_reserved(levels):
            topic = "/".join(levels)
            raise ReservedTopic(
                f"nobody can subscribe to {topic[:_SHOWN_MAX]!r}: what goes there are control "
                "messages, and no events",
                remedy="Follow GET /topics/messages/stream, or subscribe to another topic.",
            )


def _is_reserved(levels: tuple[str, ...]) -> bool:
    return levels[:1] == ENTITY_LEVELS or levels[:2] == DISCOVERY_LEVELS


def _named(filter: Filter) -> Iterator[tuple[str, ...]]:
    """The topics and patterns that events may be on; what is excluded may be anything."""
    match filter:
        case TopicIs(pattern):
            yield pattern.levels
        case TextIs("topic", Operator.EQ, text) | Predicate("topic", Operator.EQ, str(text)):
            yield tuple(text.split("/"))
        case TextIs("topic", Operator.PREFIX, text) | Predicate(
            "topic", Operator.PREFIX, str(text)
        ):
            yield tuple(text.split("/")[:-1])  # the last level may go on
        case All(parts) | AnyOf(parts):
            for part in parts:
                yield from _named(part)
        case _:
            pass
