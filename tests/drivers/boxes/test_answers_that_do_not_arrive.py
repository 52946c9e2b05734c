"""At least once, where the protocol has no token: what an answer took is back in its box if the
answer did not arrive, and gone if it did. Real sockets, ended as clients end them."""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from drivers.boxes.box_process import ask, post, publish
from drivers.boxes.onvif_client import created_point
from onvif_requests import create_request, pull_request
from served import Served, served
from soap.wse_source import Client
from tocsin.wire.dime import Decoder, envelope_message
from tocsin.wire.msgbox import read as msgbox_read
from tocsin.wire.msgbox import write as msgbox
from tocsin.wire.onvif import events
from tocsin.wire.pullpoint import operations as pullpoint
from tocsin.wire.soap.addressing import write_headers
from tocsin.wire.soap.envelope import write_envelope
from tocsin.wire.soap.names import WSA2005, WSA200408
from tocsin.wire.wse.messages import PULL, Pull
from tocsin.wire.wse.write import write as write_wse

TIMES = 10
WAIT_S = 10.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served(env={"TOCSIN_BOXES__REDELIVER_S": "20"}) as running:
        yield running


@pytest.fixture(scope="module")
def hurried() -> Iterator[Served]:
    with served(env={"TOCSIN_BOXES__REDELIVER_S": "0.5"}) as running:
        yield running


@dataclass(frozen=True)
class Box:
    """A box, what fetches from it, and how to put numbers into it."""

    address: str  # host:port
    path: str
    request: bytes  # an envelope
    fill: Callable[..., None]


def original(broker: Served) -> Box:
    service = f"{broker.url}/axis2/services/MsgBoxService"
    box_id = msgbox_read.box_id(ask(service, msgbox.request(msgbox.CREATE, "x")))
    path = f"/axis2/services/MsgBoxService/clientid/{box_id}"
    return Box(
        broker.address,
        path,
        _envelope(f"{broker.url}{path}", msgbox.request(msgbox.TAKE, box_id)),
        lambda *numbers: _send(f"{broker.url}{path}", numbers),
    )


def pull_point(broker: Served) -> Box:
    point = pullpoint.read_pull_point(ask(f"{broker.url}/soap", pullpoint.create_request()))
    return Box(
        broker.address,
        point.address.removeprefix(broker.url),
        _envelope(point.address, pullpoint.get_request(10)),
        lambda *numbers: _send(point.address, numbers),
    )


def onvif(broker: Served) -> Box:
    topic = f"cam/{time.monotonic_ns()}"
    address, _ = created_point(broker, create_request(topic=topic, termination="PT60S"))
    asked = pull_request(events.PullMessages(0, 10))
    return Box(
        broker.address,
        address.removeprefix(broker.url),
        _envelope(address, asked),
        lambda *numbers: publish(broker, topic, *numbers),
    )


def ws_management(broker: Served) -> Box:
    """With the context of the SubscribeResponse, always."""
    client = Client(broker, wsa=WSA200408, path="/wsman")
    context = client.subscribe(None, mode=PULL).context
    assert context is not None
    body = write_wse(Pull(context, 10, time_max="PT0S"))
    return Box(
        broker.address,
        "/wsman",
        _envelope(f"{broker.url}/wsman", body, wsa=WSA200408),
        lambda *numbers: publish(broker, "wsman", *numbers),
    )


EVERY = [original, pull_point, onvif, ws_management]


def _envelope(to: str, body: bytes, *, wsa: str = WSA2005) -> bytes:
    header = write_headers(wsa, action="urn:asked", message_id="urn:uuid:1", to=to)
    return write_envelope("1.2", header=header, body=body)


def _send(address: str, numbers: tuple[int, ...]) -> None:
    for number in numbers:
        body = write_envelope("1.2", body=b"<m>%d</m>" % number)
        head = {"content-type": "application/soap+xml"}

        status, _ = post(address, body, headers=head)
        assert status in (200, 202)


class Line:
    """One connection to a box, by HTTP."""

    def __init__(self, box: Box, version: str = "1.1", close: bool = False) -> None:
        self.box = box
        self.version = version
        self.close_header = b"Connection: close\r\n" if close else b""
        host, _, port = box.address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), WAIT_S)

    def ask(self) -> None:
        self.socket.sendall(self.request())

    def request(self) -> bytes:
        request = self.box.request
        return (
            b"POST %b HTTP/%b\r\nHost: %b\r\nContent-Type: application/soap+xml\r\n%b"
            b"Content-Length: %d\r\n\r\n%b"
            % (
                self.box.path.encode(),
                self.version.encode(),
                self.box.address.encode(),
                self.close_header,
                len(request),
                request,
            )
        )

    def answer(self) -> list[int]:
        data = b""
        while (head := data.partition(b"\r\n\r\n"))[1] == b"" or len(head[2]) < _length(head[0]):
            more = self.socket.recv(1 << 16)
            assert more, data
            data += more
        return [int(number) for number in re.findall(rb"<(?:\w+:)?m>(\d+)</", head[2])]

    def wait_for_bytes(self) -> None:
        """Until the answer is in this machine's buffer, unread."""
        assert self.socket.recv(1, socket.MSG_PEEK)

    def reset(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self) -> None:
        self.socket.close()


def _length(head: bytes) -> int:
    found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    assert found, head
    return int(found[1])


def fetched(box: Box) -> list[int]:
    line = Line(box)
    line.ask()
    found = line.answer()
    line.close()
    return found


@pytest.mark.parametrize("make", EVERY, ids=lambda make: make.__name__)
def test_what_a_reset_connection_took_comes_again_ten_times_of_ten(
    make: Callable[[Served], Box], broker: Served
) -> None:
    box = make(broker)
    box.fill(1, 2, 3)

    came: list[list[int]] = []
    for _ in range(TIMES):
        lost = Line(box)
        lost.ask()
        lost.wait_for_bytes()
        lost.reset()
        again = Line(box)
        again.ask()
        came.append(again.answer())
        again.reset()  # read by us, and yet the broker cannot know it

    assert came == [[1, 2, 3]] * TIMES


@pytest.mark.parametrize("make", EVERY, ids=lambda make: make.__name__)
def test_a_connection_that_closes_with_the_answer_unread_gives_it_back(
    make: Callable[[Served], Box], broker: Served
) -> None:
    box = make(broker)
    box.fill(1, 2)

    line = Line(box)
    line.ask()
    line.wait_for_bytes()
    line.close()

    assert fetched(box) == [1, 2]


@pytest.mark.parametrize("make", EVERY, ids=lambda make: make.__name__)
def test_a_client_that_keeps_its_connection_gets_everything_once(
    make: Callable[[Served], Box], broker: Served
) -> None:
    box = make(broker)
    line = Line(box)
    came: list[int] = []

    for number in range(1, 6):
        box.fill(number)
        line.ask()
        came += line.answer()
    line.close()

    assert came == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("version", "close"), [("1.1", False), ("1.1", True), ("1.0", False)], ids=str
)
@pytest.mark.parametrize("make", EVERY, ids=lambda make: make.__name__)
def test_a_client_that_closes_after_every_answer_gets_everything_once(
    make: Callable[[Served], Box], version: str, close: bool, broker: Served
) -> None:
    box = make(broker)
    came: list[int] = []

    for number in range(1, 6):
        box.fill(number)
        line = Line(box, version, close)
        line.ask()
        came += line.answer()
        line.close()

    assert came == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(("version", "close"), [("1.1", True), ("1.0", False)], ids=str)
def test_a_last_answer_that_is_reset_comes_again(version: str, close: bool, broker: Served) -> None:
    box = original(broker)
    box.fill(1)

    for _ in range(TIMES):
        line = Line(box, version, close)
        line.ask()
        line.wait_for_bytes()
        line.reset()

    assert fetched(box) == [1]


def test_a_client_that_said_its_last_word_before_the_answer_gets_it_once(broker: Served) -> None:
    box = original(broker)
    box.fill(1)
    line = Line(box, "1.0")
    line.ask()
    line.socket.shutdown(socket.SHUT_WR)

    first = line.answer()
    line.close()
    box.fill(2)

    assert first == [1]
    assert fetched(box) == [2]


def test_two_clients_of_one_box_get_different_messages(broker: Served) -> None:
    box = original(broker)
    mine, yours = Line(box), Line(box)
    box.fill(1, 2)
    mine.ask()
    first = mine.answer()
    box.fill(3)
    yours.ask()
    second = yours.answer()

    mine.reset()
    yours.ask()

    assert (first, second) == ([1, 2], [3])
    assert yours.answer() == [1, 2]


def test_a_question_that_came_before_the_answer_does_not_release_it(broker: Served) -> None:
    """Two requests at once, and then a reset: neither answer was read."""
    box = original(broker)
    box.fill(1)
    line = Line(box)
    line.socket.sendall(line.request() * 2)
    line.wait_for_bytes()
    time.sleep(0.2)
    line.reset()

    assert fetched(box) == [1]


def test_a_connection_that_stands_releases_after_a_while(hurried: Served) -> None:
    box = original(hurried)
    box.fill(1)
    line = Line(box)
    line.ask()
    line.answer()

    time.sleep(1.0)
    line.reset()
    box.fill(2)

    assert fetched(box) == [2]


def test_an_answer_that_nobody_acknowledges_comes_again_after_a_while(hurried: Served) -> None:
    """A client whose window is full takes no more: its connection stands, and says nothing."""
    box = original(hurried)
    service = f"http://{box.address}{box.path}"
    text = b"x" * 500_000

    for number in range(12):
        post(service, write_envelope("1.2", body=b"<m>%d</m><t>%b</t>" % (number, text)))
    line = Line(box)
    line.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.ask()
    line.wait_for_bytes()
    time.sleep(1.0)

    assert 0 in fetched(box)
    line.reset()


class TcpLine:
    """One connection to a box, by SOAP.TCP."""

    def __init__(self, address: str, request: bytes) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), WAIT_S)
        self.request = request
        self._decoder = Decoder()

    def ask(self) -> None:
        self.socket.sendall(envelope_message("1.2", self.request))

    def answer(self) -> list[int]:
        while (message := self._decoder.next_message()) is None:
            data = self.socket.recv(1 << 16)
            assert data
            self._decoder.receive(data)
        return [int(n) for n in re.findall(rb"<(?:\w+:)?m>(\d+)</", message.parts[0].data)]

    def reset(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def test_the_same_holds_by_soap_tcp(broker: Served) -> None:
    box = pull_point(broker)
    box.fill(1, 2)

    def line() -> TcpLine:
        return TcpLine(broker.soap_tcp, box.request)

    for _ in range(TIMES):
        lost = line()
        lost.ask()
        assert lost.socket.recv(1, socket.MSG_PEEK)
        lost.reset()
    kept = line()
    kept.ask()
    first = kept.answer()
    box.fill(3)
    kept.ask()
    second = kept.answer()
    kept.socket.close()
    last = line()
    last.ask()

    assert (first, second, last.answer()) == ([1, 2], [3], [])
    last.socket.close()
