"""The messages of the protocol, named as in paper 002, sections 4.2 to 4.5."""

from __future__ import annotations

import msgspec

from tocsin.event.value import Scalar
from tocsin.wire.gma.names import EventName

SUCCESS = "Success"
FAILURE = "Failure"

UNITS_CHARS_MAX = 256  # and of an accuracy


class Element(msgspec.Struct, frozen=True):
    """A name and its value; `value` may be elements again, one or more, in events of others."""

    name: str
    value: Scalar | tuple[Element, ...]
    units: str | None = None
    accuracy: str | None = None


class PerformanceEvent(msgspec.Struct, frozen=True):
    """A named set of typed values, one of which is the time (section 3)."""

    name: EventName
    time: str  # the Grid Forum's time stamp, as it was written
    elements: tuple[Element, ...] = ()

    def __getitem__(self, name: str) -> Scalar | tuple[Element, ...]:
        """The value of the first element of that name."""
        return self.element(name).value

    def element(self, name: str) -> Element:
        for element in self.elements:
            if element.name == name:
                return element
        raise KeyError(name)


class Parameters(msgspec.Struct, frozen=True):
    """Which events are wanted, and what their producer needs to know to make them."""

    name: EventName
    elements: tuple[Element, ...] = ()


class Options(msgspec.Struct, frozen=True):
    """Ours, as attributes in our namespace on the message's own element: others pass over them.

    In a request they say what is asked for besides, in its reply what was understood of that.
    """

    role: str | None = None  # what the requester is: producer or consumer
    after: int | None = None  # begin after this place in the broker's log
    acknowledge: str | None = None  # events are numbered, and answered; under which name
    context: bool = False  # events say where in the log they are
    filtered: bool = False  # of a reply: the filter is applied by who replies


class Context(msgspec.Struct, frozen=True):
    """Where an event is in the broker's log, and how it is known there."""

    seq: int
    id: str
    source: str
    topic: str = ""


class SubscribeRequest(msgspec.Struct, frozen=True, tag=True):
    """Events shall flow. The consumer asks for them, or the producer offers them."""

    request_id: str
    subscription_id: str
    parameters: Parameters
    filter: str | None = None
    options: Options | None = None


class SubscribeReply(msgspec.Struct, frozen=True, tag=True):
    request_id: str
    returned: str = SUCCESS
    detail: str | None = None
    subscription_id: str | None = None
    options: Options | None = None


class UnsubscribeRequest(msgspec.Struct, frozen=True, tag=True):
    """No more events; the id is the one that the receiver of this message chose."""

    request_id: str
    subscription_id: str


class UnsubscribeReply(msgspec.Struct, frozen=True, tag=True):
    request_id: str
    returned: str = SUCCESS
    detail: str | None = None


class EventMessage(msgspec.Struct, frozen=True, tag=True):
    """An event of a subscription, or why there is none; the id is the consumer's.

    `request_id` is ours: where the subscription's `Options` agreed on it, an `EventReply` answers.
    """

    subscription_id: str
    event: PerformanceEvent | None = None
    error: str | None = None
    error_detail: str | None = None
    request_id: str | None = None
    context: Context | None = None


class EventReply(msgspec.Struct, frozen=True, tag=True):
    """Ours: the event with this number is on disk, or refused."""

    request_id: str
    returned: str = SUCCESS
    detail: str | None = None


class QueryRequest(msgspec.Struct, frozen=True, tag=True):
    """One event, now."""

    request_id: str
    parameters: Parameters
    filter: str | None = None


class QueryReply(msgspec.Struct, frozen=True, tag=True):
    request_id: str
    returned: str = SUCCESS
    detail: str | None = None
    event: PerformanceEvent | None = None


class EventNamesRequest(msgspec.Struct, frozen=True, tag=True):
    """Which events are there?"""

    request_id: str


class EventNamesReply(msgspec.Struct, frozen=True, tag=True):
    request_id: str
    returned: str = SUCCESS
    detail: str | None = None
    names: tuple[EventName, ...] = ()


Request = SubscribeRequest | UnsubscribeRequest | QueryRequest | EventNamesRequest
Reply = SubscribeReply | UnsubscribeReply | QueryReply | EventNamesReply | EventReply
Message = Request | Reply | EventMessage

REPLY_TO: dict[type, type] = {
    SubscribeRequest: SubscribeReply,
    UnsubscribeRequest: UnsubscribeReply,
    QueryRequest: QueryReply,
    EventNamesRequest: EventNamesReply,
    EventMessage: EventReply,
}


def failure(request: type, request_id: str, detail: str) -> Reply:
    """The reply that says no to a request of this type."""
    reply: Reply = REPLY_TO[request](request_id, FAILURE, detail)
    return reply
