"""Message boxes as a client uses them: the paper's five steps, in the original's words or in those
of WS-Notification's pull points; and WS-Management's pull, where the source itself is the box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from tocsin.client.soap.addresses import MSGBOX_PATH, reached_from, service_url
from tocsin.client.soap.asking import Ask, Caller, answered, nonsense
from tocsin.client.soap.message import Ended, Message
from tocsin.client.soap.notifications import kept_messages, messages
from tocsin.errors import SoapRefused
from tocsin.event.instant import NS_PER_S, xs_duration
from tocsin.wire.msgbox import read as msgbox_read
from tocsin.wire.msgbox import write as msgbox
from tocsin.wire.pullpoint import operations as pullpoint
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.names import WSA2005
from tocsin.wire.wse import messages as wse
from tocsin.wire.wse.read import read as read_eventing
from tocsin.wire.wse.write import action as eventing_action
from tocsin.wire.wse.write import write as write_eventing

PULL_MESSAGES_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a box gave; `dropped` is how many messages it says it had to give up."""

    messages: list[Message]
    dropped: int = 0
    ended: Ended | None = None


class Box(Protocol):
    """Something that keeps messages until they are fetched."""

    def pull(self, count: int, wait_s: float) -> Pulled:
        """What waits there, at most about `count`; it may wait itself, up to `wait_s`."""

    def destroy(self) -> None:
        """Give it back."""


def make_box(caller: Caller, form: str, url: str | None, broker: str) -> MsgBox | PullPoint:
    """A new box of the given form, at a URL or else at the broker."""
    if form == "msgbox":
        # The broker's own address leads to its SOAP door; its boxes have the original's path.
        home = url or broker.removesuffix("/soap")
        return MsgBox(caller, service_url(home, MSGBOX_PATH))
    return PullPoint(caller, service_url(url or broker))


class MsgBox:
    """A box of the original's MsgBoxService. It keeps bodies: headers are lost."""

    def __init__(self, caller: Caller, service: str) -> None:
        self._caller = caller
        self._service = EndpointReference(service)
        made = caller.ask(_msgbox(msgbox.CREATE, "tocsin"), self._service)
        self._id = answered(made, service, msgbox_read.box_id)
        self.reference = EndpointReference(f"{service.rstrip('/')}/clientid/{self._id}", WSA2005)

    def pull(self, count: int, wait_s: float) -> Pulled:
        answer = self._caller.ask(_msgbox(msgbox.TAKE, self._id), self.reference)
        bodies = answered(answer, self.reference.address, msgbox_read.messages)
        assert answer is not None
        found = [each for body in bodies for each in kept_messages(body, answer.raw)]
        return Pulled(found, msgbox_read.dropped(answer))

    def destroy(self) -> None:
        self._caller.ask(_msgbox(msgbox.DESTROY, self._id), self.reference)


def _msgbox(operation: str, box_id: str) -> Ask:
    return Ask(
        msgbox.request_action(operation),
        msgbox.request(operation, box_id),
        repeatable=operation == msgbox.DESTROY,
    )


class PullPoint:
    """A pull point of WS-Notification 1.3; it tells topics and producers too."""

    def __init__(self, caller: Caller, service: str) -> None:
        self._caller = caller
        made = caller.ask(
            Ask(pullpoint.request_action(pullpoint.CREATE), pullpoint.create_request()),
            EndpointReference(service),
        )
        self.reference = reached_from(service, answered(made, service, pullpoint.read_pull_point))

    def pull(self, count: int, wait_s: float) -> Pulled:
        ask = Ask(pullpoint.request_action(pullpoint.GET), pullpoint.get_request(count))
        answer = self._caller.ask(ask, self.reference)
        found = answered(answer, self.reference.address, messages)
        assert answer is not None
        return Pulled(found, msgbox_read.dropped(answer))

    def destroy(self) -> None:
        ask = Ask(
            pullpoint.request_action(pullpoint.DESTROY),
            pullpoint.destroy_request(),
            repeatable=True,
        )
        self._caller.ask(ask, self.reference)


class Enumerated:
    """The source of a WS-Eventing subscription in WS-Management's Pull mode.

    What was pulled is given up by the source when the next pull names its context, so that a lost
    answer loses nothing.
    """

    def __init__(self, caller: Caller, source: str, context: str) -> None:
        self._caller = caller
        self._source = EndpointReference(source)
        self._context = context

    def pull(self, count: int, wait_s: float) -> Pulled:
        waits = xs_duration(int(wait_s * NS_PER_S))
        asked = wse.Pull(self._context, elements_max=count, time_max=waits)
        ask = Ask(eventing_action(asked), write_eventing(asked), repeatable=True)
        try:
            answer = self._caller.ask(ask, self._source)
        except SoapRefused as error:
            if error.subcode is not None and error.subcode[1] == "TimedOut":
                return Pulled([])
            raise
        told = answered(answer, self._source.address, read_eventing)
        if answer is None or not isinstance(told, wse.PullResponse):
            raise nonsense(self._source.address, "is not a PullResponse")
        self._context = told.context or self._context
        found = [each for item in told.items for each in kept_messages(item, answer.raw)]
        return Pulled(found, ended=Ended("EndOfSequence") if told.ended else None)

    def destroy(self) -> None:
        """The subscription is ended by its own words."""
