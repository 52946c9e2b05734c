"""WseClient: publish, subscribe and listen by WS-Eventing.

    with WseClient() as client:
        with client.subscribe("lead/**") as messages:
            client.publish("<sweep/>", topic="lead/ohio/radar")
            print(next(messages).payload)

Another specification is another class: `WsntClient` has the same calls.
"""

from __future__ import annotations

import time
from typing import Final

from tocsin.client.soap.asking import Ask
from tocsin.client.soap.client import Address, SoapClient
from tocsin.client.soap.versions import choice
from tocsin.client.soap.wish import Granted, Wish, lease_s
from tocsin.errors import NotInSpecification
from tocsin.wire.soap.envelope import Envelope
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import TOPIC_AND_XPATH
from tocsin.wire.wse import messages as say
from tocsin.wire.wse.deliver import pieces
from tocsin.wire.wse.read import read
from tocsin.wire.wse.write import action, write

VERSIONS: Final = {"2004/08": "wse04", "2011/03": "wse11", "wse04": "wse04", "wse11": "wse11"}
MODES: Final = {
    "push": say.PUSH,
    "acked": say.PUSH_WITH_ACK,
    "events": say.EVENTS,
    "pull": say.PULL,
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
            raise self._has_no("wrapped notifications before 2011/03")
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

    def _subscribe_ask(self, wish: Wish) -> Ask:
        mode = MODES[wish.mode] if wish.mode not in (None, "push") else ""
        asked = say.Subscribe(
            self.spec,
            notify_to=wish.consumer,
            end_to=wish.end_to,
            mode=mode,
            format=say.WRAP if self.spec == "wse11" and wish.raw is False else "",
            expires=wish.expires,
            best_effort=self.spec == "wse11",
            filter=_filter(wish),
        )
        return self._ask_of(asked)

    def _ask_of(self, message: say.Message, *, repeatable: bool = False) -> Ask:
        return Ask(action(message), write(message, self._caller.versions.wsa), repeatable)

    def _granted(self, envelope: Envelope, asked: str | None) -> Granted:
        told = read(envelope)
        if not isinstance(told, say.SubscribeResponse):
            raise _unexpected("SubscribeResponse")
        lease = lease_s(told.expires or None, asked, time.time_ns())
        return Granted(told.manager, lease, told.context)

    def _renew_ask(self, expires: str | None) -> Ask:
        asked = say.Renew(self.spec, expires, best_effort=self.spec == "wse11")
        return self._ask_of(asked, repeatable=True)

    def _renewed(self, envelope: Envelope, asked: str | None) -> float | None:
        told = read(envelope)
        if not isinstance(told, say.RenewResponse):
            raise _unexpected("RenewResponse")
        return lease_s(told.expires, asked, time.time_ns())

    def _status_ask(self) -> Ask:
        return self._ask_of(say.GetStatus(self.spec), repeatable=True)

    def _told_status(self, envelope: Envelope) -> float | None:
        told = read(envelope)
        if not isinstance(told, say.GetStatusResponse):
            raise _unexpected("GetStatusResponse")
        return lease_s(told.expires, None, time.time_ns())

    def _unsubscribe_ask(self) -> Ask:
        return self._ask_of(say.Unsubscribe(self.spec), repeatable=True)


def _filter(wish: Wish) -> say.Filter | None:
    """One expression, or the original's pair of topic and content."""
    if wish.topic is not None and wish.content is not None:
        both = say.Expression("", TOPIC_AND_XPATH)
        return say.Filter(both, topic=wish.topic, content=wish.content)
    single = wish.topic or wish.content
    return None if single is None else say.Filter(single)


def _unexpected(wanted: str) -> SoapFault:
    return SoapFault("Receiver", f"it is not a {wanted}")
