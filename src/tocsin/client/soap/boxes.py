"""Message boxes as a client uses them: the paper's five steps, in the original's words or in those
of WS-Notification's pull points; and WS-Management's pull, where the source itself is the box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from tocsin.client.soap.addresses import MSGBOX_PATH, reached_from, service_url
from tocsin.client.soap.caller import Caller, SoapRequest, bad_answer, read_answer
from tocsin.client.soap.message import Ended, Message
from tocsin.client.soap.notifications import boxed_messages, messages
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
        # The broker's own address is that of its SOAP service; its boxes have the original's path.
        home = url or broker.removesuffix("/soap")
        return MsgBox(caller, service_url(home, MSGBOX_PATH))
    return PullPoint(caller, service_url(url or broker))


class MsgBox:
    """A box of the original's MsgBoxService. It keeps bodies: headers are lost."""

    def __init__(self, caller: Caller, service: str) -> None:
        self._caller = caller
        self._service = EndpointReference(service)
        made = caller.call(_msgbox(msgbox.CREATE, "tocsin"), self._service)
        self._id = read_answer(made, service, msgbox_read.box_id)
        self.reference = EndpointReference(f"{service.rstrip('/')}/clientid/{self._id}", WSA2005)

    def pull(self, count: int, wait_s: float) -> Pulled:
        answer = self._caller.call(_msgbox(msgbox.TAKE, self._id), self.reference)
        bodies = read_answer(answer, self.reference.address, msgbox_read.messages)
        assert answer is not None
        found = [each for body in bodies for each in boxed_messages(body, answer.raw)]
        return Pulled(found, msgbox_read.dropped(answer))

    def destroy(self) -> None:
        self._caller.call(_msgbox(msgbox.DESTROY, self._id), self.reference)


def _msgbox(operation: str, box_id: str) -> SoapRequest:
    return SoapRequest(
        msgbox.request_action(operation),
        msgbox.request(operation, box_id),
        repeatable=operation == msgbox.DESTROY,
    )


class PullPoint:
    """A pull point of WS-Notification 1.3; it keeps topics and producers too."""

    def __init__(self, caller: Caller, service: str) -> None:
        self._caller = caller
        made = caller.call(
            SoapRequest(pullpoint.request_action(pullpoint.CREATE), pullpoint.create_request()),
            EndpointReference(service),
        )
        self.reference = reached_from(
            service, read_answer(made, service, pullpoint.read_pull_point)
        )

    def pull(self, count: int, wait_s: float) -> Pulled:
        request = SoapRequest(pullpoint.request_action(pullpoint.GET), pullpoint.get_request(count))
        answer = self._caller.call(request, self.reference)
        found = read_answer(answer, self.reference.address, messages)
        assert answer is not None
        return Pulled(found, msgbox_read.dropped(answer))

    def destroy(self) -> None:
        request = SoapRequest(
            pullpoint.request_action(pullpoint.DESTROY),
            pullpoint.destroy_request(),
            repeatable=True,
        )
        self._caller.call(request, self.reference)


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
        pull = wse.Pull(self._context, elements_max=count, time_max=waits)
        request = SoapRequest(eventing_action(pull), write_eventing(pull), repeatable=True)
        try:
            answer = self._caller.call(request, self._source)
        except SoapRefused as error:
            if error.subcode is not None and error.subcode[1] == "TimedOut":
                return Pulled([])
            raise
        response = read_answer(answer, self._source.address, read_eventing)
        if answer is None or not isinstance(response, wse.PullResponse):
            raise bad_answer(self._source.address, "is not a PullResponse")
        self._context = response.context or self._context
        found = [each for item in response.items for each in boxed_messages(item, answer.raw)]
        return Pulled(found, ended=Ended("EndOfSequence") if response.ended else None)

    def destroy(self) -> None:
        """The subscription is ended by its own words."""
