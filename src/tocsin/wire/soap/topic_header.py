"""The header block of a message that names its topic."""

from __future__ import annotations

from typing import Final

from lxml import etree

from tocsin.errors import BadTopic
from tocsin.event.topic import valid_topic
from tocsin.wire.soap import names
from tocsin.wire.soap.envelope import Envelope, blocks, split
from tocsin.wire.soap.topics import read_topic

_TOPIC_NAMES: Final = frozenset({"Topic", "TopicExpression", "topic"})
_TOPIC_NAMESPACES: Final = frozenset({names.WSN10, names.WSN12, names.WSN13, names.TOCSIN})


def topic_block(envelope: Envelope) -> etree._Element | None:
    """The header block that names a topic: a specification's, else one of any namespace or none.

    A consumer's reference may hold one, and then it comes back here as a header (paper 000, IV.B).
    """
    other: etree._Element | None = None
    for block in blocks(envelope):
        namespace, name = split(block.tag)
        if name not in _TOPIC_NAMES:
            continue
        if namespace in _TOPIC_NAMESPACES:
            return block
        if other is None and _can_be_topic(block):
            other = block
    return other


def _can_be_topic(block: etree._Element) -> bool:
    """False for a block of somebody's own that is called so and holds something else."""
    topic = None if len(block) else read_topic(block)
    if topic is None:
        return False
    try:
        valid_topic(topic.path)
    except BadTopic:
        return False
    return True
