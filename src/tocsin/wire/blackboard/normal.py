"""Messages as events, so that every other door sees them; and the pairs of any event."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from tocsin.event.event import Event, visible
from tocsin.event.filter_eval import canonical_text
from tocsin.ontology import Vocabulary
from tocsin.wire.blackboard.messages import Message

TYPE_PREFIX = "bb."
TOPIC_ROOT = "blackboard"
NO_LEAD = "Message"
LEVEL_CHARS_MAX = 200  # in a topic, which travels in headers

_NOT_IN_A_LEVEL = re.compile("[\x00-\x20\x7f-\xa0\ud800-\udfff/*]")

_encode = msgspec.json.Encoder().encode


def to_event(message: Message, *, id: str, source: str, vocabulary: Vocabulary) -> Event:
    """The message as an event; `id` and `source` serve where it has none of its own."""
    pairs = message.pairs
    return Event(
        id=message.id or id,
        source=message.source or source,
        type=TYPE_PREFIX + _lead(pairs, vocabulary),
        topic=topic_of(pairs.get("WorkflowName", ""), pairs.get("RunId", "")),
        time=message.time,
        subject=pairs.get("ActivityId") or pairs.get("RunId") or None,
        datacontenttype="application/json",
        data=_encode(pairs),
    )


def pairs_of(event: Event, vocabulary: Vocabulary) -> dict[str, str]:
    """What any event says in concepts: each value that a content filter sees under such a name."""
    known = vocabulary.concepts
    return {
        name: text
        for name, value in visible(event).items()
        if name in known and (text := canonical_text(value)) is not None
    }


def _lead(pairs: Mapping[str, str], vocabulary: Vocabulary) -> str:
    """What the message tells of: its first pair that is an event."""
    events = vocabulary.below("Event")
    for name in pairs:
        if name in events:
            return name
    return NO_LEAD


@lru_cache(maxsize=8_192)
def topic_of(workflow: str, run: str) -> str:
    """Where the messages of a run are filed."""
    return f"{TOPIC_ROOT}/{_level(workflow)}/{_level(run)}"


def _level(text: str) -> str:
    return _NOT_IN_A_LEVEL.sub("_", text[:LEVEL_CHARS_MAX]) or "-"
