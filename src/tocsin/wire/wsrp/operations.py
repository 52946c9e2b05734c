"""The questions of WS-ResourceProperties, in both versions, read and answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lxml import etree

from tocsin.wire.soap.element import element
from tocsin.wire.soap.envelope import Envelope, elements, split, text_of
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import (
    PROPERTIES12,
    PROPERTIES12_ACTIONS,
    PROPERTIES13,
    PROPERTIES13_ACTIONS,
)
from tocsin.wire.wsn.messages import Expression, Name
from tocsin.wire.wsn.read_subscribe import read_expression

Element = etree._Element

ONE: Final = "GetResourceProperty"
SEVERAL: Final = "GetMultipleResourceProperties"
QUERY: Final = "QueryResourceProperties"
WHOLE: Final = "GetResourcePropertyDocument"

NAMESPACES: Final = {"wsn13": PROPERTIES13, "wsn12": PROPERTIES12}
OPERATIONS: Final = {"wsn13": (ONE, SEVERAL, QUERY, WHOLE), "wsn12": (ONE, SEVERAL, QUERY)}
NAMES_MAX: Final = 100  # asked for in one message


@dataclass(frozen=True, slots=True)
class RequestedProperty:
    """A property's name as it was written; `name` is None if its prefix stands for nothing."""

    text: str
    name: Name | None


def read_names(envelope: Envelope) -> list[RequestedProperty]:
    """The properties that GetResourceProperty or GetMultipleResourceProperties asks for."""
    asked = envelope.message
    namespace, operation = split(asked.tag)
    if operation == ONE:
        return [_name(asked)]
    found = asked.findall(f"{{{namespace}}}ResourceProperty")
    if not 0 < len(found) <= NAMES_MAX:
        raise SoapFault("Sender", f"{operation} names 1 to {NAMES_MAX} properties")
    return [_name(each) for each in found]


def _name(element: Element) -> RequestedProperty:
    text = text_of(element)
    prefix, _, local = text.rpartition(":")
    if prefix and prefix not in element.nsmap:
        return RequestedProperty(text, None)
    return RequestedProperty(text, (element.nsmap.get(prefix or None, ""), local))


def read_query(envelope: Envelope) -> Expression:
    """The expression that QueryResourceProperties asks."""
    asked = envelope.message
    namespace, _ = split(asked.tag)
    for child in elements(asked):
        if split(child.tag) == (namespace, "QueryExpression"):
            return read_expression(child)
    raise SoapFault("Sender", "QueryResourceProperties has no QueryExpression")


def response(spec: str, operation: str, inside: bytes) -> bytes:
    """The body of an answer."""
    return element("n", NAMESPACES[spec], f"{operation}Response", inside)


def response_action(spec: str, operation: str) -> str:
    if spec == "wsn13":
        return f"{PROPERTIES13_ACTIONS}/{operation}/{operation}Response"
    return f"{PROPERTIES12_ACTIONS}/{operation}Response"
