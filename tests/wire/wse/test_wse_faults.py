"""Every fault by its own name, in both SOAP versions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lxml import etree

from schemas import validator
from tocsin.errors import (
    BadEvent,
    BadFilter,
    BadSubscription,
    BadToken,
    BadTopicPattern,
    Busy,
    DiskFull,
    InternalError,
    NoSuchBox,
    NoSuchSubscription,
    SinkRefused,
    TocsinError,
    TooManySubscriptions,
)
from tocsin.wire.soap.envelope import write_envelope
from tocsin.wire.soap.fault import SoapFault, fault_action, write_fault
from tocsin.wire.soap.names import SOAP_NAMESPACES, WSA2005, WSE04, WSE11, WSEN, WSMAN, WSMAN_URI
from tocsin.wire.wse import faults
from tocsin.wire.wse.filters import DIALECTS
from tocsin.wire.wse.messages import FORMATS, MODES

MADE: dict[str, tuple[Callable[[], SoapFault], str, tuple[str, str] | None]] = {
    "mode": (
        lambda: faults.mode_unavailable("urn:m"),
        "Sender",
        (WSE04, "DeliveryModeRequestedUnavailable"),
    ),
    "format": (
        lambda: faults.format_unavailable("urn:f"),
        "Sender",
        (WSE11, "DeliveryFormatRequestedUnavailable"),
    ),
    "dialect 04": (
        lambda: faults.dialect_unavailable("wse04", "urn:d", DIALECTS),
        "Sender",
        (WSE04, "FilteringRequestedUnavailable"),
    ),
    "dialect 11": (
        lambda: faults.dialect_unavailable("wse11", "urn:d", DIALECTS),
        "Sender",
        (WSE11, "FilteringRequestedUnavailable"),
    ),
    "filter 04": (lambda: faults.bad_filter("wse04", "r"), "Sender", (WSE04, "InvalidMessage")),
    "filter 11": (
        lambda: faults.bad_filter("wse11", "r"),
        "Sender",
        (WSE11, "CannotProcessFilter"),
    ),
    "empty 04": (lambda: faults.empty_filter("wse04", "r"), "Sender", (WSE04, "InvalidMessage")),
    "empty 11": (lambda: faults.empty_filter("wse11", "r"), "Sender", (WSE11, "EmptyFilter")),
    "nowhere 04": (
        lambda: faults.nowhere_to_deliver("wse04"),
        "Sender",
        (WSE04, "InvalidMessage"),
    ),
    "nowhere 11": (
        lambda: faults.nowhere_to_deliver("wse11"),
        "Sender",
        (WSE11, "NoDeliveryMechanismEstablished"),
    ),
    "reference 04": (
        lambda: faults.unusable_reference("wse04", "r"),
        "Sender",
        (WSE04, "InvalidMessage"),
    ),
    "reference 11": (
        lambda: faults.unusable_reference("wse11", "r"),
        "Sender",
        (WSE11, "UnusableEPR"),
    ),
    "time 04": (
        lambda: faults.bad_expiry_value("wse04", "r"),
        "Sender",
        (WSE04, "InvalidExpirationTime"),
    ),
    "time 11": (
        lambda: faults.bad_expiry_value("wse11", "r"),
        "Sender",
        (WSE11, "UnsupportedExpirationValue"),
    ),
    "type 04": (
        lambda: faults.bad_expiry_type("wse04", "r"),
        "Sender",
        (WSE04, "UnsupportedExpirationType"),
    ),
    "type 11": (
        lambda: faults.bad_expiry_type("wse11", "r"),
        "Sender",
        (WSE11, "UnsupportedExpirationType"),
    ),
    "message 04": (
        lambda: faults.invalid_message("wse04", "r"),
        "Sender",
        (WSE04, "InvalidMessage"),
    ),
    "message 11": (lambda: faults.invalid_message("wse11", "r"), "Sender", None),
    "context": (
        lambda: faults.unknown_context("r"),
        "Receiver",
        (WSEN, "InvalidEnumerationContext"),
    ),
    "timed out": (faults.timed_out, "Receiver", (WSMAN, "TimedOut")),
    "feature": (
        lambda: faults.unsupported_feature("Bookmarks", "r"),
        "Sender",
        (WSMAN, "UnsupportedFeature"),
    ),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_a_fault_has_its_code_its_subcode_and_its_action(name: str, soap: str) -> None:
    make, code, subcode = MADE[name]
    fault = make()

    written = etree.fromstring(write_fault(fault, soap))

    if soap == "1.2":
        assert reported(written, "Code/s:Value") == (SOAP_NAMESPACES[soap], code)
        assert reported(written, "Code/s:Subcode/s:Value") == subcode
    else:
        general = {"Sender": "Client", "Receiver": "Server"}[code]
        expected = subcode or (SOAP_NAMESPACES[soap], general)
        assert named(written.find("faultcode")) == expected
    namespace = subcode[0] if subcode else WSE11
    start = WSMAN_URI if namespace == WSMAN else namespace
    assert fault_action(fault, WSA2005) == f"{start}/fault"


def reported(fault: etree._Element, path: str) -> tuple[str, str] | None:
    return named(fault.find(f"s:{path}", {"s": SOAP_NAMESPACES["1.2"]}))


def named(element: etree._Element | None) -> tuple[str, str] | None:
    """The qualified name that is the text of the element."""
    if element is None:
        return None
    prefix, _, local = (element.text or "").partition(":")
    return element.nsmap[prefix], local


@pytest.mark.parametrize("spec", ["wse04", "wse11"])
@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_the_published_schemas_accept_the_details(spec: str, soap: str) -> None:
    judge = validator(spec, foreign=True)
    busy = Busy("busy", remedy="wait")
    made = [faults.dialect_unavailable(spec, "urn:d", DIALECTS), faults.fault_for(busy, spec)]
    made.append(
        faults.mode_unavailable("urn:m") if spec == "wse04" else faults.format_unavailable("urn:f")
    )

    for fault in made:
        judge(write_envelope(soap, body=write_fault(fault, soap)))


def test_the_details_say_what_there_is_instead() -> None:
    def listed(fault: SoapFault) -> list[str | None]:
        return [child.text for child in etree.fromstring(b"<d>%b</d>" % fault.detail)]

    assert listed(faults.mode_unavailable("urn:m")) == list(MODES)
    assert listed(faults.format_unavailable("urn:f")) == list(FORMATS)
    assert listed(faults.dialect_unavailable("wse11", "urn:d", DIALECTS)) == list(DIALECTS)
    assert listed(faults.unsupported_feature("Heartbeats", "r")) == [
        f"{WSMAN_URI}/faultDetail/Heartbeats"
    ]


@pytest.mark.parametrize(
    ("error", "in_2004", "in_2011"),
    [
        (NoSuchSubscription, "InvalidMessage", "UnknownSubscription"),
        (NoSuchBox, "InvalidMessage", "UnknownSubscription"),
        (BadFilter, "InvalidMessage", "CannotProcessFilter"),
        (BadTopicPattern, "InvalidMessage", "CannotProcessFilter"),
        (SinkRefused, "InvalidMessage", "UnusableEPR"),
        (BadSubscription, "InvalidMessage", "UnusableEPR"),
        (Busy, "EventSourceUnableToProcess", None),
        (DiskFull, "EventSourceUnableToProcess", None),
        (TooManySubscriptions, "EventSourceUnableToProcess", None),
        (BadEvent, None, None),
        (InternalError, None, None),
    ],
)
def test_our_errors_have_names_there(
    error: type[TocsinError], in_2004: str | None, in_2011: str | None
) -> None:
    reported = error("a <problem>", remedy="a remedy")

    for spec, expected in (("wse04", in_2004), ("wse11", in_2011)):
        fault = faults.fault_for(reported, spec)

        assert (fault.subcode[1] if fault.subcode else None) == expected
        assert fault.reason == "a <problem>. a remedy"
        assert error.code.encode() in fault.detail


def test_what_cannot_be_renewed_is_no_fault_of_the_sender() -> None:
    gone = NoSuchSubscription("gone", remedy="r")

    older = faults.fault_for(gone, "wse04", renewing=True)
    newer = faults.fault_for(gone, "wse11", renewing=True)

    assert (older.code, older.subcode) == ("Receiver", (WSE04, "UnableToRenew"))
    assert (newer.code, newer.subcode) == ("Sender", (WSE11, "UnknownSubscription"))


def test_who_pulls_where_nothing_is_learns_that_the_context_is_invalid() -> None:
    for error in (NoSuchBox, NoSuchSubscription, BadToken):
        fault = faults.enumeration_fault(error("p", remedy="r"))

        assert fault.subcode == (WSEN, "InvalidEnumerationContext")
    assert faults.enumeration_fault(Busy("p", remedy="r")).subcode is None
