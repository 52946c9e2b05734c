"""The namespaces, actions and reserved words of every Web-services specification we speak."""

from __future__ import annotations

from typing import Final

SOAP11: Final = "http://schemas.xmlsoap.org/soap/envelope/"
SOAP12: Final = "http://www.w3.org/2003/05/soap-envelope"
SOAP_NAMESPACES: Final = {"1.1": SOAP11, "1.2": SOAP12}
SOAP_VERSIONS: Final = {SOAP11: "1.1", SOAP12: "1.2"}
ROLE_NEXT: Final = frozenset({"http://schemas.xmlsoap.org/soap/actor/next", f"{SOAP12}/role/next"})
ROLE_ULTIMATE: Final = frozenset({"", f"{SOAP12}/role/ultimateReceiver"})

WSA2003: Final = "http://schemas.xmlsoap.org/ws/2003/03/addressing"
WSA200403: Final = "http://schemas.xmlsoap.org/ws/2004/03/addressing"
WSA200408: Final = "http://schemas.xmlsoap.org/ws/2004/08/addressing"
WSA2005: Final = "http://www.w3.org/2005/08/addressing"
WSA_NAMESPACES: Final = (WSA2003, WSA200403, WSA200408, WSA2005)

WSE04: Final = "http://schemas.xmlsoap.org/ws/2004/08/eventing"
WSE11: Final = "http://www.w3.org/2011/03/ws-evt"
WSEN: Final = "http://schemas.xmlsoap.org/ws/2004/09/enumeration"
WSMAN: Final = "http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd"
WSMAN_URI: Final = "http://schemas.dmtf.org/wbem/wsman/1/wsman"
WSMID: Final = "http://schemas.dmtf.org/wbem/wsman/identity/1/wsmanidentity.xsd"
MEX04: Final = "http://schemas.xmlsoap.org/ws/2004/09/mex"
MEX11: Final = "http://www.w3.org/2011/03/ws-mex"

WSN13: Final = "http://docs.oasis-open.org/wsn/b-2"
WSN13_ACTIONS: Final = "http://docs.oasis-open.org/wsn/bw-2"
BR13: Final = "http://docs.oasis-open.org/wsn/br-2"
BR13_ACTIONS: Final = "http://docs.oasis-open.org/wsn/brw-2"
TOPICS13: Final = "http://docs.oasis-open.org/wsn/t-1"
BASE_FAULTS13: Final = "http://docs.oasis-open.org/wsrf/bf-2"
RESOURCE13: Final = "http://docs.oasis-open.org/wsrf/r-2"
PROPERTIES13: Final = "http://docs.oasis-open.org/wsrf/rp-2"
PROPERTIES13_ACTIONS: Final = "http://docs.oasis-open.org/wsrf/rpw-2"

_OASIS04: Final = "http://docs.oasis-open.org/wsn/2004/06/"
_WSRF04: Final = "http://docs.oasis-open.org/wsrf/2004/06/"
WSN12: Final = f"{_OASIS04}wsn-WS-BaseNotification-1.2-draft-01.xsd"
WSN12_ACTIONS: Final = f"{_OASIS04}wsn-WS-BaseNotification"
BR12: Final = f"{_OASIS04}wsn-WS-BrokeredNotification-1.2-draft-01.xsd"
BR12_ACTIONS: Final = f"{_OASIS04}wsn-WS-BrokeredNotification"
LIFETIME12: Final = f"{_WSRF04}wsrf-WS-ResourceLifetime-1.2-draft-01.xsd"
LIFETIME12_ACTIONS: Final = f"{_WSRF04}wsrf-WS-ResourceLifetime"
PROPERTIES12: Final = f"{_WSRF04}wsrf-WS-ResourceProperties-1.2-draft-01.xsd"
PROPERTIES12_ACTIONS: Final = f"{_WSRF04}wsrf-WS-ResourceProperties"
BASE_FAULTS12: Final = f"{_WSRF04}wsrf-WS-BaseFaults-1.2-draft-01.xsd"

WSN10: Final = "http://www.ibm.com/xmlns/stdwip/web-services/WS-BaseNotification"
BR10: Final = "http://www.ibm.com/xmlns/stdwip/web-services/WS-BrokeredNotification"
TOPICS10_SIMPLE: Final = (
    "http://www.ibm.com/xmlns/stdwip/web-services/WS-Topics/TopicExpression/simple"
)
ORIGINAL_PUBLISH_ACTION: Final = "http://org.apache.airavata/WseNotification"
MSGBOX: Final = "http://org.apache.airavata/ws-messenger/msgbox/2011/"

ONVIF_EVENTS: Final = "http://www.onvif.org/ver10/events/wsdl"
ONVIF_DEVICE: Final = "http://www.onvif.org/ver10/device/wsdl"
ONVIF_SCHEMA: Final = "http://www.onvif.org/ver10/schema"
ONVIF_TOPICS: Final = "http://www.onvif.org/ver10/topics"
ONVIF_CONCRETE_SET: Final = "http://www.onvif.org/ver10/tev/topicExpression/ConcreteSet"
ONVIF_ITEM_FILTER: Final = "http://www.onvif.org/ver10/tev/messageContentFilter/ItemFilter"

WSRM10: Final = "http://schemas.xmlsoap.org/ws/2005/02/rm"
WSRM11: Final = "http://docs.oasis-open.org/ws-rx/wsrm/200702"
WSRMP10: Final = "http://schemas.xmlsoap.org/ws/2005/02/rm/policy"
WSRMP11: Final = "http://docs.oasis-open.org/ws-rx/wsrmp/200702"

WSSE: Final = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"
XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"

XPATH10: Final = "http://www.w3.org/TR/1999/REC-xpath-19991116"
XPATH10_WSE11: Final = f"{WSE11}/Dialects/XPath10"
TOPIC_AND_XPATH: Final = "http://docs.oasis-open.org/wsn"  # the original's: both in one Filter
DPWS_ACTIONS: Final = frozenset(
    {
        "http://docs.oasis-open.org/ws-dd/ns/dpws/2009/01/Action",
        "http://schemas.xmlsoap.org/ws/2006/02/devprof/Action",
    }
)

TOCSIN: Final = "urn:tocsin:2026"  # our own detail elements and header blocks

WSE_TOPIC: Final = "wseTopic"
"""What a WS-Eventing message without a topic is filed under (paper 000, section IV.B.4)."""

NAMESPACE_OF: Final = {
    "wse04": WSE04,
    "wse11": WSE11,
    "wsn13": WSN13,
    "wsn12": WSN12,
    "wsn10": WSN10,
}
SPEC_OF: Final = {namespace: spec for spec, namespace in NAMESPACE_OF.items()}

# The addressing version a specification was written for: used where a message shows none.
USUAL_WSA: Final = {
    "wse04": WSA200408,
    "wse11": WSA2005,
    "wsn13": WSA2005,
    "wsn12": WSA200403,
    "wsn10": WSA2005,
}
