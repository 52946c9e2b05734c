"""The event source and subscription manager of WS-Eventing, with WS-Management's modes."""

from __future__ import annotations

from typing import Final

import msgspec

from tocsin.broker.delivery.address import SOAP_TCP, scheme_of
from tocsin.errors import NoSuchSubscription, TocsinError
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.instant import LATEST_NS
from tocsin.event.subscription import Change, Config, Kind, SoapTerms, Subscription
from tocsin.services.eventing.enumeration import Enumeration
from tocsin.services.eventing.heartbeats import Heartbeats
from tocsin.services.eventing.subscription_ends import SubscriptionEnds
from tocsin.services.mailbox.local_delivery import is_own_box
from tocsin.services.soap.call import Handlers, Reply, Request
from tocsin.services.soap.context import SoapContext
from tocsin.services.soap.paths import parse_path
from tocsin.wire.soap.addressing import EndpointReference, Versions, reference_headers
from tocsin.wire.soap.expiry import write_expiry
from tocsin.wire.soap.names import SPEC_OF, USUAL_WSA, WSE04, WSE11
from tocsin.wire.soap.topics import topic_filters
from tocsin.wire.wse.expiry import granted
from tocsin.wire.wse.faults import (
    fault_for,
    format_unavailable,
    invalid_bookmark,
    invalid_message,
    mode_unavailable,
    nowhere_to_deliver,
    unusable_reference,
)
from tocsin.wire.wse.filters import to_filters
from tocsin.wire.wse.messages import (
    EARLIEST,
    FORMATS,
    MODES,
    PUSH,
    PUSH_WITH_ACK,
    UNWRAP,
    GetStatusResponse,
    Message,
    Renew,
    RenewResponse,
    Subscribe,
    SubscribeResponse,
    UnsubscribeResponse,
)
from tocsin.wire.wse.read import read_renew, read_subscribe
from tocsin.wire.wse.write import action, identifier, write

BATCH_DEFAULT: Final = 20
BOOKMARK_CHARS_MAX: Final = 20  # as many digits as the number of an event may have
BATCH_MAX: Final = 1_000  # the same as of CloudEvents batches

_encode = msgspec.json.Encoder().encode


class EventingService:
    """Subscribe, Renew, GetStatus and Unsubscribe of both versions; Pull and Release."""

    def __init__(self, context: SoapContext) -> None:
        self._port = context.port
        self._runtime = context.port.runtime
        self._consumers = context.consumers
        self._heartbeats = Heartbeats(context.port)
        context.on_ended(SubscriptionEnds(self._runtime).ended)
        ours = {
            "Subscribe": self.subscribe,
            "Renew": self.renew,
            "GetStatus": self.get_status,
            "Unsubscribe": self.unsubscribe,
        }
        self.handlers: Handlers = {
            **{
                (namespace, name): handler
                for namespace in (WSE04, WSE11)
                for name, handler in ours.items()
            },
            **Enumeration(context.port, context.options.redeliver_s).handlers,
        }

    async def subscribe(self, request: Request) -> Reply:
        spec = _spec(request)
        if request.envelope.content is None:
            raise invalid_message(spec, "the body is empty: it must hold Subscribe")
        asked = read_subscribe(request.envelope)
        try:
            now_ns = self._runtime.now_ns()
            wanted = self._wanted(request, asked, now_ns)
            start = self._start(asked)
            self._heartbeats.check_room(wanted.soap)
            filter = read_filters(msgspec.json.decode(wanted.filters))
            view = await self._port.subscribe(request.session, wanted, filter, start)
        except TocsinError as error:
            raise fault_for(error, spec) from None
        subscription = view.subscription
        self._heartbeats.add(subscription)
        return _subscribed(request, subscription, now_ns)

    def _wanted(self, request: Request, asked: Subscribe, now_ns: int) -> Subscription:
        """The subscription that is asked for, once everything about it was checked."""
        form = _form(asked)
        consumer = None if form == "pull" else self._consumer(request, asked)
        end_to = self._end_to(request, asked)
        expiry = granted(asked.spec, asked.expires, now_ns, best_effort=asked.best_effort)
        wsa = consumer.wsa if consumer is not None else _wsa_of_answer(request, None, asked.spec)
        filters = to_filters(asked.filter, asked.spec, Versions(request.versions.soap, wsa))
        topic = parse_path(request.call.path).topic
        if asked.filter is None and topic is not None:
            filters = topic_filters(topic, {}, "concrete", names_only=True)
        batch = min(asked.batch or BATCH_DEFAULT, BATCH_MAX) if form == "events" else 1
        return Subscription(
            id="",
            kind=Kind.BOX if consumer is None else Kind.PUSH,
            sink=None if consumer is None else consumer.address,
            filters=msgspec.Raw(_encode(filters)),
            config=Config(batch=batch),
            expires_ns=expiry.expires_ns,
            soap=SoapTerms(
                spec=asked.spec,
                soap=request.versions.soap,
                wsa=wsa,
                form=form,
                references="" if consumer is None else reference_headers(consumer, wsa).decode(),
                manager=request.address("subscriptions", ""),
                box=consumer is not None and is_own_box(consumer.address, request.call.base),
                end_to=None if end_to is None else end_to.address,
                end_references="" if end_to is None else reference_headers(end_to, wsa).decode(),
                reliable=asked.reliable if form in ("raw", "wrapped") else "",
                bookmarks=asked.send_bookmarks,
                heartbeat_s=self._heartbeats.interval_s(asked, form),
                expires_as=expiry.kind,
            ),
        )

    def _consumer(self, request: Request, asked: Subscribe) -> EndpointReference:
        consumer = asked.notify_to
        if consumer is None:
            raise nowhere_to_deliver(asked.spec)
        if consumer.is_anonymous or consumer.is_none:
            raise unusable_reference(
                asked.spec, "NotifyTo is not an address that the broker can send to"
            )
        if asked.mode == PUSH_WITH_ACK and scheme_of(consumer.address) == SOAP_TCP:
            raise mode_unavailable(PUSH_WITH_ACK)  # what is sent by SOAP.TCP is not answered
        if not is_own_box(consumer.address, request.call.base):
            self._consumers.check(consumer.address, request.session.peer, request.call.base)
        return consumer

    def _end_to(self, request: Request, asked: Subscribe) -> EndpointReference | None:
        end_to = asked.end_to
        if end_to is None or end_to.is_none:
            return None
        if end_to.is_anonymous:
            raise unusable_reference(
                asked.spec, "EndTo is not an address that the broker can send to"
            )
        self._consumers.check(end_to.address, request.session.peer, request.call.base)
        return end_to

    def _start(self, asked: Subscribe) -> int | None:
        """After which event it begins: none for those to come, 0 for all there are."""
        if asked.bookmark is None:
            return None
        if asked.bookmark == EARLIEST:
            return 0
        text = asked.bookmark
        if not (text.isascii() and text.isdigit() and len(text) <= BOOKMARK_CHARS_MAX):
            raise invalid_bookmark(
                "InvalidFormat", f"{text[:40]!r} is not a bookmark of this broker"
            )
        seen, first, head = int(text), self._port.first, self._port.head
        if not first - 1 <= seen <= head:
            raise invalid_bookmark(
                "Expired",
                f"the log has events {first} to {head}, and the bookmark is {seen}",
            )
        return seen

    async def renew(self, request: Request) -> Reply:
        spec = _spec(request)
        asked = Renew(spec)
        if request.envelope.content is not None:
            asked = read_renew(request.envelope)
        now_ns = self._runtime.now_ns()
        try:
            subscription = self._found(request)
            expiry = granted(spec, asked.expires, now_ns, best_effort=asked.best_effort)
            change = Change(expires_ns=expiry.expires_ns)
            await self._port.change(request.session, subscription.id, change, subscription.kind)
        except TocsinError as error:
            raise fault_for(error, spec, renewing=True) from None
        kind = _kind(subscription) if asked.expires is None else expiry.kind
        return _reply(RenewResponse(spec, write_expiry(expiry.expires_ns, now_ns, kind)))

    async def get_status(self, request: Request) -> Reply:
        spec = _spec(request)
        try:
            subscription = self._found(request)
        except TocsinError as error:
            raise fault_for(error, spec) from None
        expires_ns = subscription.expires_ns
        if expires_ns is None and spec == "wse04":
            return _reply(GetStatusResponse(spec))
        end_ns = LATEST_NS if expires_ns is None else expires_ns
        kind = _kind(subscription)
        return _reply(GetStatusResponse(spec, write_expiry(end_ns, self._runtime.now_ns(), kind)))

    async def unsubscribe(self, request: Request) -> Reply:
        spec = _spec(request)
        try:
            subscription = self._found(request)
            await self._port.unsubscribe(
                request.session, subscription.id, subscription.kind, quietly=True
            )
        except TocsinError as error:
            raise fault_for(error, spec) from None
        return _reply(UnsubscribeResponse(spec))

    def _found(self, request: Request) -> Subscription:
        """The subscription that a request is about, whichever specification made it."""
        if request.resource is None:
            raise NoSuchSubscription(
                "the message does not say which subscription it is about",
                remedy="Send it to the SubscriptionManager's address, with its reference headers.",
            )
        return self._port.view(request.session, request.resource).subscription


def _subscribed(request: Request, made: Subscription, now_ns: int) -> Reply:
    """What was granted at the given time, and where it is managed."""
    terms = made.soap
    assert terms is not None
    assert made.expires_ns is not None
    reference = EndpointReference(terms.manager + made.id, parameters=(identifier(terms, made.id),))
    answer = SubscribeResponse(
        terms.spec,
        reference,
        write_expiry(made.expires_ns, now_ns, terms.expires_as),
        made.id if terms.form == "pull" else None,
    )
    return _reply(answer, _wsa_of_answer(request, terms.wsa, terms.spec))


def _spec(request: Request) -> str:
    return SPEC_OF[request.name[0]]


def _form(asked: Subscribe) -> str:
    if asked.spec == "wse11":
        form = FORMATS.get(asked.format or UNWRAP)
        if form is None:
            raise format_unavailable(asked.format)
        return form
    form = MODES.get(asked.mode or PUSH)
    if form is None:
        raise mode_unavailable(asked.mode)
    return form


def _kind(subscription: Subscription) -> str:
    return "dateTime" if subscription.soap is None else subscription.soap.expires_as


def _wsa_of_answer(request: Request, consumer: str | None, spec: str) -> str:
    return request.addressing.wsa or consumer or USUAL_WSA[spec]


def _reply(message: Message, wsa: str = "") -> Reply:
    return Reply(write(message, wsa), action(message))
