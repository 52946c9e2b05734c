"""A message of Kafka -> its event: the CloudEvents Kafka binding, binary and structured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tocsin.errors import BadEvent
from tocsin.event.event import Event
from tocsin.event.value import Scalar
from tocsin.wire.cloudevents.attributes import event_of, refused, too_long
from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.cloudevents.read import read_events

CONTENT_TYPE: Final = "content-type"
PREFIX: Final = "ce_"
STRUCTURED: Final = "application/cloudevents"
BATCH: Final = "application/cloudevents-batch"
JSON: Final = "application/cloudevents+json"


def read_message(headers: Mapping[str, bytes], value: bytes | None, limits: Limits) -> Event:
    """The event of one message. Raises BadEvent and its kin if it is none.

    A message without any header of the binding is taken as structured, if it can be: tools that
    write lines of JSON set none.
    """
    if value is not None and len(value) > limits.event_bytes_max:
        raise too_long(len(value), limits)
    content_type = _text(CONTENT_TYPE, headers.get(CONTENT_TYPE, b""))
    kind = content_type.lower()
    if kind.startswith(BATCH):
        raise BadEvent(
            "the message is a batch of events", remedy="Send each event as a message of its own."
        )
    if kind.startswith(STRUCTURED):
        return _structured(content_type, value, limits)
    given: dict[str, Scalar] = {
        name.removeprefix(PREFIX): _text(name, text)
        for name, text in headers.items()
        if name.startswith(PREFIX)
    }
    if given:
        return _binary(given, content_type, value, limits)
    if not content_type and value is not None and value.lstrip()[:1] == b"{":
        return _structured(JSON, value, limits)
    raise BadEvent(
        f"the message has no {PREFIX} headers, and its content type is not one of CloudEvents",
        remedy=f"Send {PREFIX}specversion, {PREFIX}id, {PREFIX}source and {PREFIX}type as headers.",
    )


def _structured(content_type: str, value: bytes | None, limits: Limits) -> Event:
    return read_events(content_type, {}, value or b"", limits)[0]


def _binary(
    given: dict[str, Scalar], content_type: str, value: bytes | None, limits: Limits
) -> Event:
    if content_type and given.setdefault("datacontenttype", content_type) != content_type:
        raise refused(
            "datacontenttype",
            given["datacontenttype"],
            f"is in a {PREFIX} header and differs from {CONTENT_TYPE}",
            f"Leave the {PREFIX}datacontenttype header out.",
        )
    return event_of(given, value or None, limits)


def _text(name: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise refused(
            name, value, "is not UTF-8", "Encode the text of a header as UTF-8."
        ) from None
