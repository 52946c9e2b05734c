"""Serve: from settings to a running broker, until a signal ends it."""

from __future__ import annotations

import asyncio
import gc
import resource
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import uvloop

from tocsin.access.decision import Access
from tocsin.broker.log import EventStore
from tocsin.config import Settings
from tocsin.drivers.access.access_control import check_exposure, ensure_administrator
from tocsin.drivers.application import Application
from tocsin.drivers.archive.archiver import Archiver, open_archiver
from tocsin.drivers.broker_tls import BrokerTls, broker_tls, watch_certificates
from tocsin.drivers.control import open_control
from tocsin.drivers.dialects import BuiltIn, DialectContext, Listeners, open_dialects
from tocsin.drivers.http.connection_limiter import long_lived_max
from tocsin.drivers.link.links import Links
from tocsin.drivers.listeners.bind_address import host_and_port
from tocsin.drivers.listeners.budget import ReceiveBudget
from tocsin.drivers.logger import Logger
from tocsin.drivers.monitor.monitor import open_monitor
from tocsin.drivers.node import Node
from tocsin.drivers.secret_box import seal_former_secrets
from tocsin.drivers.site_ontology import use_ontology
from tocsin.drivers.soap_services import SoapServices
from tocsin.drivers.storage.stores import (
    accept_losses,
    accept_the_clock,
    has_log_reader,
    open_store,
)
from tocsin.errors import TocsinError
from tocsin.services.directory.directory import Directory, Offering
from tocsin.services.discovery.factory import open_discovery
from tocsin.services.link.identity import Ids, ids_of
from tocsin.services.performance.service import Addresses
from tocsin.wire.directory.entry import Kind, Registration

# The writer's thread gets the interpreter back after at most this long, not after the default
# 5 ms, which would be the price of every commit while the loop is busy.
SWITCH_INTERVAL_S = 0.0005

ANYWHERE = frozenset({"0.0.0.0", "::", ""})  # every address of this machine

# Of the descriptors we may have; the log and the other listeners need the rest.
SINKS_SHARE = 0.5
HTTP_SHARE = 0.25
FRAMES_SHARE = 0.15
SOAP_TCP_SHARE = 0.04
PEGASUS_SHARE = 0.02
LINK_SHARE = 0.02

# Events hold no cycles, and a hundred thousand of their keys are remembered. With the default of
# 700 the collector looks at all that again and again: a third of the cost of an event in a batch.
COLLECT_AFTER = (20_000, 20, 100)

Ready = Callable[[dict[str, object]], None]


def run(
    settings: Settings,
    ready: Ready,
    logger: Logger | None = None,
    *,
    accept_loss: bool = False,
    accept_clock: bool = False,
    access: Access | None = None,
) -> int:
    """Run a broker until SIGTERM or SIGINT. Returns the exit code; raises what stops the start."""
    logger = logger or Logger()
    for address in settings.addresses().values():
        host_and_port(address)  # first: what is no address is open to nobody
    check_exposure(settings, logger)
    tls = broker_tls(settings)
    use_ontology(settings.blackboard.ontology)
    settings = prepare_process(settings, logger, accept_loss=accept_loss, accept_clock=accept_clock)
    store = open_store(settings.log, logger)
    return uvloop.run(_serve(settings, store, ready, logger, tls, access))


def prepare_process(
    settings: Settings, logger: Logger, *, accept_loss: bool, accept_clock: bool
) -> Settings:
    """Set what is one for a process, and accept what an operator accepts. Returns the settings
    with no more connections than there can be."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(*COLLECT_AFTER)
    if accept_loss:
        accept_losses(settings.log, logger)
    if accept_clock:
        accept_the_clock(settings.log, logger)
    return within_descriptors(settings)


def stop_signals() -> asyncio.Event:
    """Set when somebody asks this process to stop."""
    requested = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, requested.set)
    return requested


async def until_stopped(requested: asyncio.Event, node: Node) -> None:
    """Until somebody asks for it, or the node has failed."""
    waits = [asyncio.create_task(event.wait()) for event in (requested, node.failed)]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


def within_descriptors(settings: Settings) -> Settings:
    """Have as many descriptors as this user may have, and let nobody take those of the others."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # a system may refuse what it promised; the rest holds
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    had, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if had == resource.RLIM_INFINITY:
        return settings
    http, frames, delivery = settings.http, settings.frames, settings.delivery
    soap_tcp, pegasus, overlay = settings.soap_tcp, settings.pegasus, settings.overlay

    def at_most(wanted: int, share: float) -> int:
        return min(wanted, int(had * share))

    return replace(
        settings,
        http=replace(http, connections_max=at_most(http.connections_max, HTTP_SHARE)),
        frames=replace(frames, connections_max=at_most(frames.connections_max, FRAMES_SHARE)),
        soap_tcp=replace(
            soap_tcp, connections_max=at_most(soap_tcp.connections_max, SOAP_TCP_SHARE)
        ),
        pegasus=replace(pegasus, connections_max=at_most(pegasus.connections_max, PEGASUS_SHARE)),
        overlay=replace(overlay, links_max=at_most(overlay.links_max, LINK_SHARE)),
        delivery=replace(delivery, sinks_open_max=at_most(delivery.sinks_open_max, SINKS_SHARE)),
    )


def note_room(settings: Settings, note: Callable[..., None]) -> None:
    """Say how many clients there is room for, which the system decides as much as the settings."""
    connections = settings.http.connections_max
    note(
        "info",
        "connection limits; open_files is the limit of the system (ulimit -n)",
        http_connections=connections,
        http_streams=min(long_lived_max(connections), settings.limits.streams_max),
        frames_connections=settings.frames.connections_max,
        open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    )


async def _serve(
    settings: Settings,
    store: EventStore,
    ready: Ready,
    logger: Logger,
    tls: BrokerTls,
    access: Access | None,
) -> int:
    stop_requested = stop_signals()
    app = Application(settings, store, logger, access=access, peers=tls.peers)
    node, directory, soap = app.node, Directory(app.port), SoapServices(app, tls.peers)
    performance = app.performance_service()
    listeners: Listeners = {}
    secured: dict[str, object] = {}
    reload = watch_certificates(tls, app)
    try:
        await app.access_control.start()
        if app.access_control.sign_in is not None:
            token = await ensure_administrator(app.access_control, settings.log.directory, logger)
            secured["admin_token"] = str(token)
        await seal_former_secrets(app.port, node.secrets, node.note)
        app.monitor = open_monitor(app.port, settings)
        app.archiver = _open_archiver(app, directory)
        ids = await ids_of(app.port)
        budget = ReceiveBudget(settings.limits.receiving_bytes_max, node.note)
        app.links = links = _open_links(app, ids, budget, tls)
        app.open_entities(ids.broker)
        rest = app.rest_context(directory, performance)
        ours = BuiltIn(rest, soap, links, node.rules.trusted)
        await open_dialects(
            DialectContext(
                app.port, settings, tls.listeners, budget, node.note, ours, listeners=listeners
            )
        )
        _list_ourselves(app, performance.addresses, directory)
        await links.start()
    except BaseException:
        reload.close()
        await _close(listeners, app, soap)
        raise
    note_room(settings, node.note)
    gc.freeze()  # what the start made stays; no collection need look at it again
    addresses = {name: each.address for name, each in listeners.items() if name != "datagrams"}
    app.addresses.listeners = addresses
    ready(
        {"ready": True, **addresses, **secured} | ({} if tls.listeners is None else {"tls": True})
    )
    await until_stopped(stop_requested, node)
    reload.close()
    await _close(listeners, app, soap)
    return _exit_code(node.failure)


def _open_links(app: Application, ids: Ids, budget: ReceiveBudget, tls: BrokerTls) -> Links:
    """The links to other brokers, and what is found by them."""
    port, settings = app.port, app.settings
    options = settings.overlay.discovery_options()
    app.discovery = discovery = open_discovery(port, ids.broker, _zone_offset_s, options)
    app.control = control = open_control(port, ids.broker, settings)
    return Links(port, discovery, control, ids, settings, budget, tls.links)


def _open_archiver(app: Application, directory: Directory) -> Archiver | None:
    """The archive is written by a process of its own, which must be able to read the log."""
    if has_log_reader(app.settings.log):
        return open_archiver(app.port, app.settings, directory, app.node.observers.dead_letters)
    if app.settings.archive.enabled:
        app.node.note(
            "warning",
            "no archive is written: other processes cannot read this store",
            store=app.settings.log.store,
        )
    return None


def _list_ourselves(app: Application, addresses: Addresses, directory: Directory) -> None:
    """The directory also says what the broker itself produces, and that it keeps everything."""
    scheme = "gmas" if addresses.tls else "gma"
    offers: dict[Kind, tuple[str | None, Offering]] = {
        "producer": (addresses.frames, app.types.names),
        "consumer": (addresses.archive or addresses.frames, tuple),
    }
    for kind, (address, events) in offers.items():
        if address is not None:
            host, port = host_and_port(address)
            own = socket.gethostname()
            reached = f"{own}:{port}" if host in ANYWHERE else address
            registration = Registration(
                kind=kind, name="tocsin", host=own, address=f"{scheme}://{reached}", lease_ns=0
            )
            directory.list_own(registration, events)


async def _close(listeners: Listeners, app: Application, soap: SoapServices) -> None:
    app.node.stopping = True
    if app.links is not None:
        await app.links.close()
    await asyncio.gather(*(each.close() for each in listeners.values()))
    await soap.close()
    await app.close()


def _exit_code(failure: TocsinError | None) -> int:
    return 0 if failure is None else failure.exit_code


def _zone_offset_s(name: str) -> int | None:
    """How far the zone is ahead of UTC at this moment; None if there is no such zone."""
    try:
        offset = datetime.now(ZoneInfo(name)).utcoffset()
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
    return None if offset is None else int(offset.total_seconds())
