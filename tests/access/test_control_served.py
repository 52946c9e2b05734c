"""Control messages by HTTP, and what every other protocol answers about their topics."""

from __future__ import annotations

import asyncio
import contextlib
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from http_walk import SOCKET, ask, fetch
from refusing import Refusing, refusing
from soap_walk import _CONSUMER, _post

from tocsin.access.decision import DecidedBy, allow_all
from tocsin.access.session import internal
from tocsin.event.control_topic import NODES, TOPICS
from tocsin.services.control.bus import ControlBus
from tocsin.wire.api.control_request import ControlRequest
from tocsin.wire.link.messages import Control
from tocsin.wire.soap import names

ANSWER_S = 10.0
STREAM = "/topics/messages/stream"


def run(directory: Path, script: Callable[[Refusing], Awaitable[None]]) -> None:
    async def main() -> None:
        async with refusing(directory, allow_all) as broker:
            bus(broker).entities._entity_of = lambda session: "ann"
            await script(broker)

    uvloop.run(main())


def bus(broker: Refusing) -> ControlBus:
    assert broker.app.control is not None
    return broker.app.control


class Stream:
    """Server-sent events, as they come."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def next(self) -> tuple[str, Any]:
        name = ""
        while True:
            line = await asyncio.wait_for(self._reader.readline(), ANSWER_S)
            assert line, "the stream has ended"
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                return name, json.loads(value)


@contextlib.asynccontextmanager
async def stream(broker: Refusing, query: str = "") -> AsyncIterator[Stream]:
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.http.port)
    writer.write(f"GET {STREAM}{query} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode())
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), ANSWER_S)
    assert head.startswith(b"HTTP/1.1 200"), head
    yield Stream(reader)
    writer.close()


async def send(broker: Refusing, **members: object) -> tuple[int, Any]:
    status, body = await fetch(broker.http.port, "POST", "/topics/messages", members)
    return status, json.loads(body)


def test_a_message_comes_to_the_stream_of_its_entity(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        own = bus(broker).core.broker
        async with stream(broker) as ann:
            assert await ann.next() == ("open", {"entity": "ann", "broker": own})
            body = b64encode(b"\x00\xff" * 1_000).decode()

            status, sent = await send(broker, topic="Entity/ann", kind="answer", to=own, body=body)

            assert status == 202
            name, came = await ann.next()
            assert name == "message"
            assert came.pop("sent").endswith("Z")
            assert came == {
                "id": sent["id"],
                "topic": "Entity/ann",
                "origin": own,
                "kind": "answer",
                "body": body,
            }
        async with asyncio.timeout(ANSWER_S):
            while len(bus(broker).entities):
                await asyncio.sleep(0.001)

    run(tmp_path, script)


def test_requests_for_everybody_come_to_who_asks_for_them(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        async with stream(broker, "?requests=yes") as ann, stream(broker, "?requests=no") as bob:
            for each in (ann, bob):
                await each.next()
            await send(broker, topic=TOPICS, kind="find", to="*", ttl=3)
            await send(broker, topic="Entity/ann", kind="answer", to="*")

            came = [await ann.next(), await ann.next(), await bob.next()]

            assert [each["kind"] for _, each in came] == ["find", "answer", "answer"]

    run(tmp_path, script)


def test_a_node_of_this_broker_answers_who_asked(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        control = bus(broker)

        def answer(message: Control) -> None:
            entity = message.body.decode()
            to = message.origin
            control.send(internal("tdn"), ControlRequest(f"Entity/{entity}", "here", b"tdn", to))

        control.serve("tdn", answer)
        async with stream(broker) as ann:
            await ann.next()
            body = b64encode(b"ann").decode()

            status, sent = await send(broker, topic=NODES, kind="find", body=body)

            assert (status, sent["tdns"]) == (202, 1)
            _, came = await ann.next()
            assert (came["kind"], came["body"]) == ("here", b64encode(b"tdn").decode())

    run(tmp_path, script)


GOOD = {"topic": "Services/Discovery/Topics", "kind": "find"}


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({}, "T821"),
        ({**GOOD, "topic": None}, "T821"),
        ({**GOOD, "topic": "a/b"}, "T821"),
        ({**GOOD, "topic": "Entity/" + "x" * 200}, "T821"),
        ({**GOOD, "topic": ["Entity/x"]}, "T821"),
        ({**GOOD, "topic": "Services/Discovery/Rights", "to": "*"}, "T821"),
        ({**GOOD, "kind": ""}, "T821"),
        ({**GOOD, "kind": "A b"}, "T821"),
        ({**GOOD, "kind": "k" * 65}, "T821"),
        ({**GOOD, "body": "***"}, "T821"),
        ({**GOOD, "body": "AAA"}, "T821"),
        ({**GOOD, "body": "\u00e9\u00e9\u00e9\u00e9"}, "T821"),
        ({**GOOD, "body": "A" * 1_398_108}, "T821"),
        ({**GOOD, "body": 5}, "T821"),
        ({**GOOD, "to": "a b"}, "T821"),
        ({**GOOD, "to": "x" * 65}, "T821"),
        ({**GOOD, "to": "nowhere"}, "T807"),
        ({**GOOD, "ttl": 3}, "T821"),
        ({**GOOD, "to": "*", "ttl": 0}, "T821"),
        ({**GOOD, "to": "*", "ttl": 8}, "T821"),
        ({**GOOD, "to": "*", "ttl": 1.5}, "T821"),
        ({**GOOD, "to": "*", "ttl": True}, "T821"),
        ({**GOOD, "origin": "another"}, "T821"),
        ({**GOOD, "id": "mine"}, "T821"),
    ],
)
def test_what_is_no_control_message_is_refused_with_what_is_wrong(
    members: dict[str, object], code: str, tmp_path: Path
) -> None:
    async def script(broker: Refusing) -> None:
        status, problem = await send(broker, **members)

        assert (status, problem["code"]) == (404 if code == "T807" else 400, code)
        assert problem["remedy"]
        assert not bus(broker).core.counts.sent

    run(tmp_path, script)


def test_the_largest_body_is_taken(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        body = b64encode(b"x" * (1 << 20)).decode()
        assert (await send(broker, **GOOD, body=body))[0] == 202

    run(tmp_path, script)


def test_who_has_not_proved_to_be_an_entity_has_no_stream(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        bus(broker).entities._entity_of = lambda session: ""
        assert await ask(broker.http.port, "GET", STREAM) == (403, "T824")
        assert (await ask(broker.http.port, "HEAD", STREAM))[0] == 403
        assert (await ask(broker.http.port, "GET", f"{STREAM}?requests=maybe"))[0] == 400

    run(tmp_path, script)


def test_who_sends_too_much_is_told_when_to_come_again(tmp_path: Path) -> None:
    async def main() -> None:
        slow = {"overlay.control_rate_entity": 0.001}
        access = DecidedBy(allow_all)
        async with refusing(tmp_path, settings_of=slow, access=access) as broker:
            assert (await send(broker, **GOOD))[0] == 202
            status, problem = await send(broker, **GOOD)
            assert (status, problem["code"]) == (429, "T822")

    uvloop.run(main())


async def by_soap(broker: Refusing, path: str, body: str) -> str:
    message = (
        f'<s:Envelope xmlns:s="{names.SOAP_NAMESPACES["1.2"]}"><s:Body>{body}</s:Body></s:Envelope>'
    ).encode()
    way = await asyncio.open_connection("127.0.0.1", broker.http.port)
    answer = await _post(*way, path, "1.2", message)
    way[1].close()
    return answer.decode()


@pytest.mark.parametrize("topic", ["Entity/ann", "Services/Discovery/Topics"])
def test_no_protocol_publishes_or_subscribes_to_control_messages(
    topic: str, tmp_path: Path
) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}

    async def script(broker: Refusing) -> None:
        port, before = broker.http.port, broker.stored()
        filters = {"filters": [{"topic": topic}]}
        kind = {"content-type": "application/cloudevents+json"}
        batch = {"content-type": "application/cloudevents-batch+json"}
        both = [{**event, "topic": "a"}, {**event, "id": "2", "topic": topic}]
        query = f"?filter=topic+{topic}"
        refused = [
            await ask(port, "POST", "/events", {**event, "topic": topic}, kind),
            await ask(port, "POST", "/events", both, batch),
            await ask(port, "POST", "/subscriptions", {"sink": "http://127.0.0.1:9/h", **filters}),
            await ask(port, "POST", "/boxes", filters),
            await ask(port, "GET", f"/events/stream{query}"),
            await ask(port, "GET", f"/events/socket{query}", headers=SOCKET),
        ]

        assert refused == [(400, "T106")] * 6
        expression = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete"
        subscribe = (
            f'<o:Subscribe xmlns:o="{names.WSN13}"><o:ConsumerReference>{_CONSUMER}'
            f'</o:ConsumerReference><o:Filter><o:TopicExpression Dialect="{expression}">{topic}'
            "</o:TopicExpression></o:Filter></o:Subscribe>"
        )
        assert 'code="T106"' in await by_soap(broker, "/soap", subscribe)
        assert 'code="T106"' in await by_soap(broker, f"/soap/topic/{topic}", "<x/>")
        notify = (
            f'<o:Notify xmlns:o="{names.WSN13}"><o:NotificationMessage><o:Topic '
            f'Dialect="{expression}">{topic}</o:Topic><o:Message><x/></o:Message>'
            "</o:NotificationMessage></o:Notify>"
        )
        await by_soap(broker, "/soap", notify)
        assert broker.stored() == before

        status, made = await fetch(port, "POST", "/subscriptions", {"sink": "http://127.0.0.1:9/h"})
        assert status == 201
        changed = await ask(port, "PATCH", f"/subscriptions/{json.loads(made)['id']}", filters)
        assert changed == (400, "T106")

    run(tmp_path, script)


def test_who_subscribes_to_everything_sees_no_control_message(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        port, head = broker.http.port, broker.app.port.head
        _, made = await fetch(port, "POST", "/boxes", {"filters": [{"topic": "**"}]})
        box = json.loads(made)["messages"]

        for topic, to in ((TOPICS, None), (TOPICS, "*"), ("Entity/ann", "*")):
            assert (await send(broker, topic=topic, kind="x", to=to))[0] == 202

        assert broker.app.port.head == head
        assert json.loads((await fetch(port, "GET", f"{box}?max=10&wait=0"))[1])["events"] == []
        log = json.loads((await fetch(port, "GET", "/events?after=0"))[1])
        assert all(each.get("topic") != TOPICS for each in log["events"])

    run(tmp_path, script)


def test_a_message_crosses_a_link_to_an_entity_at_another_broker(tmp_path: Path) -> None:
    async def main() -> None:
        access = DecidedBy(allow_all)
        near, far = tmp_path / "near", tmp_path / "far"
        async with refusing(near, settings_of={}, access=access) as one:
            peers = {"overlay.peers": (one.link.address,)}
            async with refusing(far, settings_of=peers, access=access) as two:
                bus(two).entities._entity_of = lambda session: "ann"
                bus(two).serve("tdn", lambda message: None)
                async with stream(two) as ann:
                    _, opened = await ann.next()
                    async with asyncio.timeout(ANSWER_S):
                        while not [*bus(one).core.serving.brokers("tdn")]:
                            await asyncio.sleep(0.01)

                    status, sent = await send(
                        one, topic="Entity/ann", kind="answer", to=opened["broker"]
                    )

                    assert (status, sent["neighbours"]) == (202, 1)
                    assert (await ann.next())[1]["id"] == sent["id"]
                _, shown = await fetch(one.http.port, "GET", "/overlay")
                assert json.loads(shown)["tdns"] == [{"broker": opened["broker"], "tdns": ["tdn"]}]
                assert json.loads(shown)["control"]["forwarded"]["entity"] == 1
                _, metrics = await fetch(one.http.port, "GET", "/metrics")
                name = "tocsin_overlay_control_messages_total"
                assert f'{name}{{how="forwarded",kind="entity"}} 1.0' in metrics

    uvloop.run(main())
