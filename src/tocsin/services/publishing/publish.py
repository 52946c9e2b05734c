"""POST /events: which events a request holds, and when and with what it is answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import UNSET

from tocsin.access.session import Session
from tocsin.broker.effects import Accepted
from tocsin.broker.engine import Replier
from tocsin.broker.port import BrokerPort
from tocsin.event.event import Event
from tocsin.services.publishing.content_encoding import decoded
from tocsin.wire.api.views import PublishResult
from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.cloudevents.read import read_events

NOTHING: Final = Accepted(0, 0, 0)  # the answer to a batch without events

_NONE: Mapping[str, str] = {}
_NAMES_KEPT_MAX = 1_024


class _AttributeNames(dict[bytes, str]):
    """Headers that carry attributes, as text; empty for all others. Few names come ever again."""

    def __missing__(self, name: bytes) -> str:
        attribute = name.decode("latin-1") if name.startswith(b"ce-") else ""
        if len(self) < _NAMES_KEPT_MAX:
            self[name] = attribute
        return attribute


_attribute_names = _AttributeNames()


def events_of(
    headers: Mapping[bytes, bytes], body: bytes, limits: Limits, bytes_max: int
) -> list[Event]:
    """The events that a request publishes; the names of `headers` are lower-case."""
    if b"content-encoding" in headers:
        body = decoded(body, headers[b"content-encoding"], bytes_max)
    content_type = headers.get(b"content-type", b"").decode("latin-1")
    if content_type.startswith("application/cloudevents"):
        return read_events(content_type, _NONE, body, limits)
    attributes = {
        attribute: value.decode("latin-1")
        for name, value in headers.items()
        if (attribute := _attribute_names[name])
    }
    return read_events(content_type, attributes, body, limits)


def submit(port: BrokerPort, session: Session, events: list[Event], replier: Replier) -> None:
    """Answer with `Accepted` once they are on disk, or with the error; at once if there are none.
    No coroutine: this is the hottest path there is."""
    if events:
        port.submit(session, events, replier)
    else:
        replier.answer(NOTHING)


async def publish(port: BrokerPort, session: Session, events: list[Event]) -> Accepted:
    """The same, for whoever can wait."""
    return await port.publish(session, events) if events else NOTHING


def publish_result(accepted: Accepted) -> PublishResult:
    """The body of the answer."""
    return PublishResult(
        accepted.accepted, accepted.first, accepted.last, accepted.duplicates or UNSET
    )
