"""Messages as events, so that every other protocol has them; and the pairs of any event."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache

import msgspec

from tocsin.event.event import CONTEXT_NAMES, Event, visible
from tocsin.event.filter import (
    All,
    AnyOf,
    Filter,
    Operator,
    Predicate,
    TextIs,
    TopicIs,
)
from tocsin.event.filter_eval import canonical_text
from tocsin.event.topic import TopicPattern, valid_topic
from tocsin.ontology import Vocabulary
from tocsin.wire.blackboard.messages import Message

TYPE_PREFIX = "bb."
TOPIC_ROOT = "blackboard"
NO_LEAD = "Message"
LEVEL_BYTES_MAX = 400  # in a topic, which travels in headers

SUBJECT_CHARS_MAX = 1_024

MESSAGES = All(
    (
        TextIs("type", Operator.PREFIX, TYPE_PREFIX),
        TopicIs(TopicPattern.parse(f"{TOPIC_ROOT}/**")),
    )
)
"""Every event that is a message of the blackboard passes this."""

_NOT_IN_A_LEVEL = re.compile("[\x00-\x20\x7f-\xa0\ud800-\udfff/*]")

_encode = msgspec.json.Encoder().encode
_read_pairs = msgspec.json.Decoder(dict[str, str]).decode


def to_event(message: Message, *, id: str, source: str, vocabulary: Vocabulary) -> Event:
    """The message as an event; `id` and `source` serve where it has none of its own."""
    pairs = message.pairs
    return Event(
        id=message.id or id,
        source=message.source or source,
        type=TYPE_PREFIX + _lead(pairs, vocabulary),
        topic=topic_of(pairs.get("WorkflowName", ""), pairs.get("RunId", "")),
        time=message.time,
        subject=_subject(pairs.get("ActivityId") or pairs.get("RunId") or ""),
        datacontenttype="application/json",
        data=_encode(pairs),
    )


def pairs_of(event: Event, vocabulary: Vocabulary) -> dict[str, str]:
    """What any event says in concepts: each value that a content filter sees under such a name."""
    known = vocabulary.concepts
    if event.type.startswith(TYPE_PREFIX) and not (event.extensions or event.attributes):
        with suppress(
            msgspec.DecodeError, UnicodeDecodeError
        ):  # of one that came by another protocol
            pairs = _read_pairs(event.data or b"")
            if pairs.keys() <= known.keys():
                return pairs
    return {
        name: text
        for name, value in visible(event).items()
        if name in known and (text := canonical_text(value)) is not None
    }


def may_want_messages(wanted: Filter, vocabulary: Vocabulary) -> bool:
    """False only if the filter asks for something that no message of the blackboard has."""
    match wanted:
        case Predicate(name) | TextIs(name):
            return name in CONTEXT_NAMES or name in vocabulary
        case TopicIs(pattern):
            return pattern.intersects(TopicPattern((TOPIC_ROOT, "**")))
        case All(parts):
            return all(may_want_messages(part, vocabulary) for part in parts)
        case AnyOf(parts):
            return any(may_want_messages(part, vocabulary) for part in parts)
        case _:
            return True


def _lead(pairs: Mapping[str, str], vocabulary: Vocabulary) -> str:
    """What the message is about: its first pair that is an event."""
    events = vocabulary.below("Event")
    for name in pairs:
        if name in events:
            return name
    return NO_LEAD


def _subject(text: str) -> str | None:
    """In headers too, where not everything can stand that an engine may call a task."""
    return text if text.isprintable() and 0 < len(text) <= SUBJECT_CHARS_MAX else None


@lru_cache(maxsize=8_192)
def topic_of(workflow: str, run: str) -> str:
    """Where the messages of a run are filed."""
    return valid_topic(f"{TOPIC_ROOT}/{_level(workflow)}/{_level(run)}")


def _level(text: str) -> str:
    fit = _NOT_IN_A_LEVEL.sub("_", text)
    return fit.encode()[:LEVEL_BYTES_MAX].decode(errors="ignore") or "-"
