"""The box service: what is sent to boxes, and the service as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from urllib.request import urlopen

from lxml import etree

from drivers.boxes.box_process import (
    BoxServed,
    ask,
    boxes_served,
    payloads,
    post,
    refused,
    whole,
)
from schemas import CAPTURES
from served import ROOT, Served
from tocsin.wire.msgbox import read as msgbox_read
from tocsin.wire.msgbox import write as msgbox
from tocsin.wire.pullpoint import operations as pullpoint
from tocsin.wire.soap.addressing import anonymous
from tocsin.wire.soap.envelope import read_envelope, write_envelope
from tocsin.wire.soap.names import WSA2005, WSMAN, WSMAN_URI, WSN13, WSRM11

ORIGINAL = "/axis2/services/MsgBoxService"


def test_anything_sent_to_a_box_is_kept_to_the_byte_and_acknowledged_when_it_is(
    boxes: Served,
) -> None:
    service = boxes.url + ORIGINAL
    box_id = msgbox_read.box_id(ask(service, msgbox.request(msgbox.CREATE, "")))
    payload = b"<x:a xmlns:x='urn:x'  b = \"1\"><![CDATA[<>]]> &amp; <!-- kept --></x:a>"

    to_original = ask(f"{service}/clientid/{box_id}", payload)
    status, nothing = post(
        f"{boxes.url}/soap/boxes/{box_id}",
        write_envelope("1.2", body=b"<b/>"),
        headers={"content-type": "application/soap+xml"},
    )
    taken = ask(service, msgbox.request(msgbox.TAKE, box_id))

    assert msgbox_read.succeeded(to_original)
    assert (status, nothing) == (202, b"")
    assert msgbox_read.messages(taken) == [payload, b"<b/>"]


def test_what_lies_in_a_box_is_not_among_what_was_published(broker: Served) -> None:
    point = pullpoint.read_pull_point(ask(f"{broker.url}/soap", pullpoint.create_request()))
    post(point.address, write_envelope("1.1", body=b"<secret/>"))

    _, published = broker.call("GET", "/events?after=0")
    _, shown = broker.call("GET", "/boxes")

    assert "secret" not in str(published)
    assert point.address.rpartition("/")[2] not in str(shown)


def test_the_captured_client_gets_its_box(boxes: Served) -> None:
    capture = (CAPTURES / "wsmessenger02_client_06_req.http").read_bytes()
    envelope = capture[capture.index(b"<?xml") :]

    status, answer = post(
        boxes.url + ORIGINAL,
        envelope,
        headers={"content-type": "text/xml", "soapaction": f'"{msgbox.request_action("x")}"'},
    )

    assert status == 200
    assert len(msgbox_read.box_id(read_envelope(answer))) == 36
    assert read_envelope(answer).header is None


def test_a_message_to_a_box_that_is_not_there_or_has_no_body_is_refused(boxes: Served) -> None:
    created = ask(f"{boxes.url}/soap", pullpoint.create_request())
    point = pullpoint.read_pull_point(created)

    assert b"T303" in refused(f"{boxes.url}{ORIGINAL}/clientid/none", b"<a/>")
    assert b"elements" in refused(point.address, b"")
    assert b"T303" in refused(f"{boxes.url}/soap", msgbox.request(msgbox.TAKE, ""))


def test_a_delivery_that_wants_to_be_acknowledged_is(boxes: Served) -> None:
    point = pullpoint.read_pull_point(ask(f"{boxes.url}/soap", pullpoint.create_request()))
    wanted = b'<w:AckRequested xmlns:w="%b"/>' % WSMAN.encode()

    answer = ask(point.address, b"<a/>", soap="1.2", header=wanted)

    assert f"{WSMAN_URI}/Ack".encode() in whole(answer)
    assert len(pullpoint.read_messages(ask(point.address, pullpoint.get_request(None)))) == 1


def test_the_talk_about_a_reliable_sequence_is_nothing_to_be_kept(boxes: Served) -> None:
    point = pullpoint.read_pull_point(ask(f"{boxes.url}/soap", pullpoint.create_request()))
    create = (
        f'<r:CreateSequence xmlns:r="{WSRM11}" xmlns:a="{WSA2005}"><r:AcksTo>'
        f"<a:Address>{anonymous(WSA2005)}</a:Address></r:AcksTo></r:CreateSequence>"
    ).encode()

    answered = ask(f"{boxes.url}/soap", create)
    post(point.address, write_envelope("1.1", body=create))

    assert b"CreateSequenceResponse" in whole(answered)
    assert not pullpoint.read_messages(ask(point.address, pullpoint.get_request(None)))


def test_a_message_of_several_notifications_is_handed_out_in_the_parts_asked_for(
    boxes: Served,
) -> None:
    point = pullpoint.read_pull_point(ask(f"{boxes.url}/soap", pullpoint.create_request()))
    inside = b"".join(
        b"<n:NotificationMessage><n:Message><m>%d</m></n:Message></n:NotificationMessage>" % n
        for n in range(5)
    )
    notify = b'<n:Notify xmlns:n="%b">%b</n:Notify>' % (WSN13.encode(), inside)
    post(point.address, write_envelope("1.1", body=notify))
    post(point.address, write_envelope("1.1", body=b"<m>5</m>"))

    def get() -> list[str | None]:
        answer = ask(point.address, pullpoint.get_request(2))
        return [etree.fromstring(each).text for each in payloads(pullpoint.read_messages(answer))]

    assert [get(), get(), get(), get()] == [["0", "1"], ["2", "3"], ["4", "5"], []]


def test_a_box_is_also_found_by_the_header_of_its_reference(boxes: Served) -> None:
    point = pullpoint.read_pull_point(ask(f"{boxes.url}/soap", pullpoint.create_request()))
    post(point.address, write_envelope("1.1", body=b"<a/>"))

    answer = ask(f"{boxes.url}/soap", pullpoint.get_request(None), header=point.parameters[0])

    assert len(pullpoint.read_messages(answer)) == 1


def test_the_box_service_has_boxes_and_nothing_else(outside: BoxServed) -> None:
    for method, path in (
        ("GET", "/events?after=0"),
        ("GET", "/boxes"),
        ("GET", "/subscriptions"),
        ("GET", "/events/stream"),
        ("GET", "/metrics"),
    ):
        status, problem = outside.call(method, path)
        assert status == 404, (path, problem)
    status, _ = outside.call(
        "POST", "/events", {"x": 1}, {"content-type": "application/cloudevents+json"}
    )
    assert status in (400, 404)
    assert outside.call("GET", "/readyz")[0] == 200
    with urlopen(f"{outside.url}/soap?wsdl=msgbox", timeout=10) as described:
        assert b"createMsgBox" in described.read()
    fault = refused(f"{outside.url}/soap", b'<a xmlns="urn:a"/>')
    assert b"ActionNotSupported" in fault


def test_boxes_and_what_is_in_them_outlive_a_kill() -> None:
    with boxes_served() as service:
        point = pullpoint.read_pull_point(ask(f"{service.url}/soap", pullpoint.create_request()))
        for number in range(5):
            status, _ = post(point.address, write_envelope("1.1", body=b"<m>%d</m>" % number))
            assert status == 202
        service.kill()
        service.start()

        answer = ask(point.address, pullpoint.get_request(10))

        assert payloads(pullpoint.read_messages(answer)) == [b"<m>%d</m>" % n for n in range(5)]
        assert service.stop() == 0


def test_a_full_box_says_what_it_dropped() -> None:
    with boxes_served(
        env={"TOCSIN_BOXES__BACKLOG": "3", "TOCSIN_BOXES__BOXES_MAX": "1"}
    ) as service:
        service_url = service.url + ORIGINAL
        box_id = msgbox_read.box_id(ask(service_url, msgbox.request(msgbox.CREATE, "")))
        box = f"{service_url}/clientid/{box_id}"
        for number in range(5):
            ask(box, b"<m>%d</m>" % number, wsa="")

        first = ask(box, msgbox.request(msgbox.TAKE, box_id))
        second = ask(box, msgbox.request(msgbox.TAKE, box_id))

        assert msgbox_read.dropped(first) == 2
        assert msgbox_read.messages(first) == [b"<m>2</m>", b"<m>3</m>", b"<m>4</m>"]
        assert msgbox_read.dropped(second) == 0
        fault = refused(f"{service.url}/soap", pullpoint.create_request())
        assert b"UnableToCreatePullPointFault" in fault


def test_a_box_service_open_to_the_world_must_be_meant() -> None:
    command = [sys.executable, "-m", "tocsin", "box", "serve", "--http", "0.0.0.0:0"]
    is_open = {**os.environ, "TOCSIN_AUTH__MODE": "open"}
    answer = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, check=False, env=is_open, timeout=30
    )

    assert answer.returncode == 2
    assert "T002" in answer.stderr


def test_a_box_service_alone_describes_itself_and_no_broker(outside: BoxServed) -> None:
    with urlopen(f"{outside.url}/soap?wsdl", timeout=10) as described:
        document = described.read()

    assert b"createMsgBox" in document
    assert b"wsn/bw-2" not in document
