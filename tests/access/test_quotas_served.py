"""Quotas at real listeners: the same limit by every protocol, answered in its own form."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import uvloop
from frames_walk import _event_by_udp, _events_by_tcp, walk_gma
from http_walk import BODIES, ask
from refusing import Refusing, refusing
from soap_walk import answer_to
from sockets_walk import answer_in_socket

from served import Served, served
from tocsin.access.decision import allow_all
from tocsin.access.quotas.rules import Quota, QuotaRule
from tocsin.access.session import Credential, CredentialKind, Principal, Session, anonymous
from tocsin.broker.limited_port import LimitedPort
from tocsin.errors import QuotaReached
from tocsin.event.event import Event
from tocsin.event.filter import EVERYTHING
from tocsin.event.subscription import Kind, Subscription
from tocsin.wire.soap import names

ANN = Session(
    Principal("ann"), "http", "192.0.2.1:1", Credential(CredentialKind.CERTIFICATE, "certificate/1")
)
AN_EVENT_A_DAY = QuotaRule({Quota.PUBLISH_RATE: 1 / 86_400}, 1, principal="*")
RATE_USED = (429, "T219")


def run(directory: Path, script: Callable[[Refusing], Awaitable[None]], *quotas: QuotaRule) -> None:
    async def main() -> None:
        async with refusing(directory, allow_all, quotas=quotas) as broker:
            await script(broker)

    uvloop.run(main())


def everybody(**limits: float) -> QuotaRule:
    return QuotaRule({Quota(name): each for name, each in limits.items()}, principal="*")


def test_a_rate_holds_for_every_protocol_and_is_answered_in_its_form(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        port, broker.refusal = broker.http.port, RATE_USED
        publish = ("POST", "/events", BODIES["POST /events"])
        assert (await ask(port, *publish))[0] == 202
        before = broker.app.port.head

        assert await ask(port, *publish) == RATE_USED
        assert "T219" in await answer_in_socket(broker, "/events/socket", BODIES["POST /events"])
        pairs = {"publish": [{"pairs": {"RunId": "r1"}}]}
        assert "T219" in await answer_in_socket(broker, "/blackboard/socket", pairs)
        assert b'code="T219"' in await answer_to(broker, names.WSN13, "Notify")
        assert await _events_by_tcp(broker, "frames", broker.frames.address) == []
        assert [await _event_by_udp(broker, number) for number in ("1", None)] == [[], []]
        assert (await ask(port, "POST", "/ingest/nextflow", BODIES["POST /ingest/nextflow"]))[
            0
        ] == 429

        assert broker.app.port.head == before
        reached = broker.app.access_control.quotas.reached[Quota.PUBLISH_RATE]
        assert reached >= 8
        page = await _text(broker, "/metrics")
        assert f'tocsin_quota_reached_total{{quota="publish_rate"}} {reached}.0' in page

    run(tmp_path, script, AN_EVENT_A_DAY)


async def _text(broker: Refusing, path: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.http.port)
    writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
    text = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return text.decode()


def test_performance_events_by_http_have_the_rate_too(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        broker.refusal = RATE_USED
        await broker.app.port.publish(anonymous("http", "127.0.0.1:1"), [Event("9", "/s", "t")])

        assert [each for each in await walk_gma(broker) if "EventMessage" in each] == []

    run(tmp_path, script, AN_EVENT_A_DAY)


def test_subscriptions_and_boxes_and_streams_and_registrations_are_counted(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        port = broker.http.port

        async def twice(method: str, path: str, body: object) -> list[tuple[int, str]]:
            bodies = body if isinstance(body, list) else [body, body]
            return [await ask(port, method, path, each) for each in bodies]

        webhook = {"sink": "http://127.0.0.1:9/hook", "filters": []}
        for path, body in (
            ("/subscriptions", webhook),
            ("/boxes", {}),
        ):
            assert await twice("POST", path, body) == [(201, ""), (429, "T219")], path
        resources = [
            {"id": name, "model": "static", "advertisement": "[system,=,Linux]"}
            for name in ("a", "b")
        ]
        assert await twice("POST", "/resources", resources) == [(201, ""), (429, "T219")]
        assert (await ask(port, "POST", "/resources", resources[0]))[0] < 300  # it is there already
        assert b'code="T219"' in await answer_to(broker, names.BR13, "RegisterPublisher")
        assert (await ask(port, "DELETE", "/resources/a"))[0] == 204
        assert (await ask(port, "POST", "/resources", resources[1]))[0] == 201

    run(tmp_path, script, everybody(subscriptions=1, boxes=1, registrations=1))


def test_a_stream_more_is_refused_and_one_that_ended_makes_room(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        async def stream() -> tuple[bytes, asyncio.StreamWriter]:
            reader, writer = await asyncio.open_connection("127.0.0.1", broker.http.port)
            writer.write(b"GET /events/stream HTTP/1.1\r\nhost: localhost\r\n\r\n")
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
            return head.split(b" ")[1], writer

        status, first = await stream()
        assert (status, (await stream())[0]) == (b"200", b"429")
        first.close()
        async with asyncio.timeout(10):
            while (found := await stream())[0] != b"200":
                await asyncio.sleep(0.01)
        found[1].close()

    run(tmp_path, script, everybody(streams=1))


def test_what_a_principal_has_from_before_a_restart_counts(tmp_path: Path) -> None:
    asked = Subscription(id="", kind=Kind.BOX)

    async def first(broker: Refusing) -> None:
        await broker.app.port.subscribe(ANN, asked, EVERYTHING, None)

    async def second(broker: Refusing) -> None:
        assert isinstance(broker.app.port, LimitedPort)
        with pytest.raises(QuotaReached):
            await broker.app.port.subscribe(ANN, asked, EVERYTHING, None)
        (box,) = broker.app.port.subscription_ids(ANN)
        await broker.app.port.unsubscribe(ANN, box, Kind.BOX)
        await broker.app.port.subscribe(ANN, asked, EVERYTHING, None)

    run(tmp_path, first, everybody(boxes=1))
    run(tmp_path, second, everybody(boxes=1))


def test_bytes_in_flight_are_limited_until_they_are_on_disk(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        port = broker.app.port
        large = [[Event(str(n), "/s", "t", data=bytes(1_000))] for n in range(5)]

        tasks = [asyncio.ensure_future(port.publish(ANN, events)) for events in large]
        results = await asyncio.gather(*tasks, return_exceptions=True)

        refused = [each for each in results if isinstance(each, QuotaReached)]
        assert 0 < len(refused) < 5
        assert refused[0].retry_after_s == 1.0
        for events in large:
            await port.publish(ANN, events)

    run(tmp_path, script, everybody(in_flight_bytes=2_500))


SETTINGS = """
[auth]
mode = "required"

[[access]]
principal = "ann"
action = ["publish", "read"]

[[quotas]]
publish_rate = 5
publish_burst = 5

[[quotas]]
principal = "ann"
connections = 2

[[quotas]]
peer = "127.0.0.2"
connections = 1
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = tmp_path_factory.mktemp("settings") / "tocsin.toml"
    settings.write_text(SETTINGS)
    with served(env={"TOCSIN_CONFIG": str(settings)}) as running:
        yield running


def token_of(broker: Served, name: str) -> str:
    admin = (broker.directory / "admin.token").read_text().strip()
    headers = {"authorization": f"Bearer {admin}"}
    status, made = broker.call("POST", "/access/tokens", {"principal": name}, headers)
    assert status == 201, made
    return f"authorization: Bearer {made['token']}\r\n"


def answer(broker: Served, request: str, source: str = "127.0.0.1") -> tuple[str, socket.socket]:
    """The whole answer, and the connection, which is still open."""
    host, _, port = broker.address.rpartition(":")
    way = socket.create_connection((host, int(port)), 10, (source, 0))
    way.sendall(request.encode())
    text = b""
    while b"\r\n\r\n" not in text or text.count(b"{") > text.count(b"}"):
        text += way.recv(1 << 16)
    return text.decode(), way


def get(credential: str = "") -> str:
    return f"GET /access/whoami HTTP/1.1\r\nhost: localhost\r\n{credential}\r\n"


def test_over_http_the_answer_says_when_to_try_again(broker: Served) -> None:
    event = json.dumps({"specversion": "1.0", "id": "1", "source": "/s", "type": "t"})
    kind = "content-type: application/cloudevents+json\r\n"
    head = f"POST /events HTTP/1.1\r\nhost: localhost\r\n{kind}{token_of(broker, 'ann')}"
    request = f"{head}content-length: {len(event)}\r\n\r\n{event}"

    answers: list[str] = []
    for _ in range(8):
        text, way = answer(broker, request)
        answers.append(text)
        way.close()

    refused = next(text for text in answers if " 429 " in text)
    assert "retry-after: 1\r\n" in refused
    assert "ann has reached its quota of events a second, which is 5" in refused


def test_connections_of_one_principal_are_limited_over_all_its_addresses(broker: Served) -> None:
    ann = token_of(broker, "ann")

    held = [answer(broker, get(ann), f"127.0.0.{host}") for host in (3, 4, 5)]

    assert [" 200 " in text for text, _ in held] == [True, True, False]
    assert "T219" in held[2][0]
    held[0][1].close()
    for _ in range(100):
        text, way = answer(broker, get(ann), "127.0.0.5")
        if " 200 " in text:
            break
        way.close()
    assert " 200 " in text
    for _, each in [*held[1:], (text, way)]:
        each.close()


def test_connections_of_one_address_are_limited_and_others_get_theirs(broker: Served) -> None:
    bob = token_of(broker, "bob")

    first, way = answer(broker, get(bob), "127.0.0.2")
    second, other = answer(broker, get(bob), "127.0.0.2")
    third, another = answer(broker, get(bob), "127.0.0.1")

    assert " 200 " in first
    assert "T219" in second
    assert "127.0.0.2 has reached its quota of connections, which is 1" in second
    assert " 200 " in third
    for each in (way, other, another):
        each.close()


def test_a_frames_connection_more_is_closed_and_noted(broker: Served) -> None:
    host, _, port = broker.frames.rpartition(":")

    first = socket.create_connection((host, int(port)), 10, ("127.0.0.2", 0))
    second = socket.create_connection((host, int(port)), 10, ("127.0.0.2", 0))
    try:
        try:
            closed = second.recv(1) == b""
        except ConnectionResetError:
            closed = True
        assert closed
        assert "127.0.0.2 has reached its quota of connections" in broker.said()
    finally:
        first.close()
        second.close()
