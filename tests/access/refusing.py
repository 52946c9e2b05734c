"""A broker that lets nobody do anything, and everything that must be true when it was asked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tocsin.access.decision import Action, Decide, allow_all, deny_all
from tocsin.access.session import Session, internal
from tocsin.config import load
from tocsin.drivers import node as node_module
from tocsin.drivers.application import Application
from tocsin.drivers.disk import Readers
from tocsin.drivers.frames.datagrams import DatagramListener
from tocsin.drivers.frames.datagrams import listen as listen_datagrams
from tocsin.drivers.frames.listener import FramesListener
from tocsin.drivers.frames.listener import listen as listen_frames
from tocsin.drivers.http.listener import HttpListener, listen
from tocsin.drivers.http.rest import app as rest_app
from tocsin.drivers.http.rest.endpoint import Endpoint
from tocsin.drivers.monitor.monitor import open_monitor
from tocsin.drivers.notes import Notes
from tocsin.drivers.pegasus.listener import PegasusListener
from tocsin.drivers.pegasus.listener import listen as listen_pegasus
from tocsin.drivers.soap_services import SoapServices
from tocsin.drivers.soap_tcp.listener import SoapTcpListener
from tocsin.drivers.soap_tcp.listener import listen as listen_soap_tcp
from tocsin.event.event import Event
from tocsin.services.directory.directory import Directory
from tocsin.services.performance.service import PerformanceService
from tocsin.services.performance.session import ARCHIVE
from tocsin.store.store import Store


@dataclass
class Refusing:
    """The broker, its listeners, and what was read of its log for anybody."""

    app: Application
    http: HttpListener
    pegasus: PegasusListener
    soap: SoapServices
    soap_tcp: SoapTcpListener
    directory: Directory
    performance: PerformanceService
    frames: FramesListener
    archive: FramesListener
    datagrams: DatagramListener
    decisions: list[Decide]
    reads: list[object] = field(default_factory=list)

    def endpoints(self) -> list[Endpoint]:
        return rest_app.endpoints(
            self.app.rest_context(self.directory, self.performance), self.http.server
        )

    @contextlib.contextmanager
    def allowing(self) -> Iterator[None]:
        """Meanwhile everybody may do everything."""
        self.decisions.append(allow_all)
        try:
            yield
        finally:
            self.decisions.pop()

    def stored(self) -> tuple[object, ...]:
        """What changes if anything is stored or subscribed."""
        broker, nobody = self.app.node.broker, internal("test")
        kept = broker.kept("")
        own = broker.head, len(self.app.port.views(nobody)), broker.streams_open, sorted(kept)
        boxes = self.soap.boxes.open().port
        return *own, boxes.head, len(boxes.views(nobody))


Walk = Callable[[Refusing], Awaitable[list[str]]]
"""Makes every call that a protocol has, by the protocol's own table. Returns those not refused."""


@contextlib.asynccontextmanager
async def refusing(directory: Path, decide: Decide = deny_all) -> AsyncIterator[Refusing]:
    """It runs in this process, and has one event in its log."""
    reads: list[object] = []
    decisions = [decide]

    def decide_now(session: Session, action: Action, resource: str) -> None:
        decisions[-1](session, action, resource)

    class RecordingReaders(Readers):
        async def ask(self, work: Callable[[Any], Any]) -> Any:
            reads.append(work)
            return await super().ask(work)

    settings, _ = load({"http.address": "127.0.0.1:0", "log.directory": str(directory)}, {})
    with patch.object(node_module, "Readers", RecordingReaders):
        app = Application(settings, Store.open(directory), Notes(), decide=decide_now)
    soap = SoapServices(app)
    app.monitor = open_monitor(app.port, settings)
    entries = Directory(app.port)
    performance = app.performance_service()
    context = app.rest_context(entries, performance)
    http = await listen(context, settings.http.address, soap.answer)
    app.addresses.http = http.address
    pegasus = await listen_pegasus(app.port, settings, "127.0.0.1:0")
    soap_tcp = await listen_soap_tcp(soap.answer, "127.0.0.1:0", settings.soap_tcp, app.node.note)
    frames = await listen_frames(performance, settings, "127.0.0.1:0")
    archive = await listen_frames(
        performance, settings, "127.0.0.1:0", name="archive", roles=ARCHIVE
    )
    datagrams = await listen_datagrams(performance, app.node.rules.trusted, frames.address)
    try:
        await app.port.publish(internal("test"), [Event("1", "/s", "t", topic="a/b")])
        reads.clear()
        yield Refusing(
            app,
            http,
            pegasus,
            soap,
            soap_tcp,
            entries,
            performance,
            frames,
            archive,
            datagrams,
            decisions,
            reads,
        )
    finally:
        app.node.stopping = True
        listeners = http, pegasus, soap_tcp, frames, archive, datagrams
        await asyncio.gather(*(each.close() for each in listeners))
        await soap.close()
        await app.close()
