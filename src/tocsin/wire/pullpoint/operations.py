"""The operations of pull points, both sides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from lxml import etree

from tocsin.errors import BadRequest, NoSuchBox, NoSuchSubscription, TocsinError
from tocsin.wire.soap.addressing import EndpointReference, epr_content, read_epr
from tocsin.wire.soap.element import element
from tocsin.wire.soap.envelope import Envelope, elements, text_of
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import TOCSIN, WSA2005, WSN13, WSN13_ACTIONS
from tocsin.wire.soap.slices import cut_out
from tocsin.wire.wsn.faults import Faults

Element = etree._Element

CREATE: Final = "CreatePullPoint"
GET: Final = "GetMessages"
DESTROY: Final = "DestroyPullPoint"

_PORTS: Final = {CREATE: "CreatePullPoint", GET: "PullPoint", DESTROY: "PullPoint"}


def request_action(operation: str) -> str:
    return f"{WSN13_ACTIONS}/{_PORTS[operation]}/{operation}Request"


def response_action(operation: str) -> str:
    return f"{WSN13_ACTIONS}/{_PORTS[operation]}/{operation}Response"


def box_reference(address: str, token: str) -> EndpointReference:
    """The reference of a pull point. Its address says all; who keeps to the header may."""
    name = b'<t:BoxId xmlns:t="%b">%b</t:BoxId>' % (TOCSIN.encode(), token.encode())
    return EndpointReference(address, parameters=(name,))


# What a client asks


def create_request() -> bytes:
    return element("wsnt", WSN13, CREATE)


def get_request(maximum: int | None) -> bytes:
    number = b"" if maximum is None else b"<wsnt:MaximumNumber>%d</wsnt:MaximumNumber>" % maximum
    return element("wsnt", WSN13, GET, number)


def destroy_request() -> bytes:
    return element("wsnt", WSN13, DESTROY)


def read_maximum(envelope: Envelope) -> int | None:
    """How many messages GetMessages asks for; None if it does not say."""
    number = envelope.message.find(f"{{{WSN13}}}MaximumNumber")
    if number is None:
        return None
    text = text_of(number).removeprefix("+")
    if not text.isascii() or not text.isdigit() or len(text) > NUMBER_DIGITS_MAX or not int(text):
        raise BadRequest(
            f"MaximumNumber is {text[:40]!r}",
            remedy="Ask for a whole number of messages, 1 or more.",
        )
    return int(text)


NUMBER_DIGITS_MAX: Final = 20


# What a pull point answers


def created(pull_point: EndpointReference, wsa: str) -> bytes:
    content = epr_content(pull_point, wsa or WSA2005)
    return element(
        "wsnt", WSN13, f"{CREATE}Response", b"<wsnt:PullPoint>%b</wsnt:PullPoint>" % content
    )


def messages(found: Iterable[bytes]) -> bytes:
    """`found` are NotificationMessage elements that stand alone."""
    return element("wsnt", WSN13, f"{GET}Response", b"".join(found))


def destroyed() -> bytes:
    return element("wsnt", WSN13, f"{DESTROY}Response")


def read_pull_point(envelope: Envelope) -> EndpointReference:
    """The pull point that was made."""
    found = _answer(envelope).find(f"{{{WSN13}}}PullPoint")
    if found is None:
        raise SoapFault("Receiver", "the answer to CreatePullPoint has no PullPoint")
    return read_epr(envelope, found)


def read_messages(envelope: Envelope) -> list[bytes]:
    """The NotificationMessage elements of an answer, each as it was sent."""
    return cut_out(envelope, elements(_answer(envelope)))


def _answer(envelope: Envelope) -> Element:
    if envelope.content is None:
        raise SoapFault("Receiver", "the answer is empty")
    return envelope.content


_FAULTS: Final = {
    CREATE: "UnableToCreatePullPointFault",
    GET: "UnableToGetMessagesFault",
    DESTROY: "UnableToDestroyPullPointFault",
}


def pull_point_fault(error: TocsinError, operation: str, now_ns: int) -> SoapFault:
    """The error, met while a pull point was asked for the operation."""
    is_unknown = isinstance(error, NoSuchBox | NoSuchSubscription)
    name = "ResourceUnknownFault" if is_unknown else _FAULTS[operation]
    return Faults("wsn13", now_ns).fault(name, f"{error.problem}. {error.remedy}", error=error)
