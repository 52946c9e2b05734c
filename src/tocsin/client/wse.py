"""WseClient: publish, subscribe and listen by WS-Eventing.

    with WseClient() as client:
        with client.subscribe("lead/**") as messages:
            client.publish("<sweep/>", topic="lead/ohio/radar")
            print(next(messages).payload)

Another specification is another class: `WsntClient` has the same calls.
"""

from __future__ import annotations

import time
from typing import Final, TypeVar

from tocsin.client.soap.caller import SoapRequest
from tocsin.client.soap.client import Address, SoapClient
from tocsin.client.soap.subscribe_request import Granted, SubscribeRequest, lease_s
from tocsin.client.soap.versions import choice
from tocsin.errors import NotInSpecification
from tocsin.wire.soap.envelope import Envelope
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import TOPIC_AND_XPATH
from tocsin.wire.wse import messages as wse
from tocsin.wire.wse.deliver import pieces
from tocsin.wire.wse.read import read
from tocsin.wire.wse.write import action, write
from tocsin.wire.wsn.messages import Expression

T = TypeVar("T")

VERSIONS: Final = {"2004/08": "wse04", "2011/03": "wse11", "wse04": "wse04", "wse11": "wse11"}
MODES: Final = {
    "push": wse.PUSH,
    "acked": wse.PUSH_WITH_ACK,
    "events": wse.EVENTS,
    "pull": wse.PULL,
}


class WseClient(SoapClient):
    """WS-Eventing 2004/08 (the usual `version`) or 2011/03, in any SOAP and WS-Addressing version.

    `mode` of `subscribe` is push, acked, events or pull (2004/08, the last three by WS-Management);
    `raw=False` asks for wrapped notifications (2011/03).
    """

    name = "WS-Eventing"
    specifications = VERSIONS
    _delivery = staticmethod(pieces)

    def _form(self, raw: bool | None) -> str:
        if raw is not False:
            return "raw"
        if self.spec == "wse04":
            raise self._unsupported("wrapped notifications before 2011/03")
        return "wrapped"

    def _check(self, *, raw: bool | None, mode: str | None, end_to: Address | None) -> None:
        self._form(raw)
        if mode is not None:
            choice("delivery mode", mode, MODES)
            if self.spec == "wse11" and mode != "push":
                raise NotInSpecification(
                    f"WS-Eventing 2011/03 has no delivery mode {mode!r}",
                    remedy="Use version 2004/08, or leave the mode out.",
                )

    def _subscribe_request(self, request: SubscribeRequest) -> SoapRequest:
        mode = MODES[request.mode] if request.mode not in (None, "push") else ""
        asked = wse.Subscribe(
            self.spec,
            notify_to=request.consumer,
            end_to=request.end_to,
            mode=mode,
            format=wse.WRAP if self.spec == "wse11" and request.raw is False else "",
            expires=request.expires,
            best_effort=self.spec == "wse11",
            filter=_filter(request),
        )
        return self._request(asked)

    def _request(self, message: wse.Message, *, repeatable: bool = False) -> SoapRequest:
        return SoapRequest(action(message), write(message, self._caller.versions.wsa), repeatable)

    def _read_grant(self, envelope: Envelope, asked: str | None) -> Granted:
        answer = _read(envelope, wse.SubscribeResponse)
        lease = lease_s(answer.expires or None, asked, time.time_ns())
        return Granted(answer.manager, lease, answer.context)

    def _renew_request(self, expires: str | None) -> SoapRequest:
        asked = wse.Renew(self.spec, expires, best_effort=self.spec == "wse11")
        return self._request(asked, repeatable=True)

    def _read_renewal(self, envelope: Envelope, asked: str | None) -> float | None:
        answer = _read(envelope, wse.RenewResponse)
        return lease_s(answer.expires, asked, time.time_ns())

    def _status_request(self) -> SoapRequest:
        return self._request(wse.GetStatus(self.spec), repeatable=True)

    def _read_status(self, envelope: Envelope) -> float | None:
        answer = _read(envelope, wse.GetStatusResponse)
        return lease_s(answer.expires, None, time.time_ns())

    def _unsubscribe_request(self) -> SoapRequest:
        return self._request(wse.Unsubscribe(self.spec), repeatable=True)


def _filter(request: SubscribeRequest) -> wse.Filter | None:
    """One expression, or the original's pair of topic and content."""
    if request.topic is not None and request.content is not None:
        both = Expression("", TOPIC_AND_XPATH)
        return wse.Filter(both, topic=request.topic, content=request.content)
    single = request.topic or request.content
    return None if single is None else wse.Filter(single)


def _read(envelope: Envelope, kind: type[T]) -> T:
    answer = read(envelope)
    if not isinstance(answer, kind):
        raise SoapFault("Receiver", f"it is not a {kind.__name__}")
    return answer
