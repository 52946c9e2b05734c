"""The producer/consumer protocol, read from its paper alone: its messages.

The paper is "An XML-Based Protocol for Distributed Event Services" (the Grid Forum's monitoring
architecture). Nothing of the product is imported here: what the product says is read by somebody
who knows only the paper, and whatever such a reader would not understand raises `NotInThePaper`.

Where the paper leaves a choice, this is the choice made:

1.  Section 4.1 counts "the bytes in the message": taken as the XML alone, without the four bytes
    of the count, unsigned. A count over 16 MiB is refused; the paper has no limit.
2.  Encoding and XML declaration are not mentioned: written as UTF-8 without a declaration, read as
    any XML parser reads it.
3.  Ids are whole numbers in the examples, and of no stated type: opaque text here, never empty.
    "Unique" means unique at its owner, over all of its connections; a reader compares them on one
    connection only.
4.  The subscription id is an element in requests and replies, an attribute in Event (the example).
5.  The lists of 4.2 to 4.5 are taken as the order of the elements, as a schema would have them;
    an element or an attribute that they do not name is an error. Attributes of a foreign namespace
    pass (values "are typed", and xsi:type is how XML says so). A reader may be told to pass over
    foreign elements at the end of a message; the paper does not say that it should.
6.  The event element of 4.2.5 is in the Protocol namespace, that of 3.1 and 4.4.2 in Events: both
    are read, as is the group's own namespace for an event that is defined there. Events is written.
7.  The event is UptimeCPULoad in 3.1 and 4.2.5, UptimeCPULoadEvent in the prose and in 4.4.2: an
    answer may be named either way; without the suffix is written.
8.  The parameters element is in EventParameters in 4.2.1 and in Events in 4.4.1: both are read in
    both requests, each is written as in its example. For an event in a group's own namespace it is
    in that namespace.
9.  An event is a set of pairs: a nested element, or a name that comes twice, is an error. TimeStamp
    is required and is ISO 8601 with a zone (the draft that the paper cites is not quoted in it).
    The pairs are in the namespace of their event, the parameters in that of theirs.
10. Period has the units "sec" and "min" in the examples: only these are known; none means seconds;
    a decimal fraction is allowed. A request without a Period gets the producer's own. The first
    event goes out at once.
11. EventNamesReply is closed by AvailableEventsReply in its example: a slip. It has "one or more"
    Event elements: a success with none is an error, a failure has none.
12. Error has no stated content: any text, or none. An error does not end its subscription.
13. A subscribe reply "should" have an id if and only if it succeeded: held to, as a must.
14. In a producer-initiated subscription the request carries the producer's id and the reply the
    consumer's; events still carry the consumer's. They come on the connection that made it.
15. Nothing tells a producer's SubscribeRequest from a consumer's. A plain producer takes it for a
    consumer's, an archive for a producer's; one that is both must know by other means.
16. Events that were under way when the consumer sent its UnsubscribeRequest are read until the
    reply. An Event before the SubscribeReply, or after either side's goodbye was answered, is an
    error.
17. When both sides say goodbye at once, each answers Success to the other. An UnsubscribeRequest
    for an id that is not known gets Failure.
18. A connection carries any number of subscriptions and requests, and they end with it. What a
    reader does on a message that it cannot read is not said: the connection is closed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from xml.etree import ElementTree

from minimal_messages import (
    Content,
    Event,
    EventNamesReply,
    EventNamesRequest,
    Message,
    NotInThePaper,
    QueryReply,
    QueryRequest,
    Reply,
    SubscribeReply,
    SubscribeRequest,
    UnsubscribeReply,
    UnsubscribeRequest,
    Value,
)

PROTOCOL = "http://www.gridforum.org/Performance/Protocol"
EVENTS = "http://www.gridforum.org/Performance/Events"
PARAMETERS = "http://www.gridforum.org/Performance/EventParameters"

UNITS_S = {"sec": 1.0, "min": 60.0}
TIME_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
OWN_NAMESPACES = (PROTOCOL, EVENTS, PARAMETERS)
OWN_WORDS = frozenset({"SubscriptionID", "Return", "ReturnDetail", "Error", "ErrorDetail"})


# Reading


class Parts:
    """The children of one message, taken in the order in which the paper lists them."""

    def __init__(self, element: ElementTree.Element) -> None:
        self.name = split(element.tag)[1]
        self.left = list(element)
        texts = [element.text, *(child.tail for child in element)]
        if any((text or "").strip() for text in texts):
            raise NotInThePaper(f"text between the elements of {self.name}")

    def optional(self, name: str) -> ElementTree.Element | None:
        """The next child, if it is this word of the protocol."""
        if self.left and split(self.left[0].tag) == (PROTOCOL, name):
            return self.left.pop(0)
        return None

    def optional_text(self, name: str) -> str | None:
        element = self.optional(name)
        return None if element is None else text_of(element, attributes=())

    def required_text(self, name: str) -> str:
        text = self.optional_text(name)
        if not text:
            raise NotInThePaper(f"{self.name} without {name} where the paper has it")
        return text

    def optional_content(self) -> Content | None:
        """The next child, if it is an event or its parameters."""
        if not self.left:
            return None
        namespace, name = split(self.left[0].tag)
        if namespace == PROTOCOL and name in OWN_WORDS:
            return None
        return read_content(self.left.pop(0))

    def required_content(self) -> Content:
        content = self.optional_content()
        if content is None:
            raise NotInThePaper(f"{self.name} without the element that names the event")
        return content

    def result(self) -> tuple[bool, str | None]:
        """Return and ReturnDetail, as every reply has them."""
        code = self.required_text("Return")
        if code not in ("Success", "Failure"):
            raise NotInThePaper(f"{self.name} returns {code!r}")
        return code == "Success", self.optional_text("ReturnDetail")

    def end(self, *, passes_foreign: bool) -> None:
        foreign = all(split(child.tag)[0] not in OWN_NAMESPACES for child in self.left)
        if self.left and not (passes_foreign and foreign):
            raise NotInThePaper(f"{self.name} has {self.left[0].tag} where the paper has nothing")


def split(tag: str) -> tuple[str, str]:
    """Namespace and local name of a tag as ElementTree spells it."""
    namespace, _, name = tag.rpartition("}")
    return namespace.removeprefix("{"), name


def check_attributes(element: ElementTree.Element, allowed: tuple[str, ...]) -> None:
    for name in element.attrib:
        if not name.startswith("{") and name not in allowed:
            raise NotInThePaper(f"{split(element.tag)[1]} has an attribute {name!r}")


def text_of(element: ElementTree.Element, *, attributes: tuple[str, ...]) -> str:
    check_attributes(element, attributes)
    if len(element):
        raise NotInThePaper(f"{split(element.tag)[1]} has elements in it, and should be a value")
    return (element.text or "").strip()


def read_content(element: ElementTree.Element) -> Content:
    """An event or its parameters: one level of values, all in one namespace."""
    namespace, name = split(element.tag)
    if not namespace:
        raise NotInThePaper(f"{name} is in no namespace")
    check_attributes(element, ())
    values: dict[str, Value] = {}
    for child in Parts(element).left:
        child_namespace, child_name = split(child.tag)
        if child_namespace != namespace:
            raise NotInThePaper(f"{child_name} of {name} is in another namespace: {child.tag}")
        if child_name in values:
            raise NotInThePaper(f"{name} has {child_name} twice")
        text = text_of(child, attributes=("units", "accuracy"))
        values[child_name] = Value(text, child.get("units"), child.get("accuracy"))
    return Content(name, namespace, values)


def read_event_content(content: Content | None) -> Content | None:
    """The same, held to what an event must have: the time it was generated."""
    if content is not None:
        stamp = content.values.get("TimeStamp")
        if stamp is None or not TIME_STAMP.fullmatch(stamp.text):
            raise NotInThePaper(f"{content.name} has the TimeStamp {stamp}")
    return content


def id_of(element: ElementTree.Element, name: str) -> str:
    """The one attribute of a message."""
    check_attributes(element, (name,))
    value = element.get(name, "").strip()
    if not value:
        raise NotInThePaper(f"{split(element.tag)[1]} without {name}")
    return value


def read_subscribe_request(element: ElementTree.Element, parts: Parts) -> SubscribeRequest:
    subscription_id = parts.required_text("SubscriptionID")
    return SubscribeRequest(id_of(element, "requestID"), subscription_id, parts.required_content())


def read_subscribe_reply(element: ElementTree.Element, parts: Parts) -> SubscribeReply:
    success, detail = parts.result()
    subscription_id = parts.optional_text("SubscriptionID")
    if success != bool(subscription_id):
        raise NotInThePaper("a SubscribeReply has an id if and only if it succeeded")
    return SubscribeReply(id_of(element, "requestID"), success, detail, subscription_id)


def read_unsubscribe_request(element: ElementTree.Element, parts: Parts) -> UnsubscribeRequest:
    return UnsubscribeRequest(id_of(element, "requestID"), parts.required_text("SubscriptionID"))


def read_unsubscribe_reply(element: ElementTree.Element, parts: Parts) -> UnsubscribeReply:
    return UnsubscribeReply(id_of(element, "requestID"), *parts.result())


def read_event(element: ElementTree.Element, parts: Parts) -> Event:
    content = read_event_content(parts.optional_content())
    error, detail = parts.optional_text("Error"), parts.optional_text("ErrorDetail")
    if content is None and error is None:
        raise NotInThePaper("an Event with neither an event nor an Error")
    if detail is not None and error is None:
        raise NotInThePaper("an ErrorDetail without its Error")
    return Event(id_of(element, "subscriptionID"), content, error, detail)


def read_query_request(element: ElementTree.Element, parts: Parts) -> QueryRequest:
    return QueryRequest(id_of(element, "requestID"), parts.required_content())


def read_query_reply(element: ElementTree.Element, parts: Parts) -> QueryReply:
    success, detail = parts.result()
    content = read_event_content(parts.optional_content())
    if success and content is None:
        raise NotInThePaper("a QueryReply that succeeded without the event")
    return QueryReply(id_of(element, "requestID"), success, detail, content)


def read_event_names_request(element: ElementTree.Element, parts: Parts) -> EventNamesRequest:
    return EventNamesRequest(id_of(element, "requestID"))


def read_event_names_reply(element: ElementTree.Element, parts: Parts) -> EventNamesReply:
    success, detail = parts.result()
    names: list[tuple[str, str]] = []
    while (event := parts.optional("Event")) is not None:
        if text_of(event, attributes=("name", "namespace")):
            raise NotInThePaper("an Event of EventNamesReply has no value")
        names.append((event.get("name", ""), event.get("namespace", "")))
    if success and not names:
        raise NotInThePaper("an EventNamesReply that succeeded has one or more Event elements")
    if not all(name and namespace for name, namespace in names):
        raise NotInThePaper(f"an available event without its name or namespace: {names}")
    return EventNamesReply(id_of(element, "requestID"), success, detail, tuple(names))


READERS: Mapping[str, Callable[[ElementTree.Element, Parts], Message]] = {
    "SubscribeRequest": read_subscribe_request,
    "SubscribeReply": read_subscribe_reply,
    "UnsubscribeRequest": read_unsubscribe_request,
    "UnsubscribeReply": read_unsubscribe_reply,
    "Event": read_event,
    "QueryRequest": read_query_request,
    "QueryReply": read_query_reply,
    "EventNamesRequest": read_event_names_request,
    "EventNamesReply": read_event_names_reply,
}


def read(body: bytes, *, passes_foreign: bool = False) -> Message:
    """One message, or NotInThePaper with the whole of what was sent.

    With `passes_foreign`, what follows in namespaces other than the paper's is passed over.
    """
    try:
        element = ElementTree.fromstring(body)
        namespace, name = split(element.tag)
        if namespace != PROTOCOL or name not in READERS:
            raise NotInThePaper(f"no message is called {element.tag}")
        parts = Parts(element)
        message = READERS[name](element, parts)
        parts.end(passes_foreign=passes_foreign)
    except (NotInThePaper, ElementTree.ParseError) as problem:
        raise NotInThePaper(f"{problem}: {body!r}") from None
    return message


def period_s(asked: Content) -> float | None:
    """The Period asked for. Raises ValueError if a person should have written it otherwise."""
    period = asked.values.get("Period")
    if period is None:
        return None
    if period.units is not None and period.units not in UNITS_S:
        raise ValueError(f"Period is in {period.units!r}, and should be in sec or min")
    seconds = float(period.text) * UNITS_S[period.units or "sec"]
    if not 0 < seconds < float("inf"):
        raise ValueError(f"Period is {period.text!r}, and should be more than nothing")
    return seconds


def answers(asked: Content, namespace: str, content: Content) -> bool:
    """Whether this event is the one that was asked for, under either of its names."""
    return content.name in (asked.name, f"{asked.name}Event") and content.namespace in (
        namespace,
        PROTOCOL,
    )


# Writing. An `xmlns` attribute on each element, as the examples of the paper have it.


def add_text(parent: ElementTree.Element, name: str, text: str | None) -> None:
    if text is not None:
        ElementTree.SubElement(parent, name).text = text


def add_content(parent: ElementTree.Element, content: Content | None) -> None:
    if content is None:
        return
    element = ElementTree.SubElement(parent, content.name, {"xmlns": content.namespace})
    for name, value in content.values.items():
        attributes = {"units": value.units, "accuracy": value.accuracy}
        present = {key: text for key, text in attributes.items() if text is not None}
        ElementTree.SubElement(element, name, present).text = value.text


def add_body(element: ElementTree.Element, message: Message) -> None:
    """What is inside the tags of a message, in the order of the paper's lists."""
    match message:
        case SubscribeRequest():
            add_text(element, "SubscriptionID", message.subscription_id)
            add_content(element, message.asked)
        case UnsubscribeRequest():
            add_text(element, "SubscriptionID", message.subscription_id)
        case QueryRequest():
            add_content(element, message.asked)
        case Event():
            add_content(element, message.content)
            add_text(element, "Error", message.error)
            add_text(element, "ErrorDetail", message.error_detail)
        case EventNamesRequest():
            pass
        case _:
            add_reply(element, message)


def add_reply(element: ElementTree.Element, reply: Reply) -> None:
    add_text(element, "Return", "Success" if reply.success else "Failure")
    add_text(element, "ReturnDetail", reply.detail)
    if isinstance(reply, SubscribeReply):
        add_text(element, "SubscriptionID", reply.subscription_id)
    if isinstance(reply, QueryReply):
        add_content(element, reply.content)
    if isinstance(reply, EventNamesReply):
        for name, namespace in reply.names:
            ElementTree.SubElement(element, "Event", {"name": name, "namespace": namespace})


def write(message: Message) -> bytes:
    """The XML of one message."""
    element = ElementTree.Element(type(message).__name__, {"xmlns": PROTOCOL})
    if isinstance(message, Event):
        element.set("subscriptionID", message.subscription_id)
    else:
        element.set("requestID", message.request_id)
    add_body(element, message)
    body: bytes = ElementTree.tostring(element, encoding="utf-8", xml_declaration=False)
    return body
