"""A notification to publish: a payload with its topic, producer and action, as an envelope."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tocsin import safexml
from tocsin.client.soap.caller import new_message_id
from tocsin.errors import BadXml
from tocsin.event.event import Event
from tocsin.event.subscription import SoapTerms
from tocsin.event.xml_name import name_uri
from tocsin.wire.soap.addressing import EndpointReference, Versions, epr_content, reference_headers
from tocsin.wire.soap.delivery import EventParts, consumer_parts, message
from tocsin.wire.soap.envelope import split
from tocsin.wire.soap.mediation import UNNAMED_SOURCE, XML_TYPE
from tocsin.wire.soap.topics import TopicName, topic_context, topic_name

Delivery = Callable[[Sequence[Event], SoapTerms], EventParts]


def outgoing_event(
    payload: bytes | str,
    *,
    topic: str | None,
    namespaces: Mapping[str, str],
    producer: str | None,
    action: str | None,
    message_id: str | None,
) -> Event:
    """The event that is published; BadXml or BadTopic if it cannot be."""
    data = payload.encode() if isinstance(payload, str) else bytes(payload)
    try:
        root = safexml.parse(safexml.to_utf8(data), what="the payload")
    except BadXml as error:
        raise BadXml(error.problem, remedy="Publish one XML element, in bytes or text.") from None
    path, extensions = "", dict[str, str]()
    if topic is not None:
        path, extensions = topic_context(_topic_name(topic, namespaces))
    return Event(
        id=message_id or new_message_id(),
        source=producer or UNNAMED_SOURCE,
        type=action or name_uri(split(root.tag)),
        topic=path,
        datacontenttype=XML_TYPE,
        extensions={**extensions},
        data=data,
    )


def _topic_name(topic: str, namespaces: Mapping[str, str]) -> TopicName:
    scope: dict[str | None, str] = dict(namespaces.items())
    return topic_name(topic, scope)


def envelope_of(
    event: Event,
    *,
    spec: str,
    form: str,
    versions: Versions,
    to: EndpointReference,
    delivery: Delivery,
) -> tuple[bytes, str]:
    """The notification of the event, and its action."""
    references = reference_headers(to, versions.wsa).decode()
    terms = SoapTerms(
        spec=spec, soap=versions.soap, wsa=versions.wsa, form=form, references=references
    )
    pieces = with_sender(delivery([event], terms), event, terms)
    return message(consumer_parts(terms, to.address), pieces), pieces.action


def with_sender(pieces: EventParts, event: Event, terms: SoapTerms) -> EventParts:
    """Who produced the event, in a header: a bare payload has no other place for that."""
    if terms.form != "raw" or not terms.wsa or event.source == UNNAMED_SOURCE:
        return pieces
    content = epr_content(EndpointReference(event.source), terms.wsa)
    sender = b'<a:From xmlns:a="%b">%b</a:From>' % (terms.wsa.encode(), content)
    return EventParts(pieces.action, pieces.header + sender, pieces.before, pieces.after)
