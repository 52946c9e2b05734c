"""onvif-zeep-async takes the broker for a camera: its pull-point manager and its webhook manager.

Leases are short and the client's own least lease is lowered, so that it renews several times while
the test looks on.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from onvif import ONVIFCamera, managers

from interop.consumers import Consumer, consumer
from served import Served, served
from waiting import async_wait_until

LEASE_S = 2
RENEWALS = 3
ARRIVES_S = 15.0
TOPIC = "Device/Trigger/DigitalInput"
TOPICS = "http://www.onvif.org/ver10/topics"


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def sink() -> Iterator[Consumer]:
    with consumer() as listening:
        yield listening


@pytest.fixture(autouse=True)
def leases_may_be_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managers, "MINIMUM_SUBSCRIPTION_SECONDS", 0.5)


def publish(broker: Served, value: str) -> None:
    """As a device says it: a property and its value."""
    broker.publish(
        {
            "datacontenttype": "application/xml",
            "topic": TOPIC,
            "topicns": TOPICS,
            "data": '<tt:Message xmlns:tt="http://www.onvif.org/ver10/schema" '
            'UtcTime="2026-11-16T00:00:00Z" PropertyOperation="Changed">'
            '<tt:Source><tt:SimpleItem Name="InputToken" Value="1"/></tt:Source>'
            f'<tt:Data><tt:SimpleItem Name="LogicalState" Value="{value}"/></tt:Data></tt:Message>',
        }
    )


def states(pulled: Any) -> list[str]:
    """The values in what zeep made of an answer, or of a delivery."""
    return [
        message.Message._value_1.Data.SimpleItem[0].Value for message in pulled.NotificationMessage
    ]


@asynccontextmanager
async def camera(broker: Served) -> AsyncIterator[ONVIFCamera]:
    host, _, port = broker.address.rpartition(":")
    device = ONVIFCamera(host, int(port), "user", "password")
    try:
        await device.update_xaddrs()
        yield device
    finally:
        await device.close()


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


def lost() -> None:
    raise AssertionError("the client says that the subscription is lost")


def ends(broker: Served, kind: str, resource: str) -> str | None:
    status, shown = broker.call("GET", f"/{kind}/{resource}")
    return str(shown["expires"]) if status == 200 else None


async def outlives_its_lease(broker: Served, kind: str, resource: str) -> None:
    """The client renews, again and again: the end moves on, and the subscription is there."""
    seen = {ends(broker, kind, resource)}

    def renewed() -> bool:
        seen.add(ends(broker, kind, resource))
        assert None not in seen
        return len(seen) > RENEWALS

    await async_wait_until(renewed, "it was renewed")


def test_a_camera_s_pull_point_is_pulled_renewed_and_given_back(broker: Served) -> None:
    async def work() -> None:
        async with camera(broker) as device:
            lease = dt.timedelta(seconds=LEASE_S)
            manager = await device.create_pullpoint_manager(lease, lost)
            assert not manager.closed
            address = device.xaddrs["http://www.onvif.org/ver10/events/wsdl/PullPointSubscription"]
            point = address.rpartition("/")[2]
            service = manager.get_service()
            for value in ("true", "false"):
                publish(broker, value)
                pulled = await service.PullMessages({"MessageLimit": 100, "Timeout": "PT5S"})
                assert states(pulled) == [value]
                assert pulled.CurrentTime < pulled.TerminationTime

            await service.SetSynchronizationPoint()  # the manager's own would hide a fault
            await manager.set_synchronization_point()
            await outlives_its_lease(broker, "boxes", point)
            publish(broker, "late")
            pulled = await service.PullMessages({"MessageLimit": 100, "Timeout": "PT5S"})
            assert "late" in states(pulled)

            await manager.shutdown()
            assert ends(broker, "boxes", point) is None

    run(work())


def test_a_webhook_is_pushed_to_while_it_is_renewed_and_not_after(
    broker: Served, sink: Consumer
) -> None:
    async def work() -> None:
        async with camera(broker) as device:
            lease = dt.timedelta(seconds=LEASE_S)
            manager = await device.create_notification_manager(f"{sink.url}/hook", lease, lost)
            address = device.xaddrs["http://www.onvif.org/ver10/events/wsdl/NotificationConsumer"]
            hook = address.rpartition("/")[2]

            async def arrives(value: str) -> None:
                publish(broker, value)
                delivery = await asyncio.to_thread(sink.next)
                found = manager.process(delivery.body)
                assert states(found) == [value]
                assert found.NotificationMessage[0].Topic._value_1.endswith(TOPIC)

            await arrives("true")
            await manager._service.SetSynchronizationPoint()
            await manager.set_synchronization_point()
            await outlives_its_lease(broker, "subscriptions", hook)
            await arrives("late")

            await manager.shutdown()
            assert ends(broker, "subscriptions", hook) is None
            publish(broker, "unheard")
            assert await asyncio.to_thread(sink.is_silent)

    run(work())


def test_a_camera_says_what_it_is(broker: Served) -> None:
    async def work() -> None:
        async with camera(broker) as device:
            management = await device.create_devicemgmt_service()
            about = await management.GetDeviceInformation()
            assert "Tocsin" in (about.Manufacturer, about.Model)
            moment = await management.GetSystemDateAndTime()
            assert moment.UTCDateTime.Date.Year >= 2026
            assert device.xaddrs["http://www.onvif.org/ver10/events/wsdl"].startswith(broker.url)
            events = await device.create_events_service()
            publish(broker, "true")
            properties = await events.GetEventProperties()
            assert properties.TopicSet is not None
            capabilities = await events.GetServiceCapabilities()
            assert capabilities is not None

    run(work())
