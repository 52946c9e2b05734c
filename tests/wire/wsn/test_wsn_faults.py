"""Every fault of WS-BaseNotification: its name, its detail, in both SOAP versions."""

from __future__ import annotations

import pytest
from lxml import etree

from schemas import validator
from tocsin.errors import (
    BadFilter,
    BadSubscription,
    BadTopicPattern,
    Busy,
    NoSuchSubscription,
    SinkRefused,
    TocsinError,
    TooManySubscriptions,
)
from tocsin.wire.soap.envelope import read_envelope, write_envelope
from tocsin.wire.soap.fault import SoapFault, write_fault
from tocsin.wire.soap.names import (
    BASE_FAULTS12,
    BASE_FAULTS13,
    LIFETIME12,
    RESOURCE13,
    TOCSIN,
    WSN10,
    WSN12,
    WSN13,
)
from tocsin.wire.wsn.faults import FAULT_ACTION, NAMES13, Faults
from tocsin.wire.wsn.operations import Operation

NOW_NS = 1_790_000_000_000_000_000
SOAPS = ("1.1", "1.2")
MINIMUM = b"<n:MinimumTime>2026-01-01T00:00:00Z</n:MinimumTime>"
FACTS = {
    "InvalidFilterFault": b"<n:UnknownFilter>x</n:UnknownFilter>",
    "UnacceptableInitialTerminationTimeFault": MINIMUM,
    "UnacceptableTerminationTimeFault": MINIMUM,
}
# 1.2 has no pull points, and nothing to tell of them.
REPORTED = [(name, "wsn13") for name in sorted(NAMES13)]
REPORTED += [(n, "wsn12") for n in sorted(NAMES13) if "Messages" not in n and "PullPoint" not in n]


def details(fault: SoapFault, soap: str) -> list[etree._Element]:
    envelope = read_envelope(write_envelope(soap, body=write_fault(fault, soap)))
    assert envelope.content is not None
    detail = envelope.content.find("detail" if soap == "1.1" else "{*}Detail")
    assert detail is not None
    return list(detail)


@pytest.mark.parametrize("soap", SOAPS)
@pytest.mark.parametrize(("name", "spec"), REPORTED)
def test_every_fault_is_valid_and_has_a_timestamp(name: str, spec: str, soap: str) -> None:
    error = BadSubscription("it is <wrong>", remedy="Mend it.")

    fault = Faults(spec, NOW_NS).fault(name, "why", facts=FACTS.get(name, b""), error=error)

    validator(spec)(write_envelope(soap, body=write_fault(fault, soap)))
    reported, *beside = details(fault, soap)
    base = BASE_FAULTS13 if spec == "wsn13" else BASE_FAULTS12
    assert reported.findtext(f"{{{base}}}Timestamp") == "2026-09-21T14:13:20.000Z"
    assert reported.findtext(f"{{{base}}}Description") == "why"
    ours = f"{{{TOCSIN}}}Error"
    holder = reported.find(ours) if spec == "wsn13" else beside[0]
    assert holder is not None
    assert holder.get("code") == error.code


@pytest.mark.parametrize("soap", SOAPS)
def test_the_originals_faults_are_in_its_own_namespace(soap: str) -> None:
    fault = Faults("wsn10", NOW_NS).fault("PauseFailedFault", "why")

    assert details(fault, soap)[0].tag == f"{{{WSN10}}}PauseFailedFault"


@pytest.mark.parametrize(
    ("spec", "operation", "namespace"),
    [
        ("wsn13", Operation.RENEW, RESOURCE13),
        ("wsn13", Operation.PAUSE, RESOURCE13),
        ("wsn12", Operation.RENEW, LIFETIME12),
        ("wsn12", Operation.UNSUBSCRIBE, LIFETIME12),
        ("wsn12", Operation.PAUSE, WSN12),
        ("wsn10", Operation.UNSUBSCRIBE, WSN10),
    ],
)
def test_an_unknown_subscription_is_an_unknown_resource_of_the_right_specification(
    spec: str, operation: Operation, namespace: str
) -> None:
    error = NoSuchSubscription("there is none", remedy="Subscribe.")

    fault = Faults(spec, NOW_NS).of(error, operation)

    assert details(fault, "1.1")[0].tag == f"{{{namespace}}}ResourceUnknownFault"


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (BadTopicPattern("p", remedy="r"), "InvalidTopicExpressionFault"),
        (BadFilter("p", remedy="r"), "SubscribeCreationFailedFault"),
        (BadSubscription("p", remedy="r"), "SubscribeCreationFailedFault"),
        (SinkRefused("p", remedy="r"), "SubscribeCreationFailedFault"),
        (TooManySubscriptions("p", remedy="r"), "SubscribeCreationFailedFault"),
    ],
)
def test_an_error_while_subscribing_has_the_specifications_name(
    error: TocsinError, name: str
) -> None:
    fault = Faults("wsn13", NOW_NS).of(error, Operation.SUBSCRIBE)

    assert details(fault, "1.2")[0].tag == f"{{{WSN13}}}{name}"
    assert fault.action == FAULT_ACTION


def test_an_error_that_no_specification_knows_is_told_in_our_words() -> None:
    fault = Faults("wsn13", NOW_NS).of(Busy("too much", remedy="Wait."), Operation.SUBSCRIBE)

    assert fault.code == "Receiver"
    assert details(fault, "1.1")[0].tag == f"{{{TOCSIN}}}Error"


@pytest.mark.parametrize("soap", SOAPS)
def test_faults_name_what_they_do_not_know(soap: str) -> None:
    names = [("urn:a", "Odd"), ("", "Bare")]
    faults = Faults("wsn13", NOW_NS)

    for fault, tag in (
        (faults.unknown_filters(names), "UnknownFilter"),
        (faults.unknown_policies(names), "UnrecognizedPolicy"),
    ):
        validator("wsn13")(write_envelope(soap, body=write_fault(fault, soap)))
        [reported] = details(fault, soap)
        odd, bare = reported.findall(f"{{{WSN13}}}{tag}")
        prefix, _, local = (odd.text or "").partition(":")
        assert (odd.nsmap[prefix], local, bare.text) == ("urn:a", "Odd", "Bare")


def test_an_unacceptable_end_says_which_ends_are() -> None:
    faults = Faults("wsn13", NOW_NS)

    [reported] = details(faults.unacceptable_time("no", Operation.SUBSCRIBE), "1.1")

    assert reported.tag == f"{{{WSN13}}}UnacceptableInitialTerminationTimeFault"
    assert reported.findtext(f"{{{WSN13}}}MinimumTime") == "2026-09-21T14:13:20.000Z"
    assert (reported.findtext(f"{{{WSN13}}}MaximumTime") or "").startswith("2262-")
    [renewal] = details(faults.unacceptable_time("no", Operation.RENEW), "1.1")
    assert renewal.tag == f"{{{WSN13}}}UnacceptableTerminationTimeFault"
