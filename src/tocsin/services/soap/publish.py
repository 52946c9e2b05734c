"""Publishing by SOAP: notifications of every format become events in the log."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lxml import etree

from tocsin.access.decision import Action
from tocsin.broker.effects import Accepted
from tocsin.broker.runtime import new_uuid
from tocsin.errors import BadTopic
from tocsin.event.event import Event
from tocsin.services.soap.call import ACCEPTED, Handlers, Reply, Request
from tocsin.services.soap.context import SoapContext
from tocsin.services.soap.paths import place_of
from tocsin.wire.cloudevents.attributes import check_event
from tocsin.wire.soap import names
from tocsin.wire.soap.envelope import blocks, elements, split, text_of
from tocsin.wire.soap.fault import SoapFault, escaped
from tocsin.wire.soap.mediation import NOTIFICATIONS_MAX, Notification, to_event
from tocsin.wire.soap.slices import cut_out
from tocsin.wire.soap.topic_header import topic_block
from tocsin.wire.soap.topics import TopicName, read_topic
from tocsin.wire.wsn.faults import Faults
from tocsin.wire.wsn.read import read_notifications

Element = etree._Element


class PublishService:
    """Takes notifications in, and answers when they are on disk."""

    def __init__(self, context: SoapContext) -> None:
        self._port = context.port
        self._runtime = context.port.runtime
        self._limits = context.options.event_limits
        self.handlers: Handlers = {
            (names.WSN13, "Notify"): self.notify,
            (names.WSN12, "Notify"): self.notify,
            (names.WSN10, "Notify"): self.notify,
            (names.WSE11, "Notify"): self.wrapped,
            (names.WSMAN, "Events"): self.batch,
            (names.WSMAN, "Heartbeat"): self.heartbeat,
            (names.WSE04, "SubscriptionEnd"): self.ended,
            (names.WSE11, "SubscriptionEnd"): self.ended,
        }

    async def notify(self, request: Request) -> Reply:
        """A wrapped notification of any version of WS-Notification."""
        found = read_notifications(request.envelope, request.addressing)
        try:
            accepted = await self._publish(request, found, default_topic="")
        except BadTopic as error:
            faults = Faults(names.SPEC_OF[request.name[0]], self._runtime.now_ns())
            reason = f"{error.problem}. {error.remedy}"
            raise faults.fault("InvalidTopicExpressionFault", reason, error=error) from None
        if request.name[0] == names.WSN10:
            return _tracked(
                names.WSN10, "NotifyResponse", f"{names.WSN10}/NotifyResponse", accepted
            )
        return ACCEPTED

    async def plain(self, request: Request) -> Reply:
        """A message that is the notification itself: WS-Eventing's, or a raw one."""
        notification = _plain(request)
        accepted = await self._publish(request, [notification], default_topic=names.WSE_TOPIC)
        if request.addressing.action == names.ORIGINAL_PUBLISH_ACTION or _is_original(request):
            local = f"{notification.name[1]}Response"
            return _tracked(names.WSE04, local, f"{names.WSE04}/{local}", accepted)
        return ACCEPTED

    async def wrapped(self, request: Request) -> Reply:
        """WS-Eventing 2011's wrapper, which keeps the action that the bare message would have."""
        action = request.element.get("actionURI") or request.element.get(
            f"{{{names.WSE11}}}actionURI"
        )
        await self._publish(request, [_inside(request, action)], default_topic=names.WSE_TOPIC)
        return ACCEPTED

    async def batch(self, request: Request) -> Reply:
        """WS-Management's batch of events."""
        events = [each for each in elements(request.element) if not _is_heartbeat(each)]
        if not events and len(request.element):
            return await self.heartbeat(request)
        if len(events) > NOTIFICATIONS_MAX:
            raise SoapFault("Sender", f"a message may hold {NOTIFICATIONS_MAX} notifications")
        if not events or any(len(elements(event)) != 1 for event in events):
            raise SoapFault("Sender", "each wsman:Event holds one element")
        inner = [elements(event)[0] for event in events]
        topic = read_topic(topic_block(request.envelope))
        found = [
            Notification(
                payload=payload,
                name=split(element.tag),
                topic=topic,
                action=event.get("Action") or event.get(f"{{{names.WSMAN}}}Action"),
                message_id=_numbered(request.addressing.message_id, number, len(events)),
            )
            for number, (event, element, payload) in enumerate(
                zip(events, inner, cut_out(request.envelope, inner), strict=True), 1
            )
        ]
        await self._publish(request, found, default_topic=names.WSE_TOPIC)
        return _acknowledged(request)

    async def heartbeat(self, request: Request) -> Reply:
        """A source says that it is there and that nothing happened."""
        self._check(request)
        return _acknowledged(request)

    async def ended(self, request: Request) -> Reply:
        """A source that sent us its notifications will send no more: the operator may care."""
        self._check(request)
        status = text_of(request.element.find(f"{{{request.name[0]}}}Status"))
        sender = request.session.peer
        self._runtime.note("warning", "a source ended its subscription", status=status, peer=sender)
        return ACCEPTED

    def _check(self, request: Request) -> None:
        """Raise NotAllowed unless the sender may publish; for messages that bring no event."""
        topic = place_of(request.call.path).topic or names.WSE_TOPIC
        self._port.check(request.session, Action.PUBLISH, topic)

    async def _publish(
        self, request: Request, found: list[Notification], *, default_topic: str
    ) -> Accepted:
        default = place_of(request.call.path).topic or default_topic
        new_id = partial(new_uuid, self._runtime)
        events = [event_of(notification, default, new_id) for notification in found]
        for event in events:
            check_event(event, self._limits)
        return await self._port.publish(request.session, events)


def event_of(notification: Notification, default_topic: str, new_id: Callable[[], str]) -> Event:
    """The event of a notification; one that names no id gets a new one."""
    fallback = notification.message_id or f"urn:uuid:{new_id()}"
    return to_event(notification, fallback_id=fallback, default_topic=default_topic)


def _numbered(message_id: str | None, number: int, of: int) -> str | None:
    return message_id if message_id is None or of == 1 else f"{message_id}#{number}"


def _plain(request: Request) -> Notification:
    children = elements(request.envelope.body)
    if len(children) != 1:
        raise SoapFault("Sender", f"the body of a notification is one element, not {len(children)}")
    return Notification(
        payload=cut_out(request.envelope, children)[0],
        name=split(children[0].tag),
        topic=_header_topic(request),
        producer=_sender(request),
        action=request.addressing.action,
        message_id=request.addressing.message_id,
    )


def _inside(request: Request, action: str | None) -> Notification:
    children = elements(request.element)
    if len(children) != 1:
        raise SoapFault("Sender", f"wse:Notify holds one element, not {len(children)}")
    return Notification(
        payload=cut_out(request.envelope, children)[0],
        name=split(children[0].tag),
        topic=_header_topic(request),
        producer=_sender(request),
        action=action,
        message_id=request.addressing.message_id,
    )


def _header_topic(request: Request) -> TopicName | None:
    return read_topic(topic_block(request.envelope))


def _sender(request: Request) -> str | None:
    sender = request.addressing.sender
    return None if sender is None or sender.is_anonymous else sender.address


def _is_original(request: Request) -> bool:
    return request.call.path.startswith("/axis2/services/")


def _tracked(namespace: str, name: str, action: str, accepted: Accepted) -> Reply:
    """The original's clients wait for an envelope: 202 with nothing in it makes them fail."""
    body = b'<w:%b xmlns:w="%b" trackId="%d"/>' % (escaped(name), namespace.encode(), accepted.last)
    return Reply(body, action)


def _is_heartbeat(event: Element) -> bool:
    return not len(event) and event.get("Action", "").endswith("/Heartbeat")


def _acknowledged(request: Request) -> Reply:
    wants = any(split(b.tag) == (names.WSMAN, "AckRequested") for b in blocks(request.envelope))
    return Reply(b"", f"{names.WSMAN_URI}/Ack") if wants else ACCEPTED
