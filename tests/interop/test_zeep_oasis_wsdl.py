"""zeep with the WSDLs of OASIS, which it takes from elsewhere, against a running broker.

Every operation of WS-BaseNotification and WS-BrokeredNotification 1.3 is called; zeep itself judges
the answers, for it reads them by those schemas.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onvif
import pytest
from lxml import etree
from zeep import Client
from zeep.exceptions import Fault
from zeep.plugins import Plugin
from zeep.wsa import WsAddressingPlugin

from interop.consumers import Consumer, consumer
from served import Served, served

ROOT = Path(__file__).parent.parent.parent
CONCRETE = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete"
XPATH = "http://www.w3.org/TR/1999/REC-xpath-19991116"
B2 = "http://docs.oasis-open.org/wsn/b-2"
ARRIVES_S = 15.0


class MixedText(Plugin):  # type: ignore[misc]
    """zeep writes no text into mixed content: it is given an element there, which gives way."""

    TAG = "{urn:test:mixed}text"

    def egress(
        self, envelope: etree._Element, http_headers: Any, operation: Any, options: Any
    ) -> tuple[etree._Element, Any]:
        for stand_in in list(envelope.iter(self.TAG)):
            parent = stand_in.getparent()
            assert parent is not None
            parent.text = stand_in.text
            parent.remove(stand_in)
        return envelope, http_headers


@dataclass(frozen=True, slots=True)
class Edition:
    """A copy of the WSDLs, and how it names its bindings."""

    path: Path
    bindings: str
    suffix: str
    plugins: tuple[Plugin, ...]  # addressing needs actions, which not every copy has
    is_mixed: bool  # by OASIS the text of a topic is mixed content; ONVIF made it a plain text
    ports: tuple[str, ...]  # beyond those of WS-BaseNotification


# With SOAP 1.1 and no addressing at all, and with SOAP 1.2 and addressing.
WHOLE = Edition(
    ROOT.parent / "shared" / "data" / "ws" / "fixtures" / "wsn13_oasis" / "wsn.wsdl",
    "{http://cxf.apache.org/wsn/jaxws}",
    "Soap",
    (MixedText(),),
    True,
    ("NotificationBroker", "PublisherRegistrationManager"),
)
CAMERAS = Edition(
    Path(onvif.__file__).parent / "wsdl" / "events.wsdl",
    "{http://www.onvif.org/ver10/events/wsdl}",
    "Binding",
    (WsAddressingPlugin(),),
    False,
    (),
)
BASE = (
    "NotificationConsumer",
    "NotificationProducer",
    "SubscriptionManager",
    "PausableSubscriptionManager",
    "PullPoint",
    "CreatePullPoint",
)


class Oasis:
    """zeep, the WSDL, and which operations were called."""

    def __init__(self, broker: Served, edition: Edition) -> None:
        self.broker = broker
        self.edition = edition
        self.client = Client(str(edition.path), plugins=list(edition.plugins))
        self.called: set[tuple[str, str]] = set()

    def binding(self, port: str) -> str:
        return f"{self.edition.bindings}{port}{self.edition.suffix}"

    def call(self, port: str, operation: str, at: Any = None, **given: Any) -> Any:
        """Call an operation at the broker, or at a reference that it gave."""
        address = f"{self.broker.url}/soap" if at is None else at["Address"]["_value_1"]
        service = self.client.create_service(self.binding(port), address)
        answer = getattr(service, operation)(**given)
        self.called.add((port, operation))
        return answer

    def every(self) -> set[tuple[str, str]]:
        """What there is to call."""
        bindings = self.client.wsdl.bindings
        return {
            (port, operation)
            for port in BASE + self.edition.ports
            for operation in bindings[self.binding(port)].all()
        }

    def topic(self, path: str = "jobs/status") -> dict[str, Any]:
        text: Any = path
        if self.edition.is_mixed:
            text = etree.Element(MixedText.TAG)
            text.text = path
        return {"_value_1": text, "Dialect": CONCRETE}

    def message(self, value: str, path: str = "jobs/status") -> dict[str, Any]:
        payload = etree.fromstring(f'<x:state xmlns:x="urn:x">{value}</x:state>')
        producer = {"Address": "http://producer.example/p"}
        inside = {"_value_1": payload}
        return {"Topic": self.topic(path), "ProducerReference": producer, "Message": inside}

    def needs(self, port: str) -> None:
        if port not in BASE + self.edition.ports:
            pytest.skip(f"this copy of the WSDLs has no {port}")


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture(scope="module", params=[WHOLE, CAMERAS], ids=["whole", "cameras"])
def oasis(broker: Served, request: pytest.FixtureRequest) -> Oasis:
    edition: Edition = request.param
    if not edition.path.exists():
        pytest.skip(f"{edition.path.name} is not in ../shared")
    return Oasis(broker, edition)


@pytest.fixture
def sink() -> Iterator[Consumer]:
    with consumer() as listening:
        yield listening


def filters(**expressions: tuple[str, str]) -> dict[str, Any]:
    """A Filter: its expressions are mixed content, which zeep takes as elements."""
    found = []
    for name, (dialect, text) in expressions.items():
        element = etree.Element(f"{{{B2}}}{name}", {"Dialect": dialect}, nsmap={"x": "urn:x"})
        element.text = text
        found.append(element)
    return {"_value_1": found}


def value_of(message: Any) -> str:
    return str(message["Message"]["_value_1"].text)


@pytest.mark.parametrize("port", ["NotificationProducer", "NotificationBroker"])
def test_a_producer_is_subscribed_to_and_asked(oasis: Oasis, sink: Consumer, port: str) -> None:
    oasis.needs(port)
    wanted = filters(
        TopicExpression=(CONCRETE, "jobs/status"), MessageContent=(XPATH, "/x:state != 'unwanted'")
    )

    answer = oasis.call(
        port,
        "Subscribe",
        ConsumerReference={"Address": f"{sink.url}/consumer"},
        Filter=wanted,
        InitialTerminationTime="PT10M",
    )
    assert answer["CurrentTime"] < answer["TerminationTime"]

    publisher = "NotificationConsumer" if port == "NotificationProducer" else port
    for value in ("unwanted", port):
        oasis.call(publisher, "Notify", NotificationMessage=[oasis.message(value)])
    delivered = sink.next()
    assert [str(e.text) for e in delivered.content.iter("{urn:x}state")] == [port]
    assert oasis.call(port, "GetCurrentMessage", Topic=oasis.topic())[0].text == port

    reference = answer["SubscriptionReference"]
    for manager in ("SubscriptionManager", "PausableSubscriptionManager"):
        renewed = oasis.call(manager, "Renew", at=reference, TerminationTime="PT1H")
        assert renewed["TerminationTime"] > answer["TerminationTime"]
    oasis.call("PausableSubscriptionManager", "PauseSubscription", at=reference)
    oasis.call(publisher, "Notify", NotificationMessage=[oasis.message("kept")])
    assert sink.is_silent()
    oasis.call("PausableSubscriptionManager", "ResumeSubscription", at=reference)
    assert [str(e.text) for e in sink.next().content.iter("{urn:x}state")] == ["kept"]
    ending = (
        "SubscriptionManager" if port == "NotificationBroker" else "PausableSubscriptionManager"
    )
    oasis.call(ending, "Unsubscribe", at=reference)
    with pytest.raises(Fault) as refused:
        oasis.call(ending, "Unsubscribe", at=reference)
    assert etree.QName(refused.value.detail[0]).localname == "ResourceUnknownFault"


def test_a_pull_point_is_made_filled_emptied_and_destroyed(oasis: Oasis) -> None:
    point = oasis.call("CreatePullPoint", "CreatePullPoint")["PullPoint"]
    subscribed = oasis.call(
        "NotificationProducer",
        "Subscribe",
        ConsumerReference={"Address": point["Address"]["_value_1"]},
        Filter=filters(TopicExpression=(CONCRETE, "jobs/pulled")),
    )
    oasis.call(
        "NotificationConsumer", "Notify", NotificationMessage=[oasis.message("1", "jobs/pulled")]
    )
    oasis.call(
        "PullPoint", "Notify", at=point, NotificationMessage=[oasis.message("2", "jobs/pulled")]
    )

    found: list[str] = []
    until = time.monotonic() + ARRIVES_S
    while len(found) < 2 and time.monotonic() < until:
        got = oasis.call("PullPoint", "GetMessages", at=point, MaximumNumber=10)
        found += map(value_of, got["NotificationMessage"])

    assert sorted(found) == ["1", "2"]
    reference = subscribed["SubscriptionReference"]
    oasis.call("SubscriptionManager", "Unsubscribe", at=reference)
    oasis.call("PullPoint", "DestroyPullPoint", at=point)
    with pytest.raises(Fault):
        oasis.call("PullPoint", "GetMessages", at=point)


def test_a_publisher_registers_and_leaves(oasis: Oasis) -> None:
    oasis.needs("NotificationBroker")
    answer = oasis.call(
        "NotificationBroker",
        "RegisterPublisher",
        PublisherReference={"Address": "http://127.0.0.1:9/publisher"},
        Topic=[oasis.topic("jobs/registered")],
        Demand=False,
    )
    assert answer["ConsumerReference"]["Address"]["_value_1"].startswith(oasis.broker.url)

    reference = answer["PublisherRegistrationReference"]
    oasis.call("PublisherRegistrationManager", "DestroyRegistration", at=reference)
    with pytest.raises(Fault):
        oasis.call("PublisherRegistrationManager", "DestroyRegistration", at=reference)


def test_every_operation_was_called(oasis: Oasis) -> None:
    """By the tests above: they share one zeep."""
    assert oasis.every() == oasis.called


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"Filter": filters(TopicExpression=("urn:none", "a"))}, "DialectUnknown"),
        ({"Filter": filters(MessageContent=(XPATH, "///"))}, "InvalidMessageContent"),
        ({"Filter": filters(TopicExpression=(CONCRETE, "a//b[1]"))}, "InvalidTopicExpression"),
        ({"InitialTerminationTime": "yesterday"}, "UnacceptableInitialTerminationTime"),
        ({"InitialTerminationTime": "2001-01-01T00:00:00Z"}, "UnacceptableInitialTermination"),
    ],
)
def test_zeep_reads_the_reason_of_a_refusal(
    oasis: Oasis, sink: Consumer, given: dict[str, Any], fault: str
) -> None:
    before = oasis.broker.call("GET", "/subscriptions")[1]["total"]

    with pytest.raises(Fault) as refused:
        oasis.call(
            "NotificationProducer", "Subscribe", ConsumerReference={"Address": sink.url}, **given
        )

    assert fault in etree.QName(refused.value.detail[0]).localname
    assert oasis.broker.call("GET", "/subscriptions")[1]["total"] == before
