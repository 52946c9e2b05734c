"""Recorded clients of message boxes: ONVIF's and WS-Notification's pull points, the original's box,
and a subscription by SOAP.TCP."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from xml.sax.saxutils import escape

import pytest
from lxml import etree

from interop.consumers import Consumer, consumer
from interop.recordings import CAPTURES, Answer, Recording, recording
from schemas import validator
from served import Served, served
from tocsin.wire.dime import Decoder, envelope_message, read_envelope_message
from tocsin.wire.soap import names
from tocsin.wire.soap.addressing import EndpointReference, read_addressing, read_epr
from tocsin.wire.soap.envelope import Envelope, read_envelope

ARRIVES_S = 15.0
PUBLISHED_BY = ("wsn", "wse", "cloudevents")


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def sink() -> Iterator[Consumer]:
    with consumer() as listening:
        yield listening


def publish(broker: Served, kind: str, value: str, topic: str = "demoTopic") -> None:
    """One event, by a recorded publisher of the kind."""
    text = f"<c><b><a>{value}</a></b></c>"
    if kind == "wsn":
        said = recording("zeep43_wsn13_filter_02_Notify").renumbered()
        old = b'<state xmlns="urn:x">done</state>'
        said = said.changed((b"t:jobs/status", topic.encode()), (old, text.encode()))
        assert said.send(broker).status == 202
    elif kind == "wse":
        said = recording("wsmessenger02_client_08_req").renumbered()
        assert said.changed((b"via-wse", value.encode())).send(broker).status == 200
    else:
        broker.publish({"datacontenttype": "application/xml", "data": text, "topic": topic})


def path_of(reference: EndpointReference, broker: Served) -> str:
    assert reference.address.startswith(broker.url)
    return reference.address.removeprefix(broker.url)


def values(answer: Answer) -> list[str]:
    """The values of the events in an answer."""
    return [str(found.text) for found in answer.envelope.body.iter("a")]


def pulled(broker: Served, said: Recording, path: str, count: int) -> list[str]:
    """What a client gets that pulls until it has as many as there are."""
    got: list[str] = []
    until = time.monotonic() + ARRIVES_S
    while len(got) < count and time.monotonic() < until:
        answer = said.send(broker, path)
        assert answer.status == 200, answer.body
        got += values(answer)
    return got


def test_a_recorded_onvif_client_pulls_renews_and_leaves(broker: Served) -> None:
    services = recording("onvifzeepasync430_01_GetServices").send(broker)
    validator("onvif")(services.body)
    addresses = [e.text or "" for e in services.envelope.body.iter("{*}XAddr")]
    assert any(address.startswith(f"{broker.url}/onvif/") for address in addresses)
    made = recording("onvifzeepasync430_02_CreatePullPointSubscription").send(broker)
    validator("onvif")(made.body)
    assert made.text("CurrentTime") < made.text("TerminationTime")
    point = path_of(made.reference("SubscriptionReference"), broker)

    for kind in PUBLISHED_BY:
        publish(broker, kind, kind)
    pull = recording("onvifzeepasync430_03_PullMessages")
    assert pulled(broker, pull, point, 3) == list(PUBLISHED_BY)

    synchronised = recording("onvifzeepasync430_07_SetSynchronizationPoint").send(broker, point)
    renewed = recording("onvifzeepasync430_04_Renew").send(broker, point)
    ended = recording("onvifzeepasync430_05_Unsubscribe").send(broker, point)
    for answer in (synchronised, renewed, ended):
        assert (answer.status, answer.envelope.soap) == (200, "1.2"), answer.body
        validator("onvif")(answer.body)
    gone = pull.send(broker, point)
    assert gone.name == "Fault"
    assert gone.envelope.soap == "1.2"


def test_recorded_pull_points_are_made_filled_emptied_and_destroyed(broker: Served) -> None:
    made = recording("zeep43_wsn13_06_CreatePullPoint").send(broker)
    validator("wsn13")(made.body)
    reference = made.reference("PullPoint")
    point = path_of(reference, broker)
    said = recording("zeep43_wsn13_01_Subscribe").changed(
        (b"http://127.0.0.1:9999/consumer", escape(reference.address).encode())
    )
    subscribed = said.send(broker)
    assert subscribed.status == 200, subscribed.body

    for kind in PUBLISHED_BY:
        publish(broker, kind, kind)
    get = recording("zeep43_wsn13_07_GetMessages")
    assert pulled(broker, get, point, 3) == list(PUBLISHED_BY)
    empty = get.send(broker, point)
    validator("wsn13")(empty.body)

    manager = path_of(subscribed.reference("SubscriptionReference"), broker)
    assert recording("zeep43_wsn13_02_Renew").send(broker, manager).status == 200
    assert recording("zeep43_wsn13_05_Unsubscribe").send(broker, manager).status == 200
    publish(broker, "wsn", "late")
    assert values(get.send(broker, point)) == []
    destroyed = recording("zeep43_wsn13_08_DestroyPullPoint").send(broker, point)
    assert destroyed.name == "DestroyPullPointResponse"
    validator("wsn13")(destroyed.body)
    assert get.send(broker, point).name == "Fault"


def test_the_original_s_box_is_made_filled_taken_from_and_destroyed(broker: Served) -> None:
    made = recording("wsmessenger02_client_06_req").send(broker)
    box = made.text("MsgBoxId")
    validator("msgbox")(made.body)
    address = f"{broker.url}/axis2/services/MsgBoxService/clientid/{box}"
    said = recording("wsmessenger02_client_05_req").changed(
        (b"http://127.0.0.1:18090/wsntwild", address.encode())
    )
    assert said.send(broker).status == 200

    for kind in PUBLISHED_BY:
        publish(broker, kind, kind)

    def asking(operation: str) -> Recording:
        namespace = names.MSGBOX.rstrip("/")
        inside = f'<m:MsgBoxId xmlns:m="{namespace}">{box}</m:MsgBoxId>'
        content = f'<m:{operation} xmlns:m="{namespace}">{inside}</m:{operation}>'
        return recording("wsmessenger02_client_06_req").saying("", content)

    assert pulled(broker, asking("takeMessages"), "", 3) == list(PUBLISHED_BY)
    destroyed = asking("destroyMsgBox").send(broker)
    assert destroyed.text("status") == "true"
    assert asking("takeMessages").send(broker).name == "Fault"


class Dime:
    """Envelopes in DIME on one socket."""

    def __init__(self, opened: socket.socket) -> None:
        self.socket = opened
        opened.settimeout(ARRIVES_S)
        self.decoder = Decoder()

    def read(self) -> Envelope:
        while (message := self.decoder.next_message()) is None:
            data = self.socket.recv(1 << 16)
            assert data, "hung up"
            self.decoder.receive(data)
        return read_envelope(read_envelope_message(message)[1])


def dime_recording(**changed: str) -> bytes:
    """The recorded record with texts in it replaced: the filling inside it is kept."""
    raw = (CAPTURES / "wsetcp_dime_soap11_01_req.bin").read_bytes()
    start = raw.index(b"\xef\xbb\xbf<?xml")
    data = raw[start : start + int.from_bytes(raw[8:12], "big")] or raw[start:]
    for old, new in changed.items():
        assert old.encode() in data
        data = data.replace(old.encode(), new.encode())
    filled = data + bytes(-len(data) % 4)
    return raw[:8] + len(data).to_bytes(4, "big") + raw[12:start] + filled


def test_the_recorded_subscription_of_soap_tcp_is_served(broker: Served) -> None:
    host, _, port = broker.soap_tcp.rpartition(":")
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection((host, int(port))) as opened,
    ):
        listening.settimeout(ARRIVES_S)
        connection = Dime(opened)
        sink = f"soap.tcp://127.0.0.1:{listening.getsockname()[1]}"
        record = dime_recording(**{"soap.tcp://127.0.0.1:9998": sink})
        for byte in (record[:7], record[7:100], record[100:]):
            opened.sendall(byte)  # records may be split anywhere

        answer = connection.read()

        asked = read_addressing(read_envelope(record[record.index(b"<?xml") :].rstrip(b"\0")))
        assert read_addressing(answer).relates_to == asked.message_id
        assert (answer.soap, read_addressing(answer).wsa) == ("1.1", names.WSA200408)
        validator("wse04")(answer.raw)
        manager = _manager(answer)
        for kind in PUBLISHED_BY:
            publish(broker, kind, kind)
        accepted, _ = listening.accept()
        with accepted:
            consumer = Dime(accepted)
            received = [consumer.read() for _ in PUBLISHED_BY]
        assert [e.text for h in received for e in h.body.iter("a")] == list(PUBLISHED_BY)
        assert {h.soap for h in received} == {"1.1"}
        assert {read_addressing(h).wsa for h in received} == {names.WSA200408}

        for operation, inside in (
            ("Renew", "<w:Expires>PT20M</w:Expires>"),
            ("Unsubscribe", ""),
        ):
            opened.sendall(envelope_message("1.1", _asking(operation, inside, manager)))
            said = connection.read()
            assert said.content is not None or operation == "Unsubscribe"
            assert read_addressing(said).action == f"{names.WSE04}/{operation}Response"
        assert broker.call("GET", f"/subscriptions/{manager.address.rpartition('/')[2]}")[0] == 404


def _manager(answer: Envelope) -> EndpointReference:
    [found] = answer.body.iter(f"{{{names.WSE04}}}SubscriptionManager")
    return read_epr(answer, found)


def _asking(operation: str, inside: str, manager: EndpointReference) -> bytes:
    """The recorded envelope, to the manager that it was given, with another operation."""
    raw = (CAPTURES / "wsetcp_dime_soap11_01_req.bin").read_bytes()
    root = etree.fromstring(raw[raw.index(b"<?xml") :].rstrip(b"\0"))
    header, body = root[0], root[1]
    header[0].text = f"{names.WSE04}/{operation}"
    [to] = header.iter(f"{{{names.WSA200408}}}To")
    to.text = manager.address
    header.extend(etree.fromstring(block) for block in manager.parameters)
    body[:] = [etree.fromstring(f'<w:{operation} xmlns:w="{names.WSE04}">{inside}</w:{operation}>')]
    return etree.tostring(root)
