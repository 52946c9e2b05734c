"""Publishing by SOAP: notifications of every format become events in the log."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tocsin.access.decision import Action
from tocsin.broker.effects import Accepted
from tocsin.broker.runtime import new_uuid
from tocsin.errors import BadTopic
from tocsin.event.event import Event
from tocsin.services.soap.call import ACCEPTED, Handlers, Reply, Request
from tocsin.services.soap.context import SoapContext
from tocsin.services.soap.paths import parse_path
from tocsin.wire.cloudevents.attributes import check_event
from tocsin.wire.soap import names
from tocsin.wire.soap.fault import escaped
from tocsin.wire.soap.mediation import Notification, to_event
from tocsin.wire.wse.notifications import (
    read_bare,
    read_batch,
    read_end_status,
    read_wrapped,
    wants_acknowledgement,
)
from tocsin.wire.wsn.faults import Faults
from tocsin.wire.wsn.read import read_notifications


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
        notification = read_bare(request.envelope, request.addressing)
        accepted = await self._publish(request, [notification], default_topic=names.WSE_TOPIC)
        if request.addressing.action == names.ORIGINAL_PUBLISH_ACTION or _is_original(request):
            local = f"{notification.name[1]}Response"
            return _tracked(names.WSE04, local, f"{names.WSE04}/{local}", accepted)
        return ACCEPTED

    async def wrapped(self, request: Request) -> Reply:
        """WS-Eventing 2011's wrapper, which keeps the action that the bare message would have."""
        found = read_wrapped(request.envelope, request.addressing)
        await self._publish(request, [found], default_topic=names.WSE_TOPIC)
        return ACCEPTED

    async def batch(self, request: Request) -> Reply:
        """WS-Management's batch of events."""
        found = read_batch(request.envelope, request.addressing)
        if not found:
            return await self.heartbeat(request)
        await self._publish(request, found, default_topic=names.WSE_TOPIC)
        return _acknowledged(request)

    async def heartbeat(self, request: Request) -> Reply:
        """A source says that it is there and that nothing happened."""
        self._check(request)
        return _acknowledged(request)

    async def ended(self, request: Request) -> Reply:
        """A source that sent us its notifications will send no more: the operator may care."""
        self._check(request)
        status = read_end_status(request.envelope)
        sender = request.session.peer
        self._runtime.note("warning", "a source ended its subscription", status=status, peer=sender)
        return ACCEPTED

    def _check(self, request: Request) -> None:
        """Raise NotAllowed unless the sender may publish; for messages that bring no event."""
        topic = parse_path(request.call.path).topic or names.WSE_TOPIC
        self._port.check(request.session, Action.PUBLISH, topic)

    async def _publish(
        self, request: Request, found: list[Notification], *, default_topic: str
    ) -> Accepted:
        default = parse_path(request.call.path).topic or default_topic
        new_id = partial(new_uuid, self._runtime)
        events = [event_of(notification, default, new_id) for notification in found]
        for event in events:
            check_event(event, self._limits)
        return await self._port.publish(request.session, events)


def event_of(notification: Notification, default_topic: str, new_id: Callable[[], str]) -> Event:
    """The event of a notification; one that names no id gets a new one."""
    fallback = notification.message_id or f"urn:uuid:{new_id()}"
    return to_event(notification, fallback_id=fallback, default_topic=default_topic)


def _is_original(request: Request) -> bool:
    return request.call.path.startswith("/axis2/services/")


def _tracked(namespace: str, name: str, action: str, accepted: Accepted) -> Reply:
    """The original's clients wait for an envelope: 202 with nothing in it makes them fail."""
    body = b'<w:%b xmlns:w="%b" trackId="%d"/>' % (escaped(name), namespace.encode(), accepted.last)
    return Reply(body, action)


def _acknowledged(request: Request) -> Reply:
    wanted = wants_acknowledgement(request.envelope)
    return Reply(b"", f"{names.WSMAN_URI}/Ack") if wanted else ACCEPTED
