"""For each operation of our WSDL, arguments with which zeep can call it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lxml import etree
from zeep import Client
from zeep.transports import Transport

from tocsin.wire import wsdl

BASE = "http://broker.example:8400"
XPATH = "http://www.w3.org/TR/1999/REC-xpath-19991116"
CONCRETE = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete"
SIMPLE_12 = "http://docs.oasis-open.org/wsn/2004/06/TopicExpression/Simple"
SIMPLE_10 = "http://www.ibm.com/xmlns/stdwip/web-services/WS-Topics/TopicExpression/simple"
BASE_12 = "http://docs.oasis-open.org/wsn/2004/06/wsn-WS-BaseNotification-1.2-draft-01.xsd"
B2 = "http://docs.oasis-open.org/wsn/b-2"
WSE04 = "http://schemas.xmlsoap.org/ws/2004/08/eventing"
WSE11 = "http://www.w3.org/2011/03/ws-evt"
WSA = {
    "wse04": "http://schemas.xmlsoap.org/ws/2004/08/addressing",
    "wse11": "http://www.w3.org/2005/08/addressing",
}


WSDL = "{http://schemas.xmlsoap.org/wsdl/}"


@dataclass(frozen=True)
class Operation:
    """An operation of a port type: its name, the message it takes, the faults it may answer."""

    name: str
    request: etree.QName
    faults: tuple[str, ...]


def operations(service: str) -> Iterator[tuple[str, Operation]]:
    """Each port type's name with each of its operations, as the service's document has them."""
    document = wsdl.wsdl(BASE, service)
    assert document is not None
    root = etree.fromstring(document)
    parts = {
        f"tns:{message.get('name')}": part.get("element", "")
        for message in root.iterfind(f"{WSDL}message")
        for part in message
    }
    for port in root.iterfind(f"{WSDL}portType"):
        for operation in port.iterfind(f"{WSDL}operation"):
            [taken] = operation.iterfind(f"{WSDL}input")
            prefix, _, local = parts[taken.get("message", "")].partition(":")
            yield (
                port.get("name", ""),
                Operation(
                    operation.get("name", ""),
                    etree.QName(root.nsmap[prefix], local),
                    tuple(
                        parts[fault.get("message", "")]
                        for fault in operation.iterfind(f"{WSDL}fault")
                    ),
                ),
            )


class FromMemory(Transport):
    """What the broker would answer to GET /soap?wsdl and /soap?xsd, without a broker."""

    def load(self, url: str) -> bytes:
        asked = parse_qs(urlsplit(url).query, keep_blank_values=True)
        if "wsdl" in asked:
            document = wsdl.wsdl(BASE, asked["wsdl"][0] or None)
        else:
            document = wsdl.schema(asked["xsd"][0])
        assert document is not None, f"there is nothing at {url}"
        return document


def client_from_memory(service: str = "") -> Client:
    return Client(f"{BASE}/soap?wsdl={service}", transport=FromMemory())


def an_event(value: str = "1") -> etree._Element:
    return etree.fromstring(f'<e:reading xmlns:e="urn:example">{value}</e:reading>')


def _notify_to(spec: str, sink: str) -> etree._Element:
    namespace = WSE04 if spec == "wse04" else WSE11
    return etree.fromstring(
        f'<e:NotifyTo xmlns:e="{namespace}" xmlns:a="{WSA[spec]}">'
        f"<a:Address>{sink}</a:Address></e:NotifyTo>"
    )


def _eventing(spec: str, sink: str) -> dict[str, dict[str, Any]]:
    # zeep writes no text into mixed content, so what is mixed is given to it as an element.
    namespace = WSE04 if spec == "wse04" else WSE11
    dialect = XPATH if spec == "wse04" else f"{WSE11}/Dialects/XPath10"
    condition = etree.fromstring(
        f'<e:Filter xmlns:e="{namespace}" xmlns:x="urn:example" Dialect="{dialect}">//x:reading'
        "</e:Filter>"
    )
    to = _notify_to(spec, sink)
    delivery = {"_value_1": [to]} if spec == "wse04" else {"NotifyTo": {"Address": sink}}
    return {
        "Subscribe": {"Delivery": delivery, "Expires": "PT10M", "_value_1": [condition]},
        "Renew": {"Expires": "PT20M"},
    }


def _notification(sink: str) -> dict[str, dict[str, Any]]:
    topic = {"_value_1": "weather/ohio", "Dialect": CONCRETE}
    expression = etree.fromstring(
        f'<b:TopicExpression xmlns:b="{B2}" Dialect="{CONCRETE}">weather/ohio</b:TopicExpression>'
    )
    message = {"Topic": topic, "Message": {"_value_1": an_event()}}
    return {
        "Subscribe": {
            "ConsumerReference": {"Address": sink},
            "Filter": {"_value_1": [expression]},
            "InitialTerminationTime": "PT10M",
        },
        "GetCurrentMessage": {"Topic": topic},
        "Notify": {"NotificationMessage": [message]},
        "Renew": {"TerminationTime": "PT20M"},
        "GetMessages": {"MaximumNumber": 10},
        "RegisterPublisher": {"Topic": [topic], "Demand": False},
        "GetMultipleResourceProperties": {"ResourceProperty": [etree.QName(B2, "FixedTopicSet")]},
        "QueryResourceProperties": {"QueryExpression": {"_value_1": "//*", "Dialect": XPATH}},
    }


def _notification_12(sink: str) -> dict[str, dict[str, Any]]:
    topic = {"_value_1": "weather", "Dialect": SIMPLE_12}
    message = {"Topic": topic, "Message": {"_value_1": [an_event()]}}
    return {
        "Subscribe": {"ConsumerReference": {"Address": sink}, "TopicExpression": topic},
        "GetCurrentMessage": {"Topic": topic},
        "Notify": {"NotificationMessage": [message]},
        "SetTerminationTime": {"RequestedTerminationTime": "2099-01-01T00:00:00Z"},
    }


def _notification_10(sink: str) -> dict[str, dict[str, Any]]:
    topic = {"_value_1": "weather", "Dialect": SIMPLE_10}
    message = {"Topic": topic, "Message": {"_value_1": [an_event()]}}
    return {
        "Subscribe": {"ConsumerReference": {"Address": sink}, "TopicExpression": topic},
        "GetCurrentMessage": {"Topic": topic},
        "Notify": {"NotificationMessage": [message]},
    }


def _onvif(sink: str) -> dict[str, dict[str, Any]]:
    shared = _notification(sink)
    return {
        "GetServices": {"IncludeCapability": False},
        "GetCapabilities": {"Category": ["All"]},
        "CreatePullPointSubscription": {"InitialTerminationTime": "PT10M"},
        "PullMessages": {"Timeout": "PT1S", "MessageLimit": 10},
        **{name: shared[name] for name in ("Subscribe", "GetCurrentMessage", "Renew")},
    }


_BOX = {"MsgBoxId": "f936e25b-9395-4d1d-b8d0-a9e2117eea60"}
_BOXES = {
    "createMsgBox": {"MsgBoxId": "a box"},
    "storeMessages": {"_value_1": [an_event()]},
    "takeMessages": _BOX,
    "destroyMsgBox": _BOX,
}


def arguments(service: str, operation: str, sink: str = "http://127.0.0.1:9/sink") -> Any:
    """Keyword arguments of an operation, or, for a message that is mere text, that text."""
    if operation == "GetResourceProperty":
        return etree.QName(BASE_12 if service == "wsn12" else B2, "FixedTopicSet")
    tables: Mapping[str, Mapping[str, dict[str, Any]]] = {
        "wse04": _eventing("wse04", sink),
        "wse11": _eventing("wse11", sink),
        "wsman": {
            "Pull": {"EnumerationContext": "uuid:1", "MaxTime": "PT1S", "MaxElements": 10},
            "Release": {"EnumerationContext": "uuid:1"},
        },
        "wsn13": _notification(sink),
        "wsn12": _notification_12(sink),
        "wsn10": _notification_10(sink),
        "msgbox": _BOXES,
        "onvif": _onvif(sink),
    }
    return tables[service].get(operation.removesuffix("Op"), {})
