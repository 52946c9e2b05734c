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
from typing import Final

from tocsin.client.soap.asking import Ask
from tocsin.client.soap.client import NO_NAMESPACES, Address, SoapClient
from tocsin.client.soap.expressions import one_topic
from tocsin.client.soap.message import Message
from tocsin.client.soap.subscription import Status, Subscription
from tocsin.client.soap.wish import LEASE, Granted, Wish, lease_s
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
from tocsin.wire.wse.messages import Expression
from tocsin.wire.wsn import messages as say
from tocsin.wire.wsn.deliver import pieces
from tocsin.wire.wsn.read import read
from tocsin.wire.wsn.read_subscribe import is_nil
from tocsin.wire.wsn.write import operation_names, write

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
        """How long it still has. A subscription of 1.3 need not tell that; it is then what was
        granted last, once the manager has shown that it knows the subscription."""
        try:
            return super().status(subscription)
        except SoapRefused as error:
            if b"InvalidResourcePropertyQNameFault" not in error.detail:
                raise
        return Status(subscription.remaining_s)

    # The calls that WS-Notification has and WS-Eventing has not

    def pause(self, subscription: Subscription) -> None:
        self._caller.ask(self._ask_of(say.PauseSubscription()), subscription.manager)

    def resume(self, subscription: Subscription) -> None:
        self._caller.ask(self._ask_of(say.ResumeSubscription()), subscription.manager)

    def current_message(
        self, topic: str, *, namespaces: Mapping[str, str] = NO_NAMESPACES
    ) -> Message:
        """The last message on a topic; SoapRefused if there is none."""
        wanted = one_topic(topic, self.spec, namespaces)
        asked = say.GetCurrentMessage(_expression(wanted))
        answer = self._caller.ask(self._ask_of(asked, repeatable=True), EndpointReference(self.url))

        def message(envelope: Envelope) -> Message:
            told = _told(envelope)
            if not isinstance(told, say.GetCurrentMessageResponse) or told.payload is None:
                raise SoapFault("Receiver", "it holds no message")
            name = TopicName(topic, wanted.namespaces)
            return Message(told.payload, name.path, envelope=envelope.raw, topic_name=name)

        return self._read(answer, message)

    # The words of WS-Notification

    def _form(self, raw: bool | None) -> str:
        return "raw" if raw else "wrapped"

    def _check(self, *, raw: bool | None, mode: str | None, end_to: Address | None) -> None:
        if mode is not None:
            raise self._has_no("delivery modes")
        if end_to is not None:
            raise self._has_no("address that is notified of a subscription's end")

    def _ask_of(self, message: say.Request, *, repeatable: bool = False) -> Ask:
        wsa = self._caller.versions.wsa or USUAL_WSA[self.spec]
        body = write(message, self.spec, wsa)  # first: it says which words a version has not
        return Ask(operation_names(message, self.spec).request_action, body, repeatable)

    def _subscribe_ask(self, wish: Wish) -> Ask:
        assert wish.consumer is not None, "only WS-Eventing keeps notifications at the source"
        return self._ask_of(
            say.Subscribe(
                wish.consumer,
                topics=() if wish.topic is None else (_expression(wish.topic),),
                contents=() if wish.content is None else (_expression(wish.content),),
                termination=self._termination(wish.expires),
                raw=bool(wish.raw),
            )
        )

    def _termination(self, expires: str | None) -> str | None:
        """Version 1.2 knows moments only: a duration becomes the moment that it leads to."""
        if expires is None or self.spec != "wsn12":
            return expires
        length_s = lease_s(expires, None, time.time_ns())
        return expires if length_s is None else rfc3339(time.time_ns() + int(length_s * NS_PER_S))

    def _granted(self, envelope: Envelope, asked: str | None) -> Granted:
        told = _told(envelope)
        if not isinstance(told, say.SubscribeResponse):
            raise SoapFault("Receiver", "it is not a SubscribeResponse")
        lease = _lease(told.termination_ns, told.current_ns)
        if told.termination_ns is None:  # versions that have no place for it
            lease = lease_s(asked, asked, time.time_ns())
        return Granted(told.reference, lease)

    def _renew_ask(self, expires: str | None) -> Ask:
        wanted = self._termination(LEASE if expires is None else expires)
        return self._ask_of(say.Renew(wanted), repeatable=True)

    def _renewed(self, envelope: Envelope, asked: str | None) -> float | None:
        told = _told(envelope)
        if not isinstance(told, say.RenewResponse):
            raise SoapFault("Receiver", "it is not a RenewResponse")
        return _lease(told.termination_ns, told.current_ns)

    def _status_ask(self) -> Ask:
        """WS-Notification leaves this to the properties of a WS-Resource."""
        if self.spec == "wsn10":
            raise self._has_no("status of subscriptions in version 1.0")
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
        return Ask(action, body.encode(), repeatable=True)

    def _told_status(self, envelope: Envelope) -> float | None:
        content = envelope.content
        for child in [] if content is None else elements(content):
            if split(child.tag)[1] == "TerminationTime":
                text = None if is_nil(child) else text_of(child)
                return lease_s(text, None, time.time_ns())
        raise SoapFault("Receiver", "it has no TerminationTime")

    def _unsubscribe_ask(self) -> Ask:
        return self._ask_of(say.Unsubscribe(), repeatable=True)


def _told(envelope: Envelope) -> say.Message | None:
    return None if envelope.content is None else read(envelope)


def _expression(wanted: Expression) -> say.Expression:
    return say.Expression(wanted.text, wanted.dialect, wanted.namespaces)


def _lease(termination_ns: int | say.Never | None, current_ns: int | None) -> float | None:
    """By the producer's own clock, if it tells what time that shows."""
    if not isinstance(termination_ns, int):
        return None
    since_ns = time.time_ns() if current_ns is None else current_ns
    return max(termination_ns - since_ns, 0) / NS_PER_S
