"""A medical device and its monitor, as sdc11073 makes them: on loopback, without discovery."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from decimal import Decimal

from sdc11073.consumer.consumerimpl import SdcConsumer, default_components_factory
from sdc11073.consumer.subscription import ConsumerSubscription, ConsumerSubscriptionManager
from sdc11073.definitions_sdc import SdcV1Definitions
from sdc11073.dispatch import DispatchKey
from sdc11073.mdib import ProviderMdib
from sdc11073.provider.providerimpl import SdcProvider
from sdc11073.wsdiscovery import WSDiscovery
from sdc11073.xml_types.addressing_types import EndpointReferenceType
from sdc11073.xml_types.dpws_types import (
    DeviceEventingFilterDialectURI,
    HostedServiceType,
    ThisDeviceType,
    ThisModelType,
)
from sdc11073.xml_types.eventing_types import FilterType

REPORT = SdcV1Definitions.Actions.EpisodicMetricReport.value
MESSAGES = SdcV1Definitions.data_model.ns_helper.MSG
RENEWED_EACH_S = 1

_MDIB = b"""<m:GetMdibResponse SequenceId="urn:uuid:7f3bff19-1d3a-4b75-8e2c-3c1f5a8d0001"
  xmlns:m="http://standards.ieee.org/downloads/11073/11073-10207-2017/message"
  xmlns:p="http://standards.ieee.org/downloads/11073/11073-10207-2017/participant"
  xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<m:Mdib SequenceId="urn:uuid:7f3bff19-1d3a-4b75-8e2c-3c1f5a8d0001"><p:MdDescription>
<p:Mds Handle="mds"><p:Vmd Handle="vmd"><p:Channel Handle="channel">
<p:Metric xsi:type="p:NumericMetricDescriptor" Handle="rate" MetricCategory="Msrmt"
  MetricAvailability="Cont" Resolution="1"><p:Unit Code="264864"/></p:Metric>
</p:Channel></p:Vmd></p:Mds></p:MdDescription></m:Mdib></m:GetMdibResponse>"""


class Device:
    """A provider with one number to report."""

    def __init__(self) -> None:
        self.mdib = ProviderMdib.from_string(_MDIB)
        site = "http://device.example"
        self.provider = SdcProvider(
            WSDiscovery("127.0.0.1"),  # never started: nothing is announced
            ThisModelType("Tocsin's tests", site, "Rate", "1", site, site),
            ThisDeviceType("rate", "1", "1"),
            self.mdib,
            max_subscription_duration=60,
        )
        self.provider.start_all(start_rtsample_loop=False)

    @property
    def address(self) -> str:
        return str(self.provider.get_xaddrs()[0])

    def measures(self, value: int) -> None:
        """A report goes to whoever subscribed for it."""
        with self.mdib.metric_state_transaction() as transaction:
            state = transaction.get_state("rate")
            if state.MetricValue is None:
                state.mk_metric_value()
            state.MetricValue.Value = Decimal(value)


@contextlib.contextmanager
def device() -> Iterator[Device]:
    running = Device()
    try:
        yield running
    finally:
        running.provider.stop_all(send_subscription_end=False)


def hosted_at(address: str) -> HostedServiceType:
    """A service that a consumer of sdc11073 may subscribe to."""
    reference = EndpointReferenceType()
    reference.Address = address
    service = HostedServiceType()
    service.EndpointReference = [reference]
    return service


def reports() -> FilterType:
    wanted = FilterType()
    wanted.Dialect = DeviceEventingFilterDialectURI.ACTION
    wanted.text = REPORT
    return wanted


KEYS = [DispatchKey(REPORT, MESSAGES.tag("EpisodicMetricReport"))]

Subscriptions = type[ConsumerSubscriptionManager]


@contextlib.contextmanager
def monitor(of: Device, subscriptions: Subscriptions) -> Iterator[SdcConsumer]:
    """A consumer that knows the device, but is subscribed to nothing yet."""
    components = default_components_factory()
    components.subscription_manager_class = subscriptions
    consumer = SdcConsumer(of.address, SdcV1Definitions, None, components=components)
    actions = [action.value for action in SdcV1Definitions.Actions]
    consumer.start_all(not_subscribed_actions=actions, fixed_renew_interval=RENEWED_EACH_S)
    try:
        yield consumer
    finally:
        consumer.stop_all(unsubscribe=False)


@contextlib.contextmanager
def sent_to(url: str, device: Device, consumer: SdcConsumer) -> Iterator[ConsumerSubscription]:
    """A subscription at the device whose reports, and whose end, go to `url`."""
    subscription = ConsumerSubscription(
        consumer.msg_factory,
        SdcV1Definitions.data_model,
        consumer.get_soap_client,
        hosted_at(f"{device.address}/StateEvent"),
        reports(),
        url,
        url,
        "",
    )
    subscription.subscribe(expires=60)
    assert subscription.is_subscribed
    try:
        yield subscription
    finally:
        subscription.unsubscribe()
