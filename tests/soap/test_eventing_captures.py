"""Recorded requests of real clients, sent to a real broker: each then gets what it needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas import capture_body, validator
from served import Served, served
from soap.wse_source import Answer, Client, Consumer, consumer, publish
from tocsin.wire.soap.addressing import EndpointReference, read_addressing, reference_headers
from tocsin.wire.wse.messages import SubscribeResponse

CAPTURES = Path(__file__).parent.parent / "captures" / "ws"
SINK_IN_CAPTURE = re.compile(rb"http://127\.0\.0\.1:(9999|18090)/")
EVENT = {"type": "http://a/b/Action1", "topic": "demoTopic"}
PAYLOAD = "<c><b><a>1</a></b><x/></c>"


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def sink() -> Iterator[Consumer]:
    with consumer() as listening:
        yield listening


def replay(broker: Served, name: str, changed: dict[bytes, bytes]) -> Answer:
    """Send the recorded request, with addresses of today in it."""
    raw = (CAPTURES / name).read_bytes().replace(b"\r\n", b"\n")
    head = raw.partition(b"\n\n")[0].decode().split("\n")
    path = head[0].split(" ")[1]
    kept = ("content-type", "soapaction")
    headers = {
        key: value.strip()
        for key, _, value in (line.partition(":") for line in head[1:])
        if key.lower() in kept
    }
    body = capture_body(CAPTURES / name)
    for old, new in changed.items():
        assert old in body
        body = body.replace(old, new)
    where = path if path.startswith(("/axis2", "/wsman")) else "/soap"
    return Client(broker).post(body, path=where, headers=headers)


def address_in(name: str) -> bytes:
    found = SINK_IN_CAPTURE.search(capture_body(CAPTURES / name))
    assert found is not None
    return found[0]


SUBSCRIBES = [
    "sdc11073_300_01_Subscribe.http",
    "wsmancli_280_01_Subscribe.http",
    "wsmancli_280_02_Subscribe.http",
    "wsmessenger02_client_01_req.http",
    "wsmessenger02_client_02_req.http",
    "wsmessenger02_client_03_req.http",
]
RENEWS = {"sdc": "sdc11073_300_02_Renew.http", "wsmancli": "wsmancli_280_05_Renew.http"}


@pytest.mark.parametrize("name", SUBSCRIBES)
def test_a_recorded_subscription_receives_is_renewed_and_falls_silent(
    broker: Served, sink: Consumer, name: str
) -> None:
    asked = capture_body(CAPTURES / name)
    answer = replay(broker, name, {address_in(name): f"{sink.url}/".encode()})
    made = answer.message
    assert isinstance(made, SubscribeResponse), answer.body
    validator("wse04")(answer.body)

    publish(broker, PAYLOAD, **EVENT)
    received = sink.next()
    assert PAYLOAD.encode() in received.body
    assert received.envelope.soap == answer.envelope.soap
    assert read_addressing(received.envelope).wsa.encode() in asked
    validator("wse04", foreign=True)(received.body)

    identifier = made.manager.parameters[0]
    known = re.search(rb">([^<]+)<", identifier)
    assert known is not None
    renew = RENEWS.get(name.partition("_")[0].removesuffix("11073"))
    if renew is not None:
        renewed = replay(broker, renew, {b"uuid:42": known[1]})
        assert renewed.status == 200, renewed.body
        validator("wse04")(renewed.body)
        assert b"PT1200S" in renewed.body

    ended = unsubscribe(broker, made.manager, answer.envelope.soap)
    assert ended.status == 200, ended.body
    # What was delivered in a mode with acknowledgements, and was not acknowledged, came once more
    # with the renewal.
    while not sink.is_silent():
        pass
    publish(broker, PAYLOAD, **EVENT)
    assert sink.is_silent()


def unsubscribe(broker: Served, manager: EndpointReference, soap: str) -> Answer:
    """As the recorded one does it: by the header alone, wherever it is sent."""
    name = "sdc11073_300_04_Unsubscribe.http"
    theirs = capture_body(CAPTURES / name)
    start, end = theirs.index(b"<wse:Identifier"), theirs.index(b"</s12:Header>")
    body = theirs[:start] + reference_headers(manager, manager.wsa) + theirs[end:]
    return Client(broker, soap=soap).post(
        body, path="/wsman", headers={"content-type": "application/soap+xml"}
    )


def test_the_original_may_use_the_address_it_is_given(broker: Served, sink: Consumer) -> None:
    name = "wsmessenger02_client_01_req.http"
    answer = replay(broker, name, {address_in(name): f"{sink.url}/".encode()})
    made = answer.message
    assert isinstance(made, SubscribeResponse)

    assert made.manager.address.startswith(f"{broker.url}/soap/subscriptions/")
    assert made.expires.endswith("Z")
    assert unsubscribe(broker, made.manager, "1.1").status == 200
