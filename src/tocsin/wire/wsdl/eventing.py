"""WS-Eventing 2004/08 and W3C 2011/03, and the Pull of WS-Management."""

from __future__ import annotations

from typing import Final

from tocsin.wire.soap.names import WSA200408, WSE04, WSE11, WSEN, WSMAN
from tocsin.wire.wsdl.addressing import WS_ADDR, WSA_2004_08, XML_ATTRIBUTES
from tocsin.wire.wsdl.notation import Schema, element, message, record, restriction, text, union
from tocsin.wire.wsdl.ports import Operation, Port, Service, asked_and_answered

_OPEN = "other*\n@*"
_ZERO = "PT0S"
_REASON = text("ReasonType", "xs:string", "@=xml:lang\n@*")
_DURATION = restriction("NonNegativeDurationType", "xs:duration", [("minInclusive", _ZERO)])

WSE_2004: Final = Schema(
    "wse-2004-08",
    "wse",
    WSE04,
    (
        _DURATION,
        union("ExpirationType", "xs:dateTime", "wse:NonNegativeDurationType"),
        record("DeliveryType", "any*\n@Mode xs:anyURI\n@*", mixed=True),
        record("FilterType", "other*\n@Dialect xs:anyURI\n@*", mixed=True),
        _REASON,
        element("NotifyTo", "wsa:EndpointReferenceType"),
        element("Identifier", "xs:anyURI"),
        element("SupportedDialect", "xs:anyURI"),
        element("SupportedDeliveryMode", "xs:anyURI"),
        message(
            "Subscribe",
            f"""EndTo? wsa:EndpointReferenceType
                Delivery wse:DeliveryType
                Expires? wse:ExpirationType
                Filter? wse:FilterType
                {_OPEN}""",
        ),
        message(
            "SubscribeResponse",
            f"""SubscriptionManager wsa:EndpointReferenceType
                Expires wse:ExpirationType
                {_OPEN}""",
        ),
        message("Renew", f"Expires? wse:ExpirationType\n{_OPEN}"),
        message("RenewResponse", f"Expires? wse:ExpirationType\n{_OPEN}"),
        message("GetStatus", _OPEN),
        message("GetStatusResponse", f"Expires? wse:ExpirationType\n{_OPEN}"),
        message("Unsubscribe", _OPEN),
        message(
            "SubscriptionEnd",
            f"""SubscriptionManager wsa:EndpointReferenceType
                Status xs:anyURI
                Reason* wse:ReasonType
                {_OPEN}""",
        ),
    ),
    (WSA_2004_08, XML_ATTRIBUTES),
)

WSE_2011: Final = Schema(
    "wse-2011-03",
    "wse",
    WSE11,
    (
        _DURATION,
        union("DurationDateTime", "xs:dateTime", "wse:NonNegativeDurationType"),
        text("GrantedType", "wse:DurationDateTime"),
        text("ExpirationType", "wse:DurationDateTime", "@BestEffort xs:boolean\n@*"),
        record("DeliveryType", f"=wse:NotifyTo?\n{_OPEN}", mixed=True),
        record("FormatType", "any*\n@Name xs:anyURI\n@*", mixed=True),
        record("FilterType", "other*\n@Dialect xs:anyURI\n@*", mixed=True),
        record("EventType", "any*\n@actionURI xs:anyURI\n@*", mixed=True),
        text("RetryAfterType", "xs:nonNegativeInteger"),
        _REASON,
        element("NotifyTo", "wsa:EndpointReferenceType"),
        element("SupportedDialect", "xs:anyURI"),
        element("SupportedDeliveryFormat", "xs:anyURI"),
        element("RetryAfter", "wse:RetryAfterType"),
        element("Notify", "wse:EventType"),
        message(
            "Subscribe",
            f"""EndTo? wsa:EndpointReferenceType
                Delivery wse:DeliveryType
                Format? wse:FormatType
                Expires? wse:ExpirationType
                Filter? wse:FilterType
                {_OPEN}""",
        ),
        message(
            "SubscribeResponse",
            f"""SubscriptionManager wsa:EndpointReferenceType
                GrantedExpires wse:GrantedType
                {_OPEN}""",
        ),
        message("Renew", f"Expires? wse:ExpirationType\n{_OPEN}"),
        message("RenewResponse", f"GrantedExpires wse:GrantedType\n{_OPEN}"),
        message("GetStatus", _OPEN),
        message("GetStatusResponse", f"GrantedExpires wse:GrantedType\n{_OPEN}"),
        message("Unsubscribe", _OPEN),
        message("UnsubscribeResponse", _OPEN),
        message("SubscriptionEnd", f"Status xs:anyURI\nReason* wse:ReasonType\n{_OPEN}"),
    ),
    (WS_ADDR, XML_ATTRIBUTES),
)

ENUMERATION: Final = Schema(
    "wsen-2004-09",
    "wsen",
    WSEN,
    (
        restriction("PositiveDurationType", "xs:duration", [("minExclusive", _ZERO)]),
        text("EnumerationContextType", "xs:string"),
        record("ItemListType", "other*"),
        record("EndType", ""),
        element("EnumerationContext", "wsen:EnumerationContextType"),
        message(
            "Pull",
            f"""EnumerationContext wsen:EnumerationContextType
                MaxTime? wsen:PositiveDurationType
                MaxElements? xs:positiveInteger
                MaxCharacters? xs:positiveInteger
                {_OPEN}""",
        ),
        message(
            "PullResponse",
            """EnumerationContext? wsen:EnumerationContextType
               Items? wsen:ItemListType
               EndOfSequence? wsen:EndType
               @*""",
        ),
        message("Release", "EnumerationContext wsen:EnumerationContextType\n@*"),
    ),
)

# What WS-Management puts into the messages of WS-Eventing, and its batches.
MANAGEMENT: Final = Schema(
    "wsman",
    "wsman",
    WSMAN,
    (
        record("FilterType", "other*\n@Dialect xs:anyURI\n@*", mixed=True),
        record("EventType", "any*\n@Action! xs:anyURI\n@*", mixed=True),
        record("HeartbeatType", "any*\n@*"),
        text("LimitType", "xs:positiveInteger"),
        element("Filter", "wsman:FilterType"),
        element("MaxElements", "wsman:LimitType"),
        element("MaxEnvelopeSize", "wsman:LimitType"),
        element("MaxTime", "xs:duration"),
        element("Heartbeats", "xs:duration"),
        message("SendBookmarks"),
        message("AckRequested", "any*\n@*"),
        message("Bookmark", "any*\n@*", mixed=True),
        message("Events", "Event+ wsman:EventType\n@*"),
    ),
)


def _operation(prefix: str, uri: str, element: str, *, reply: str | None = None) -> Operation:
    return asked_and_answered(prefix, uri, element, reply=reply, suffix="Op")


def _ports(uri: str, *, unsubscribed: str | None) -> tuple[Port, ...]:
    return (
        Port("EventSource", (_operation("wse", uri, "Subscribe"),)),
        Port(
            "SubscriptionManager",
            (
                _operation("wse", uri, "Renew"),
                _operation("wse", uri, "GetStatus"),
                _operation("wse", uri, "Unsubscribe", reply=unsubscribed),
            ),
        ),
    )


_DATA_SOURCE = (
    _operation("wsen", WSEN, "Pull"),
    _operation("wsen", WSEN, "Release", reply=""),
)

SERVICES: Final = (
    # The answer to Unsubscribe has an empty body in 2004, an element in 2011.
    Service("wse04", (WSE_2004,), _ports(WSE04, unsubscribed=""), actions=WSA200408),
    Service("wse11", (WSE_2011,), _ports(WSE11, unsubscribed=None)),
    Service(
        "wsman",
        (ENUMERATION, MANAGEMENT),
        (Port("DataSource", _DATA_SOURCE),),
        actions=WSA200408,
    ),
)
