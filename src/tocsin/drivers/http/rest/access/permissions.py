"""`/access`: tokens, rules, and what would be decided."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tocsin.access.decision import Action
from tocsin.access.policy.rights import Rule, write_right, write_rule
from tocsin.access.policy.tokens import Token
from tocsin.broker.port import BrokerPort
from tocsin.drivers.http.rest.endpoint import BY_PORT, Endpoint, Open, session_in
from tocsin.drivers.http.rest.responses import answer
from tocsin.errors import BadRight
from tocsin.event.instant import rfc3339, rfc3339_or_none
from tocsin.services.access.requests import CheckRequest, read_token_request
from tocsin.services.access.service import AccessService
from tocsin.wire.api.access_views import (
    CheckResult,
    RuleInfo,
    RuleList,
    TokenInfo,
    TokenList,
    WhoAmI,
)
from tocsin.wire.api.members import read_object
from tocsin.wire.api.query import Query


def access_routes(port: BrokerPort, service: AccessService) -> list[Endpoint]:
    """All of them."""
    return [*_token_routes(port, service), *_rule_routes(service), *_explaining_routes(service)]


def _token_routes(port: BrokerPort, service: AccessService) -> list[Endpoint]:
    async def create_token(request: Request) -> Response:
        asked = read_token_request(await _object(request), port.runtime.now_ns())
        token, text = await service.create_token(session_in(request), asked)
        headers = {"location": f"/access/tokens/{token.id}"}
        return answer(token_info(token, service.policy.now_ns(), text), 201, headers)

    async def tokens(request: Request) -> Response:
        found, now_ns = service.list_tokens(session_in(request)), service.policy.now_ns()
        return answer(TokenList([token_info(each, now_ns) for each in found]))

    async def revoke(request: Request) -> Response:
        await service.revoke_token(session_in(request), request.path_params["id"])
        return Response(status_code=204)

    return [
        Endpoint("POST", "/access/tokens", create_token, BY_PORT),
        Endpoint("GET", "/access/tokens", tokens, BY_PORT),
        Endpoint("DELETE", "/access/tokens/{id}", revoke, BY_PORT),
    ]


def _rule_routes(service: AccessService) -> list[Endpoint]:
    async def rules(request: Request) -> Response:
        found, now_ns = service.list_rules(session_in(request)), service.policy.now_ns()
        return answer(RuleList([rule_info(each, now_ns) for each in found]))

    async def create_rule(request: Request) -> Response:
        rule = await service.add_rule(session_in(request), await _object(request))
        return answer(
            rule_info(rule, service.policy.now_ns()), 201, {"location": f"/access/rules/{rule.id}"}
        )

    async def remove_rule(request: Request) -> Response:
        await service.remove_rule(session_in(request), request.path_params["id"])
        return Response(status_code=204)

    return [
        Endpoint("POST", "/access/rules", create_rule, BY_PORT),
        Endpoint("GET", "/access/rules", rules, BY_PORT),
        Endpoint("DELETE", "/access/rules/{id}", remove_rule, BY_PORT, has_names=True),
    ]


def _explaining_routes(service: AccessService) -> list[Endpoint]:
    async def whoami(request: Request) -> Response:
        session = service.whoami(session_in(request))
        shown = session.credential
        return answer(
            WhoAmI(
                principal=session.principal.name,
                groups=sorted(session.principal.groups),
                credential=None if shown is None else str(shown.kind),
                expires=None if shown is None else rfc3339_or_none(shown.expires_ns),
            )
        )

    async def check(request: Request) -> Response:
        asked = _check_request(request)
        found = service.check(session_in(request), asked)
        kind, _, rule_id = found.reason.partition("/")
        rule = service.policy.rules.get(rule_id) if kind == "rule" else None
        return answer(
            CheckResult(
                allowed=found.allowed,
                principal=found.session.principal.name,
                action=str(found.action),
                resource=found.resource,
                reason=found.reason,
                rule=None if rule is None else rule_info(rule, service.policy.now_ns()),
            )
        )

    return [
        Endpoint("GET", "/access/whoami", whoami, Open("it says who the caller is, and no more")),
        Endpoint("GET", "/access/check", check, BY_PORT),
    ]


def token_info(token: Token, now_ns: int, text: str | None = None) -> TokenInfo:
    rights = None if token.rights is None else [write_right(each) for each in token.rights]
    return TokenInfo(
        id=token.id,
        principal=token.principal,
        created=rfc3339(token.created_ns),
        expires=rfc3339_or_none(token.expires_ns),
        token=text,
        groups=sorted(token.groups),
        rights=rights,
        bounded=token.is_bounded,
        granted_by=token.granted_by,
        expired=token.expires_ns is not None and token.expires_ns <= now_ns,
        revoked=rfc3339_or_none(token.revoked_ns),
    )


def rule_info(rule: Rule, now_ns: int) -> RuleInfo:
    expires_ns = rule.right.expires_ns
    shown = {
        "id": rule.id,
        "granted_by": rule.granted_by,
        "expired": expires_ns is not None and expires_ns <= now_ns,
        **write_rule(rule),
    }
    return msgspec.convert(shown, RuleInfo)


def _check_request(request: Request) -> CheckRequest:
    query = Query.parse(
        request.scope["query_string"],
        ("action", "topic", "resource", "principal", "group", "token"),
    )
    action = query.text("action") or ""
    if action not in list(Action):
        raise BadRight(
            f"there is no action {action[:64]!r}", remedy=f"The actions are {', '.join(Action)}."
        )
    group = query.text("group")
    return CheckRequest(
        action=Action(action),
        topic=query.text("topic") or "",
        resource=query.text("resource") or "",
        principal=query.text("principal"),
        groups=tuple(group.split(",")) if group else (),
        token=query.text("token") or "",
    )


async def _object(request: Request) -> dict[str, Any]:
    return read_object(await request.body())
