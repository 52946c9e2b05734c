"""The faults of both WS-Eventings, of WS-Enumeration and of WS-Management."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from tocsin.errors import (
    BadFilter,
    BadSubscription,
    BadToken,
    BadTopic,
    BadTopicPattern,
    NoSuchBox,
    NoSuchSubscription,
    SinkRefused,
    TocsinError,
)
from tocsin.wire.soap.element import element
from tocsin.wire.soap.fault import Code, SoapFault, detail_of, escaped, fault_of
from tocsin.wire.soap.names import NAMESPACE_OF, WSE11, WSEN, WSMAN, WSMAN_URI
from tocsin.wire.wse.messages import FORMATS, MODES

RETRY_AFTER_S: Final = 5
_WSMAN_FAULT: Final = f"{WSMAN_URI}/fault"
_BUSY_STATUSES: Final = frozenset({429, 503, 507})


def eventing_fault(
    spec: str, name: str, reason: str, *, code: Code = "Sender", detail: bytes = b""
) -> SoapFault:
    """A fault that the specification has a name for."""
    namespace = NAMESPACE_OF[spec]
    return SoapFault(
        code, reason, subcode=(namespace, name), detail=detail, action=f"{namespace}/fault"
    )


def invalid_message(spec: str, reason: str, detail: bytes = b"") -> SoapFault:
    """The message is not what it must be. 2011/03 has no name for that."""
    if spec == "wse11":
        return SoapFault("Sender", reason, detail=detail, action=f"{WSE11}/fault")
    return eventing_fault(spec, "InvalidMessage", reason, detail=detail)


def mode_unavailable(mode: str) -> SoapFault:
    return eventing_fault(
        "wse04",
        "DeliveryModeRequestedUnavailable",
        f"the delivery mode {mode[:200]!r} is not supported",
        detail=_choices("wse04", "SupportedDeliveryMode", MODES),
    )


def format_unavailable(format: str) -> SoapFault:
    return eventing_fault(
        "wse11",
        "DeliveryFormatRequestedUnavailable",
        f"the delivery format {format[:200]!r} is not supported",
        detail=_choices("wse11", "SupportedDeliveryFormat", FORMATS),
    )


def dialect_unavailable(spec: str, dialect: str, supported: Iterable[str]) -> SoapFault:
    return eventing_fault(
        spec,
        "FilteringRequestedUnavailable",
        f"the filter dialect {dialect[:200]!r} is not supported",
        detail=_choices(spec, "SupportedDialect", supported),
    )


def bad_filter(spec: str, reason: str, detail: bytes = b"") -> SoapFault:
    """The dialect is known, and what is written in it cannot be read."""
    if spec == "wse11":
        return eventing_fault(spec, "CannotProcessFilter", reason, detail=detail)
    return invalid_message(spec, reason, detail)


def empty_filter(spec: str, reason: str) -> SoapFault:
    """No event could ever pass the filter."""
    if spec == "wse11":
        return eventing_fault(spec, "EmptyFilter", reason)
    return invalid_message(spec, reason)


def nowhere_to_deliver(spec: str) -> SoapFault:
    reason = "Delivery has no NotifyTo: the broker does not know where to deliver"
    if spec == "wse11":
        return eventing_fault(spec, "NoDeliveryMechanismEstablished", reason)
    return invalid_message(spec, reason)


def unusable_reference(spec: str, reason: str, detail: bytes = b"") -> SoapFault:
    """A reference leads to nothing that we can or may write to."""
    if spec == "wse11":
        return eventing_fault(spec, "UnusableEPR", reason, detail=detail)
    return invalid_message(spec, reason, detail)


def bad_expiry_value(spec: str, reason: str) -> SoapFault:
    name = "UnsupportedExpirationValue" if spec == "wse11" else "InvalidExpirationTime"
    return eventing_fault(spec, name, reason)


def bad_expiry_type(spec: str, reason: str) -> SoapFault:
    return eventing_fault(spec, "UnsupportedExpirationType", reason)


def unknown_subscription(spec: str, reason: str, *, renewing: bool, detail: bytes) -> SoapFault:
    if spec == "wse11":
        return eventing_fault(spec, "UnknownSubscription", reason, detail=detail)
    if renewing:
        return eventing_fault(spec, "UnableToRenew", reason, code="Receiver", detail=detail)
    return invalid_message(spec, reason, detail)


def unable(spec: str, reason: str, detail: bytes) -> SoapFault:
    """The broker cannot do it now; in 2011/03 it says when to ask again."""
    if spec == "wse11":
        wait = b'<wse:RetryAfter xmlns:wse="%b">%d</wse:RetryAfter>' % (
            WSE11.encode(),
            RETRY_AFTER_S,
        )
        return SoapFault("Receiver", reason, detail=wait + detail, action=f"{WSE11}/fault")
    name = "EventSourceUnableToProcess"
    return eventing_fault(spec, name, reason, code="Receiver", detail=detail)


def fault_for(error: TocsinError, spec: str, *, renewing: bool = False) -> SoapFault:
    """An error of ours by the specification's name for it, with our words in the detail."""
    reason, detail = f"{error.problem}. {error.remedy}", detail_of(error)
    match error:
        case NoSuchSubscription() | NoSuchBox():
            return unknown_subscription(spec, reason, renewing=renewing, detail=detail)
        case BadFilter() | BadTopicPattern() | BadTopic():
            return bad_filter(spec, reason, detail)
        case SinkRefused() | BadSubscription():
            return unusable_reference(spec, reason, detail)
    if error.http_status in _BUSY_STATUSES:
        return unable(spec, reason, detail)
    return fault_of(error)


# WS-Enumeration and WS-Management


def unknown_context(reason: str, detail: bytes = b"") -> SoapFault:
    return SoapFault(
        "Receiver",
        reason,
        subcode=(WSEN, "InvalidEnumerationContext"),
        detail=detail,
        action=f"{WSEN}/fault",
    )


def enumeration_fault(error: TocsinError) -> SoapFault:
    """An error of ours, to one who pulls."""
    if isinstance(error, NoSuchSubscription | NoSuchBox | BadToken):
        return unknown_context(f"{error.problem}. {error.remedy}", detail_of(error))
    return fault_of(error)


def timed_out() -> SoapFault:
    return SoapFault(
        "Receiver",
        "no event came before the pull timed out",
        subcode=(WSMAN, "TimedOut"),
        action=_WSMAN_FAULT,
    )


def unsupported_feature(feature: str, reason: str) -> SoapFault:
    """`feature` is the last word of WS-Management's URI for it: Heartbeats, ..."""
    return SoapFault(
        "Sender",
        reason,
        subcode=(WSMAN, "UnsupportedFeature"),
        detail=_fault_detail(feature),
        action=_WSMAN_FAULT,
    )


def invalid_bookmark(detail: Literal["Expired", "InvalidFormat"], reason: str) -> SoapFault:
    return SoapFault(
        "Sender",
        reason,
        subcode=(WSMAN, "InvalidBookmark"),
        detail=_fault_detail(detail),
        action=_WSMAN_FAULT,
    )


def _fault_detail(last_word: str) -> bytes:
    return b'<wsman:FaultDetail xmlns:wsman="%b">%b/faultDetail/%b</wsman:FaultDetail>' % (
        WSMAN.encode(),
        WSMAN_URI.encode(),
        last_word.encode(),
    )


def _choices(spec: str, name: str, uris: Iterable[str]) -> bytes:
    return b"".join(element("wse", NAMESPACE_OF[spec], name, escaped(uri)) for uri in uris)
