"""ONVIF pull points and the device service, by raw messages to a real broker."""

from __future__ import annotations

import threading
import time

import pytest

from drivers.boxes.box_process import (
    ask,
    publish,
    refused,
    whole,
)
from drivers.boxes.onvif_client import created_point, lease_s, pull
from onvif_requests import create_request, pull_request
from schemas import validator
from served import Served
from tocsin.wire.onvif import events
from tocsin.wire.soap.names import ONVIF_DEVICE, ONVIF_EVENTS, WSN13


def test_pulling_waits_for_what_comes_and_no_longer_than_asked(broker: Served) -> None:
    address, _ = created_point(broker, create_request(topic="cam/late"))
    started = time.monotonic()
    _, none = pull(address, timeout_ns=300_000_000)
    waited_s = time.monotonic() - started

    later = threading.Timer(0.5, publish, (broker, "cam/late", 1))
    later.start()
    _, found = pull(address, timeout_ns=20_000_000_000)
    later.join()

    assert none == []
    assert 0.25 < waited_s < 5
    assert len(found) == 1


def test_pulling_keeps_a_pull_point_alive_and_who_does_not_pull_loses_it(broker: Served) -> None:
    address, _ = created_point(broker, create_request(termination="PT1.5S"))
    for _ in range(4):
        time.sleep(0.6)
        answer, _ = pull(address)
        assert lease_s(answer) > 1.0  # without renewal at most 0.9 of the 1.5 are left
    time.sleep(2.2)

    fault = refused(address, pull_request(events.PullMessages(0, 1)), soap="1.2")

    assert b"ResourceUnknownFault" in fault
    validator("wsn13")(fault)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"<e:InitialTerminationTime>soon</e:InitialTerminationTime>", b"UnacceptableInitial"),
        (b"<e:InitialTerminationTime>-PT1S</e:InitialTerminationTime>", b"UnacceptableInitial"),
        (
            b'<e:Filter><n:TopicExpression Dialect="urn:none">a</n:TopicExpression></e:Filter>',
            b"TopicExpressionDialectUnknownFault",
        ),
        (b"<e:Filter><e:Smell/></e:Filter>", b"InvalidFilterFault"),
    ],
)
def test_what_a_pull_point_cannot_be_is_told_by_its_fault(
    broker: Served, content: bytes, fault: bytes
) -> None:
    body = b'<e:CreatePullPointSubscription xmlns:e="%b" xmlns:n="%b">%b</e:%b>' % (
        ONVIF_EVENTS.encode(),
        WSN13.encode(),
        content,
        b"CreatePullPointSubscription",
    )

    reported = refused(f"{broker.url}/onvif/event_service", body, soap="1.2")

    assert fault in reported
    validator("wsn13")(reported)


def test_what_onvif_clients_ask_first_is_answered_with_addresses_that_work(broker: Served) -> None:
    for operation in (
        "GetServices",
        "GetCapabilities",
        "GetDeviceInformation",
        "GetSystemDateAndTime",
        "GetServiceCapabilities",
        "GetScopes",
        "GetHostname",
    ):
        body = b'<d:%b xmlns:d="%b"/>' % (operation.encode(), ONVIF_DEVICE.encode())
        answer = ask(f"{broker.url}/onvif/device_service", body, soap="1.2", wsa="")
        validator("onvif")(whole(answer))
        if operation == "GetServices":
            assert f"{broker.url}/onvif/event_service".encode() in whole(answer)


def test_the_other_operations_of_the_event_service(broker: Served) -> None:
    address, _ = created_point(broker, create_request())
    service = f"{broker.url}/onvif/event_service"

    def plain(name: str) -> bytes:
        return b'<e:%b xmlns:e="%b"/>' % (name.encode(), ONVIF_EVENTS.encode())

    for url, name in (
        (service, events.PROPERTIES),
        (service, events.CAPABILITIES),
        (address, events.SYNCHRONIZE),
    ):
        answer = ask(url, plain(name), soap="1.2")
        validator("onvif")(whole(answer))
    assert b"ActionNotSupported" in refused(address, plain(events.SEEK), soap="1.2")
    assert b"ResourceUnknownFault" in refused(
        f"{broker.url}/soap/subscriptions/none", plain(events.SYNCHRONIZE), soap="1.2"
    )


def test_clients_are_told_the_topics_that_there_are(broker: Served) -> None:
    publish(broker, "cam/told/here", 1)
    body = b'<e:GetEventProperties xmlns:e="%b"/>' % ONVIF_EVENTS.encode()

    answer = ask(f"{broker.url}/onvif/event_service", body, soap="1.2")

    validator("onvif")(whole(answer))
    assert answer.body.find(".//{*}TopicSet/{*}cam/{*}told/{*}here") is not None
