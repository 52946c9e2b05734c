"""What a message box holds: messages as they were sent, each kept as an event of a log of boxes.

A box is private to those who know its token, so its messages do not lie in the broker's own log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tocsin.errors import BadTopic
from tocsin.event.event import Event
from tocsin.event.value import Scalar
from tocsin.wire.soap.mediation import XML_TYPE
from tocsin.wire.soap.names import TOCSIN
from tocsin.wire.soap.topics import TopicName, topic_context, topic_of

_BOXES: Final = "box"
_ACTION: Final = "action"
_MESSAGE_ID: Final = "messageid"
_SENDER: Final = "sender"
_TOPIC: Final = "sendertopic"
_KEPT_OF_TOPIC: Final = ("topicns", "wstopic")


@dataclass(frozen=True, slots=True)
class BoxMessage:
    """One element of a body that was sent to a box, and what its header gave for it."""

    body: bytes
    action: str | None = None
    message_id: str | None = None
    sender: str | None = None
    topic: TopicName | None = None


def box_topic(token: str) -> str:
    """Where the messages of a box are in the log of boxes."""
    return f"{_BOXES}/{token}"


def box_filters(token: str) -> list[object]:
    """The filter of the subscription that is the box."""
    return [{"topic": box_topic(token)}]


def token_of(filters: object) -> str | None:
    """The token of the box that a subscription with these filters is; None if it is none."""
    if not isinstance(filters, list) or len(filters) != 1 or not isinstance(filters[0], dict):
        return None
    start, _, token = str(filters[0].get("topic", "")).partition("/")
    return token if start == _BOXES and token else None


def box_event(token: str, message: BoxMessage, event_id: str) -> Event:
    """The message as it is kept."""
    held: dict[str, Scalar] = {}
    for name, value in (
        (_ACTION, message.action),
        (_MESSAGE_ID, message.message_id),
        (_SENDER, message.sender),
    ):
        if value is not None:
            held[name] = value
    if message.topic is not None:
        try:
            held[_TOPIC], extensions = topic_context(message.topic)
        except BadTopic:
            extensions = {}  # no usable topic; the message is stored all the same
        held.update(extensions)
    return Event(
        id=event_id,
        source=f"/boxes/{token}",
        type=message.action or "message",
        topic=box_topic(token),
        datacontenttype=XML_TYPE,
        extensions=held,
        data=message.body,
    )


def box_message(event: Event) -> BoxMessage:
    """The message that an event of the log of boxes is."""

    def text(name: str) -> str | None:
        value = event.extensions.get(name)
        return value if isinstance(value, str) else None

    sent = Event("", "", "", topic=text(_TOPIC) or "", extensions=_of_topic(event))
    return BoxMessage(
        body=event.data or b"",
        action=text(_ACTION),
        message_id=text(_MESSAGE_ID),
        sender=text(_SENDER),
        topic=topic_of(sent),
    )


def _of_topic(event: Event) -> dict[str, Scalar]:
    held = event.extensions
    return {name: held[name] for name in _KEPT_OF_TOPIC if name in held}


def withheld_header(count: int | None) -> bytes:
    """The header block with the number of messages that its owner had no right to, who may know."""
    if not count:
        return b""
    return b'<t:Withheld xmlns:t="%b">%d</t:Withheld>' % (TOCSIN.encode(), count)


def dropped_header(count: int) -> bytes:
    """The header block with the number of messages that a box dropped; empty if there are none."""
    if not count:
        return b""
    return b'<t:Dropped xmlns:t="%b">%d</t:Dropped>' % (TOCSIN.encode(), count)
