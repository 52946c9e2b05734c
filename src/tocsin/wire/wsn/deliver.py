"""Events as notifications of WS-BaseNotification: wrapped in Notify, or their bare payload."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tocsin.event.event import Event
from tocsin.event.subscription import SoapTerms
from tocsin.wire.soap.addressing import EndpointReference, epr_content, write_headers
from tocsin.wire.soap.delivery import EventParts
from tocsin.wire.soap.element import element
from tocsin.wire.soap.fault import escaped
from tocsin.wire.soap.mediation import action_of, message_id_of, payload_of
from tocsin.wire.soap.names import NAMESPACE_OF, TOCSIN, USUAL_WSA, WSN10
from tocsin.wire.soap.topics import write_topic
from tocsin.wire.wsn.operations import NOTIFY_ACTIONS

RAW: Final = "raw"

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s]+")


def pieces(events: Sequence[Event], terms: SoapTerms) -> EventParts:
    """The events in the form of these terms: `spec`, `soap`, `wsa` and `form`, nothing else."""
    assert events
    if terms.form == RAW:
        assert len(events) == 1, "a bare payload is a message of its own"
        action = action_of(events[0])
        return EventParts(action, _headers(events, action, terms.wsa), payload_of(events[0]))
    action = NOTIFY_ACTIONS[terms.spec]
    namespace = NAMESPACE_OF[terms.spec].encode()
    wsa = terms.wsa or USUAL_WSA[terms.spec]
    start = b'<n:Notify xmlns:n="%b"><n:NotificationMessage>' % namespace
    # Every message may name the subscription, first of all; the first one's place is the cut.
    first, *rest = (notification_content(event, terms.spec, wsa) for event in events)
    more = b"".join(
        b"<n:NotificationMessage>%b</n:NotificationMessage>" % content for content in rest
    )
    after = b"%b</n:NotificationMessage>%b</n:Notify>" % (first, more)
    return EventParts(action, _headers(events, action, terms.wsa), start, after)


def _headers(events: Sequence[Event], action: str, wsa: str) -> bytes:
    message_id = message_id_of(events[0])
    if len(events) > 1:
        # Not the id of the first alone, which may have been, or may yet be, sent by itself.
        message_id = f"{message_id}+{len(events) - 1}"
    return write_headers(wsa, action=action, message_id=message_id)


def notification_content(event: Event, spec: str, wsa: str) -> bytes:
    """What NotificationMessage holds after the subscription's reference: with the prefix `n`."""
    namespace = NAMESPACE_OF[spec]
    producer = b""
    if _ABSOLUTE.fullmatch(event.source):
        content = epr_content(EndpointReference(event.source, wsa), wsa)
        producer = b"<n:ProducerReference>%b</n:ProducerReference>" % content
    topic = write_topic(namespace, event, spec)
    return b"%b%b<n:Message>%b</n:Message>" % (topic, producer, payload_of(event))


def own_reference(terms: SoapTerms, subscription_id: str) -> bytes:
    """The reference of the subscription in a delivery to it: 1.3 alone has a place for it."""
    if terms.spec != "wsn13" or terms.form == RAW:
        return b""
    wsa = terms.wsa or USUAL_WSA[terms.spec]
    content = epr_content(
        subscription_reference(terms.spec, wsa, terms.manager, subscription_id), wsa
    )
    return b"<n:SubscriptionReference>%b</n:SubscriptionReference>" % content


def subscription_reference(
    spec: str, wsa: str, manager: str, subscription_id: str
) -> EndpointReference:
    """How a subscription is reached: its own address under `manager`, and its id as a header.

    Some clients echo no references, others post to one address whatever they were given.
    """
    tag, namespace = ("Identifier", WSN10) if spec == "wsn10" else ("SubscriptionId", TOCSIN)
    parameter = element("i", namespace, tag, escaped(subscription_id))
    address = f"{manager.rstrip('/')}/{subscription_id}"
    return EndpointReference(address, wsa, parameters=(parameter,))
