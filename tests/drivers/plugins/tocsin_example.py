"""A package that is not part of Tocsin: a sink, a store and a dialect of its own."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from uuid import uuid4

from tocsin.access.session import ANONYMOUS, Session
from tocsin.broker.commit.numbering import Applied
from tocsin.broker.delivery.address import SinkAddress
from tocsin.broker.delivery.outcome import Answered, Outcome
from tocsin.broker.delivery.sinks import UrlSink
from tocsin.broker.delivery.trust import SinkRules
from tocsin.broker.effects import Push
from tocsin.broker.log import EventStore, OpenLogReader
from tocsin.drivers.dialects import DialectContext, Listener
from tocsin.drivers.push.coroutine_sender import CoroutineSender
from tocsin.drivers.push.sender import PushContext, Sender
from tocsin.drivers.storage.stores import StoreOptions
from tocsin.errors import TocsinError
from tocsin.event.event import Event
from tocsin.event.stored import Append, StateChange
from tocsin.store.reader import Reader
from tocsin.store.store import Store

LOG = "counted-log"

# A sink: spool://name appends each event to a file.


class SpoolSender(CoroutineSender):
    async def deliver(self, push: Push) -> Outcome:
        with (Path(os.environ["EXAMPLE_SPOOL"]) / self.sink.host).open("a") as spool:
            for stored in push.events:
                spool.write(json.dumps([stored.seq, stored.event.topic]) + "\n")
        return Answered(200)


class SpoolSink(UrlSink):
    def is_trusted(self, address: SinkAddress, rules: SinkRules) -> bool:
        return True  # the file is the operator's own

    def open_sender(
        self, context: PushContext, lane: int, url: str, address: SinkAddress
    ) -> Sender:
        return SpoolSender(context, lane, url, address)


SPOOL = SpoolSink(port=0, has_path=False)


# A store: counted://name has a directory of its own, and writes down how many events it was given.


class CountedStore:
    def __init__(self, directory: Path, count: Path) -> None:
        self._store: EventStore = Store.open(directory)
        self._count = count
        self.follow = self._store.follow
        self.open_window = self._store.open_window
        self.reader = self._store.reader
        self.close = self._store.close

    @property
    def first_seq(self) -> int:
        return self._store.first_seq

    @property
    def last_seq(self) -> int:
        return self._store.last_seq

    def commit(self, append: Append, change: StateChange) -> Applied:
        applied = self._store.commit(append, change)
        self._count.write_text(str(applied.last_seq))
        return applied


def open_counted(options: StoreOptions) -> EventStore:
    directory = Path(options.directory)
    return CountedStore(directory / LOG, directory / options.url.removeprefix("counted://"))


def read_counted(url: str, directory: str) -> OpenLogReader:
    return Reader.open(Path(directory) / LOG)


# A dialect: a topic a line, answered by the number of the event.


class LinesListener:
    def __init__(self, server: asyncio.Server) -> None:
        self._server = server
        host, port = server.sockets[0].getsockname()[:2]
        self.address = f"{host}:{port}"

    async def close(self) -> None:
        self._server.close()


async def open_lines(context: DialectContext) -> dict[str, Listener]:
    session = Session(ANONYMOUS, "lines", "")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for line in reader:
            topic = line.decode().strip()
            event = Event(id=str(uuid4()), source="/lines", type="example.line", topic=topic)
            try:
                accepted = await context.port.publish(session, [event])
                writer.write(f"{accepted.last}\n".encode())
            except TocsinError as error:
                writer.write(f"{error}\n".encode())
        writer.close()

    host, _, port = context.address.rpartition(":")
    return {"lines": LinesListener(await asyncio.start_server(serve, host, int(port)))}
