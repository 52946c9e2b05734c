"""Audit: which decisions are written down one by one, and which are summed up.

Every refusal, everything that is managed or subscribed to, every failed sign-in and every change of
tokens and rules is a record of its own. What is published and read is summed up: one record a
minute for each principal, endpoint, host, right and part of the topics, with a count. In a flood of
refusals only the first are written one by one; the rest is summed up too, in so many rows, and
what does not fit into these is counted.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from tocsin.access.decision import Action, Decision
from tocsin.access.peers import host_of
from tocsin.access.session import Session
from tocsin.event.instant import NS_PER_S

PERIOD_NS: Final = 60 * NS_PER_S
LEVELS_MAX: Final = 2  # of a topic, in a row that sums up
TEXT_CHARS_MAX: Final = 500


class Kind(StrEnum):
    """What a record is about."""

    DECISION = "decision"
    SIGN_IN = "sign-in"  # one that failed
    CHANGE = "change"  # of tokens and rules
    QUOTA = "quota"  # that was reached
    REST = "rest"  # what there was no room for in one minute
    BEGIN = "begin"  # of a broker process
    CUT = "cut"  # the line before this one was cut when the broker was killed
    LOST = "lost"  # records that could not be written


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Who, what, when, from where, what was decided, and by which rule."""

    time_ns: int
    kind: Kind
    principal: str = ""
    credential: str = ""  # its key, as in token/4f2a
    endpoint: str = ""
    peer: str = ""
    action: str = ""
    resource: str = ""
    allowed: bool | None = None
    reason: str = ""
    count: int = 1
    since_ns: int | None = None  # of a record that sums up: since when


class AuditOptions(msgspec.Struct, frozen=True):
    """How much is written in a minute, at most."""

    singles_max: int = 2_000  # one by one, of all together
    alike_max: int = 10  # of these, from one principal and host, of one action and reason
    rows_max: int = 2_000  # that sum up
    sessions_max: int = 2_000  # whose publications are counted before they are put into rows
    topics_max: int = 1_000  # of one session, the same


_Row = tuple[Kind, str, str, str, str, str, bool, str, str]
"""Kind, principal, credential, endpoint, host, action, whether allowed, reason, resource."""


class _Published:
    """What one session published since the counts were last put into rows."""

    __slots__ = ("counts", "session")

    def __init__(self, session: Session) -> None:
        self.session = session  # it is held, so that no other gets its id() meanwhile
        self.counts: dict[tuple[str, str], int] = {}  # by topic and reason


class AuditSummary:
    """See the module. `flush` is to be called once a minute."""

    def __init__(self, options: AuditOptions, now_ns: int) -> None:
        self._options = options
        self._since_ns = now_ns
        self._published: dict[int, _Published] = {}  # by id() of the session
        self._rows: dict[_Row, int] = {}
        self._alike: dict[_Row, int] = {}
        self._singles = 0
        self._rest = 0
        self.summed = 0  # decisions that were put into rows, or counted as the rest

    def published(self, session: Session, topic: str, reason: str, count: int) -> None:
        """So many events were allowed. On the hottest path there is: a look and a sum."""
        found = self._published.get(id(session))
        if found is None:
            if len(self._published) >= self._options.sessions_max:
                self._put_into_rows()
            found = self._published[id(session)] = _Published(session)
        counts, key = found.counts, (topic, reason)
        counts[key] = counts.get(key, 0) + count
        if len(counts) > self._options.topics_max:
            self._put_into_rows()

    def decided(self, decision: Decision, now_ns: int) -> AuditRecord | None:
        """The record to be written now, if it is not summed up."""
        session, action = decision.session, decision.action
        record = record_of(
            Kind.DECISION,
            session,
            now_ns,
            action=action,
            resource=decision.resource,
            allowed=decision.allowed,
            reason=decision.reason,
        )
        if decision.allowed and action in (Action.READ, Action.PUBLISH):
            self._sum(_row(record, _part(action, decision.resource)), 1)
            return None
        return self.one_by_one(record)

    def one_by_one(self, record: AuditRecord) -> AuditRecord | None:
        """The record itself, while there are few like it."""
        options, row = self._options, _row(record, _part(record.action, record.resource))
        alike = self._alike.get(row, 0)
        is_few = alike < options.alike_max and len(self._alike) <= options.singles_max
        if is_few and self._singles < options.singles_max:
            self._alike[row] = alike + 1
            self._singles += 1
            return record
        self._sum(row, 1)
        return None

    def flush(self, now_ns: int) -> list[AuditRecord]:
        """What was summed up since the last call."""
        self._put_into_rows()
        since_ns, self._since_ns = self._since_ns, now_ns
        found = [_summed(row, count, since_ns, now_ns) for row, count in self._rows.items()]
        if self._rest:
            found.append(
                AuditRecord(
                    time_ns=now_ns,
                    kind=Kind.REST,
                    count=self._rest,
                    since_ns=since_ns,
                    reason="more than are written down in one minute",
                )
            )
        self._rows.clear()
        self._alike.clear()
        self._singles = self._rest = 0
        return found

    def _put_into_rows(self) -> None:
        for each in self._published.values():
            who = each.session
            credential = "" if who.credential is None else who.credential.key
            about = Kind.DECISION, who.principal.name, credential, who.endpoint, host_of(who.peer)
            for (topic, reason), count in each.counts.items():
                part = _part(Action.PUBLISH, topic)
                self._sum((*about, str(Action.PUBLISH), True, reason, part), count)
        self._published.clear()

    def _sum(self, row: _Row, count: int) -> None:
        self.summed += count
        known = self._rows.get(row)
        if known is None and len(self._rows) >= self._options.rows_max:
            self._rest += count
            return
        self._rows[row] = (known or 0) + count


def record_of(
    kind: Kind,
    session: Session,
    now_ns: int,
    *,
    action: str = "",
    resource: str = "",
    allowed: bool | None = None,
    reason: str = "",
) -> AuditRecord:
    """A record about somebody. Whatever he sent himself is cut where it is too long."""
    return AuditRecord(
        time_ns=now_ns,
        kind=kind,
        principal=session.principal.name,
        credential="" if session.credential is None else session.credential.key,
        endpoint=session.endpoint,
        peer=session.peer,
        action=str(action),
        resource=resource[:TEXT_CHARS_MAX],
        allowed=allowed,
        reason=reason[:TEXT_CHARS_MAX],
    )


def _row(record: AuditRecord, part: str) -> _Row:
    return (
        record.kind,
        record.principal,
        record.credential,
        record.endpoint,
        host_of(record.peer),
        record.action,
        bool(record.allowed),
        record.reason,
        part,
    )


def _part(action: str, resource: str) -> str:
    """Of a topic its first levels, of another resource its kind."""
    if action == Action.PUBLISH:
        levels = resource.split("/", LEVELS_MAX)
        more = len(levels) > LEVELS_MAX
        return f"{'/'.join(levels[:LEVELS_MAX])}/**" if more else resource[:TEXT_CHARS_MAX]
    kind, slash, _ = resource.partition("/")
    return f"{kind}/*" if slash else kind


def _summed(row: _Row, count: int, since_ns: int, now_ns: int) -> AuditRecord:
    kind, principal, credential, endpoint, host, action, allowed, reason, part = row
    return AuditRecord(
        time_ns=now_ns,
        kind=kind,
        principal=principal,
        credential=credential,
        endpoint=endpoint,
        peer=host,
        action=action,
        resource=part,
        allowed=allowed,
        reason=reason,
        count=count,
        since_ns=since_ns,
    )
