"""A right that ends in the middle of a stream, or while a sink is sent events: nothing comes that
was published after it, and what stays open for reading is closed. It ends with a credential that is
revoked or has expired, or with the rule. What neighbours are sent is in `tests/services/link`, what
waits for a slow sink in `test_waiting.py`, and who waits in `test_rights_that_end_in_waits.py`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import uvloop
from frames_walk import EVENT, PARAMETERS
from http_walk import exchange
from refusing import CUT, Refusing, Way
from site_clients import Clients, site_broker
from wsproto import ConnectionType, WSConnection
from wsproto.events import Request, TextMessage

from tocsin.access.policy.rights import read_rule
from tocsin.access.policy.tokens import Token, hash_of, token_text
from tocsin.access.session import internal
from tocsin.event.concept_filter import concepts_filter
from tocsin.event.event import Event
from tocsin.event.filter import EVERYTHING
from tocsin.event.subscription import Kind, Subscription
from tocsin.services.blackboard.messages import message_events
from tocsin.wire.api.resource_request import read_discovery, read_resource
from tocsin.wire.framing import framed
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.conversation import CONSUMER
from tocsin.wire.gma.normal import to_event
from tocsin.wire.gma.read import read_content
from tocsin.wire.gma.write import write

WAIT_S = 10.0
NOTHING_S = 0.4  # in which what is wrong would come
RULE = {"principal": "ann", "action": "*"}


class Reading:
    """A connection by which something comes, until it ends."""

    def __init__(self, way: Way) -> None:
        self._reader, self.writer = way
        self.data = b""
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        with contextlib.suppress(*CUT):
            while data := await self._reader.read(1 << 16):
                self.data += data

    async def has(self, mark: str) -> None:
        async with asyncio.timeout(WAIT_S):
            while mark.encode() not in self.data:
                assert not self._task.done(), self.data
                await asyncio.sleep(0.01)

    async def ends(self) -> None:
        await asyncio.wait_for(self._task, WAIT_S)

    def close(self) -> None:
        self._task.cancel()
        self.writer.close()


# Who signs in, and how that ends


class Holder:
    """Ann, who may do everything for as long as her credential is good and her rule is there."""

    def __init__(self, clients: Clients, broker: Refusing, kind: str, how: str) -> None:
        self._broker = broker
        self._how = how
        self._ends_s = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3)
        soon = self._ends_s if how == "expired" else None
        broker.policy.set_rules([read_rule(RULE, "ann", 0)])
        clients.show(broker, None)
        if kind == "token":
            expires_ns = None if soon is None else int(soon.timestamp()) * 10**9
            self._token = Token("a" * 24, "ann", hash_of("s" * 43), 0, expires_ns=expires_ns)
            broker.policy.set_token(self._token)
            broker.headers["authorization"] = f"Bearer {token_text(self._token.id, 's' * 43)}"
        else:
            clients.show(broker, clients.issue(common="ann", ends=soon))
        self.tls: ssl.SSLContext | None = broker.tls
        self.headers = dict(broker.headers)

    async def ends(self) -> None:
        policy = self._broker.policy
        if self._how == "revoked":
            policy.set_token(msgspec.structs.replace(self._token, revoked_ns=1))
        elif self._how == "rule":
            policy.set_rules([], ["ann"])
        else:
            left = self._ends_s - datetime.now(UTC)
            await asyncio.sleep(left.total_seconds() + 0.05)


ENDINGS = (
    ("token", "revoked"),
    ("token", "expired"),
    ("token", "rule"),
    ("certificate", "expired"),
)
BY_CERTIFICATE = (("certificate", "expired"), ("certificate", "rule"))


@contextlib.asynccontextmanager
async def held(directory: Path, kind: str, how: str) -> AsyncIterator[tuple[Refusing, Holder]]:
    clients = Clients(directory)
    async with site_broker(clients, directory / "log") as broker:
        yield broker, Holder(clients, broker, kind, how)


# What somebody reads, and how something comes that it would be told


Opened = Callable[[Refusing], Awaitable[Reading]]
Told = Callable[[Refusing, str], Awaitable[None]]


async def publish(broker: Refusing, mark: str) -> None:
    event = Event(mark, "/s", "t", topic="a/b", data=b"1", datacontenttype="application/json")
    await broker.app.port.publish(internal("test"), [event])


async def publish_concept(broker: Refusing, mark: str) -> None:
    body = json.dumps({"pairs": {"RunId": mark}}).encode()
    limits, port = broker.http.server.event_limits, broker.app.port
    await port.publish(internal("test"), message_events(body, limits, port.runtime.new_id))


async def publish_performance(broker: Refusing, mark: str) -> None:
    event = m.PerformanceEvent(EVENT.name, EVENT.time, (m.Element("Mark", mark),))
    _, content = read_content(write(m.EventMessage("1", event)))
    assert content is not None
    made = to_event(event, content, event_id=mark, sender="test")
    await broker.app.port.publish(internal("test"), [made])


async def want_concept(broker: Refusing, mark: str) -> None:
    """So that it is in the profile."""
    asked = Subscription(id="", kind=Kind.BOX)
    await broker.app.port.subscribe(internal("test"), asked, concepts_filter([mark]), None)


async def register_resource(broker: Refusing, mark: str) -> None:
    assert broker.app.discovery is not None
    asked = {"id": mark, "model": "static", "advertisement": "system = Linux"}
    await broker.app.discovery.resources.register(internal("test"), read_resource(asked))


def stream(target: str) -> Opened:
    async def opened(broker: Refusing) -> Reading:
        way = await broker.open(broker.http.address)
        head = f"GET {target} HTTP/1.1\r\nhost: localhost\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in broker.headers.items())
        way[1].write(f"{head}\r\n".encode())
        reading = Reading(way)
        await reading.has("retry:")
        return reading

    return opened


def socket(path: str, command: object = None) -> Opened:
    async def opened(broker: Refusing) -> Reading:
        way = await broker.open(broker.http.address)
        protocol = WSConnection(ConnectionType.CLIENT)
        shown = [(name.encode(), value.encode()) for name, value in broker.headers.items()]
        way[1].write(protocol.send(Request(host="localhost", target=path, extra_headers=shown)))
        protocol.receive_data(await way[0].readuntil(b"\r\n\r\n"))
        reading = Reading(way)
        if command is not None:
            way[1].write(protocol.send(TextMessage(data=json.dumps(command))))
            await reading.has("{")  # the answer
        return reading

    return opened


async def discovery_stream(broker: Refusing) -> Reading:
    """Of a request that she has made herself."""
    asked = {"request": "system = Linux", "model": "static continuous"}
    way = await broker.open(broker.http.address)
    status, text = await exchange(way, "POST", "/discoveries", asked, broker.headers)
    assert status == 201, text
    return await stream(json.loads(text)["stream"])(broker)


async def discovery_stream_of_another(broker: Refusing) -> Reading:
    """It goes on without her."""
    assert broker.app.discovery is not None
    asked = read_discovery({"request": "system = Linux", "model": "static continuous"})
    watch = broker.app.discovery.watch(internal("test"), asked)
    return await stream(f"/discoveries/{watch.id}/stream")(broker)


SUBSCRIBE = m.SubscribeRequest("1", "mine", PARAMETERS, options=m.Options(role=CONSUMER))


async def frames(broker: Refusing) -> Reading:
    way = await broker.open(broker.frames.address)
    way[1].write(framed(write(SUBSCRIBE)))
    reading = Reading(way)
    await reading.has("SubscribeReply")
    return reading


async def frames_by_http(broker: Refusing) -> Reading:
    way = await broker.open(broker.http.address)
    body = write(SUBSCRIBE)
    head = f"POST /gma?role=consumer HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in broker.headers.items())
    way[1].write(f"{head}\r\n".encode() + body)
    reading = Reading(way)
    await reading.has("SubscribeReply")
    return reading


MARKS = ("first-mark", "second-mark")
CONCEPTS = ("CarbonEmitted", "GpuPower")  # which nobody else wants: a profile names concepts
BOARD = "/blackboard/socket"
READERS: dict[str, tuple[Opened, Told, tuple[str, str]]] = {
    "/events/stream": (stream("/events/stream"), publish, MARKS),
    "/events/socket": (socket("/events/socket"), publish, MARKS),
    "/blackboard/stream": (stream("/blackboard/stream?concepts=RunId"), publish_concept, MARKS),
    f"{BOARD} subscribe": (socket(BOARD, {"subscribe": ["RunId"]}), publish_concept, MARKS),
    f"{BOARD} register": (socket(BOARD, {"register": True}), want_concept, CONCEPTS),
    "/discoveries/{id}/stream": (discovery_stream, register_resource, MARKS),
    "/discoveries/{id}/stream of another": (discovery_stream_of_another, register_resource, MARKS),
    "POST /gma": (frames_by_http, publish_performance, MARKS),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(("kind", "how"), ENDINGS)
def test_a_reader_gets_nothing_that_comes_after_its_right_has_ended(
    kind: str, how: str, name: str, tmp_path: Path
) -> None:
    opens, tell, marks = READERS[name]

    async def main() -> None:
        async with held(tmp_path, kind, how) as (broker, ann):
            reading = await opens(broker)
            await tell(broker, marks[0])
            await reading.has(marks[0])

            await ann.ends()
            await tell(broker, marks[1])

            await reading.ends()
            assert marks[1].encode() not in reading.data
            assert broker.app.node.broker.streams_open == 0

    uvloop.run(main())


@pytest.mark.parametrize(("kind", "how"), BY_CERTIFICATE)
def test_a_consumer_of_frames_is_told_that_its_subscription_is_over(
    kind: str, how: str, tmp_path: Path
) -> None:
    async def main() -> None:
        async with held(tmp_path, kind, how) as (broker, ann):
            reading = await frames(broker)
            await publish_performance(broker, MARKS[0])
            await reading.has(MARKS[0])

            await ann.ends()
            await publish_performance(broker, MARKS[1])

            await reading.has("UnsubscribeRequest")
            await asyncio.sleep(NOTHING_S)
            assert MARKS[1].encode() not in reading.data
            reading.close()

    uvloop.run(main())


# Webhooks


class Sink:
    """What was sent to each path."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {"/mine": b"", "/control": b""}
        self.url = ""

    async def serve(self) -> asyncio.Server:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return server

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(*CUT):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = re.search(r"content-length: (\d+)", head)
                body = await reader.readexactly(int(length[1]) if length else 0)
                self.bodies[head.split(" ")[1]] += head.encode() + body
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    async def has(self, path: str, mark: str) -> None:
        async with asyncio.timeout(WAIT_S):
            while mark.encode() not in self.bodies[path]:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize(("kind", "how"), [("token", "revoked"), ("token", "rule")])
def test_a_sink_is_sent_nothing_that_comes_after_the_right_of_who_subscribed_has_ended(
    kind: str, how: str, tmp_path: Path
) -> None:
    async def main() -> None:
        async with held(tmp_path, kind, how) as (broker, ann):
            sink = Sink()
            server = await sink.serve()
            way = await broker.open(broker.http.address)
            asked = {"sink": f"{sink.url}/mine"}
            status, text = await exchange(way, "POST", "/subscriptions", asked, broker.headers)
            assert status == 201, text
            control = Subscription(id="", kind=Kind.PUSH, sink=f"{sink.url}/control")
            await broker.app.port.subscribe(internal("test"), control, EVERYTHING, None)
            await publish(broker, MARKS[0])
            for path in sink.bodies:
                await sink.has(path, MARKS[0])

            await ann.ends()
            await publish(broker, MARKS[1])

            await sink.has("/control", MARKS[1])
            await asyncio.sleep(NOTHING_S)
            assert MARKS[1].encode() not in sink.bodies["/mine"]
            server.close()

    uvloop.run(main())
