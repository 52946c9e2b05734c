"""What the original and Globus put on the wire, beside what the broker puts there.

The original's own subscriptions and its own publish are sent to the broker; what comes out is
compared with what came out of the original, element by element.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from lxml import etree

from interop.consumers import Consumer, Delivery, consumer
from interop.likeness import differences, likened
from interop.recordings import Answer, recorded_body, recording
from schemas import validator
from served import Served, served
from tocsin.wire.soap import names

AXIS2_CONSUMER = "http://127.0.0.1:18090"
# What is each broker's own: addresses, ids, times.
OWN = {"Address": "A", "Identifier": "I", "Expires": "T", "trackId": "N", "MsgBoxId": "B"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def sink() -> Iterator[Consumer]:
    with consumer() as listening:
        yield listening


def delivered(sink: Consumer) -> dict[str, Delivery]:
    """By the path that the subscription named."""
    return {delivery.path: delivery for delivery in (sink.next() for _ in range(5))}


def test_what_the_original_delivered_is_what_the_broker_delivers(
    broker: Served, sink: Consumer
) -> None:
    for number in range(1, 6):
        said = recording(f"wsmessenger02_client_0{number}_req").to_consumer(sink.url)
        assert said.send(broker).status == 200

    recording("wsmessenger02_client_08_req").send(broker)

    found = delivered(sink)
    assert set(found) == {"/wseconsumer", "/wsexp", "/wseboth", "/wsntconsumer", "/wsntwild"}
    for name in ("01_Notify", "02_c", "03_Notify"):
        theirs = likened(recorded_body(f"wsmessenger02_delivery_{name}"), {})
        path = f"/{theirs.findtext('.//{*}To').rpartition('/')[2]}"
        ours = likened(found[path].body.replace(sink.url.encode(), AXIS2_CONSUMER.encode()), {})
        assert differences(theirs, ours) == []
        recorded = recording(f"wsmessenger02_delivery_{name}")
        http = {key.lower(): value for key, value in recorded.headers}
        assert found[path].headers["soapaction"] == http["soapaction"]
        assert found[path].headers["content-type"].lower() == http["content-type"].lower()


def answered(broker: Served, sink: Consumer, number: int) -> Answer:
    said = recording(f"wsmessenger02_client_0{number}_req")
    if number < 6:
        said = said.to_consumer(sink.url)
    return said.send(broker)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6, 8])
def test_the_original_s_clients_are_answered_as_the_original_answered_them(
    broker: Served, sink: Consumer, number: int
) -> None:
    answer = answered(broker, sink, number)

    assert answer.status == 200
    theirs = likened(recorded_body(f"wsmessenger02_client_0{number}_resp"), OWN)
    ours = likened(answer.body, OWN)
    assert differences(theirs, _in_order(theirs, ours)) == []


def _in_order(theirs: etree._Element, ours: etree._Element) -> etree._Element:
    """The schema of WS-Eventing wants SubscriptionManager first; the original put it last."""
    for response in ours.iter(f"{{{names.WSE04}}}SubscribeResponse"):
        [recorded] = theirs.iter(f"{{{names.WSE04}}}SubscribeResponse")
        order = [child.tag for child in recorded]
        response[:] = sorted(response, key=lambda child: order.index(child.tag))
    return ours


GT4_EXPECTS = """
<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"
  xmlns:wsa="http://schemas.xmlsoap.org/ws/2004/03/addressing">
<s:Header>
<wsa:Action
>http://docs.oasis-open.org/wsn/2004/06/wsn-WS-BaseNotification/Notify</wsa:Action>
<wsa:MessageID>M</wsa:MessageID><wsa:To>http://127.0.0.1:9999/gt4consumer</wsa:To>
<c:NotificationConsumerKey xmlns:c="http://www.globus.org/namespaces/2004/06/core"
>key-123</c:NotificationConsumerKey></s:Header>
<s:Body><n:Notify
  xmlns:n="http://docs.oasis-open.org/wsn/2004/06/wsn-WS-BaseNotification-1.2-draft-01.xsd">
<n:NotificationMessage><n:Topic xmlns:ns2="http://tutorial.globus.org/auction"
  Dialect="http://docs.oasis-open.org/wsn/2004/06/TopicExpression/Simple">ns2:demoTopic</n:Topic>
<n:ProducerReference><wsa:Address>http://producer.example/p</wsa:Address></n:ProducerReference>
<n:Message><state xmlns="urn:x">done</state></n:Message></n:NotificationMessage></n:Notify>
</s:Body></s:Envelope>"""


def test_globus_is_delivered_to_as_its_consumer_expects(broker: Served, sink: Consumer) -> None:
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600)).encode()
    said = recording("gt403_wsn12_01_Subscribe").to_consumer(sink.url)
    made = said.changed((b"2026-11-15T19:43:12.029Z", soon)).send(broker)
    assert made.status == 200, made.body
    published = recording("zeep43_wsn13_filter_02_Notify").changed(
        (
            b"<ns0:Topic ",
            b'<ns0:Topic xmlns:ns2="http://tutorial.globus.org/auction" ',
        ),
        (b"t:jobs/status", b"ns2:demoTopic"),
        (b"http://127.0.0.1:1/p", b"http://producer.example/p"),
    )

    assert published.send(broker).status == 202

    body = sink.next().body
    validator("wsn12")(body)
    ours = likened(body.replace(sink.url.encode(), b"http://127.0.0.1:9999"), {"MessageID": "M"})
    assert differences(etree.fromstring(GT4_EXPECTS), ours) == []


def test_a_recorded_report_of_a_device_reaches_consumers_of_every_kind(
    broker: Served, sink: Consumer
) -> None:
    """sdc11073's provider delivers to the broker as to any consumer."""
    for name in ("zeep43_wsn13_01_Subscribe", "wsmancli_280_02_Subscribe"):
        assert recording(name).to_consumer(sink.url).send(broker).status == 200
    report = recording("sdc11073_300_provider_delivery_01_EpisodicMetricReport")
    start, end = report.body.index(b"<msg:EpisodicMetricReport"), report.body.index(b"</s12:Body>")
    payload = report.body[start:end]

    assert report.send(broker).status == 202

    found = {delivery.path: delivery for delivery in (sink.next(), sink.next())}
    assert payload in found["/consumer"].body, "kept to the byte"
    assert payload in found["/sink"].body
    assert found["/sink"].addressing.action == read_action(report.body)
    validator("wsn13")(found["/consumer"].body)
    assert recording("sdc11073_300_provider_delivery_02_SubscriptionEnd").send(broker).status == 202


def read_action(body: bytes) -> str:
    return str(etree.fromstring(body).findtext(".//{*}Action"))
