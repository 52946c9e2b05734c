"""The paper's five steps (section IV.D): create a box, subscribe its reference, deliver, pull,
destroy. In the original's form, with pull points and with ONVIF's; through a real broker, and with
the boxes in a process of their own as well as in the broker's."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from drivers.boxes.box_process import (
    ask,
    payloads,
    publish,
    refused,
    whole,
)
from drivers.boxes.onvif_client import created_point, lease_s, pull
from onvif_requests import create_request, pull_request
from schemas import validator
from served import Served
from tocsin.wire.msgbox import read as msgbox_read
from tocsin.wire.msgbox import write as msgbox
from tocsin.wire.onvif import events
from tocsin.wire.pullpoint import operations as pullpoint
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.names import WSA2005, WSE04
from tocsin.wire.wsn.messages import Expression, Renew, Subscribe, Unsubscribe
from tocsin.wire.wsn.write import write

T = TypeVar("T")
CONCRETE = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete"
PATIENCE_S = 15.0
ORIGINAL = "/axis2/services/MsgBoxService"


def until(look: Callable[[], T], wanted: Callable[[T], bool]) -> T:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = look()
        if wanted(found) or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def subscribe(broker: Served, consumer: EndpointReference, topic: str) -> None:
    body = write(Subscribe(consumer, (Expression(topic, CONCRETE),)), "wsn13", WSA2005)
    ask(f"{broker.url}/soap", body)


def subscribe_wse(broker: Served, address: str, topic: str) -> None:
    """As a WS-Eventing consumer, filtering by the topic as the original's clients do."""
    filter_ = (
        '<e:Filter Dialect="http://www.ibm.com/xmlns/stdwip/web-services/WS-Topics/'
        f'TopicExpression/simple">{topic}</e:Filter>'
    )
    body = (
        f'<e:Subscribe xmlns:e="{WSE04}" xmlns:a="{WSA2005}"><e:Delivery><e:NotifyTo>'
        f"<a:Address>{address}</a:Address></e:NotifyTo></e:Delivery>{filter_}</e:Subscribe>"
    )
    ask(f"{broker.url}/soap", body.encode())


def test_the_original_message_box(broker: Served, boxes: Served) -> None:
    service = boxes.url + ORIGINAL
    box_id = msgbox_read.box_id(ask(service, msgbox.request(msgbox.CREATE, "Create message box")))
    box = f"{service}/clientid/{box_id}"
    topic = f"five{box_id[:8]}"

    subscribe_wse(broker, box, topic)
    publish(broker, topic, 1, 2)

    def take() -> list[bytes]:
        answer = ask(box, msgbox.request(msgbox.TAKE, box_id), soap="1.1")
        validator("msgbox")(whole(answer))
        return msgbox_read.messages(answer)

    taken: list[bytes] = []
    until(lambda: taken.extend(take()), lambda _: len(taken) >= 2)
    destroyed = ask(box, msgbox.request(msgbox.DESTROY, box_id))

    assert taken == [b"<m>1</m>", b"<m>2</m>"]
    assert msgbox_read.succeeded(destroyed)
    refused(box, msgbox.request(msgbox.TAKE, box_id))
    assert not msgbox_read.succeeded(ask(box, msgbox.request(msgbox.DESTROY, box_id)))


def test_a_pull_point(broker: Served, boxes: Served) -> None:
    created = ask(f"{boxes.url}/soap", pullpoint.create_request(), soap="1.2")
    point = pullpoint.read_pull_point(created)
    topic = f"point{point.address[-8:]}/x"

    subscribe(broker, point, topic)
    publish(broker, topic, 1, 2, 3)

    def get() -> list[bytes]:
        answer = ask(point.address, pullpoint.get_request(2), soap="1.2")
        validator("wsn13")(whole(answer))
        messages = pullpoint.read_messages(answer)
        assert len(messages) <= 2
        return messages

    found: list[bytes] = []
    until(lambda: found.extend(get()), lambda _: len(found) >= 3)
    ask(point.address, pullpoint.destroy_request(), soap="1.2")

    assert payloads(found) == [b"<m>1</m>", b"<m>2</m>", b"<m>3</m>"]
    assert topic.encode() in found[0]
    fault = refused(point.address, pullpoint.get_request(1), soap="1.2")
    assert b"ResourceUnknownFault" in fault
    validator("wsn13")(fault)


def test_an_onvif_pull_point(broker: Served) -> None:
    address, answer = created_point(broker, create_request(topic="cam/motion", termination="PT60S"))
    publish(broker, "cam/motion", 1, 2, 3)
    publish(broker, "cam/other", 9)

    _, first = pull(address, limit=2)
    _, second = pull(address)
    renewed = ask(address, write(Renew("PT120S"), "wsn13", WSA2005), soap="1.2")
    ended = ask(address, write(Unsubscribe(), "wsn13", WSA2005), soap="1.2")

    assert 58 < lease_s(answer) <= 60
    assert payloads(first) == [b"<m>1</m>", b"<m>2</m>"]
    assert payloads(second) == [b"<m>3</m>"]
    assert 118 < lease_s(renewed) <= 120
    assert ended.content is not None
    assert b"ResourceUnknownFault" in refused(
        address, pull_request(events.PullMessages(0, 1)), soap="1.2"
    )
