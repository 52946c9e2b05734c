"""With a policy that says no, every route of the directory and of the blackboard is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import uvloop
from starlette.routing import Route
from tocsin.drivers.soap.services import broker_desk

from tocsin.access.decision import deny_all
from tocsin.access.session import internal
from tocsin.config import load
from tocsin.drivers.http.rest.blackboard import blackboard_routes
from tocsin.drivers.http.rest.directory import directory_routes
from tocsin.drivers.http.server import HttpDoor, listen
from tocsin.drivers.node import Node
from tocsin.drivers.notes import Notes
from tocsin.services.directory.directory import Directory
from tocsin.store.store import Store
from tocsin.wire.directory.listing import Wanted

BODIES = {
    "/directory": {"kind": "producer", "name": "n", "host": "h", "lease": "PT1M"},
    "/directory/{id}": {},
    "/blackboard/messages": [{"pairs": {"Event": "x"}}],
    "/blackboard/publishers": {"address": "http://127.0.0.1:9/"},
    "/blackboard/subscribers": {"address": "http://127.0.0.1:9/", "concepts": ["Event"]},
}
# A stream and a socket take over the connection; what they are asked is refused in their words.
LASTING = {"/blackboard/stream", "/blackboard/socket"}


async def ask(door: HttpDoor, method: str, path: str, body: object) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: {door.address}\r\nConnection: close\r\n"
    writer.write(f"{head}Content-Length: {len(data)}\r\n".encode())
    writer.write(b"Content-Type: application/json\r\n\r\n" + data)
    answer = await reader.read()
    writer.close()
    return int(answer.split()[1]), answer


def asked(route: Route) -> Iterator[tuple[str, str, object]]:
    for method in sorted((route.methods or set()) - {"HEAD"}):
        path = route.path.replace("{id}", "abc")
        if method == "DELETE" and "{id}" not in route.path:
            path += "?address=http://127.0.0.1:9/"
        body = BODIES.get(route.path) if method in {"POST", "PUT"} else None
        yield method, path, body


def test_nobody_gets_past_a_policy_that_says_no(tmp_path: Path) -> None:
    async def main() -> None:
        settings, _ = load({"http.address": "127.0.0.1:0", "log.directory": str(tmp_path)}, {})
        node = Node(settings, Store.open(tmp_path), Notes(), decide=deny_all)
        desk = broker_desk(node)
        directory = Directory(node.port)
        door = await listen(node, "127.0.0.1:0", desk.answer, directory)
        routes = [*directory_routes(node.port, directory), *blackboard_routes(node, door.door)]
        try:
            for route in routes:
                if route.path in LASTING:
                    continue
                for method, path, body in asked(route):
                    status, answer = await ask(door, method, path, body)
                    assert status == 403, (method, path, answer)
            assert node.broker.head == 0
            assert node.port.kept("") == {}
            assert node.port.views(internal("test")) == []
            assert node.board.publishers(internal("test")) == []
            assert (await directory.look_up(internal("test"), Wanted())).entries == []
        finally:
            await door.close()
            await desk.close()
            await node.close()

    uvloop.run(asyncio.wait_for(main(), 30))
