"""The message type detector: which specification does a message follow, and what does it ask?

The paper looks at wsa:Action. Real clients leave it out, or put another operation's there; none
gets the name of the body's element wrong. So the body decides, then the action, then what HTTP says
of it. A body in no specification's namespace is a notification in the WS-Eventing (or raw
WS-Notification) format: what it says is the publisher's own affair. A body in the namespace of a
specification that we do not speak is a request that we cannot answer, and no notification.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tocsin.wire.soap import names
from tocsin.wire.soap.addressing import Addressing
from tocsin.wire.soap.envelope import Envelope, split
from tocsin.wire.soap.specifications import (
    CONTENT_OF_EVENTS,
    REQUESTS,
    is_specification,
    names_request,
)

_KNOWN: Final = {
    names.WSE04: "WS-Eventing 2004/08",
    names.WSE11: "WS-Eventing 2011/03",
    names.WSEN: "WS-Enumeration 2004/09",
    names.WSMAN: "WS-Management",
    names.WSN13: "WS-Notification 1.3",
    names.BR13: "WS-BrokeredNotification 1.3",
    names.PROPERTIES13: "WS-ResourceProperties 1.2",
    names.RESOURCE13: "WS-Resource 1.2",
    names.WSN12: "WS-Notification 1.2",
    names.BR12: "WS-BrokeredNotification 1.2",
    names.LIFETIME12: "WS-ResourceLifetime 1.2 draft",
    names.PROPERTIES12: "WS-ResourceProperties 1.2 draft",
    names.WSN10: "WS-Notification 1.0",
    names.BR10: "WS-BrokeredNotification 1.0",
    names.MSGBOX: "WS-Messenger message box",
    names.MSGBOX.rstrip("/"): "WS-Messenger message box",
    names.ONVIF_EVENTS: "ONVIF events",
    names.ONVIF_DEVICE: "ONVIF device",
    names.WSRM10: "WS-ReliableMessaging 1.0",
    names.WSRM11: "WS-ReliableMessaging 1.1",
    names.WSMID: "WS-Management",
    names.MEX04: "WS-MetadataExchange 2004/09",
    names.MEX11: "WS-MetadataExchange 2011/03",
}
_UNKNOWN: Final = "a specification that is not supported"
PUBLISH: Final = "publish"

# Where an action names an operation, its last word is the element's name, give or take a suffix.
_ACTION_OF: Final = {
    f"{names.WSE04}/": names.WSE04,
    f"{names.WSE11}/": names.WSE11,
    f"{names.WSN13_ACTIONS}/": names.WSN13,
    f"{names.BR13_ACTIONS}/": names.BR13,
    f"{names.WSN12_ACTIONS}/": names.WSN12,
    f"{names.LIFETIME12_ACTIONS}/": names.LIFETIME12,
    f"{names.WSN10}/": names.WSN10,
    f"{names.WSRM10}/": names.WSRM10,
    f"{names.WSRM11}/": names.WSRM11,
    f"{names.WSMAN_URI}/": names.WSMAN,
}
_ACTION_IN_TYPE = re.compile(r"""action\s*=\s*"?([^";]+)""", re.I)


@dataclass(frozen=True, slots=True)
class MessageType:
    """What a message is."""

    specification: str  # for a person
    namespace: str  # of the operation; empty if it has none, as for a notification
    operation: str  # the element's local name, or `publish`


def detect(envelope: Envelope, addressing: Addressing, http_action: str = "") -> MessageType:
    """Body first, action second, HTTP last."""
    if envelope.content is not None:
        return _by_body(*split(envelope.content.tag), addressing)
    for action in (addressing.action, http_action):
        if not action:
            continue
        space, _, name = action.rpartition("/")
        for start, namespace in _ACTION_OF.items():
            if action.startswith(start):
                return MessageType(_KNOWN[namespace], namespace, name.removesuffix("Request"))
        if is_specification(action):
            return MessageType(_UNKNOWN, space, name)
    return MessageType(_unwrapped(addressing), "", PUBLISH)


def _by_body(namespace: str, name: str, addressing: Addressing) -> MessageType:
    known = _KNOWN.get(namespace)
    if known is None and (name in REQUESTS or is_specification(namespace)):
        known = _UNKNOWN
    if known is not None and (namespace, name) not in CONTENT_OF_EVENTS:
        return MessageType(known, namespace, name)
    if addressing.action and names_request(addressing.action):
        return MessageType(_UNKNOWN, namespace, name)
    return MessageType(_unwrapped(addressing), "", PUBLISH)


def _unwrapped(addressing: Addressing) -> str:
    year = addressing.wsa.removesuffix("/addressing")[-7:] if addressing.wsa else ""
    return f"notification, WS-Addressing {year}" if year else "notification"


def http_action(soap_action: str, content_type: str) -> str:
    """The action in HTTP: SOAPAction, or the parameter of the content type."""
    written = soap_action.strip().strip('"')
    if written:
        return written
    found = _ACTION_IN_TYPE.search(content_type)
    return found[1].strip() if found else ""
