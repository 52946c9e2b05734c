"""What can be asked about who may do what."""

from __future__ import annotations

from typing import Final

from tocsin.wire.api.access_views import (
    CheckResult,
    RuleInfo,
    RuleList,
    TokenInfo,
    TokenList,
    WhoAmI,
)
from tocsin.wire.api.audit_views import AuditCheck, AuditPageInfo, QuotaList
from tocsin.wire.api.openapi.operation import (
    PAGE,
    Json,
    Media,
    json_body,
    one_of,
    operation,
    query,
)

_ACTIONS: Final = ("publish", "subscribe", "read", "manage")
_KINDS: Final = ("decision", "sign-in", "change", "quota", "rest", "begin", "cut", "lost")
_TEXT: Final[Json] = {"type": "string"}
_ACTION: Final[Json] = {
    "anyOf": [one_of(_ACTIONS), {"type": "array", "items": one_of(_ACTIONS), "minItems": 1}]
}
_RIGHT: Final[Json] = {
    "action": _ACTION,
    "topic": {"type": "string", "description": "a pattern, as in lead/**; without it, everything"},
    "filter": {"type": "string", "description": "of these events, those that pass it"},
    "resource": {"type": "string", "description": "in place of topic and filter: run/*, status"},
    "expires": {"type": ["string", "null"], "description": "an RFC 3339 time, or a duration"},
    "withheld": {"type": "boolean", "description": "may learn how many events it does not get"},
}

ACCESS_REQUESTS: Final[Json] = {
    "TokenRequest": {
        "type": "object",
        "additionalProperties": False,
        "required": ["principal"],
        "properties": {
            "principal": {"type": "string", "description": "whose token it is"},
            "rights": {
                "type": "array",
                "description": "what it is good for; without them, what the rules give",
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["action"],
                    "properties": _RIGHT,
                },
            },
            "groups": {"type": "array", "items": _TEXT},
            "expires": {"type": ["string", "null"], "description": "an RFC 3339 time, or PT1H"},
        },
    },
    "RuleRequest": {
        "type": "object",
        "additionalProperties": False,
        "required": ["action"],
        "properties": {"principal": _TEXT, "group": _TEXT, **_RIGHT},
    },
}

_PAGE: Final = Media(("text/html",))
_NEXT: Final = query("next", "where to go on afterwards: a path of this broker")

ACCESS_OPERATIONS: Final = (
    operation("GET /access/tokens", "List tokens: all, or one's own", TokenList),
    operation(
        "POST /access/tokens",
        "Make a token; its text is shown once",
        {201: TokenInfo},
        body=json_body("TokenRequest"),
    ),
    operation("DELETE /access/tokens/{id}", "Revoke a token; open streams of it end", None),
    operation("GET /login", "The page where a person signs in with a token", _PAGE, _NEXT),
    operation("POST /login", "Sign in with a token, kept by the browser", {303: None}),
    operation("POST /logout", "Have the browser forget the token", {303: None}),
    operation("GET /access/rules", "List rules: all, or those about oneself", RuleList),
    operation(
        "POST /access/rules", "Grant a right", {201: RuleInfo}, body=json_body("RuleRequest")
    ),
    operation("DELETE /access/rules/{id}", "Take a right back", None),
    operation("GET /access/whoami", "Who the caller is to the broker", WhoAmI),
    operation(
        "GET /access/check",
        "What would be decided, and by which rule",
        CheckResult,
        query("action", "what would be done", one_of(_ACTIONS)),
        query("topic", "to events on this topic"),
        query("resource", "or to this resource, as in run/r1"),
        query("principal", "who; without it, the caller"),
        query("group", "the groups that its credential would name, with commas between"),
        query("token", "the id of the principal's token that would be used"),
    ),
    operation(
        "GET /access/audit",
        "Who did what, when, from where, and what was decided",
        AuditPageInfo,
        query("principal", "by whom"),
        query("action", "what was asked for", one_of(_ACTIONS)),
        query("decision", "what was decided", one_of(("allowed", "refused"))),
        query("kind", "which records", one_of(_KINDS)),
        query("since", "from this moment on, as in RFC 3339"),
        query("until", "before this moment"),
        query("topic", "about events on these topics: a pattern"),
        *PAGE,
    ),
    operation("GET /access/audit/verify", "Whether the audit log is as it was written", AuditCheck),
    operation("GET /access/quotas", "What principals and addresses have, and may have", QuotaList),
)
