"""sdc11073, both its ends: a device publishes into the broker, a monitor subscribes at the broker.

The device's provider takes the broker for a consumer of WS-Eventing, and the monitor takes it for
an event source: neither knows of the other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from queue import Queue

import pytest
from lxml import etree
from sdc11073 import observableproperties
from sdc11073.consumer.consumerimpl import SdcConsumer
from sdc11073.consumer.subscription import (
    ClientSubscriptionManagerReferenceParams,
    ConsumerSubscriptionManager,
)

from interop.consumers import SILENCE_S, Consumer, consumer
from interop.recordings import recording
from interop.sdc_device import (
    KEYS,
    MESSAGES,
    REPORT,
    Device,
    Subscriptions,
    device,
    hosted_at,
    monitor,
    reports,
    sent_to,
)
from schemas import validator
from served import Served, served
from waiting import wait_until

ARRIVES_S = 15.0
MANAGERS = [ConsumerSubscriptionManager, ClientSubscriptionManagerReferenceParams]


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture(scope="module")
def source() -> Iterator[Device]:
    with device() as running:
        yield running


@pytest.fixture
def sink() -> Iterator[Consumer]:
    with consumer() as listening:
        yield listening


def value_of(report: etree._Element) -> str:
    [value] = report.iter("{*}MetricValue")
    return str(value.get("Value"))


def expires(broker: Served, subscription_id: str) -> str:
    return str(broker.call("GET", f"/subscriptions/{subscription_id}")[1]["expires"])


def received_by(watching: SdcConsumer) -> Queue[etree._Element]:
    received: Queue[etree._Element] = Queue()
    observableproperties.strongbind(
        watching, episodic_metric_report=lambda report: received.put(report.p_msg.msg_node)
    )
    return received


@pytest.mark.parametrize("subscriptions", MANAGERS)
def test_a_monitor_hears_the_device_through_the_broker(
    broker: Served, source: Device, subscriptions: Subscriptions
) -> None:
    with (
        monitor(source, subscriptions) as watching,
        sent_to(f"{broker.url}/soap", source, watching),
    ):
        received = received_by(watching)
        made = watching.do_subscribe(hosted_at(f"{broker.url}/soap"), reports(), KEYS)
        assert made.is_subscribed
        assert made.granted_expires == 60

        for value in (61, 72):
            source.measures(value)
            assert value_of(received.get(timeout=ARRIVES_S)) == str(value)

        own = made.subscribe_response.SubscriptionManager.Address.rpartition("/")[2]
        first = expires(broker, own)
        wait_until(lambda: expires(broker, own) > first, "it renews each second, for an hour")
        assert 3500 < made.get_status() <= 3600
        made.unsubscribe()
        assert not made.is_subscribed
        assert broker.call("GET", f"/subscriptions/{own}")[0] == 404
        source.measures(80)
        time.sleep(SILENCE_S)
        assert received.empty()


@pytest.mark.parametrize("subscriptions", MANAGERS)
def test_a_monitor_is_told_when_the_operator_ends_its_subscription(
    broker: Served, source: Device, subscriptions: Subscriptions
) -> None:
    with monitor(source, subscriptions) as watching:
        ended: Queue[object] = Queue()
        observableproperties.strongbind(watching, subscription_end_data=ended.put)
        made = watching.do_subscribe(hosted_at(f"{broker.url}/soap"), reports(), KEYS)
        own = made.subscribe_response.SubscriptionManager.Address.rpartition("/")[2]

        status, _ = broker.call("DELETE", f"/subscriptions/{own}")

        assert status in (200, 204)
        ended.get(timeout=ARRIVES_S)
        assert not made.is_subscribed
        assert made.end_status == "http://schemas.xmlsoap.org/ws/2004/08/eventing/SourceCancelling"


def test_a_device_reaches_consumers_that_never_heard_of_it(
    broker: Served, source: Device, sink: Consumer
) -> None:
    """WS-Notification's, raw WS-Eventing's with another addressing, and CloudEvents'."""
    for name in ("zeep43_wsn13_01_Subscribe", "wsmancli_280_02_Subscribe"):
        assert recording(name).to_consumer(sink.url).send(broker).status == 200
    box = broker.call("POST", "/boxes", {})[1]
    with (
        monitor(source, ConsumerSubscriptionManager) as watching,
        sent_to(f"{broker.url}/soap", source, watching),
    ):
        source.measures(93)

        found = {delivery.path: delivery for delivery in (sink.next(), sink.next())}
        assert found["/consumer"].content.tag.endswith("}Notify")
        validator("wsn13")(found["/consumer"].body)
        [inside] = found["/consumer"].content.iter(MESSAGES.tag("EpisodicMetricReport"))
        assert value_of(inside) == "93"
        assert value_of(found["/sink"].content) == "93"
        assert found["/sink"].addressing.action == REPORT
        event = taken(broker, box)
        assert (event["type"], event["datacontenttype"]) == (REPORT, "application/xml")
        assert value_of(etree.fromstring(event["data"])) == "93"


def taken(broker: Served, box: dict[str, str]) -> dict[str, str]:
    """The CloudEvent in a box."""
    status, answer = broker.call("GET", f"{box['messages']}?max=10&wait={ARRIVES_S}")
    assert status == 200, answer
    [event] = answer["events"]
    return dict(event)


def test_a_device_that_stops_says_so_and_is_not_refused(broker: Served) -> None:
    with (
        device() as stopping,
        monitor(stopping, ConsumerSubscriptionManager) as watching,
        sent_to(f"{broker.url}/soap", stopping, watching) as feed,
    ):
        stopping.provider.stop_all(send_subscription_end=True)
        feed.is_subscribed = False

        wait_until(lambda: "a source ended its subscription" in broker.said(), "it is noted")
        assert "SourceShuttingDown" in broker.said()
