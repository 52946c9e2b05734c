"""Where the SOAP door answers: its own paths, and those that old clients know."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from lxml import etree

from tocsin.errors import BadTopic
from tocsin.event.topic import valid_topic
from tocsin.wire.soap import names
from tocsin.wire.soap.envelope import Envelope, blocks, split, text_of
from tocsin.wire.soap.topics import read_topic

WHOLE: Final = ("/soap", "/wsman", "/wsman-anon/identify")
PREFIXES: Final = ("/soap/", "/wsman/", "/axis2/services/", "/onvif/")
# Where a message that is the notification itself is published. At the others there are protocols
# whose clients send only requests.
_PUBLISHES: Final = ("/soap/", "/axis2/services/")
ID_CHARS_MAX: Final = 128

_OURS = re.compile(r"/soap/(subscriptions|boxes|registrations)/([^/]+)/?")
_BOX = re.compile(r"/axis2/services/MsgBoxService/clientid/([^/]+)/?")
_TOPIC = re.compile(r"/topic/(.+)")

# The header blocks by which our references name what they are about.
_IDENTIFIERS: Final = frozenset(
    {
        (names.WSE04, "Identifier"),
        (names.WSE11, "Identifier"),
        (names.WSN10, "Identifier"),
        (names.TOCSIN, "SubscriptionId"),
        (names.TOCSIN, "RegistrationId"),
        (names.TOCSIN, "BoxId"),
    }
)


@dataclass(frozen=True, slots=True)
class Place:
    """What a path leads to. `kind` is subscriptions, boxes, registrations or empty."""

    kind: str = ""
    resource: str | None = None
    topic: str | None = None


def place_of(path: str) -> Place:
    """What the path names."""
    found = _OURS.fullmatch(path)
    if found:
        return Place(found[1], unquote(found[2])[:ID_CHARS_MAX])
    found = _BOX.fullmatch(path)
    if found:
        return Place("boxes", unquote(found[1])[:ID_CHARS_MAX])
    found = _TOPIC.search(path)
    return Place(topic=unquote(found[1]).strip("/") or None) if found else Place()


def identifier(envelope: Envelope) -> str | None:
    """The id in a header block that was echoed from a reference of ours."""
    for block in blocks(envelope):
        if split(block.tag) in _IDENTIFIERS:
            return text_of(block)[:ID_CHARS_MAX] or None
    return None


def is_soap_path(path: str) -> bool:
    """True if the SOAP door answers at this path."""
    return path in WHOLE or path.startswith(PREFIXES)


def takes_bare_notifications(path: str) -> bool:
    """True if a body in no specification's namespace is an event here."""
    return path == "/soap" or path.startswith(_PUBLISHES)


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


_TOPIC_NAMES: Final = frozenset({"Topic", "TopicExpression", "topic"})
_TOPIC_NAMESPACES: Final = frozenset({names.WSN10, names.WSN12, names.WSN13, names.TOCSIN})
