"""A loop, a pusher, and small real sinks that behave as the test says."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from tocsin.broker.delivery.outcome import Outcome
from tocsin.broker.delivery.trust import SinkRules
from tocsin.broker.effects import Handshake, Push
from tocsin.drivers.push.pusher import Pusher, PushOptions
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Config, Kind, SinkCredential, Subscription
from tocsin.wire.cloudevents.webhook import Allowed, Refused

NOW_S = 1_700_000_000.0
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


async def read_request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    method, target, _ = first.split(" ")
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, target, headers, body)


@dataclass
class World:
    """One pusher and its sinks, on one loop."""

    loop: asyncio.AbstractEventLoop
    options: PushOptions = field(default_factory=lambda: PushOptions(SinkRules(allow_private=True)))
    notes: list[tuple[str, str]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    pusher: Pusher = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self, **how: object) -> Pusher:
        def note(level: str, message: str, **_: object) -> None:
            self.notes.append((level, message))

        clock = {"clock": lambda: NOW_S}
        self.pusher = Pusher(self.loop, self.options, note, **{**clock, **how})  # type: ignore[arg-type]
        return self.pusher

    def sink(self, script: Script, **how: object) -> str:
        """The address of a new sink that does this with every connection."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.connections += 1
            try:
                await script(reader, writer)
            except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
                pass
            finally:
                writer.close()

        server = self.loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0, **how))  # type: ignore[arg-type]
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"

    def answering(self, *answers: bytes) -> str:
        """A sink that keeps the requests and answers with these in turn, the last one for ever."""

        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                self.requests.append(await read_request(reader))
                writer.write(answers[min(len(self.requests), len(answers)) - 1])

        return self.sink(script)

    def push(
        self,
        address: str,
        *events: Event,
        lane: int = 1,
        config: Config | None = None,
        timeout_s: float = 5.0,
    ) -> Outcome:
        return self.loop.run_until_complete(
            self.pushing(address, *events, lane=lane, config=config, timeout_s=timeout_s)
        )

    def pushing(
        self,
        address: str,
        *events: Event,
        lane: int = 1,
        config: Config | None = None,
        timeout_s: float = 5.0,
    ) -> asyncio.Future[Outcome]:
        stored = [Stored(7 + i, 0, event) for i, event in enumerate(events or (EVENT,))]
        subscription = Subscription(
            id="sub1", kind=Kind.PUSH, sink=address, config=config or Config()
        )
        finished: asyncio.Future[Outcome] = self.loop.create_future()

        def done(number: int, outcome: Outcome) -> None:
            assert number == lane
            finished.set_result(outcome)  # raises if it is called twice

        self.pusher.send(Push(lane, address, subscription, stored, timeout_s), done)
        assert not finished.done(), "answered before send returned"
        return finished

    def shake_hands(
        self,
        address: str,
        callback: str | None = None,
        credential: SinkCredential | None = None,
    ) -> Allowed | Refused:
        finished: asyncio.Future[Allowed | Refused] = self.loop.create_future()

        def done(subscription_id: str, answer: Allowed | Refused) -> None:
            assert subscription_id == "sub1"
            finished.set_result(answer)

        asked = Handshake("sub1", address, "token", credential)
        self.pusher.handshake(asked, "broker.example", callback, done)
        return self.loop.run_until_complete(finished)

    def wait(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))


EVENT = Event(
    id="e-1",
    source="/sensors/7",
    type="org.example.reading",
    topic="lab/7",
    datacontenttype="application/json",
    data=b'{"load": 1.5}',
)


async def here(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


def trusting(certificates: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificates / "ca.pem"))
