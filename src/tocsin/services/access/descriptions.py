"""Tokens and rules in one line each, for the audit log. No line has a secret."""

from __future__ import annotations

from typing import Any

from tocsin.access.policy.rights import Rule, write_right
from tocsin.access.policy.tokens import Token
from tocsin.event.instant import rfc3339


def describe_token(token: Token) -> str:
    """Whose it is, what it is good for, and until when."""
    if token.rights is None:
        rights = "what the rules give"
    else:
        rights = "; ".join(_describe(write_right(each)) for each in token.rights) or "nothing"
    groups = f" in {', '.join(sorted(token.groups))}" if token.groups else ""
    until = "" if token.expires_ns is None else f", until {rfc3339(token.expires_ns)}"
    return f"{token.principal}{groups}: {rights}{until}"


def describe_rule(rule: Rule) -> str:
    whose = f"@{rule.group}" if rule.group else rule.principal
    return f"{whose} may {_describe(write_right(rule.right))}"


def _describe(right: dict[str, Any]) -> str:
    actions = right["action"]
    names = actions if isinstance(actions, str) else ",".join(actions)
    what = right.get("resource") or right.get("topic", "")
    passing = f" where {right['filter']}" if "filter" in right else ""
    until = f" until {right['expires']}" if "expires" in right else ""
    return f"{names} {what}{passing}{until}"
