"""What the API answers about access, as types: `/access`."""

from __future__ import annotations

from typing import Any

import msgspec


class TokenInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token. Its text is in the answer that made it, and nowhere else."""

    id: str
    principal: str
    created: str
    expires: str | None
    token: str | None = None
    groups: list[str] = []
    rights: list[dict[str, Any]] | None = None
    bounded: bool = False
    granted_by: str = ""
    expired: bool = False
    revoked: str | None = None


class TokenList(msgspec.Struct, frozen=True):
    tokens: list[TokenInfo]


class RuleInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule: a right, and whose it is. One of the settings file has its line as the id."""

    id: str
    action: str | list[str]
    principal: str | None = None
    group: str | None = None
    topic: str | None = None
    filter: str | None = None
    resource: str | None = None
    expires: str | None = None
    expired: bool = False
    withheld: bool = False
    granted_by: str = ""


class RuleList(msgspec.Struct, frozen=True):
    rules: list[RuleInfo]


class WhoAmI(msgspec.Struct, frozen=True, kw_only=True):
    """Who the caller is to the broker, and by which kind of credential."""

    principal: str
    groups: list[str]
    credential: str | None
    expires: str | None


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """What would be decided, and by which rule or token."""

    allowed: bool
    principal: str
    action: str
    resource: str
    reason: str
    rule: RuleInfo | None = None
