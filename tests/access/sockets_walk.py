"""Every message that a client of a WebSocket may send, once the socket is open."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

from http_walk import BODIES, code_in
from refusing import SECRET, Refusing
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Request, TextMessage

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
SOCKETS = {"/events/socket", "/blackboard/socket"}
ENDED = "closed: the right or the credential that it was opened with has ended"


async def walk_sockets(broker: Refusing) -> list[str]:
    """The messages that were not refused as they should be."""
    assert {path for path in broker.http.long_lived if path.endswith("/socket")} == SOCKETS
    wrong: list[str] = []
    for name in Command.__struct_fields__:
        if name not in MODIFIERS:
            answer = await answer_in_socket(broker, "/blackboard/socket", COMMANDS[name])
            if (code_in(answer) == broker.refusal[1]) == (name in OPEN):
                wrong.append(f"/blackboard/socket {name}: {answer}")
    answer = await answer_in_socket(broker, "/events/socket", BODIES["POST /events"])
    # It reads the log from the start: so it is closed as soon as it may not.
    is_refused = answer == ENDED or code_in(answer) == broker.refusal[1]
    return wrong if is_refused else [*wrong, f"/events/socket: {answer}"]


async def answer_in_socket(broker: Refusing, path: str, message: object) -> str:
    """The answer to a message in a socket that was opened while that was allowed."""
    with broker.allowing():
        socket = await _Socket.open(broker, path)
    socket.send(json.dumps(message))
    try:
        answer = await asyncio.wait_for(socket.text(), ANSWER_S)
    finally:
        socket.writer.close()
        async with asyncio.timeout(ANSWER_S):
            while broker.app.node.broker.streams_open:  # until the broker knows that we left
                await asyncio.sleep(0.01)
    broker.answers.append((f"{path} {message}", 200, code_in(answer)))
    if SECRET in answer:
        broker.shown.append(path)
    return answer


@dataclass
class _Socket:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    protocol: WSConnection

    @classmethod
    async def open(cls, broker: Refusing, path: str) -> _Socket:
        way = await broker.open(broker.http.address)
        socket = cls(*way, WSConnection(ConnectionType.CLIENT))
        shown = [(name.encode(), value.encode()) for name, value in broker.headers.items()]
        asked = Request(host="127.0.0.1", target=path, extra_headers=shown)
        socket.writer.write(socket.protocol.send(asked))
        opened = await asyncio.wait_for(socket._event(), ANSWER_S)
        assert isinstance(opened, AcceptConnection), opened
        return socket

    def send(self, text: str) -> None:
        self.writer.write(self.protocol.send(TextMessage(data=text)))

    async def text(self) -> str:
        """The next message, or why there will be none."""
        found = await self._event()
        if isinstance(found, CloseConnection):
            return f"closed: {found.reason}"
        assert isinstance(found, TextMessage), found
        return found.data

    async def _event(self) -> object:
        while (found := next(self.protocol.events(), None)) is None:
            received = await self.reader.read(1 << 16)
            assert received, "the broker closed the connection"
            self.protocol.receive_data(received)
        return found
