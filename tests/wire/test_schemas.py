"""The judges of `schemas` accept what real programs sent, and refuse what is broken."""

from __future__ import annotations

import pytest

from schemas import CAPTURES, WSAS, capture_body, validator

SENDERS = {"gt403": "wsn12", "zeep43": "wsn13", "onvif": "onvif", "sdc11073": "wse04"}
SENDERS["wsmancli"] = "wse04"
# The original WS-Messenger puts Expires before Delivery; its namespace is judged by our schema.
RECORDED = sorted(
    (path.name, kind)
    for sender, kind in SENDERS.items()
    for path in CAPTURES.glob(f"{sender}*")
    if "EpisodicMetricReport" not in path.name
)
needs_captures = pytest.mark.skipif(not RECORDED, reason="there are no captures here")


@needs_captures
@pytest.mark.parametrize(("name", "kind"), RECORDED)
def test_what_a_real_program_sent_is_accepted(name: str, kind: str) -> None:
    validator(kind)(capture_body(CAPTURES / name))


@needs_captures
def test_a_raw_delivery_is_foreign_to_the_specification() -> None:
    name = "sdc11073_300_provider_delivery_01_EpisodicMetricReport.http"
    message = capture_body(CAPTURES / name)

    validator("wse04", foreign=True)(message)
    with pytest.raises(AssertionError, match="no message of wse04"):
        validator("wse04")(message)


@needs_captures
@pytest.mark.parametrize(
    ("name", "kind", "whole", "broken"),
    [
        ("sdc11073_300_01_Subscribe.http", "wse04", b"PT10M", b"ten minutes"),
        ("sdc11073_300_01_Subscribe.http", "wse04", b"wse:EndTo", b"wse:EndAt"),
        ("wsmancli_280_01_Subscribe.http", "wse04", b"wsa:Address", b"wsa:Adress"),
        ("wsmancli_280_01_Subscribe.http", "wse04", b"s:Body", b"s:Boddy"),
        ("gt403_wsn12_01_Subscribe.http", "wsn12", b"TopicExpression", b"TopicExpresion"),
        ("gt403_wsn12_01_Subscribe.http", "wsn12", b'mustUnderstand="0"', b'mustUnderstand="no"'),
        ("zeep43_wsn13_filter_02_Notify.http", "wsn13", b"NotificationMessage", b"Message"),
        ("zeep43_wsn13_02_Renew.http", "wsn13", b"TerminationTime", b"Expires"),
        ("onvifzeepasync430_03_PullMessages.http", "onvif", b"MessageLimit", b"Limit"),
    ],
)
def test_a_broken_message_is_refused(name: str, kind: str, whole: bytes, broken: bytes) -> None:
    message = capture_body(CAPTURES / name)
    assert whole in message

    with pytest.raises(AssertionError):
        validator(kind)(message.replace(whole, broken))


FAULT = """<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><s:Fault>
<faultcode>s:Client</faultcode><faultstring>no</faultstring><detail>{}</detail>
</s:Fault></s:Body></s:Envelope>"""
DETAIL = """<b:PauseFailedFault xmlns:b="http://docs.oasis-open.org/wsn/b-2"
 xmlns:f="http://docs.oasis-open.org/wsrf/bf-2">{}</b:PauseFailedFault>"""


def test_the_details_of_a_fault_are_judged() -> None:
    judge = validator("wsn13")
    stamp = "<f:Timestamp>2026-11-15T18:17:23Z</f:Timestamp>"

    judge(FAULT.format(DETAIL.format(stamp)).encode())
    with pytest.raises(AssertionError, match="Timestamp"):
        judge(FAULT.format(DETAIL.format("")).encode())


@pytest.mark.parametrize("wsa", WSAS)
@pytest.mark.parametrize("kind", ["wse04", "wse11", "wsn13", "wsn12"])
def test_endpoint_references_are_judged_in_every_ws_addressing(kind: str, wsa: str) -> None:
    namespace = {
        "wse04": "http://schemas.xmlsoap.org/ws/2004/08/eventing",
        "wse11": "http://www.w3.org/2011/03/ws-evt",
        "wsn13": "http://docs.oasis-open.org/wsn/b-2",
        "wsn12": "http://docs.oasis-open.org/wsn/2004/06/wsn-WS-BaseNotification-1.2-draft-01.xsd",
    }[kind]
    name = "NotifyTo" if kind.startswith("wse") else "ConsumerReference"
    element = (
        f'<e:{name} xmlns:e="{namespace}" xmlns:a="{wsa}"><a:{{0}}>http://h/</a:{{0}}></e:{name}>'
    )

    validator(kind)(element.format("Address").encode())
    with pytest.raises(AssertionError):
        validator(kind)(element.format("Adress").encode())
