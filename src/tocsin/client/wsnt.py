"""WsntClient: publish, subscribe and listen by WS-Notification.

    with WsntClient() as client:
        with client.subscribe("lead/**") as messages:
            client.publish("<sweep/>", topic="lead/ohio/radar")
            print(next(messages).payload)

Another specification is another class: `WseClient` has the same calls.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final, TypeVar

from tocsin.client.soap.caller import SoapRequest
from tocsin.client.soap.client import NO_NAMESPACES, Address, SoapClient
from tocsin.client.soap.expressions import one_topic
from tocsin.client.soap.message import Message
from tocsin.client.soap.subscribe_request import LEASE, Granted, SubscribeRequest, lease_s
from tocsin.client.soap.subscription import Status, Subscription
from tocsin.errors import SoapRefused
from tocsin.event.instant import NS_PER_S, rfc3339
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.envelope import Envelope, elements, split, text_of
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import (
    LIFETIME12,
    PROPERTIES12,
    PROPERTIES12_ACTIONS,
    PROPERTIES13,
    PROPERTIES13_ACTIONS,
    USUAL_WSA,
)
from tocsin.wire.soap.topics import TopicName
from tocsin.wire.wsn import messages as wsn
from tocsin.wire.wsn.deliver import pieces
from tocsin.wire.wsn.read import read
from tocsin.wire.wsn.read_subscribe import is_nil
from tocsin.wire.wsn.write import operation_names, write

T = TypeVar("T")

VERSIONS: Final = {
    "1.3": "wsn13",
    "1.2": "wsn12",
    "1.0": "wsn10",
    "wsn13": "wsn13",
    "wsn12": "wsn12",
    "wsn10": "wsn10",
}
LIFETIME13: Final = "http://docs.oasis-open.org/wsrf/rl-2"


class WsntClient(SoapClient):
    """WS-Notification 1.3, 1.2 (as GT4 speaks it) or 1.0 (as the original WS-Messenger does), in
    any SOAP and WS-Addressing version. `raw=True` asks for, and publishes, the bare payload."""

    name = "WS-Notification"
    specifications = VERSIONS
    _delivery = staticmethod(pieces)

    @property
    def _renews(self) -> bool:
        return self.spec != "wsn10"

    @property
    def _usual_box(self) -> str:
        return "pullpoint" if self.spec == "wsn13" else "msgbox"

    def status(self, subscription: Subscription) -> Status:
        """How long it still has. A subscription of 1.3 need not say that; it is then what was
        granted last, once the manager has shown that it knows the subscription."""
        try:
            return super().status(subscription)
        except SoapRefused as error:
            if b"InvalidResourcePropertyQNameFault" not in error.detail:
                raise
        return Status(subscription.remaining_s)

    # The calls that WS-Notification has and WS-Eventing has not

    def pause(self, subscription: Subscription) -> None:
        self._caller.call(self._request(wsn.PauseSubscription()), subscription.manager)

    def resume(self, subscription: Subscription) -> None:
        self._caller.call(self._request(wsn.ResumeSubscription()), subscription.manager)

    def current_message(
        self, topic: str, *, namespaces: Mapping[str, str] = NO_NAMESPACES
    ) -> Message:
        """The last message on a topic; SoapRefused if there is none."""
        wanted = one_topic(topic, self.spec, namespaces)
        asked = wsn.GetCurrentMessage(wanted)
        answer = self._caller.call(
            self._request(asked, repeatable=True), EndpointReference(self.url)
        )

        def message(envelope: Envelope) -> Message:
            answer = _read(envelope, wsn.GetCurrentMessageResponse)
            if answer.payload is None:
                raise SoapFault("Receiver", "it holds no message")
            name = TopicName(topic, wanted.namespaces)
            return Message(answer.payload, name.path, envelope=envelope.raw, topic_name=name)

        return self._read(answer, message)

    # The words of WS-Notification

    def _form(self, raw: bool | None) -> str:
        return "raw" if raw else "wrapped"

    def _check(self, *, raw: bool | None, mode: str | None, end_to: Address | None) -> None:
        if mode is not None:
            raise self._unsupported("delivery modes")
        if end_to is not None:
            raise self._unsupported("address that is notified of a subscription's end")

    def _request(self, message: wsn.Request, *, repeatable: bool = False) -> SoapRequest:
        wsa = self._caller.versions.wsa or USUAL_WSA[self.spec]
        body = write(message, self.spec, wsa)  # first: it says which words a version has not
        return SoapRequest(operation_names(message, self.spec).request_action, body, repeatable)

    def _subscribe_request(self, request: SubscribeRequest) -> SoapRequest:
        assert request.consumer is not None, "only WS-Eventing keeps notifications at the source"
        return self._request(
            wsn.Subscribe(
                request.consumer,
                topics=() if request.topic is None else (request.topic,),
                contents=() if request.content is None else (request.content,),
                termination=self._termination(request.expires),
                raw=bool(request.raw),
            )
        )

    def _termination(self, expires: str | None) -> str | None:
        """Version 1.2 knows moments only: a duration becomes the moment that it leads to."""
        if expires is None or self.spec != "wsn12":
            return expires
        length_s = lease_s(expires, None, time.time_ns())
        return expires if length_s is None else rfc3339(time.time_ns() + int(length_s * NS_PER_S))

    def _read_grant(self, envelope: Envelope, asked: str | None) -> Granted:
        answer = _read(envelope, wsn.SubscribeResponse)
        lease = _lease(answer.termination_ns, answer.current_ns)
        if answer.termination_ns is None:  # versions that have no place for it
            lease = lease_s(asked, asked, time.time_ns())
        return Granted(answer.reference, lease)

    def _renew_request(self, expires: str | None) -> SoapRequest:
        wanted = self._termination(LEASE if expires is None else expires)
        return self._request(wsn.Renew(wanted), repeatable=True)

    def _read_renewal(self, envelope: Envelope, asked: str | None) -> float | None:
        answer = _read(envelope, wsn.RenewResponse)
        return _lease(answer.termination_ns, answer.current_ns)

    def _status_request(self) -> SoapRequest:
        """WS-Notification leaves this to the properties of a WS-Resource."""
        if self.spec == "wsn10":
            raise self._unsupported("status of subscriptions in version 1.0")
        if self.spec == "wsn13":
            properties, lifetime = PROPERTIES13, LIFETIME13
            action = f"{PROPERTIES13_ACTIONS}/GetResourceProperty/GetResourcePropertyRequest"
        else:
            properties, lifetime = PROPERTIES12, LIFETIME12
            action = f"{PROPERTIES12_ACTIONS}/GetResourceProperty"
        body = (
            f'<rp:GetResourceProperty xmlns:rp="{properties}" xmlns:rl="{lifetime}">'
            "rl:TerminationTime</rp:GetResourceProperty>"
        )
        return SoapRequest(action, body.encode(), repeatable=True)

    def _read_status(self, envelope: Envelope) -> float | None:
        content = envelope.content
        for child in [] if content is None else elements(content):
            if split(child.tag)[1] == "TerminationTime":
                text = None if is_nil(child) else text_of(child)
                return lease_s(text, None, time.time_ns())
        raise SoapFault("Receiver", "it has no TerminationTime")

    def _unsubscribe_request(self) -> SoapRequest:
        return self._request(wsn.Unsubscribe(), repeatable=True)


def _read(envelope: Envelope, kind: type[T]) -> T:
    answer = None if envelope.content is None else read(envelope)
    if not isinstance(answer, kind):
        raise SoapFault("Receiver", f"it is not a {kind.__name__}")
    return answer


def _lease(termination_ns: int | wsn.Never | None, current_ns: int | None) -> float | None:
    """By the producer's own clock, if it says what time that shows."""
    if not isinstance(termination_ns, int):
        return None
    since_ns = time.time_ns() if current_ns is None else current_ns
    return max(termination_ns - since_ns, 0) / NS_PER_S
