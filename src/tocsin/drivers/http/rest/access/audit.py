"""`/access/audit` and `/access/quotas`: what was decided, and how much everybody has."""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tocsin.access.audit.lines import AuditLine
from tocsin.access.audit.query import AuditQuery
from tocsin.access.audit.records import Kind
from tocsin.access.decision import Action
from tocsin.access.quotas.holders import Holder
from tocsin.access.quotas.rules import Quota
from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.drivers.access.access_control import AccessControl
from tocsin.drivers.access.audit_log import AuditLog
from tocsin.drivers.http.rest.endpoint import BY_PORT, Endpoint, session_in
from tocsin.drivers.http.rest.responses import answer
from tocsin.errors import BadRequest, NoAuditLog
from tocsin.event.instant import rfc3339, rfc3339_ns
from tocsin.event.topic import TopicPattern
from tocsin.wire.api.audit_views import (
    AuditCheck,
    AuditEntry,
    AuditFault,
    AuditPageInfo,
    QuotaInfo,
    QuotaList,
)
from tocsin.wire.api.query import Query

RESOURCE: Final = "access"
LIMIT_DEFAULT: Final = 100
LIMIT_MAX: Final = 1_000
DECISIONS: Final = ("", "allowed", "refused")


def audit_routes(port: BrokerPort, access: AccessControl) -> list[Endpoint]:
    """All of them."""

    async def audit(request: Request) -> Response:
        log = _audit_log(port, session_in(request), access)
        page = await log.page(_query(request))
        entries = [_entry(line) for line in page.lines]
        return answer(AuditPageInfo(entries, page.next, not page.is_last))

    async def verify(request: Request) -> Response:
        lines, faults = await _audit_log(port, session_in(request), access).verify()
        found = [AuditFault(each.file, each.line, each.problem, each.is_damage) for each in faults]
        return answer(AuditCheck(not any(each.damage for each in found), lines, found))

    async def quotas(request: Request) -> Response:
        session = session_in(request)
        every = port.may(session, Action.MANAGE, RESOURCE) or port.may(
            session, Action.READ, RESOURCE
        )
        if not every:
            access.service.check_signed_in(session)
        counts = access.quotas
        used = counts.in_use() if every else counts.holders(session)
        reached = counts.reached if every else counts.reached_by(session)
        return answer(_quota_list(used, reached, access.steady_ns()))

    return [
        Endpoint("GET", "/access/audit", audit, BY_PORT),
        Endpoint("GET", "/access/audit/verify", verify, BY_PORT),
        Endpoint("GET", "/access/quotas", quotas, BY_PORT),
    ]


def _audit_log(port: BrokerPort, session: Session, access: AccessControl) -> AuditLog:
    """For who may manage access, or read it."""
    if not port.may(session, Action.MANAGE, RESOURCE):
        port.check(session, Action.READ, RESOURCE)
    if access.audit is None:
        raise NoAuditLog(
            "this broker keeps no audit log",
            remedy="It keeps one where clients sign in (auth.mode = required), unless "
            "audit.enabled is false.",
        )
    return access.audit


def _query(request: Request) -> AuditQuery:
    names = ("principal", "action", "decision", "kind", "since", "until", "topic", "limit", "after")
    query = Query.parse(request.scope["query_string"], names)
    topic = query.text("topic")
    return AuditQuery(
        principal=query.text("principal") or "",
        action=query.choice("action", "", ("", *Action)),
        decision=query.choice("decision", "", DECISIONS),
        kind=query.choice("kind", "", ("", *Kind)),
        since=_moment(query, "since"),
        until=_moment(query, "until"),
        topic=None if topic is None else TopicPattern.parse(topic),
        limit=query.number("limit", LIMIT_DEFAULT, least=1, most=LIMIT_MAX),
        after=None if query.text("after") is None else query.number("after", 0),
    )


def _moment(query: Query, name: str) -> str:
    """As lines of the log have it."""
    text = query.text(name)
    if text is None:
        return ""
    moment_ns = rfc3339_ns(text)
    if moment_ns is None:
        raise BadRequest(
            f"the query has {name}={text[:60]}", remedy="Give a moment: 2026-03-01T12:00:00Z."
        )
    return rfc3339(moment_ns)


def _entry(line: AuditLine) -> AuditEntry:
    """Everything but the hash, which is for who has the files."""
    return msgspec.convert(line, AuditEntry, from_attributes=True)


def _quota_list(used: list[Holder], reached: Counter[Quota], now_ns: int) -> QuotaList:
    principals: list[QuotaInfo] = []
    peers: list[QuotaInfo] = []
    for holder in used:
        for quota, limit in holder.limits.by_quota.items():
            is_rate = quota is Quota.PUBLISH_RATE
            if is_rate:
                holder.refill(now_ns)
            burst = holder.limits.burst if is_rate else None
            info = QuotaInfo(holder.name, str(quota), round(holder.used(quota), 3), limit, burst)
            (peers if holder.is_peer else principals).append(info)
    return QuotaList(principals, peers, {str(each): reached[each] for each in Quota})
