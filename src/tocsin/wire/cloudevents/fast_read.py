"""The quick way to read events: what is fine is found to be fine by a few cheap looks.

What is unusual is None here and goes the exact way, which looks at everything and says what is
wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import msgspec

from tocsin.errors import TocsinError
from tocsin.event.event import Event, is_json
from tocsin.event.topic import valid_topic
from tocsin.wire.cloudevents.attributes import check_media_type, is_time
from tocsin.wire.cloudevents.limits import JSON_DEPTH_MAX, Limits
from tocsin.wire.strict_json import Ambiguous, check

_Filled = Annotated[str, msgspec.Meta(min_length=1)]


class Members(msgspec.Struct, gc=False):
    """The members that CloudEvents names, and `topic`. Base64 takes the longer way."""

    specversion: Literal["1.0"]
    id: _Filled
    source: _Filled
    type: _Filled
    topic: str | None = None
    time: str | None = None
    subject: str | None = None
    datacontenttype: str | None = None
    dataschema: str | None = None
    data: msgspec.Raw = msgspec.Raw()


class Usual(Members, forbid_unknown_fields=True, gc=False):
    """An event without an extension but `topic`."""


read_usual = msgspec.json.Decoder(Usual).decode


def read_one(body: bytes) -> list[Usual]:
    """As a batch of one."""
    return [read_usual(body)]


read_batch = msgspec.json.Decoder(list[Usual]).decode


def usual_event(known: Members, limits: Limits) -> Event | None:
    """The event, if there is nothing unusual about it. This is the broker's hottest path: what is
    fine is found to be fine by a few cheap looks; what is not is None, and goes to `_unusual`,
    which looks at everything and says what is wrong.
    """
    event_id, source, kind, topic = known.id, known.source, known.type, known.topic
    subject, media_type, time = known.subject, known.datacontenttype, known.time
    data = bytes(known.data)
    if (
        not (event_id.isprintable() and source.isprintable() and kind.isprintable())
        or len(event_id) + len(source) + len(kind) > limits.attribute_text_max
        or " " in source
        or known.dataschema is not None
        or (topic is not None and not topic.isprintable())
        or (time is not None and not is_time(time))
        or not data.isascii()
        or data.count(b"{") + data.count(b"[") > JSON_DEPTH_MAX
    ):
        return None
    if subject is not None and not (
        subject.isprintable() and len(subject) <= limits.attribute_text_max
    ):
        return None
    if media_type is not None:
        check_media_type(media_type)
        if not is_json(media_type):
            return None
    return Event(
        event_id,
        source,
        kind,
        "" if topic is None else valid_topic(topic),
        time,
        subject,
        media_type,
        None,
        {},
        {},
        data or None,
    )


def usual_events(
    read: Callable[[bytes], list[Usual]], body: bytes, limits: Limits
) -> list[Event] | None:
    """The events, if there is nothing unusual about any of them, and no name comes twice."""
    try:
        batch = read(body)
        if len(batch) > limits.batch_events_max:
            return None
        events: list[Event] = []
        quotes = 0
        for known in batch:
            event = usual_event(known, limits)
            if event is None:
                return None
            quotes += _quotes(known)
            data = event.data
            if data is not None:
                quotes += data.count(b'"')
                check(data)
            events.append(event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TocsinError, Ambiguous):
        return None  # the caller finds out which of them it was
    # A member that the decoder read over, because its name came again, has quotes of its own.
    return events if body.count(b'"') == quotes else None


def _quotes(known: Usual) -> int:
    """How many quotes an event has around its names and texts, without those in its data."""
    texts = (known.topic, known.time, known.subject, known.datacontenttype, known.dataschema)
    return 36 - 4 * texts.count(None) + (2 if known.data else 0)
