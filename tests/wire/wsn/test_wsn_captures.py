"""What zeep, onvif-zeep-async, Globus GT4 and the original WS-Messenger sent, as we read it."""

from __future__ import annotations

import pytest

from schemas import ROOT, capture_body
from tocsin.wire.soap.addressing import EndpointReference, read_addressing
from tocsin.wire.soap.envelope import Envelope, read_envelope, write_envelope
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import TOPICS10_SIMPLE, WSA2005, WSA200403, WSN13, XPATH10
from tocsin.wire.soap.topics import TopicName
from tocsin.wire.wsn import messages as say
from tocsin.wire.wsn.operations import REQUESTS, WORDINGS
from tocsin.wire.wsn.read import read, read_notifications
from tocsin.wire.wsn.read_subscribe import FILTER_BYTES_MAX, FILTERS_MAX
from tocsin.wire.wsn.write import operation_names

CAPTURES = ROOT / "tests" / "captures" / "ws"
CONCRETE = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete"
SIMPLE12 = "http://docs.oasis-open.org/wsn/2004/06/TopicExpression/Simple"
AUCTION = "http://tutorial.globus.org/auction"
WIDGET = (("widget", "http://widgets.com"),)

REQUESTED = {
    "zeep43_wsn13_01_Subscribe": say.Subscribe(
        EndpointReference("http://127.0.0.1:9999/consumer", WSA2005), termination="PT10M"
    ),
    "zeep43_wsn13_02_Renew": say.Renew("PT20M"),
    "zeep43_wsn13_03_PauseSubscription": say.PauseSubscription(),
    "zeep43_wsn13_04_ResumeSubscription": say.ResumeSubscription(),
    "zeep43_wsn13_05_Unsubscribe": say.Unsubscribe(),
    "zeep43_wsn13_09_GetCurrentMessage": say.GetCurrentMessage(
        say.Expression("t:jobs/status", CONCRETE)
    ),
    "zeep43_wsn13_filter_01_Subscribe": say.Subscribe(
        EndpointReference(
            "http://127.0.0.1:9999/consumer",
            WSA2005,
            parameters=(b'<k:tag xmlns:k="urn:k">abc</k:tag>',),
        ),
        (say.Expression("t:jobs/status", CONCRETE, (("t", "urn:demo:topics"),)),),
        (say.Expression("boolean(//*[local-name()='state'])", XPATH10),),
        termination="PT10M",
        raw=True,
    ),
    "onvifzeepasync430_06_Subscribe": say.Subscribe(
        EndpointReference("http://127.0.0.1:9999/hook", WSA2005), termination="PT600S"
    ),
    "onvifzeepasync430_04_Renew": say.Renew("PT600S"),
    "onvifzeepasync430_08_Unsubscribe": say.Unsubscribe(),
    "gt403_wsn12_05_GetCurrentMessage": say.GetCurrentMessage(
        say.Expression("ns1:demoTopic", SIMPLE12, (("ns1", AUCTION),))
    ),
    "gt403_wsn12_07_Destroy": say.Unsubscribe(),
    "wsmessenger02_client_04_req": say.Subscribe(
        EndpointReference("http://127.0.0.1:18090/wsntconsumer", WSA2005),
        (say.Expression("widget:demoTopic", TOPICS10_SIMPLE, WIDGET),),
    ),
    "wsmessenger02_client_05_req": say.Subscribe(
        EndpointReference("http://127.0.0.1:18090/wsntwild", WSA2005),
        (say.Expression("widget:>", TOPICS10_SIMPLE, WIDGET),),
    ),
}


def captured(name: str) -> Envelope:
    return read_envelope(capture_body(CAPTURES / f"{name}.http"))


def content(envelope: Envelope) -> say.Message:
    assert envelope.content is not None
    return read(envelope)


@pytest.mark.parametrize("name", REQUESTED)
def test_what_a_real_client_asked_is_understood(name: str) -> None:
    assert content(captured(name)) == REQUESTED[name]


@pytest.mark.parametrize("name", REQUESTED)
def test_real_clients_use_the_actions_that_we_know(name: str) -> None:
    envelope = captured(name)
    assert envelope.content is not None
    namespace, local = envelope.content.tag[1:].split("}")
    spec, _ = REQUESTS[namespace, local]

    wording = operation_names(REQUESTED[name], spec)

    assert read_addressing(envelope).action == wording.request_action


def test_globus_subscribes_with_properties_and_an_empty_element_of_parameters() -> None:
    asked = content(captured("gt403_wsn12_01_Subscribe"))

    assert isinstance(asked, say.Subscribe)
    assert asked.consumer.wsa == WSA200403
    [key] = asked.consumer.properties
    assert b">key-123</ns1:NotificationConsumerKey>" in key
    assert asked.consumer.parameters == ()
    assert asked.topics == (say.Expression("ns2:demoTopic", SIMPLE12, (("ns2", AUCTION),)),)
    assert asked.termination == "2026-11-15T19:43:12.029Z"
    assert not asked.raw


@pytest.mark.parametrize("number", ["4", "5"])
def test_the_originals_answer_is_understood(number: str) -> None:
    envelope = captured(f"wsmessenger02_client_0{number}_resp")

    answer = content(envelope)

    assert isinstance(answer, say.SubscribeResponse)
    [identifier] = answer.reference.parameters
    assert f"Tsub{number}@1794767640625" in identifier.decode()
    wording = next(iter(WORDINGS["wsn10"].values()))
    assert read_addressing(envelope).action == wording.response_action


def test_zeep_publishes_with_a_prefix_that_it_does_not_declare() -> None:
    envelope = captured("zeep43_wsn13_filter_02_Notify")

    [found] = read_notifications(envelope, read_addressing(envelope))

    assert found.payload == b'<state xmlns="urn:x">done</state>'
    assert found.topic == TopicName("jobs/status"), "and what stands for nothing is not sent on"
    assert found.producer == "http://127.0.0.1:1/p"
    assert found.message_id == "urn:uuid:9637c211-fd6d-47ed-a4c2-e602507d92fc"


def subscribing(filters: str) -> say.Message:
    body = (
        f'<n:Subscribe xmlns:n="{WSN13}"><n:ConsumerReference><a:Address xmlns:a="{WSA2005}">'
        f"http://c/</a:Address></n:ConsumerReference><n:Filter>{filters}</n:Filter></n:Subscribe>"
    )
    return content(read_envelope(write_envelope("1.2", body=body.encode())))


def test_a_comment_within_an_expression_is_no_part_of_it() -> None:
    asked = subscribing("<n:TopicExpression> jobs<!-- not: this -->/status </n:TopicExpression>")

    assert isinstance(asked, say.Subscribe)
    assert asked.topics == (say.Expression("jobs/status"),)


@pytest.mark.parametrize(
    "filters",
    [
        "<n:TopicExpression>a</n:TopicExpression>" * (FILTERS_MAX + 1),
        f"<n:TopicExpression>a<!--{' ' * FILTER_BYTES_MAX}--></n:TopicExpression>",
    ],
)
def test_filters_have_limits(filters: str) -> None:
    with pytest.raises(SoapFault, match="a subscription may have"):
        subscribing(filters)
