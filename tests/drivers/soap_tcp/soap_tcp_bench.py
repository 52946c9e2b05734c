"""A SOAP.TCP listener whose answers the test writes, and a client that speaks DIME."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import uvloop

from tocsin.config import SoapTcpSettings
from tocsin.drivers.soap_tcp.listener import SoapTcpListener, listen
from tocsin.services.soap.call import SoapAnswer, SoapCall
from tocsin.wire.dime import Decoder, Message, envelope_message

Result = TypeVar("Result")
WAIT_S = 10.0


class Peer:
    """One connection to the listener."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._decoder = Decoder()

    def send(self, envelope: bytes, soap: str = "1.1") -> None:
        self.writer.write(envelope_message(soap, envelope))

    async def message(self) -> Message | None:
        """The next answer; None if the listener hung up."""
        async with asyncio.timeout(WAIT_S):
            while (message := self._decoder.next_message()) is None:
                try:
                    data = await self.reader.read(1 << 16)
                except ConnectionError:
                    return None
                if not data:
                    return None
                self._decoder.receive(data)
        return message

    async def answer(self) -> bytes | None:
        message = await self.message()
        return None if message is None else message.parts[0].data


@dataclass
class Bench:
    """One listener on one loop."""

    loop: asyncio.AbstractEventLoop
    limits: SoapTcpSettings = field(default_factory=SoapTcpSettings)
    calls: list[SoapCall] = field(default_factory=list)
    notes: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    listener: SoapTcpListener | None = None

    async def echo(self, call: SoapCall) -> SoapAnswer:
        self.calls.append(call)
        await asyncio.sleep(0)
        return SoapAnswer(200, call.content_type, b"<answer>" + call.body + b"</answer>")

    def open(
        self,
        answer: Callable[[SoapCall], Awaitable[SoapAnswer]] | None = None,
        address: str = "127.0.0.1:0",
        **how: Any,
    ) -> SoapTcpListener:
        def note(level: str, message: str, **fields: Any) -> None:
            self.notes.append((level, message, fields))

        opening = listen(answer or self.echo, address, self.limits, note, **how)
        self.listener = self.run(opening)
        return self.listener

    async def peer(self, **how: Any) -> Peer:
        assert self.listener is not None
        return Peer(*await asyncio.open_connection(self.listener.host, self.listener.port, **how))

    def run(self, work: Awaitable[Result]) -> Result:
        async def within() -> Result:
            async with asyncio.timeout(3 * WAIT_S):
                return await work

        return self.loop.run_until_complete(within())


def a_bench() -> Iterator[Bench]:
    """For a fixture: a bench with no listener open yet, closed afterwards."""
    loop = uvloop.new_event_loop()
    failures: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: failures.append(context))
    bench = Bench(loop)
    yield bench
    if bench.listener is not None:
        bench.run(bench.listener.close())
    bench.run(asyncio.sleep(0.01))
    loop.close()
    assert failures == []
