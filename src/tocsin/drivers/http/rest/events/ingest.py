"""Where engines post their own messages: Nextflow's weblog, and OpenLineage from many others."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.drivers.engine_messages import events_from, received
from tocsin.drivers.http.rest.endpoint import BY_PORT, Endpoint, reads, session_in
from tocsin.drivers.http.rest.responses import answer
from tocsin.errors import TocsinError
from tocsin.wire.api.ingest_views import (
    BatchResult,
    BatchSummary,
    FailedEvent,
    IngestResult,
    ReceivedCounts,
    ReceiverCounts,
)
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.nextflow import Names, read_weblog
from tocsin.wire.openlineage import read_batch, read_event


def ingest_routes(port: BrokerPort, limits: Limits) -> list[Endpoint]:
    names = Names()
    nextflow, openlineage = ReceivedCounts(), ReceivedCounts()

    async def show(request: Request) -> Response:
        return answer(ReceiverCounts(nextflow, openlineage))

    async def take_weblog(request: Request) -> Response:
        body = await request.body()
        messages = _counted(nextflow, lambda: read_weblog(body, names, received(port.runtime)))
        return answer(await _published(port, limits, session_in(request), messages), 202)

    async def take_lineage(request: Request) -> Response:
        body = await request.body()
        messages = _counted(openlineage, lambda: read_event(body, received(port.runtime)))
        return answer(await _published(port, limits, session_in(request), messages), 201)

    async def take_batch(request: Request) -> Response:
        body = await request.body()
        openlineage.posts += 1
        try:
            events = read_batch(body, received(port.runtime))
        except TocsinError:
            openlineage.refused += 1
            raise
        found = [message for messages in events if messages for message in messages]
        await _published(port, limits, session_in(request), found)
        failed = [
            FailedEvent(index, "this is not an OpenLineage event", retriable=False)
            for index, messages in enumerate(events)
            if messages is None
        ]
        openlineage.messages += len(found)
        openlineage.ignored += sum(messages == [] for messages in events)
        return answer(_batch_info(len(events), failed))

    return [
        Endpoint("GET", "/ingest", show, reads("ingest")),
        Endpoint("POST", "/ingest/nextflow", take_weblog, BY_PORT),
        Endpoint("POST", "/api/v1/lineage", take_lineage, BY_PORT),
        Endpoint("POST", "/api/v1/lineage/batch", take_batch, BY_PORT),
    ]


async def _published(
    port: BrokerPort, limits: Limits, session: Session, messages: list[Message]
) -> IngestResult:
    """On disk, in as many steps as it takes; a repetition after a failure does no harm."""
    events = events_from(messages, limits)
    accepted, duplicates = 0, 0
    for start in range(0, len(events), limits.batch_events_max):
        part = events[start : start + limits.batch_events_max]
        stored = await port.publish(session, part)
        accepted += stored.accepted
        duplicates += stored.duplicates
    return IngestResult(accepted, duplicates, ignored=0 if messages else 1)


def _counted(count: ReceivedCounts, read: Callable[[], list[Message]]) -> list[Message]:
    count.posts += 1
    try:
        messages = read()
    except TocsinError:
        count.refused += 1
        raise
    count.messages += len(messages)
    count.ignored += not messages
    return messages


def _batch_info(received: int, failed: list[FailedEvent]) -> BatchResult:
    good = received - len(failed)
    if not failed:
        status = "success"
    else:
        status = "partial_success" if good else "failure"
    summary = BatchSummary(received, good, len(failed), 0, len(failed))
    return BatchResult(status, summary, failed)
