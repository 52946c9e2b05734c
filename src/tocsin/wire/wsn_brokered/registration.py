"""A registration as it is stored, with its topics as filters of this broker."""

from __future__ import annotations

import msgspec

from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.filter import Filter
from tocsin.event.subscription import Owner
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.fault import escaped
from tocsin.wire.soap.names import TOCSIN
from tocsin.wire.soap.topics import TopicName, topic_filters
from tocsin.wire.wsn.faults import Faults
from tocsin.wire.wsn.filters import topic_kind
from tocsin.wire.wsn.messages import Expression


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """A publisher that announced its topics. `address` is the registration's own, and where its
    notifications go."""

    id: str
    spec: str  # the version that the publisher speaks, wsn13 or wsn12
    soap: str
    wsa: str
    address: str
    publisher: EndpointReference | None = None
    topics: tuple[Expression, ...] = ()
    demand: bool = False
    created_ns: int = 0
    expires_ns: int | None = None
    owner: Owner | None = None  # who registered, if they had signed in

    def is_over(self, now_ns: int) -> bool:
        return self.expires_ns is not None and self.expires_ns <= now_ns

    @property
    def reference(self) -> EndpointReference:
        """How it is reached: by its address, and by its id as a header."""
        parameter = b'<t:RegistrationId xmlns:t="%b">%b</t:RegistrationId>' % (
            TOCSIN.encode(),
            escaped(self.id),
        )
        return EndpointReference(self.address, self.wsa, parameters=(parameter,))


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Registration).decode


def to_bytes(registration: Registration) -> bytes:
    """The stored form."""
    return _encode(registration)


def from_bytes(data: bytes) -> Registration:
    return _decode(data)


def topic_filter(topic: Expression, faults: Faults) -> Filter:
    """The events that a topic expression is about; a SoapFault or an error if it is none."""
    kind = topic_kind(topic, faults)
    return read_filters(topic_filters(topic.text, dict(topic.namespaces), kind))


def concrete_topic(topic: Expression) -> TopicName | None:
    """The one topic that an expression names; None if it may name several."""
    if any(sign in topic.text for sign in "*|[]()@") or "//" in topic.text:
        return None
    return TopicName(topic.text, topic.namespaces)
