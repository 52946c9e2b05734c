"""What the API answers about the audit log and quotas, as types: `/access/audit` and
`/access/quotas`."""

from __future__ import annotations

import msgspec


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One record: who, what, when, from where, what was decided, and by which rule.

    One with `since` sums up: `count` of the same from then until `time`.
    """

    n: int
    time: str
    kind: str
    principal: str = ""
    credential: str = ""
    endpoint: str = ""
    peer: str = ""
    action: str = ""
    resource: str = ""
    decision: str = ""  # allowed or refused
    reason: str = ""  # the id of the rule or token, or why not
    count: int = 1
    since: str | None = None


class AuditPageInfo(msgspec.Struct, frozen=True):
    """Records, the oldest first; further ones follow with `after=next`, now if there are `more`."""

    records: list[AuditEntry]
    next: int
    more: bool


class AuditFault(msgspec.Struct, frozen=True):
    """A line of a file that is not as it was written; `damage` is false if the broker noticed it
    itself when it started again."""

    file: str
    line: int
    problem: str
    damage: bool


class AuditCheck(msgspec.Struct, frozen=True):
    """Whether the audit log is whole."""

    whole: bool
    lines: int
    faults: list[AuditFault]


class QuotaInfo(msgspec.Struct, frozen=True):
    """What somebody has, and may have. Of a rate, `used` is what was taken of the burst and is not
    back yet."""

    of: str
    quota: str
    used: float
    limit: float
    burst: float | None = None


class QuotaList(msgspec.Struct, frozen=True):
    """By principal and by address; `reached` says how often each quota was, since the start: by
    anybody, or by the caller for who may not read `access`."""

    principals: list[QuotaInfo]
    peers: list[QuotaInfo]
    reached: dict[str, int]
