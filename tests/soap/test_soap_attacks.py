"""What an enemy can send to the SOAP endpoint: it is answered, quickly, and costs nobody else."""

from __future__ import annotations

import http.client
import re
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from lxml import etree

from served import Served, served
from tocsin.wire.dime import Decoder, DimeLimits, envelope_message, read_envelope_message

SOAP12 = "http://www.w3.org/2003/05/soap-envelope"
WSA = "http://www.w3.org/2005/08/addressing"
WSN = "http://docs.oasis-open.org/wsn/b-2"
PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running
        assert "a SOAP request failed" not in running.said()
        assert "never retrieved" not in running.said()


def envelope(body: str, header: str = "") -> bytes:
    return (
        f'<s:Envelope xmlns:s="{SOAP12}" xmlns:a="{WSA}" xmlns:n="{WSN}"><s:Header>{header}'
        f"</s:Header><s:Body>{body}</s:Body></s:Envelope>"
    ).encode()


def post(broker: Served, message: bytes, path: str = "/soap") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(broker.address, timeout=PATIENCE_S)
    try:
        connection.request("POST", path, message, {"content-type": "application/soap+xml"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def by_dime(broker: Served, message: bytes) -> bytes:
    host, _, port = broker.soap_tcp.rpartition(":")
    decoder = Decoder(DimeLimits())
    with socket.create_connection((host, int(port)), PATIENCE_S) as line:
        line.sendall(envelope_message("1.2", message))
        while (answer := decoder.next_message()) is None:
            decoder.receive(line.recv(65_536))
    return read_envelope_message(answer)[1]


def address_in(answer: bytes) -> str:
    found = re.search(rb"<a:Address[^>]*>([^<]+)", answer)
    assert found is not None, answer
    return found[1].decode()


def subscribe(address: str, parameters: str = "", filter: str = "") -> bytes:
    return envelope(
        f"<n:Subscribe><n:ConsumerReference><a:Address>{address}</a:Address>"
        f"<a:ReferenceParameters>{parameters}</a:ReferenceParameters></n:ConsumerReference>"
        f"{filter}</n:Subscribe>"
    )


def notify(payload: str, count: int = 1) -> bytes:
    one = f"<n:NotificationMessage><n:Message>{payload}</n:Message></n:NotificationMessage>"
    return envelope(f"<n:Notify>{one * count}</n:Notify>")


def taken(broker: Served, box: str) -> bytes:
    """What the box holds, once it holds something."""
    until = time.monotonic() + PATIENCE_S
    path = box[box.index("/soap") :]
    while time.monotonic() < until:
        _, answer = post(broker, envelope("<n:GetMessages/>"), path)
        if b"NotificationMessage" in answer:
            return answer
        time.sleep(0.05)
    raise AssertionError(f"nothing came into the box: {answer!r}")


@pytest.mark.parametrize(
    "message",
    [
        envelope("<!-- --><\U00010000/>"),
        envelope("", f"<a:Action>{WSN[:-3]}bw-2/NotificationConsumer/Notify</a:Action>"),
        envelope("<x/>", '<no-namespace s:mustUnderstand="true"/>'),
        envelope("<x/>text>"),
    ],
)
def test_odd_messages_are_answered_in_good_xml(broker: Served, message: bytes) -> None:
    status, answer = post(broker, message)

    assert status in (202, 400, 500)
    assert b"the broker failed" not in answer
    if answer:
        etree.fromstring(answer)


def test_a_box_of_ours_is_filled_under_the_address_of_either_listener(broker: Served) -> None:
    box = address_in(by_dime(broker, envelope("<n:CreatePullPoint/>")))
    assert box.startswith("soap.tcp:")
    by_dime(broker, subscribe(box))

    post(broker, notify("<one/>"))

    assert b"<one/>" in taken(broker, box)


@pytest.mark.parametrize(
    "parameter",
    [
        '<k xmlns:wsaref="urn:other" wsaref:a="1"/>',
        '<k a:IsReferenceParameter="true"/>',
        "<k>IsReferenceParameter wsaref</k>",
    ],
)
def test_no_reference_parameter_makes_ill_formed_messages(broker: Served, parameter: str) -> None:
    box = address_in(post(broker, envelope("<n:CreatePullPoint/>"))[1])
    status, answer = post(broker, subscribe(box, parameter))
    assert status == 200, answer

    post(broker, notify("<one/>"))

    etree.fromstring(taken(broker, box))


def test_many_filters_and_many_notifications_leave_time_for_others() -> None:
    with served() as broker:
        for number in range(200):
            expression = f"count(//b[contains(.,'{number}')]) &gt; 1 or count(//b[.='{number}'])=7"
            dialect = "http://www.w3.org/TR/1999/REC-xpath-19991116"
            wanted = f'<n:MessageContent Dialect="{dialect}">{expression}</n:MessageContent>'
            consumer = f"http://127.0.0.1:9/{number}"
            status, _ = post(broker, subscribe(consumer, filter=f"<n:Filter>{wanted}</n:Filter>"))
            assert status == 200
        waits: list[float] = []
        done = threading.Event()

        def look() -> None:
            while not done.is_set():
                began = time.monotonic()
                broker.call("GET", "/subscriptions/none")
                waits.append(time.monotonic() - began)

        other = threading.Thread(target=look)
        other.start()
        status, _ = post(broker, notify(f"<a>{'<b>x</b>' * 200}</a>", 400))
        time.sleep(3.0)
        done.set()
        other.join()

        assert status == 202
        assert max(waits) < 2.5
