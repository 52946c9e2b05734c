"""A broker that lets nobody do anything, and everything that must be true when it was asked."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import uvloop

from tocsin.access.decision import Access, Action, Decide, DecidedBy, allow_all, deny_all
from tocsin.access.policy.policy import Policy
from tocsin.access.policy.rights import read_rule
from tocsin.access.quotas.rules import QuotaRule
from tocsin.access.session import BROKER, Session, internal
from tocsin.broker.recent.events import Recent
from tocsin.config import load
from tocsin.drivers import node as node_module
from tocsin.drivers.application import Application
from tocsin.drivers.broker_tls import BrokerTls, broker_tls, watch_certificates
from tocsin.drivers.control import open_control
from tocsin.drivers.dialects import BuiltIn, DialectContext, Listeners, open_dialects
from tocsin.drivers.frames.datagrams import DatagramListener
from tocsin.drivers.frames.listener import FramesListener
from tocsin.drivers.http.listener import HttpListener
from tocsin.drivers.http.rest import app as rest_app
from tocsin.drivers.http.rest.context import RestContext
from tocsin.drivers.http.rest.endpoint import Endpoint
from tocsin.drivers.link.links import Links
from tocsin.drivers.link.listener import LinkListener
from tocsin.drivers.listeners.budget import ReceiveBudget
from tocsin.drivers.logger import Logger
from tocsin.drivers.monitor.monitor import Monitor, open_monitor
from tocsin.drivers.pegasus.listener import PegasusListener
from tocsin.drivers.soap_services import SoapServices
from tocsin.drivers.soap_tcp.listener import SoapTcpListener
from tocsin.drivers.storage.disk import Readers
from tocsin.event.event import Event
from tocsin.event.topic import TopicPattern
from tocsin.overlay.time_of_day import NO_ZONES
from tocsin.services.directory.directory import Directory
from tocsin.services.discovery.factory import open_discovery
from tocsin.services.link.identity import ids_of
from tocsin.store.store import Store

T = TypeVar("T")
Way = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Meanwhile = Callable[[], contextlib.AbstractContextManager[None]]
NOT_ALLOWED = (403, "T215")
NOT_SIGNED_IN = (401, "T216")
NO_CONNECTION = (0, "")  # TLS, or the listener, has ended it
CUT = (ConnectionError, ssl.SSLError, EOFError)  # what is raised then
ANY_PORT = "127.0.0.1:0"
# What nobody may see who has no right to it.
SECRET = "not-for-everybody"
HIDDEN = Event("1", "/s", "t", topic="a/b", data=SECRET.encode(), datacontenttype="text/plain")
# Each listener that a broker can have is open.
OPEN = {
    "http.address": ANY_PORT,
    "frames.address": ANY_PORT,
    "frames.archive": ANY_PORT,
    "frames.udp": True,
    "soap_tcp.address": ANY_PORT,
    "pegasus.address": ANY_PORT,
    "overlay.address": ANY_PORT,
}


@dataclass
class Refusing:
    """The broker, its listeners, and what was read for anybody: of its log, on disk and in memory,
    and of the monitor's database."""

    app: Application
    soap: SoapServices
    rest: RestContext
    listeners: Listeners
    decisions: list[Decide]
    asked: set[tuple[Action, str]]  # of the one function, by anybody but the broker
    reads: list[object]
    refusal: tuple[int, str] = NOT_ALLOWED  # what every call is answered
    headers: dict[str, str] = field(default_factory=dict)  # that every request has: a credential
    security: bytes = b""  # the same, in each SOAP message where there are no requests
    tls: ssl.SSLContext | None = None  # that of clients, with the certificate that they show
    far_tls: ssl.SSLContext | None = None  # that of whom the broker connects to
    meanwhile: Meanwhile | None = None  # how somebody is allowed something for a while
    is_allowed_first: bool = False  # connections are made while that is so
    is_allowing: bool = False  # now
    is_cut_off: bool = False  # each connection is refused, or is so at its first request
    answers: list[tuple[str, int, str]] = field(default_factory=list)  # to all that was asked
    shown: list[str] = field(default_factory=list)  # of those, the ones that SECRET was in
    look: Callable[[], None] = lambda: None  # read files of certificates again

    @property
    def http(self) -> HttpListener:
        return self._listener("http", HttpListener)

    @property
    def pegasus(self) -> PegasusListener:
        return self._listener("pegasus", PegasusListener)

    @property
    def soap_tcp(self) -> SoapTcpListener:
        return self._listener("soap_tcp", SoapTcpListener)

    @property
    def frames(self) -> FramesListener:
        return self._listener("frames", FramesListener)

    @property
    def archive(self) -> FramesListener:
        return self._listener("archive", FramesListener)

    @property
    def datagrams(self) -> DatagramListener:
        return self._listener("datagrams", DatagramListener)

    @property
    def link(self) -> LinkListener:
        return self._listener("link", LinkListener)

    def _listener(self, name: str, kind: type[T]) -> T:
        found = self.listeners[name]
        assert isinstance(found, kind)
        return found

    def endpoints(self) -> list[Endpoint]:
        return rest_app.endpoints(self.rest, self.http.server)

    async def open(self, address: str) -> Way:
        """A connection, as a client makes it. Raises one of CUT."""
        host, _, port = address.rpartition(":")
        name = None if self.tls is None else "localhost"
        return await asyncio.open_connection(host, int(port), ssl=self.tls, server_hostname=name)

    @property
    def policy(self) -> Policy:
        return self.app.access_control.service.policy

    def first(self) -> contextlib.AbstractContextManager[None]:
        """Around the making of a connection, and what is asked by it before all else."""
        return self.allowing() if self.is_allowed_first else contextlib.nullcontext()

    @contextlib.contextmanager
    def allowing(self) -> Iterator[None]:
        """Meanwhile everybody may do everything, unless that is to be allowed in another way."""
        if self.is_allowing:
            yield
            return
        self.is_allowing = True
        try:
            with (self.meanwhile or self._everybody)():
                yield
        finally:
            self.is_allowing = False

    @contextlib.contextmanager
    def _everybody(self) -> Iterator[None]:
        policy = self.policy
        rule = read_rule({"principal": "anonymous", "action": "*"}, "meanwhile", 0)
        self.decisions.append(allow_all)
        policy.set_rules([rule])
        try:
            yield
        finally:
            self.decisions.pop()
            policy.set_rules([], removed=["meanwhile"])

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
async def refusing(
    directory: Path,
    decide: Decide = deny_all,
    *,
    settings_of: dict[str, object] | None = None,
    quotas: tuple[QuotaRule, ...] = (),
    access: Access | None = None,
) -> AsyncIterator[Refusing]:
    """It runs in this process, and has one event in its log. With `settings_of` these settings
    decide, with `access` that does, and not the function."""
    reads: list[object] = []
    decisions = [decide]
    asked: set[tuple[Action, str]] = set()

    def decide_now(session: Session, action: Action, resource: str) -> None:
        if session.principal != BROKER:
            asked.add((action, resource))
        decisions[-1](session, action, resource)

    class RecordingReaders(Readers):
        async def ask(self, work: Callable[[Any], Any]) -> Any:
            name = getattr(work, "__qualname__", "")
            if not name.startswith("Node._check_retention."):  # that is for nobody
                reads.append(work)
            return await super().ask(work)

    async def ask(monitor: Monitor, question: Callable[[Any, int], Any]) -> Any:
        reads.append(question)
        return await ask_monitor(monitor, question)

    def latest(recent: Recent, pattern: TopicPattern) -> Any:
        reads.append(pattern)
        return latest_of(recent, pattern)

    def of_type(recent: Recent, event_type: str) -> Any:
        reads.append(event_type)
        return recent_of_type(recent, event_type)

    ask_monitor, latest_of, recent_of_type = Monitor.ask, Recent.latest, Recent.of_type
    named = {**OPEN, "log.directory": str(directory), **(settings_of or {})}
    settings, _ = load(named, {})
    settings = replace(settings, access=replace(settings.access, quotas=quotas))
    tls = broker_tls(settings) if settings.http.tls_certificate else BrokerTls(None, None, None)
    if settings_of is None:
        access = access or DecidedBy(decide_now)
    with patch.object(node_module, "Readers", RecordingReaders):
        app = Application(settings, Store.open(directory), Logger(), access=access)
    reload = watch_certificates(tls, app)
    soap = SoapServices(app, tls.peers)
    app.monitor = open_monitor(app.port, settings)
    ids = await ids_of(app.port)
    app.discovery = open_discovery(app.port, ids.broker, NO_ZONES)
    budget = ReceiveBudget(settings.limits.receiving_bytes_max, app.node.note)
    app.control = control = open_control(app.port, ids.broker, settings)
    app.links = links = Links(app.port, app.discovery, control, ids, settings, budget, tls.links)
    app.open_entities("broker-1")
    rest = app.rest_context(Directory(app.port), app.performance_service())
    listeners: Listeners = {}
    ours = BuiltIn(rest, soap, links, app.node.rules.trusted)
    note = app.node.note
    memory = (
        patch.object(Monitor, "ask", ask),
        patch.object(Recent, "latest", latest),
        patch.object(Recent, "of_type", of_type),
    )
    try:
        for each in memory:
            each.start()
        await open_dialects(
            DialectContext(
                app.port, settings, tls.listeners, budget, note, ours, listeners=listeners
            )
        )
        await links.start()
        await app.port.publish(internal("test"), [HIDDEN])
        reads.clear()
        yield Refusing(app, soap, rest, listeners, decisions, asked, reads, look=reload.look)
    finally:
        reload.close()
        for each in memory:
            each.stop()
        app.node.stopping = True
        await links.close()
        await asyncio.gather(*(each.close() for each in listeners.values()))
        await soap.close()
        await app.close()


def run(
    directory: Path, script: Callable[[Refusing], Awaitable[None]], decide: Decide = deny_all
) -> None:
    async def main() -> None:
        async with refusing(directory, decide) as broker:
            await script(broker)

    uvloop.run(main())
