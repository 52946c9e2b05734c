"""ONVIF: pull points in the broker itself, and the small device service before them.

Who keeps a pull point alive is a question that its specification leaves open: here PullMessages
does, and Renew does too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

import tocsin
from tocsin.access.decision import Action
from tocsin.access.session import internal
from tocsin.broker.followers.boxes import PULL_EVENTS_MAX
from tocsin.errors import NoSuchBox, TocsinError, TooManySubscriptions
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.instant import LATEST_NS, NS_PER_S
from tocsin.event.subscription import Change, Config, Kind, SoapTerms, Subscription
from tocsin.services.mailbox.box_reader import BoxReader
from tocsin.services.notification.properties import producer_properties
from tocsin.services.soap.call import Handler, Handlers, Reply, Request
from tocsin.services.soap.context import SoapContext, topics_for
from tocsin.wire.msgbox.content import dropped_header, withheld_header
from tocsin.wire.onvif import device, events
from tocsin.wire.pullpoint.notifications import event_message
from tocsin.wire.soap.names import ONVIF_DEVICE, ONVIF_EVENTS, USUAL_WSA
from tocsin.wire.wsn.deliver import subscription_reference
from tocsin.wire.wsn.expiry import ends_at
from tocsin.wire.wsn.faults import Faults
from tocsin.wire.wsn.filters import filters_of
from tocsin.wire.wsn.messages import Subscribe
from tocsin.wire.wsn.operations import Operation
from tocsin.wire.wstopics.write import topic_set

SPEC: Final = "wsn13"
SERVICE: Final = internal("onvif")
FORM: Final = "pull"
# For whoever names no end, or none at all: pulling goes on renewing it, and what is not pulled
# from is not kept for ever. Clients ask for ten minutes, too.
LEASE_NS_DEFAULT: Final = 600 * NS_PER_S


class OnvifService:
    """The event service and the device service."""

    def __init__(self, context: SoapContext) -> None:
        self._port = context.port
        self._runtime = context.port.runtime
        self._topics = context.topics
        self._options = context.options
        self._reader = BoxReader(context.port, context.options.redeliver_s)
        # The pull points there are, with the lease that each asked for; one that was there before
        # this process has the usual one.
        self._leases: dict[str, int] = {
            view.subscription.id: LEASE_NS_DEFAULT
            for view in context.port.views(SERVICE)
            if _is_pull_point(view.subscription)
        }
        asked: dict[str, tuple[Handler, Operation | None]] = {
            events.CREATE: (self.create, Operation.SUBSCRIBE),
            events.PULL: (self.pull, None),
            events.SEEK: (self.seek, None),
            events.SYNCHRONIZE: (self.synchronize, None),
            events.PROPERTIES: (self.properties, None),
            events.CAPABILITIES: (self.capabilities, None),
        }
        self.handlers: Handlers = {
            **{
                (ONVIF_EVENTS, name): self._with_faults(handler, operation)
                for name, (handler, operation) in asked.items()
            },
            **{
                (ONVIF_DEVICE, name): self._device(name, write)
                for name, write in self._device_answers().items()
            },
        }

    # Events

    async def create(self, request: Request) -> Reply:
        """A box in the broker, which gets what passes the filter."""
        wsa = request.addressing.wsa or USUAL_WSA[SPEC]
        now_ns = self._runtime.now_ns()
        asked = events.read_create(request.envelope)
        faults = Faults(SPEC, now_ns)
        filters = filters_of(asked, faults, lambda: self._properties(request))
        expires_ns = _ends_at(asked, faults)
        self._check_room()
        manager = request.address("subscriptions", "").rstrip("/")
        subscription = Subscription(
            id="",
            kind=Kind.BOX,
            filters=msgspec.Raw(msgspec.json.encode(filters)),
            config=Config(backlog=self._options.pull_point_backlog),
            expires_ns=expires_ns,
            soap=_terms(request, manager, wsa, asked.filter_xml),
        )
        view = await self._port.subscribe(
            request.session, subscription, read_filters(filters), None
        )
        self._leases[view.subscription.id] = expires_ns - now_ns
        reference = subscription_reference(SPEC, wsa, manager, view.subscription.id)
        made = events.created(reference, wsa, self._runtime.now_ns(), expires_ns)
        return _answer(events.CREATE, made)

    async def pull(self, request: Request) -> Reply:
        """What waits, or comes within the time. Renews the lease."""
        asked = events.read_pull(request.envelope)
        box = self._port.view_box(request.session, _id(request)).subscription
        await self._renew(request, box, asked.timeout_ns)
        limit = min(asked.limit, PULL_EVENTS_MAX)
        taken = await self._reader.take(request.session, box.id, limit, asked.timeout_ns)
        ends_ns = self._port.view_box(request.session, box.id).subscription.expires_ns
        body = events.pulled(
            [event_message(stored.event) for stored in taken.messages],
            self._runtime.now_ns(),
            LATEST_NS if ends_ns is None else ends_ns,
        )
        headers = dropped_header(taken.dropped) + withheld_header(taken.withheld)
        return Reply(
            body, events.response_action(events.PULL), headers=headers, receipt=taken.receipt
        )

    async def _renew(self, request: Request, box: Subscription, wait_ns: int) -> None:
        """To last over the wait, and from its end for as long as was asked for at first."""
        wait_ns = min(wait_ns, int(self._options.pull_wait_s_max * NS_PER_S))
        until_ns = self._runtime.now_ns() + wait_ns + self._leases.get(box.id, LEASE_NS_DEFAULT)
        if box.expires_ns is None or box.expires_ns >= until_ns:
            return
        change = Change(expires_ns=min(until_ns, LATEST_NS))
        await self._port.change(request.session, box.id, change, Kind.BOX)

    async def seek(self, request: Request) -> Reply:
        self._port.view(request.session, _id(request))
        raise events.not_supported(events.SEEK)

    async def synchronize(self, request: Request) -> Reply:
        """Events here are no properties with a state, so there is none to be sent again."""
        self._port.view(request.session, _id(request))
        return _answer(events.SYNCHRONIZE, events.done(events.SYNCHRONIZE))

    async def properties(self, request: Request) -> Reply:
        """The topics that there are, as far as this broker has seen them of late."""
        known = topic_set(topics_for(self._port, request.session, self._topics))
        return _answer(events.PROPERTIES, events.event_properties(known))

    async def capabilities(self, request: Request) -> Reply:
        """Open to everybody, as the device's operations of the access class PRE_AUTH are."""
        return _answer(events.CAPABILITIES, events.service_capabilities(self._points_max))

    @property
    def _points_max(self) -> int:
        return self._options.pull_points_max

    def _properties(self, request: Request) -> bytes:
        return producer_properties(topics_for(self._port, request.session, self._topics))

    def _check_room(self) -> None:
        if len(self._leases) < self._points_max:
            return
        there = {view.subscription.id for view in self._port.views(SERVICE)}
        self._leases = {each: lease for each, lease in self._leases.items() if each in there}
        if len(self._leases) >= self._points_max:
            raise TooManySubscriptions(
                f"there are {self._points_max} pull points",
                remedy="Unsubscribe some, or raise boxes.boxes_max.",
            )

    def _with_faults(self, handler: Handler, operation: Operation | None) -> Handler:
        async def handle(request: Request) -> Reply:
            try:
                return await handler(request)
            except TocsinError as error:
                raise Faults(SPEC, self._runtime.now_ns()).of(error, operation) from error

        return handle

    # The device

    def _device_answers(self) -> dict[str, Callable[[Request], bytes]]:
        return {
            "GetServices": self._services,
            "GetCapabilities": lambda request: device.capabilities(request.call.base),
            "GetServiceCapabilities": lambda request: device.service_capabilities(),
            "GetDeviceInformation": lambda request: device.information(tocsin.__version__),
            "GetSystemDateAndTime": lambda request: device.date_and_time(self._runtime.now_ns()),
            "GetHostname": lambda request: device.hostname("tocsin"),
            "GetScopes": lambda request: device.scopes(),
        }

    def _services(self, request: Request) -> bytes:
        return device.services(
            request.call.base,
            pull_points_max=self._points_max,
            with_capabilities=device.wants_capabilities(request.envelope),
        )

    def _device(self, name: str, write: Callable[[Request], bytes]) -> Handler:
        async def handle(request: Request) -> Reply:
            if name not in device.BEFORE_SIGN_IN:
                self._port.check(request.session, Action.READ, "device")
            return Reply(write(request), device.response_action(name))

        return handle


def _id(request: Request) -> str:
    if request.resource is None:
        raise NoSuchBox(
            "the message names no pull point",
            remedy="Send it to the address in the SubscriptionReference that was answered.",
        )
    return request.resource


def _ends_at(asked: Subscribe, faults: Faults) -> int:
    if not isinstance(asked.termination, str):
        return faults.now_ns + LEASE_NS_DEFAULT
    ends_ns = ends_at(asked.termination, faults, Operation.SUBSCRIBE)
    assert ends_ns is not None, "only what is nil has no end"
    return ends_ns


def _terms(request: Request, manager: str, wsa: str, filter_xml: bytes) -> SoapTerms:
    return SoapTerms(
        spec=SPEC,
        soap=request.envelope.soap,
        wsa=wsa,
        form=FORM,
        manager=manager,
        filter_xml=filter_xml.decode(),
        expires_as="dateTime",
    )


def _is_pull_point(subscription: Subscription) -> bool:
    terms = subscription.soap
    return subscription.kind is Kind.BOX and terms is not None and terms.spec == SPEC


def _answer(operation: str, body: bytes) -> Reply:
    return Reply(body, events.response_action(operation))
