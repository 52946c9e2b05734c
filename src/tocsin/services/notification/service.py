"""WS-BaseNotification: subscribing, renewing, pausing, ending, the current message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import msgspec

from tocsin.access.decision import Action, Readable
from tocsin.broker.log import StoreReader
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.errors import NoSuchSubscription, TocsinError
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Change, Kind, SoapTerms, State, Subscription
from tocsin.event.topic import TopicPattern
from tocsin.services.mailbox.local_delivery import is_own_box
from tocsin.services.soap.call import Handlers, Reply, Request
from tocsin.services.soap.context import SoapContext, topics_for
from tocsin.services.soap.paths import parse_path
from tocsin.wire.soap.addressing import reference_headers
from tocsin.wire.soap.mediation import payload_of
from tocsin.wire.soap.names import USUAL_WSA
from tocsin.wire.wsn import messages as say
from tocsin.wire.wsn.deliver import subscription_reference
from tocsin.wire.wsn.expiry import ends_at
from tocsin.wire.wsn.faults import Faults
from tocsin.wire.wsn.filters import filters_of, one_topic
from tocsin.wire.wsn.operations import REQUESTS, Operation, response_action
from tocsin.wire.wsn.read import read_request
from tocsin.wire.wsn.write import write
from tocsin.wire.wsrp.resources import producer

Act = Callable[[Request, say.Request, Faults], Awaitable[say.Response]]


LOOK_BACK_EVENTS: Final = 10_000  # some 50 ms of the thread that reads the log
NAMESAKES_MAX: Final = 100  # messages of topics with the same path and another namespace


class NotificationService:
    """Subscriptions by WS-Notification 1.3, 1.2 and 1.0."""

    def __init__(self, context: SoapContext) -> None:
        self._context = context
        self._port = context.port
        self._runtime = context.port.runtime
        self._acts: Mapping[Operation, Act] = {
            Operation.SUBSCRIBE: self._subscribe,
            Operation.RENEW: self._renew,
            Operation.UNSUBSCRIBE: self._unsubscribe,
            Operation.PAUSE: self._pause,
            Operation.RESUME: self._resume,
            Operation.CURRENT_MESSAGE: self._current_message,
        }
        self.handlers: Handlers = {
            name: partial(self._answer, spec, operation)
            for name, (spec, operation) in REQUESTS.items()
        }

    async def _answer(self, spec: str, operation: Operation, request: Request) -> Reply:
        faults = Faults(spec, self._runtime.now_ns())
        try:
            asked = read_request(request.envelope, spec, operation)
            answer = await self._acts[operation](request, asked, faults)
        except TocsinError as error:
            raise faults.of(error, operation) from error
        return Reply(
            write(answer, spec, _wsa(request, asked, spec)),
            response_action(spec, operation, request.addressing.action),
        )

    async def _subscribe(
        self, request: Request, asked: say.Request, faults: Faults
    ) -> say.SubscribeResponse:
        assert isinstance(asked, say.Subscribe)
        asked = _with_topic_of(request.call.path, asked)
        if asked.unknown_policies:
            raise faults.unknown_policies(asked.unknown_policies)
        is_box = is_own_box(asked.consumer.address, request.call.base)
        if not is_box:
            self._context.consumers.check(
                asked.consumer.address, request.session.peer, request.call.base
            )
        filters = filters_of(asked, faults, partial(self._properties, request, faults.spec))
        expires_ns = ends_at(asked.termination, faults, Operation.SUBSCRIBE)
        manager = request.address("subscriptions", "")
        subscription = Subscription(
            id="",
            kind=Kind.PUSH,
            sink=asked.consumer.address,
            filters=msgspec.Raw(msgspec.json.encode(filters)),
            expires_ns=expires_ns,
            soap=msgspec.structs.replace(
                _terms(asked, faults.spec, request.envelope.soap, manager), box=is_box
            ),
        )
        view = await self._port.subscribe(
            request.session, subscription, read_filters(filters), None
        )
        wsa = _wsa(request, asked, faults.spec)
        return say.SubscribeResponse(
            subscription_reference(faults.spec, wsa, manager, view.subscription.id),
            self._runtime.now_ns(),
            say.NEVER if expires_ns is None else expires_ns,
        )

    async def _renew(
        self, request: Request, asked: say.Request, faults: Faults
    ) -> say.RenewResponse:
        assert isinstance(asked, say.Renew)
        view = self._found(request)
        expires_ns = ends_at(asked.termination, faults, Operation.RENEW)
        await self._change(request, view, Change(expires_ns=expires_ns))
        return say.RenewResponse(
            say.NEVER if expires_ns is None else expires_ns, self._runtime.now_ns()
        )

    async def _unsubscribe(
        self, request: Request, asked: say.Request, faults: Faults
    ) -> say.UnsubscribeResponse:
        ended = self._found(request).subscription
        await self._port.unsubscribe(request.session, ended.id, ended.kind, quietly=True)
        return say.UnsubscribeResponse()

    async def _pause(
        self, request: Request, asked: say.Request, faults: Faults
    ) -> say.PauseSubscriptionResponse:
        view = self._found(request)
        if view.subscription.state is State.PAUSED:
            raise faults.fault("PauseFailedFault", "the subscription is already paused")
        view = await self._change(request, view, Change(state=State.PAUSED))
        if view.subscription.state is not State.PAUSED:
            raise faults.fault("PauseFailedFault", "the consumer has not yet said that it agrees")
        return say.PauseSubscriptionResponse()

    async def _resume(
        self, request: Request, asked: say.Request, faults: Faults
    ) -> say.ResumeSubscriptionResponse:
        view = self._found(request)
        if view.subscription.state is not State.PAUSED:
            raise faults.fault("ResumeFailedFault", "the subscription is not paused")
        await self._change(request, view, Change(state=State.ACTIVE))
        return say.ResumeSubscriptionResponse()

    async def _current_message(
        self, request: Request, asked: say.Request, faults: Faults
    ) -> say.GetCurrentMessageResponse:
        assert isinstance(asked, say.GetCurrentMessage)
        pattern, namespace = one_topic(asked.topic, faults)
        self._port.check(request.session, Action.READ, f"topic/{pattern}")

        def read(work: Callable[[StoreReader], Stored | None]) -> Awaitable[Stored | None]:
            return self._port.read(request.session, f"topic/{pattern}", work)

        readable = self._port.readable(request.session)

        def is_it(event: Event) -> bool:
            may_be_read = readable is None or readable.has_event(event)
            return may_be_read and _is_of(event, namespace)

        stored = await self._context.latest(pattern, read)
        if stored is not None and readable is not None and not readable.has_event(stored.event):
            stored = await read(partial(_last_readable, stored.seq, pattern, readable))
        for _ in range(NAMESAKES_MAX):
            if stored is None or is_it(stored.event):
                break
            stored = await read(partial(_last_before, stored.seq, pattern))
        if stored is None or not is_it(stored.event) or not self._may_read(request, stored):
            raise faults.fault(
                "NoCurrentMessageOnTopicFault", f"nothing was published recently on {pattern}"
            )
        return say.GetCurrentMessageResponse(payload_of(stored.event))

    def _may_read(self, request: Request, stored: Stored) -> bool:
        """Now: while the log was asked, a right may have ended."""
        return bool(self._port.still_readable(request.session, [stored]))

    def _found(self, request: Request) -> SubscriptionView:
        if request.resource is None:
            raise NoSuchSubscription(
                "the message names no subscription",
                remedy="Send it to the address, and with the header, of SubscriptionReference.",
            )
        return self._port.view(request.session, request.resource)

    async def _change(
        self, request: Request, view: SubscriptionView, change: Change
    ) -> SubscriptionView:
        was = view.subscription
        return await self._port.change(request.session, was.id, change, was.kind)

    def _properties(self, request: Request, spec: str) -> bytes:
        """The broker as a producer, in the words of the version that asks."""
        known = topics_for(self._port, request.session, self._context.topics)
        return producer(spec, known).document()


def _with_topic_of(path: str, asked: say.Subscribe) -> say.Subscribe:
    """The original lets an address name the topic, for who names none: `.../topic/NAME`."""
    topic = parse_path(path).topic
    if topic is None or asked.topics:
        return asked
    return replace(asked, topics=(say.Expression(topic),))


def _wsa(request: Request, asked: say.Request, spec: str) -> str:
    """The addressing version that the caller reads."""
    if request.addressing.wsa:
        return request.addressing.wsa
    return asked.consumer.wsa if isinstance(asked, say.Subscribe) else USUAL_WSA[spec]


def _terms(asked: say.Subscribe, spec: str, soap: str, manager: str) -> SoapTerms:
    """How the consumer is written to: in the versions of its subscription and its reference."""
    wsa = asked.consumer.wsa
    return SoapTerms(
        spec=spec,
        soap=soap,
        wsa=wsa,
        form="raw" if asked.raw else "wrapped",
        references=reference_headers(asked.consumer, wsa).decode(),
        manager=manager,
        filter_xml=asked.filter_xml.decode(),
        reliable=asked.reliable,
        expires_as="dateTime",
    )


def _is_of(event: Event, namespace: str) -> bool:
    """True if the topic may be one of this namespace; none at all may be any."""
    return not namespace or event.extensions.get("topicns", namespace) == namespace


def _last_readable(
    seq: int, pattern: TopicPattern, readable: Readable, log: StoreReader
) -> Stored | None:
    """The last event on the topic before this one that may be read."""
    above = max(0, seq - 1 - LOOK_BACK_EVENTS)

    def fits(event: Event) -> bool:
        return pattern.matches(event.topic) and readable.has_event(event)

    return log.last_where(fits, above, seq - 1)


def _last_before(seq: int, pattern: TopicPattern, log: StoreReader) -> Stored | None:
    """The last event on the topic before this one, which is on a namesake."""
    above = max(0, seq - 1 - LOOK_BACK_EVENTS)
    return log.last_on(pattern=pattern, above=above, through=seq - 1)
