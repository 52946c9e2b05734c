"""Namespaces that belong to a Web-services specification: what is written in them is a request or
an answer of that specification, known here or not, and never the content of an event.

Some of these bodies name namespaces for content too (CIM classes, ONVIF's schema, WSDM's events):
those are not in the table.
"""

from __future__ import annotations

from typing import Final

from tocsin.wire.soap import names

_STARTS: Final = (
    "http://schemas.xmlsoap.org/soap/",
    names.SOAP12,
    "http://schemas.xmlsoap.org/ws/",  # addressing, eventing, transfer, mex, policy, rm, trust, ...
    "http://schemas.xmlsoap.org/wsdl/",
    "http://www.w3.org/2005/08/addressing",
    "http://www.w3.org/2011/03/ws-",  # evt, mex, tra, enu, frag
    "http://www.w3.org/ns/ws-policy",
    "http://www.w3.org/2001/04/xmlenc#",  # a body that is encrypted, with a key that we have not
    "http://www.w3.org/ns/wsdl",
    "http://docs.oasis-open.org/wsn/",
    "http://docs.oasis-open.org/wsrf/",
    "http://docs.oasis-open.org/wss/",
    "http://docs.oasis-open.org/ws-",  # rx, sx, tx, dd (discovery, DPWS), ...
    "http://www.ibm.com/xmlns/stdwip/web-services/",
    "http://schemas.dmtf.org/wbem/wsman/",
    "http://schemas.microsoft.com/wbem/wsman/",
)
_ONVIF: Final = "http://www.onvif.org/ver"

# The specifications' own events: what a raw notification of WSRF has for a body.
CONTENT_OF_EVENTS: Final = frozenset(
    {
        (names.PROPERTIES12, "ResourcePropertyValueChangeNotification"),
        (names.PROPERTIES13, "ResourcePropertyValueChangeNotification"),
        (names.LIFETIME12, "TerminationNotification"),
        ("http://docs.oasis-open.org/wsrf/rl-2", "TerminationNotification"),
    }
)

# Whoever sends one of these in a namespace that nobody knows expects an answer, not a publisher's
# receipt. Other operations have names that an event may well have, too.
REQUESTS: Final = frozenset(
    {
        "Subscribe",
        "SubscribeRequest",
        "Unsubscribe",
        "UnsubscribeRequest",
        "PauseSubscription",
        "ResumeSubscription",
        "GetCurrentMessage",
        "CreatePullPoint",
        "CreatePullPointSubscription",
        "PullMessages",
        "RegisterPublisher",
    }
)


def is_onvif_service(namespace: str) -> bool:
    """True for the operations of an ONVIF service; its data types have another namespace."""
    return namespace.startswith(_ONVIF) and namespace.endswith("/wsdl")


def is_specification(namespace: str) -> bool:
    """True if the namespace, or the action in it, is one of the specifications'."""
    return namespace.startswith(_STARTS) or is_onvif_service(namespace)


def names_request(action: str) -> bool:
    """True if the action is that of a request of some specification."""
    last = action.rpartition("/")[2].removesuffix("Request")
    return last in REQUESTS and is_specification(action)
