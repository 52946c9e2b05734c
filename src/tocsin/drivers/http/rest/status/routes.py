"""`/status` and `/topics`: what an operator asks first, from memory, without reading the log."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from tocsin import __version__
from tocsin.access.session import Session
from tocsin.drivers.http.rest.endpoint import Endpoint, reads, session_in
from tocsin.drivers.http.rest.events.views import overlay_shown, views_shown
from tocsin.drivers.http.rest.responses import answer
from tocsin.event.instant import rfc3339
from tocsin.event.subscription import Kind, State
from tocsin.services.topic_list import list_topics
from tocsin.wire.api.status_views import (
    ArchiveInfo,
    AuthInfo,
    BehindInfo,
    DiskInfo,
    LogInfo,
    MonitorInfo,
    OverlayInfo,
    StatusInfo,
)

if TYPE_CHECKING:
    from tocsin.broker.status import BrokerStatus
    from tocsin.drivers.archive.archiver import Archiver
    from tocsin.drivers.http.rest.context import RestContext
    from tocsin.drivers.http.server import HttpServer
    from tocsin.drivers.monitor.monitor import Monitor
    from tocsin.services.link.views import OverlayInfo as Overlay

STATES: Final = (State.ACTIVE, State.PAUSED, State.PENDING)


def status_routes(context: RestContext, server: HttpServer) -> list[Endpoint]:
    async def status(request: Request) -> Response:
        return answer(_status(context, server, session_in(request)))

    async def topics(request: Request) -> Response:
        query, counts = request.scope["query_string"], context.topics.counts
        now_ns = time.time_ns()
        return answer(await list_topics(context.port, counts, session_in(request), query, now_ns))

    return [
        Endpoint("GET", "/status", status, reads("status")),
        Endpoint("GET", "/topics", topics, reads("topics")),
    ]


def _status(context: RestContext, server: HttpServer, session: Session) -> StatusInfo:
    health, now_ns = context.health(), time.time_ns()
    broker, views = context.port.status(session), views_shown(context.port, session)
    counts = broker.subscriptions
    slowest = max(views, key=lambda view: view.behind, default=None)
    return StatusInfo(
        version=__version__,
        ready=health.ready,
        reasons=health.reasons,
        started=rfc3339(context.started_ns),
        uptime_s=round((now_ns - context.started_ns) / 1e9, 3),
        listeners=context.addresses.listeners,
        log=_log(context, broker, now_ns),
        subscriptions={each.value: counts.by_state.get((Kind.PUSH, each), 0) for each in STATES},
        boxes=counts.of(Kind.BOX),
        streams=broker.streams_open,
        connections=len(server.connections),
        dead_letters=broker.counters.dead_letters,
        behind=BehindInfo(
            most=counts.lag_max,
            total=counts.lag,
            slowest=slowest.subscription.id if slowest and slowest.behind else None,
        ),
        topics=len(context.topics.counts.topics()),
        monitor=_monitor(context.monitor),
        archive=_archive(context.archiver),
        overlay=_overlay(overlay_shown(context.links, session)),
        auth=_auth(context),
        disk=_disk(context.settings.log.directory),
    )


def _auth(context: RestContext) -> AuthInfo:
    access = context.access
    return AuthInfo(
        mode="open" if access.sign_in is None else "required",
        tls=bool(context.settings.http.tls_certificate),
        audit=access.audit is not None,
        problem=next(iter(access.complaints()), None),
    )


def _log(context: RestContext, broker: BrokerStatus, now_ns: int) -> LogInfo:
    return LogInfo(
        directory=str(Path(context.settings.log.directory).absolute()),
        first=broker.first,
        last=broker.head,
        events=broker.events,
        events_per_s=round(context.topics.counts.all.per_s(now_ns), 3),
    )


def _monitor(monitor: Monitor | None) -> MonitorInfo:
    if monitor is None:
        return MonitorInfo(on=False)
    problem = None if monitor.off is None else monitor.off.problem
    return MonitorInfo(problem is None, monitor.behind, problem)


def _archive(archiver: Archiver | None) -> ArchiveInfo:
    if archiver is None:
        return ArchiveInfo(on=False)
    problem = None if archiver.off is None else archiver.off.problem
    return ArchiveInfo(problem is None, archiver.through, archiver.waiting, problem)


def _overlay(info: Overlay | None) -> OverlayInfo | None:
    if info is None:
        return None
    return OverlayInfo(
        neighbours=len(info.neighbours),
        up=sum(each.state == "up" for each in info.neighbours),
        reached=len(info.brokers),
        peers_not_linked=sum(each.state != "linked" for each in info.peers),
    )


def _disk(directory: str) -> DiskInfo | None:
    try:
        usage = shutil.disk_usage(directory)
    except OSError:
        return None
    return DiskInfo(usage.free, usage.total)
