"""The clients with each other and with strangers, and no broker: listener, retries, references."""

from __future__ import annotations

import http.client
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.client import Message, WseClient, WsntClient
from tocsin.client.soap.addresses import reached_from
from tocsin.client.soap.inbox import Inbox
from tocsin.client.transport.arrivals import Taken
from tocsin.client.transport.http1 import MessageReader
from tocsin.client.transport.http_listener import HttpAnswer, HttpListener
from tocsin.errors import BadSetting, BrokerRefused, CannotReachBroker, SoapRefused
from tocsin.wire.soap.addressing import EndpointReference, read_addressing
from tocsin.wire.soap.envelope import blocks, read_envelope, split, text_of, write_envelope
from tocsin.wire.soap.names import WSA2005, WSA200408
from tocsin.wire.wse import messages as wse
from tocsin.wire.wse.write import write as write_eventing

CAPTURES = Path(__file__).parents[1] / "captures" / "ws"
NOWHERE = "http://127.0.0.1:9/soap"
ARRIVES_S = 5.0

SENDERS = [
    *itertools.product([WseClient], ["2004/08", "2011/03"], ["1.1", "1.2"], [None]),
    (WseClient, "2011/03", "1.2", False),
    *itertools.product([WsntClient], ["1.3", "1.2", "1.0"], ["1.1", "1.2"], [False, True]),
]


@pytest.mark.parametrize(("kind", "version", "soap", "raw"), SENDERS)
@pytest.mark.parametrize("addressing", ["2003/03", "2004/03", "2004/08", "2005/08"])
def test_a_message_goes_straight_from_client_to_client(
    kind, version, soap, raw, addressing
) -> None:
    payload = b'<p:n xmlns:p="urn:p" at="&quot;">\xc3\xa9 &amp;</p:n>'
    with WsntClient(NOWHERE) as consumer, consumer.listen() as inbox:
        came: list[Message] = []
        taker = threading.Thread(target=lambda: came.append(next(inbox)))
        taker.start()
        with kind(NOWHERE, version=version, soap=soap, addressing=addressing) as publisher:
            message_id = publisher.publish(
                payload, "lead/ohio", to=inbox.address, producer="http://radar.example/7", raw=raw
            )
        taker.join(ARRIVES_S)

    [message] = came
    assert (message.payload, message.id) == (payload, message_id)
    assert message.producer == "http://radar.example/7" or raw is False
    if kind is WseClient or not raw:  # a raw notification has no place for its topic
        assert message.topic == "lead/ohio"


def post(url: str, body: bytes, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    try:
        connection.request("POST", parts.path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def body_of(capture: str) -> bytes:
    data = (CAPTURES / capture).read_bytes()
    return MessageReader(response=data.startswith(b"HTTP/")).feed(data)


@pytest.mark.parametrize(
    ("capture", "payload", "topic"),
    [
        ("wsmessenger02_delivery_01_Notify.http", b"<c><b><a>via-wse</a></b></c>", "demoTopic"),
        ("wsmessenger02_delivery_02_c.http", b"<c><b><a>via-wse</a></b></c>", "demoTopic"),
        ("zeep43_wsn13_filter_02_Notify.http", b'<state xmlns="urn:x">done</state>', "jobs/status"),
    ],
)
def test_what_real_services_deliver_is_understood(capture, payload, topic) -> None:
    seen: list[Message] = []
    with WseClient(NOWHERE) as consumer, consumer.listen(seen.append) as inbox:
        status, answer = post(inbox.address, body_of(capture))

    assert (status, answer) == (202, b"")
    assert [(message.payload, message.topic) for message in seen] == [(payload, topic)]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"no xml", 500),
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", 500),
        (b"<a/>", 500),
        (write_envelope("1.2", body=b"<a/><b/>"), 400),
    ],
)
def test_what_is_no_notification_is_answered_with_a_fault(body, status) -> None:
    with WseClient(NOWHERE) as consumer, consumer.listen(lambda _: None) as inbox:
        answered, fault = post(inbox.address, body)

    assert answered == status
    assert split(read_envelope(fault).content.tag)[1] == "Fault"


def test_an_unknown_address_and_a_closed_one_are_not_found() -> None:
    good = write_envelope("1.1", body=b"<a/>")
    with WseClient(NOWHERE) as consumer:
        inbox = consumer.listen(lambda _: None)
        assert post(inbox.address, good)[0] == 202
        assert post(inbox.address.rpartition("/")[0] + "/other", good)[0] == 404
        inbox.close()
        assert post(inbox.address, good)[0] == 404


def test_the_listener_reads_what_old_and_new_stacks_send() -> None:
    seen: list[Message] = []
    body = write_envelope("1.1", body=b"<a/>")
    head = b"POST %b HTTP/1.%d\r\nHost: x\r\n"
    with WseClient(NOWHERE) as consumer, consumer.listen(seen.append) as inbox:
        parts = urlsplit(inbox.address)
        path = parts.path.encode()
        with socket.create_connection((parts.hostname, parts.port), 10) as opened:
            # HTTP/1.1 with 100-continue, then chunked and cut anywhere, then HTTP/1.0.
            length = b"Content-Length: %d\r\n\r\n" % len(body)
            opened.sendall(head % (path, 1) + b"Expect: 100-continue\r\n" + length)
            assert opened.recv(100).startswith(b"HTTP/1.1 100")
            opened.sendall(body)
            assert opened.recv(1000).startswith(b"HTTP/1.1 202")
            opened.sendall(head % (path, 1) + b"Transfer-Encoding: chunked\r\n\r\n")
            for start in range(0, len(body), 40):
                part = body[start : start + 40]
                opened.sendall(b"%x\r\n%b\r\n" % (len(part), part))
            opened.sendall(b"0\r\n\r\n")
            assert opened.recv(1000).startswith(b"HTTP/1.1 202")
            opened.sendall(head % (path, 0) + length + body)
            answer = b""
            while more := opened.recv(1000):  # and it closes
                answer += more
            assert answer.startswith(b"HTTP/1.1 202")

    assert [message.payload for message in seen] == [b"<a/>"] * 3


def test_ports_that_cannot_be_listened_on_are_named() -> None:
    with WseClient(NOWHERE) as first, first.listen() as inbox:
        port = urlsplit(inbox.address).port
        with (
            WseClient(NOWHERE, listen=f"127.0.0.1:{port}") as second,
            pytest.raises(BadSetting, match=f"127.0.0.1:{port}"),
        ):
            second.listen()
    with WseClient(NOWHERE, listen="nonsense") as third, pytest.raises(BadSetting, match="HOST"):
        third.listen()


def test_an_advertised_address_is_the_one_that_others_get() -> None:
    with WseClient(NOWHERE, advertise="https://outside.example/in/") as client:
        assert client.listen().address.startswith("https://outside.example/in/")


def test_a_full_inbox_says_later_and_forgets_what_it_refused() -> None:
    inbox = Inbox(queue_max=1)
    taken: list[Taken] = []
    waiting = threading.Thread(target=lambda: taken.append(inbox.deliver([Message(b"<a/>")])))
    waiting.start()
    while not taken and inbox.deliver([]) is Taken.LATER:
        time.sleep(0.01)
    time.sleep(0.1)

    assert inbox.deliver([Message(b"<b/>")]) is Taken.LATER
    message = inbox.take(ARRIVES_S)
    waiting.join(ARRIVES_S)

    assert message == Message(b"<a/>")
    assert taken == [Taken.YES]
    assert inbox.take(0.01) is None


@given(st.lists(st.integers(1, 4), max_size=8))
def test_every_message_is_handed_out_once_and_in_order(sizes: list[int]) -> None:
    inbox = Inbox()
    numbers = iter(range(1000))
    batches = [[Message(b"%d" % next(numbers)) for _ in range(size)] for size in sizes]
    sender = threading.Thread(target=lambda: [inbox.deliver(batch) for batch in batches])
    sender.start()

    came = [inbox.take(ARRIVES_S) for _ in range(sum(sizes))]
    sender.join(ARRIVES_S)

    assert came == [message for batch in batches for message in batch]


# A stranger's service


class Service(HttpListener):
    """Where what the answering raises is not answered: the connection just closes."""

    def _answer(self, reader: MessageReader, body: bytes) -> HttpAnswer:
        return self._handler("POST", reader.start_line.split(" ")[1], reader.headers, body)


@contextmanager
def stranger(answer: Callable[[str, bytes], HttpAnswer | None]) -> Iterator[str]:
    """A service that answers as told; None closes the connection without a word."""

    def answering(method: str, path: str, headers: dict[str, str], body: bytes) -> HttpAnswer:
        reported = answer(path, body)
        if reported is None:
            raise OSError("the test closes the connection")
        return reported

    service = Service("127.0.0.1", 0, answering)
    try:
        yield f"http://127.0.0.1:{service.port}"
    finally:
        service.close()


def soap_answer(body: bytes) -> HttpAnswer:
    return HttpAnswer(200, write_envelope("1.2", body=body))


def test_publishing_is_repeated_with_the_same_id_and_subscribing_is_not() -> None:
    bodies: list[bytes] = []

    def lose_the_first(path: str, body: bytes) -> HttpAnswer | None:
        bodies.append(body)
        return None if len(bodies) == 1 else HttpAnswer(202)

    with stranger(lose_the_first) as url, WseClient(f"{url}/in") as client:
        message_id = client.publish("<n/>")
        assert len(bodies) == 2
        assert bodies[0] == bodies[1]
        assert read_addressing(read_envelope(bodies[1])).message_id == message_id

        bodies.clear()
        with pytest.raises(CannotReachBroker):
            client.subscribe("a")
        assert len(bodies) == 1


def test_a_busy_service_is_asked_again_and_patience_has_an_end() -> None:
    asked: list[str] = []

    def busy(path: str, body: bytes) -> HttpAnswer:
        asked.append(path)
        return HttpAnswer(503 if path == "/always" or len(asked) < 3 else 202)

    with stranger(busy) as url:
        with WseClient(f"{url}/at-first") as client:
            client.publish("<n/>")
        assert asked == ["/at-first"] * 3
        with (
            WseClient(f"{url}/always", patience_s=0.2) as client,
            pytest.raises(BrokerRefused, match="503"),
        ):
            client.publish("<n/>")
        assert asked.count("/always") >= 2


MANAGERS = [
    ("", "/source"),
    ("/manage/7", "/manage/7"),
    ("manage/7", "/manage/7"),
    ("http:{host}/manage/7", "/manage/7"),
    ("http://0.0.0.0:{port}/manage/7", "/manage/7"),
    ("http://{host}/manage/7?a=1", "/manage/7?a=1"),
    (f"{WSA200408}/role/anonymous", "/source"),
]


@pytest.mark.parametrize(("address", "path"), MANAGERS)
@pytest.mark.parametrize("addressing", ["2004/08", "2005/08"])
def test_a_strangers_manager_is_found_and_its_references_are_echoed(
    address, path, addressing
) -> None:
    asked: list[tuple[str, bytes]] = []
    where: list[str] = []

    def source(at: str, body: bytes) -> HttpAnswer:
        asked.append((at, body))
        content = read_envelope(body).content
        if split(content.tag)[1] == "Subscribe":
            host = where[0].removeprefix("http://")
            written = address.format(host=host, port=host.rpartition(":")[2])
            manager = EndpointReference(
                written,
                properties=(b'<k:key xmlns:k="urn:k">p1</k:key>',),
                parameters=(b'<k:tag xmlns:k="urn:k">t1</k:tag>',),
            )
            reported = wse.SubscribeResponse("wse04", manager, "PT1H")
            return soap_answer(write_eventing(reported, WSA200408))
        return soap_answer(b"")

    with stranger(source) as url:
        where.append(url)
        with WseClient(f"{url}/source", addressing=addressing) as client:
            client.subscribe("a").unsubscribe()

    at, body = asked[-1]
    envelope = read_envelope(body)
    echoed = {split(block.tag)[1]: block for block in blocks(envelope)}
    assert at == path
    assert (text_of(echoed["key"]), text_of(echoed["tag"])) == ("p1", "t1")
    mark = echoed["tag"].get(f"{{{WSA2005}}}IsReferenceParameter")
    assert mark == ("true" if addressing == "2005/08" else None)


def test_the_original_brokers_answer_is_understood() -> None:
    """Its manager has an empty address, and the id in a reference parameter."""
    answer = body_of("wsmessenger02_client_01_resp.http")
    asked: list[bytes] = []

    def original(path: str, body: bytes) -> HttpAnswer:
        asked.append(body)
        return HttpAnswer(200, answer)

    with (
        stranger(original) as url,
        WseClient(f"{url}/axis2/services/EventingService", soap="1.1") as client,
    ):
        subscription = client.subscribe("demoTopic", expires="259200000")
        subscription.close()

    assert subscription.manager.address == f"{url}/axis2/services/EventingService"
    assert b"Identifier" in asked[1]


@pytest.mark.parametrize(
    "answer",
    [
        HttpAnswer(200, b"<html>hello</html>", (("Content-Type", "text/html"),)),
        HttpAnswer(404, b"nothing here"),
        HttpAnswer(202),
        HttpAnswer(200, write_envelope("1.1", body=b"<a/>")),
        HttpAnswer(200, write_envelope("1.1")),
        HttpAnswer(200, b"<!DOCTYPE a><a/>"),
    ],
)
@pytest.mark.parametrize("kind", [WseClient, WsntClient])
def test_an_answer_that_is_none_is_an_error_and_leaves_nothing(kind, answer) -> None:
    with stranger(lambda path, body: answer) as url, kind(f"{url}/x", patience_s=0) as client:
        with pytest.raises(BrokerRefused):
            client.subscribe("a")
        assert client._listener is not None
        assert client._listener._inboxes == {}


def test_the_fault_of_another_service_is_reported_with_its_own_reason() -> None:
    fault = (
        b'<s:Fault xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><faultcode>s:Server.Odd'
        b"</faultcode><faultstring> No such thing </faultstring>"
        b'<detail><o:why xmlns:o="urn:o">because</o:why></detail></s:Fault>'
    )
    answer = HttpAnswer(500, write_envelope("1.1", body=fault))
    with (
        stranger(lambda path, body: answer) as url,
        WsntClient(f"{url}/x") as client,
        pytest.raises(SoapRefused) as refused,
    ):
        client.subscribe("a")

    error = refused.value
    assert (error.fault_code, error.subcode, error.reason) == ("Receiver", None, "No such thing")
    assert error.detail == b'<o:why xmlns:o="urn:o">because</o:why>'
    assert (error.status, error.broker_code) == (500, "T605")


def test_a_good_address_stays_as_it_is() -> None:
    reference = EndpointReference("https://[::1]:8443/a/b?c=d", WSA2005, (b"<a/>",))

    assert reached_from("http://127.0.0.1:8400/soap", reference) == reference
