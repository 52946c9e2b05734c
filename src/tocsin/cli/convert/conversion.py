"""One message of any form as events, and an event in any form: what `tocsin convert` does.

The layers are those of the broker (paper 000, section IV): the detector finds the type of a
message, the mediator makes events of it, and each event is written in the form that is asked for.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote

import msgspec
from lxml import etree

from tocsin import safexml
from tocsin.cli.convert.capture import CapturedMessage, read_capture
from tocsin.client.soap.faults import is_fault
from tocsin.client.soap.notifications import HOLDERS, notifications
from tocsin.client.soap.outgoing_event import with_sender
from tocsin.client.soap.versions import versions_of
from tocsin.errors import BadEvent, BadSetting
from tocsin.event.event import Event
from tocsin.event.subscription import SoapTerms
from tocsin.event.xml_form import CLOUDEVENTS, event_from_xml, event_xml
from tocsin.wire.cloudevents import Limits, read_events, structured
from tocsin.wire.cloudevents.write import BATCH_TYPE, STRUCTURED_TYPE
from tocsin.wire.gma.messages import Context, EventMessage
from tocsin.wire.gma.names import PROTOCOL
from tocsin.wire.gma.normal import content_of
from tocsin.wire.gma.normal import to_event as event_of_performance
from tocsin.wire.gma.read import read_content
from tocsin.wire.gma.write import event_message
from tocsin.wire.soap import names
from tocsin.wire.soap.addressing import Addressing, read_addressing
from tocsin.wire.soap.delivery import ConsumerParts, message
from tocsin.wire.soap.detect import PUBLISH, MessageType, detect, http_action
from tocsin.wire.soap.envelope import Envelope, envelope_start, read_envelope, split
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.mediation import Notification, to_event
from tocsin.wire.soap.multipart import envelope_in, is_multipart
from tocsin.wire.soap.slices import cut_out
from tocsin.wire.wse import deliver as wse
from tocsin.wire.wsn import deliver as wsn

SOAP_FORMS: Final = {
    "wse": "wse04",
    "wse11": "wse11",
    "wsn13": "wsn13",
    "wsn12": "wsn12",
    "wsn10": "wsn10",
}
FORMS: Final = (*SOAP_FORMS, "cloudevents", "cloudevents-xml", "gma")
LIMITS: Final = Limits(event_bytes_max=64 << 20)

_OWN_ID: Final = "urn:tocsin:event:"
_REMEDY: Final = (
    "Give a SOAP notification, a CloudEvent in JSON or XML, or either as captured from HTTP, or "
    "an Event message of the producer/consumer protocol; "
    "--from payload takes any XML element for the payload of an event."
)
_WRAPPERS: Final = HOLDERS | {(names.WSE11, "Notify"), (names.WSMAN, "Events")}


class ReadResult(NamedTuple):
    """The events of a message, and a description of its form."""

    events: list[Event]
    form: str


def read_message(data: bytes, form: str = "auto") -> ReadResult:
    """The events that a message brings; a TocsinError if it brings none."""
    capture = read_capture(data)
    if form == "payload":
        return ReadResult([_payload_event(capture.body)], "an XML element, taken for a payload")
    found = _read(capture, form)
    return found._replace(form=f"{found.form}, in {capture.carrier}") if capture.carrier else found


def _read(capture: CapturedMessage, form: str) -> ReadResult:
    start = capture.body.lstrip()[:1]
    declared = capture.headers.get("content-type", "")
    if is_multipart(declared):
        capture = _unpacked(capture, declared)
        start = b"<"
    if form != "soap" and any(name.startswith("ce-") for name in capture.headers):
        events = read_events(declared, capture.headers, capture.body, LIMITS)
        return ReadResult(events, "a CloudEvent in HTTP's binary mode")
    if form != "soap" and start in (b"{", b"["):
        media_type, name = (
            (STRUCTURED_TYPE, "a CloudEvent in JSON")
            if start == b"{"
            else (BATCH_TYPE, "a batch of CloudEvents in JSON")
        )
        return ReadResult(read_events(media_type, {}, capture.body, LIMITS), name)
    if not capture.body.strip():
        raise BadEvent("the message is empty", remedy=_REMEDY)
    raw = safexml.to_utf8(capture.body)
    root = safexml.parse(raw, what="the message")
    if form != "soap" and split(root.tag)[0] == CLOUDEVENTS:
        return _from_cloudevents_xml(root, raw)
    if form != "soap" and split(root.tag) == (PROTOCOL, "Event"):
        return _from_performance(raw)
    if form == "cloudevents" or split(root.tag)[1] != "Envelope":
        raise BadEvent(f"its root {split(root.tag)[1][:80]!r} is not known", remedy=_REMEDY)
    return _from_soap(capture)


def _unpacked(capture: CapturedMessage, declared: str) -> CapturedMessage:
    try:
        return capture._replace(body=envelope_in(capture.body, declared))
    except SoapFault as fault:
        raise BadEvent(f"the package cannot be read: {fault.reason}", remedy=_REMEDY) from None


def _from_cloudevents_xml(root: etree._Element, raw: bytes) -> ReadResult:
    if split(root.tag)[1] == "batch":
        events = [_cloudevent(each, root, raw) for each in root]
        return ReadResult(events, "a batch of CloudEvents in XML")
    return ReadResult([_cloudevent(root, root, raw)], "a CloudEvent in XML")


def _cloudevent(element: etree._Element, root: etree._Element, raw: bytes) -> Event:
    """An event of the XML format; data that is XML is kept as it stands in the message."""
    event = event_from_xml(element)
    data = element.find(f"{{{CLOUDEVENTS}}}data")
    if data is None or not len(data):
        return event
    [exact] = cut_out(Envelope("1.1", None, root, root, raw), [data[0]])
    return msgspec.structs.replace(event, data=exact)


def _from_performance(raw: bytes) -> ReadResult:
    message, content = read_content(raw)
    if not isinstance(message, EventMessage) or message.event is None or content is None:
        raise BadEvent("the message brings an Error in place of an event", remedy=_REMEDY)
    made = _made_id(content, 0)
    event = event_of_performance(message.event, content, event_id=made, sender="unknown")
    if (known := message.context) is not None:
        event = msgspec.structs.replace(
            event, id=known.id or made, source=known.source or event.source, topic=known.topic
        )
    return ReadResult([event], "an Event message of the producer/consumer protocol")


def _payload_event(body: bytes) -> Event:
    payload = safexml.to_utf8(body).strip()
    root = safexml.parse(payload, what="the payload")
    found = Notification(payload, split(root.tag))
    return to_event(found, fallback_id=_made_id(payload, 0), default_topic=names.WSE_TOPIC)


# SOAP


def _from_soap(capture: CapturedMessage) -> ReadResult:
    try:
        envelope = read_envelope(capture.body)
        addressing = read_addressing(envelope)
        declared = capture.headers.get("content-type", "")
        action = http_action(capture.headers.get("soapaction", ""), declared)
        kind = detect(envelope, addressing, action)
        _check_notification(envelope, kind)
        found = notifications(envelope, addressing)
    except SoapFault as fault:
        raise BadEvent(f"the SOAP message cannot be read: {fault.reason}", remedy=_REMEDY) from None
    default = "" if split(_content(envelope).tag) in HOLDERS else names.WSE_TOPIC
    events = [_event(each, number, default) for number, each in enumerate(found)]
    return ReadResult(events, _form(kind, envelope, addressing))


def _content(envelope: Envelope) -> etree._Element:
    assert envelope.content is not None, "a notification has a body"
    return envelope.content


def _check_notification(envelope: Envelope, kind: MessageType) -> None:
    if envelope.content is None:
        raise BadEvent("its body is empty: there is no notification in it", remedy=_REMEDY)
    if is_fault(envelope):
        raise BadEvent("it is a SOAP fault, not a notification", remedy=_REMEDY)
    if kind.operation != PUBLISH and split(envelope.content.tag) not in _WRAPPERS:
        raise BadEvent(
            f"it is {kind.operation} of {kind.specification}, not a notification", remedy=_REMEDY
        )


def _form(kind: MessageType, envelope: Envelope, addressing: Addressing) -> str:
    if kind.operation == PUBLISH:
        return f"a bare {kind.specification}, SOAP {envelope.soap}"
    year = addressing.wsa.removesuffix("/addressing")[-7:]
    addressed = f", WS-Addressing {year}" if year else ", no WS-Addressing"
    return f"{kind.operation} of {kind.specification}, SOAP {envelope.soap}{addressed}"


def _event(found: Notification, number: int, default_topic: str) -> Event:
    event = to_event(
        found, fallback_id=_made_id(found.payload, number), default_topic=default_topic
    )
    if event.id.startswith(_OWN_ID):  # an id that is not a URI is sent as one
        return msgspec.structs.replace(event, id=unquote(event.id.removeprefix(_OWN_ID)))
    return event


def _made_id(payload: bytes, number: int) -> str:
    """For what names none: the same for the same message, so that a repetition can be known."""
    digest = hashlib.sha256(b"%d " % number + payload).hexdigest()
    return f"urn:tocsin:made:{digest[:32]}"


# Writing


def write_event(
    event: Event, form: str, *, soap: str | None = None, addressing: str | None = None
) -> bytes:
    """The event in a form; without versions, in those that the specification usually has."""
    if form == "cloudevents":
        return structured(event)
    if form == "cloudevents-xml":
        return event_xml(event)
    if form == "gma":
        context = Context(0, event.id, event.source, event.topic)
        return event_message("1", content_of(event, time.time_ns()), context)
    spec = SOAP_FORMS.get(form)
    if spec is None:
        raise BadSetting(f"there is no form {form!r}", remedy=f"Choose one of {', '.join(FORMS)}.")
    versions = versions_of(spec, soap, addressing)
    is_eventing = spec.startswith("wse")
    terms = SoapTerms(
        spec=spec, soap=versions.soap, wsa=versions.wsa, form="raw" if is_eventing else "wrapped"
    )
    pieces = (wse if is_eventing else wsn).pieces([event], terms)
    return message(ConsumerParts(envelope_start(versions.soap)), with_sender(pieces, event, terms))


def in_every_form(
    event: Event, *, soap: str | None = None, addressing: str | None = None
) -> Mapping[str, bytes]:
    """The event in all forms, by their names."""
    return {form: write_event(event, form, soap=soap, addressing=addressing) for form in FORMS}
