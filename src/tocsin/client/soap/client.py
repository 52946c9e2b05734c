"""The shape that both clients have (paper 000, section IV.C): the same calls, whichever
specification they are made in."""

from __future__ import annotations

import atexit
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Final, NamedTuple, TypeVar, Unpack

from tocsin.client.closeable import Closeable
from tocsin.client.soap.addresses import reached_from, service_url
from tocsin.client.soap.boxes import PULL_MESSAGES_MAX, Box, Enumerated, make_box
from tocsin.client.soap.caller import Caller, Patience, SoapRequest, read_answer
from tocsin.client.soap.consumer_listener import ConsumerEndpoint, ConsumerListener
from tocsin.client.soap.expressions import topic_expression, xpath_expression
from tocsin.client.soap.inbox import Callback, Inbox
from tocsin.client.soap.message import Message
from tocsin.client.soap.outgoing_event import Delivery, envelope_of, outgoing_event
from tocsin.client.soap.renewals import Renewals
from tocsin.client.soap.security import Security
from tocsin.client.soap.subscribe_request import LEASE, Granted, SubscribeRequest, expires_text
from tocsin.client.soap.subscription import Expires, Status, Subscription
from tocsin.client.soap.versions import choice, versions_of
from tocsin.client.transport.address import locate
from tocsin.credentials.lookup import Credentials
from tocsin.credentials.sign_in import SignIn
from tocsin.errors import BadSetting, NotInSpecification, TocsinError
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.envelope import Envelope
from tocsin.wire.soap.mediation import message_id_of

T = TypeVar("T")
Address = str | EndpointReference
NO_NAMESPACES: Final[Mapping[str, str]] = {}
CLOSE_TIMEOUTS: Final = Patience(answer_s=5.0, again_s=0.0)
BOX_FORMS: Final = {"msgbox": "msgbox", "pullpoint": "pullpoint"}


class _Destination(NamedTuple):
    """Where notifications are to go, and what of it is ours."""

    consumer: EndpointReference | None
    inbox: Inbox | None = None
    box: Box | None = None


class SoapClient(Closeable):
    """Publishes, subscribes and listens. Use it as a context manager, or `close` it; what is open
    when the program ends is closed then."""

    name: str  # of the specification, for a person
    specifications: Mapping[str, str]  # by what `version` may be; the first is the usual one

    def __init__(
        self,
        broker: str | None = None,
        *,
        version: str | None = None,
        soap: str | None = None,
        addressing: str | None = None,
        listen: str = "127.0.0.1:0",
        advertise: str | None = None,
        timeout_s: float = 30.0,
        patience_s: float = 10.0,
        security: Security | None = None,
        **sign_in: Unpack[SignIn],
    ) -> None:
        known = self.specifications
        chosen = next(iter(known)) if version is None else version
        self.spec = spec = choice(f"version of {self.name}", chosen, known)
        self.url = service_url(broker)
        home, _ = locate(self.url)
        home = home._replace(credentials=Credentials(home.origin, **sign_in))
        patience = Patience(timeout_s, patience_s)
        self._caller = Caller(versions_of(spec, soap, addressing), patience, home, security)
        self._listen = listen
        self._advertise = advertise
        self._lock = Lock()
        self._listener: ConsumerListener | None = None
        self._renewals = Renewals()
        self._subscriptions: list[Subscription] = []
        self._closed = False

    # Publishing

    def publish(
        self,
        payload: bytes | str,
        topic: str | None = None,
        to: Address | None = None,
        producer: str | None = None,
        *,
        action: str | None = None,
        message_id: str | None = None,
        namespaces: Mapping[str, str] = NO_NAMESPACES,
        raw: bool | None = None,
    ) -> str:
        """Publish one XML element to the broker, or straight to a consumer; the message's id.

        If the answer is lost the same message is sent again, with the same id.
        """
        event = outgoing_event(
            payload,
            topic=topic,
            namespaces=namespaces,
            producer=producer,
            action=action,
            message_id=message_id,
        )
        target = EndpointReference(self.url) if to is None else _reference(to)
        body, soap_action = envelope_of(
            event,
            spec=self.spec,
            form=self._form(raw),
            versions=self._caller.versions,
            to=target,
            delivery=self._delivery,
        )
        self._caller.send(target.address, body, soap_action, repeatable=True)
        return message_id_of(event)

    # Subscribing

    def subscribe(
        self,
        topic: str | Sequence[str] | None = None,
        xpath: str | None = None,
        *,
        namespaces: Mapping[str, str] = NO_NAMESPACES,
        consumer: Callback | Address | None = None,
        expires: Expires = LEASE,
        raw: bool | None = None,
        dialect: str | None = None,
        mode: str | None = None,
        end_to: Address | None = None,
        pull: bool = False,
        box: str | None = None,
        box_form: str | None = None,
        renewing: bool = True,
    ) -> Subscription:
        """Subscribe at the broker (or whichever producer the client was made for).

        `consumer` is a callback, or the address of somebody else; without it, loop over what this
        returns. With `pull` a message box keeps the notifications until they are pulled: at the
        broker, or at the box service that `box` names.
        """
        topics = () if topic is None else (topic,) if isinstance(topic, str) else tuple(topic)
        wanted = topic_expression(topics, self.spec, namespaces, dialect)
        content = xpath_expression(xpath, self.spec, namespaces)
        self._check(raw=raw, mode=mode, end_to=end_to)
        place = _Destination(None)
        if mode != "pull":
            pulls = pull or box is not None
            place = self._destination(consumer, pull=pulls, box=box, form=box_form)
        request = SubscribeRequest(
            consumer=place.consumer,
            end_to=self._end_to(end_to, place),
            topic=wanted,
            content=content,
            expires=expires_text(expires),
            raw=raw,
            mode=mode,
        )
        try:
            subscription, granted = self._send_subscribe(request, place, expires)
        except BaseException:  # an interrupt too must leave no box and no inbox behind
            self._release(place)
            raise
        if renewing and granted.lease_s is not None and self._renews:
            subscription.leased(
                self._renewals.add(
                    granted.lease_s,
                    lambda: self._renew(subscription, subscription.expires).remaining_s,
                    subscription.lapse,
                )
            )
        self._register(subscription)
        return subscription

    def _send_subscribe(
        self, request: SubscribeRequest, place: _Destination, expires: Expires
    ) -> tuple[Subscription, Granted]:
        answer = self._caller.call(self._subscribe_request(request), EndpointReference(self.url))
        granted = self._read(answer, lambda envelope: self._read_grant(envelope, request.expires))
        box = place.box
        if granted.context is not None:
            box = Enumerated(self._caller, self.url, granted.context)
        subscription = Subscription(
            self,
            reached_from(self.url, granted.manager),
            expires,
            consumer=request.consumer,
            inbox=place.inbox,
            box=box,
            lease_s=granted.lease_s,
        )
        return subscription, granted

    def _destination(
        self,
        consumer: Callback | Address | None,
        *,
        pull: bool,
        box: str | None,
        form: str | None,
    ) -> _Destination:
        if pull:
            if consumer is not None:
                raise BadSetting(
                    "a subscription is either pulled or has a consumer",
                    remedy="Leave out consumer, or pull and box.",
                )
            chosen = choice("form of message box", form or self._usual_box, BOX_FORMS)
            made = make_box(self._caller, chosen, box, self.url)
            return _Destination(made.reference, box=made)
        if consumer is None or callable(consumer):
            address, inbox = self._open_listener().open(consumer)
            return _Destination(EndpointReference(address), inbox)
        return _Destination(_reference(consumer))

    def _end_to(self, asked: Address | None, place: _Destination) -> EndpointReference | None:
        if asked is not None:
            return _reference(asked)
        return place.consumer if place.inbox is not None else None

    # What is done with a subscription

    def renew(self, subscription: Subscription, expires: Expires = None) -> Status:
        """Ask for more time: as much as at first, unless `expires` says otherwise."""
        status = self._renew(subscription, subscription.expires if expires is None else expires)
        if subscription.lease is not None:
            self._renewals.granted(subscription.lease, status.remaining_s)
        return status

    def _renew(self, subscription: Subscription, expires: Expires) -> Status:
        asked = expires_text(expires)
        answer = self._caller.call(self._renew_request(asked), subscription.manager)
        lease_s = self._read(answer, lambda envelope: self._read_renewal(envelope, asked))
        subscription.granted(lease_s)
        return Status(lease_s)

    def status(self, subscription: Subscription) -> Status:
        """How long it still has."""
        answer = self._caller.call(self._status_request(), subscription.manager)
        return Status(self._read(answer, self._read_status))

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; SoapRefused if the producer knows none."""
        self._caller.call(self._unsubscribe_request(), subscription.manager)
        self._forget(subscription)

    def pause(self, subscription: Subscription) -> None:
        """Have notifications held back until `resume`."""
        raise self._unsupported("pausing of subscriptions")

    def resume(self, subscription: Subscription) -> None:
        """Have them sent again."""
        raise self._unsupported("resuming of subscriptions")

    def current_message(
        self, topic: str, *, namespaces: Mapping[str, str] = NO_NAMESPACES
    ) -> Message:
        """The last message on a topic."""
        raise self._unsupported("asking for the current message")

    def pull(
        self, subscription: Subscription, count: int = PULL_MESSAGES_MAX, *, wait_s: float = 0.0
    ) -> list[Message]:
        """What waits in its box; waits for the first up to `wait_s`."""
        return subscription.fetch(count, wait_s)

    def end(self, subscription: Subscription) -> None:
        """End a subscription for good, whether or not its producer can be reached."""
        if not subscription.is_closed:
            with suppress(TocsinError):
                self._caller.call(
                    self._unsubscribe_request(), subscription.manager, patience=CLOSE_TIMEOUTS
                )
        self._forget(subscription)

    # Listening, and the end

    def listen(self, callback: Callback | None = None) -> ConsumerEndpoint:
        """An address of our own for whoever sends notifications without a subscription."""
        listener = self._open_listener()
        return ConsumerEndpoint(listener, *listener.open(callback))

    def close(self) -> None:
        """End what was begun: subscriptions, boxes, the listener and connections."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        atexit.unregister(self.close)
        self._renewals.close()
        for subscription in list(self._subscriptions):
            self.end(subscription)
        if self._listener is not None:
            self._listener.close()
        self._caller.pool.close()

    def _open_listener(self) -> ConsumerListener:
        with self._lock:
            if self._closed:
                raise BadSetting("this client is closed", remedy="Make another.")
            if self._listener is None:
                self._listener = ConsumerListener(self._listen, self._advertise, self.url)
                atexit.register(self.close)
            return self._listener

    def _register(self, subscription: Subscription) -> None:
        with self._lock:
            self._subscriptions.append(subscription)
            atexit.unregister(self.close)
            atexit.register(self.close)

    def _forget(self, subscription: Subscription) -> None:
        held = subscription.forget()
        if held is None:
            return
        if subscription.lease is not None:
            self._renewals.remove(subscription.lease)
        with self._lock:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)
        self._release(_Destination(None, *held))

    def _release(self, place: _Destination) -> None:
        if place.inbox is not None and self._listener is not None:
            self._listener.shut(place.inbox)
        if place.box is not None:
            with suppress(TocsinError):
                place.box.destroy()

    def _read(self, answer: Envelope | None, read: Callable[[Envelope], T]) -> T:
        return read_answer(answer, self.url, read)

    def _unsupported(self, what: str) -> NotInSpecification:
        return NotInSpecification(
            f"{self.name} has no {what}",
            remedy="Choose a specification that has it, or do without.",
        )

    # What each specification says in its own words

    _delivery: Delivery

    @property
    def _renews(self) -> bool:
        return True

    @property
    def _usual_box(self) -> str:
        return "msgbox"

    @abstractmethod
    def _form(self, raw: bool | None) -> str:
        """How a notification is published: raw or wrapped."""

    @abstractmethod
    def _check(self, *, raw: bool | None, mode: str | None, end_to: Address | None) -> None:
        """Refuse what the specification has no words for."""

    @abstractmethod
    def _subscribe_request(self, request: SubscribeRequest) -> SoapRequest:
        """The request to subscribe."""

    @abstractmethod
    def _read_grant(self, envelope: Envelope, asked: str | None) -> Granted:
        """What its answer says."""

    @abstractmethod
    def _renew_request(self, expires: str | None) -> SoapRequest:
        """The request for more time."""

    @abstractmethod
    def _read_renewal(self, envelope: Envelope, asked: str | None) -> float | None:
        """How long was granted, in seconds."""

    @abstractmethod
    def _status_request(self) -> SoapRequest:
        """The question how long a subscription still has."""

    @abstractmethod
    def _read_status(self, envelope: Envelope) -> float | None:
        """What its answer says, in seconds."""

    @abstractmethod
    def _unsubscribe_request(self) -> SoapRequest:
        """The request to end a subscription."""


def _reference(address: Address) -> EndpointReference:
    return EndpointReference(address) if isinstance(address, str) else address
