"""Every message that a client of a WebSocket may send, once the socket is open."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

from http_walk import BODIES, CODE
from refusing import Refusing
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, Request, TextMessage

from tocsin.services.blackboard.socket import Command

ANSWER_S = 10.0
# By the members of a command, which are its operations, what asks for one.
COMMANDS: dict[str, object] = {
    "publish": {"publish": [{"pairs": {"RunId": "r1"}}]},
    "subscribe": {"subscribe": ["RunId"]},
    "unsubscribe": {"unsubscribe": True},
    "register": {"register": True},
}
OPEN = {"unsubscribe": "it ends what this very socket has subscribed to"}
MODIFIERS = ("after", "ref")  # they ask for nothing by themselves


async def walk_sockets(broker: Refusing) -> list[str]:
    """The messages that were not refused as they should be."""
    wrong: list[str] = []
    for name in Command.__struct_fields__:
        if name not in MODIFIERS:
            answer = await answer_in_socket(broker, "/blackboard/socket", COMMANDS[name])
            if (CODE in answer) == (name in OPEN):
                wrong.append(f"/blackboard/socket {name}: {answer}")
    answer = await answer_in_socket(broker, "/events/socket", BODIES["POST /events"])
    return wrong if CODE in answer else [*wrong, f"/events/socket: {answer}"]


async def answer_in_socket(broker: Refusing, path: str, message: object) -> str:
    """The answer to a message in a socket that was opened while that was allowed."""
    with broker.allowing():
        socket = await _Socket.open(broker.http.port, path)
    socket.send(json.dumps(message))
    try:
        return await asyncio.wait_for(socket.text(), ANSWER_S)
    finally:
        socket.writer.close()
        async with asyncio.timeout(ANSWER_S):
            while broker.app.node.broker.streams_open:  # until the broker knows that we left
                await asyncio.sleep(0.01)


@dataclass
class _Socket:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    protocol: WSConnection

    @classmethod
    async def open(cls, port: int, path: str) -> _Socket:
        way = await asyncio.open_connection("127.0.0.1", port)
        socket = cls(*way, WSConnection(ConnectionType.CLIENT))
        socket.writer.write(socket.protocol.send(Request(host="127.0.0.1", target=path)))
        opened = await asyncio.wait_for(socket._event(), ANSWER_S)
        assert isinstance(opened, AcceptConnection), opened
        return socket

    def send(self, text: str) -> None:
        self.writer.write(self.protocol.send(TextMessage(data=text)))

    async def text(self) -> str:
        found = await self._event()
        assert isinstance(found, TextMessage), found
        return found.data

    async def _event(self) -> object:
        while (found := next(self.protocol.events(), None)) is None:
            received = await self.reader.read(1 << 16)
            assert received, "the broker closed the connection"
            self.protocol.receive_data(received)
        return found
