"""`/status` and `/topics`: what an operator asks first, from memory, without reading the log."""

from __future__ import annotations

import shutil
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from tocsin import __version__
from tocsin.access.decision import Readable
from tocsin.access.session import Session
from tocsin.broker.recent.topic_counts import TOPICS_MAX, TopicCount, TopicCounts
from tocsin.drivers.http.rest.endpoint import Endpoint, reads, session_in
from tocsin.drivers.http.rest.events.views import overlay_shown, views_shown
from tocsin.drivers.http.rest.responses import answer
from tocsin.event.filter import TopicIs
from tocsin.event.instant import rfc3339
from tocsin.event.subscription import Kind, State
from tocsin.event.topic import TopicPattern
from tocsin.event.wildcards import without_foreign_wildcards
from tocsin.wire.api.query import Query
from tocsin.wire.api.status_views import (
    ArchiveInfo,
    AuthInfo,
    BehindInfo,
    DiskInfo,
    LogInfo,
    MonitorInfo,
    OverlayInfo,
    StatusInfo,
    TopicInfo,
    TopicsPage,
)

if TYPE_CHECKING:
    from tocsin.broker.status import BrokerStatus
    from tocsin.drivers.archive.archiver import Archiver
    from tocsin.drivers.http.rest.context import RestContext
    from tocsin.drivers.http.server import HttpServer
    from tocsin.drivers.monitor.monitor import Monitor
    from tocsin.services.link.views import OverlayInfo as Overlay

SORTS: Final = ("topic", "events", "rate", "last")
STATES: Final = (State.ACTIVE, State.PAUSED, State.PENDING)
LIMIT_DEFAULT: Final = 1_000


def status_routes(context: RestContext, server: HttpServer) -> list[Endpoint]:
    async def status(request: Request) -> Response:
        return answer(_status(context, server, session_in(request)))

    async def topics(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("pattern", "sort", "limit"))
        text = query.text("pattern")
        pattern = None if text is None else _pattern(text)
        sort = query.choice("sort", "topic", SORTS)
        limit = query.number("limit", LIMIT_DEFAULT, least=1, most=TOPICS_MAX)
        session = session_in(request)
        read = partial(context.port.read, session, "topics")
        await context.topics.counts.look_back(context.port.first, read)
        readable = context.port.readable(session, "topics")
        return answer(_topics(context.topics.counts, pattern, sort, limit, readable))

    return [
        Endpoint("GET", "/status", status, reads("status")),
        Endpoint("GET", "/topics", topics, reads("topics")),
    ]


def _pattern(text: str) -> TopicPattern:
    pattern = TopicPattern.parse(text)
    without_foreign_wildcards(TopicIs(pattern))
    return pattern


def _topics(
    counts: TopicCounts,
    pattern: TopicPattern | None,
    sort: str,
    limit: int,
    readable: Readable | None,
) -> TopicsPage:
    """Of the topics those that the caller may know of."""
    now_ns = time.time_ns()
    found = [
        each
        for each in counts.topics()
        if (pattern is None or pattern.matches(each.topic))
        and (readable is None or readable.has_topic(each.topic))
    ]
    counted = [each for each in found if _is_counted(each, readable)]
    _sort(counted, sort, now_ns)
    infos = [_info(each, now_ns) for each in counted]
    if len(counted) < len(found):
        names = {each.topic for each in found} - {each.topic for each in counted}
        infos += [TopicInfo(name, None, None, None, None) for name in sorted(names)]
        if sort == "topic":
            infos.sort(key=lambda each: each.topic)
    return TopicsPage(
        infos[:limit],
        more=len(found) > limit,
        counted_from=counts.counted_from,
        topics_max=TOPICS_MAX,
        forgotten=counts.forgotten if readable is None else 0,
    )


def _is_counted(count: TopicCount, readable: Readable | None) -> bool:
    """How many events there are, and when the last one came, is for who may read them all."""
    return readable is None or readable.has_all_on("topics", frozenset({count.topic}))


def _info(count: TopicCount, now_ns: int) -> TopicInfo:
    return TopicInfo(
        count.topic,
        count.events,
        round(count.rate.per_s(now_ns), 3),
        count.last_seq,
        rfc3339(count.last_ns),
    )


def _sort(found: list[TopicCount], sort: str, now_ns: int) -> None:
    """By name, or the largest first."""
    found.sort(key=lambda each: each.topic)
    if sort == "events":
        found.sort(key=lambda each: each.events, reverse=True)
    elif sort == "rate":
        found.sort(key=lambda each: each.rate.per_s(now_ns), reverse=True)
    elif sort == "last":
        found.sort(key=lambda each: each.last_seq, reverse=True)


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
