"""`/topics/sign-in`, `/topics/grants` and `/topics/revocations`: who has a key, and what owners of
topics have granted to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tocsin.drivers.http.rest.endpoint import BY_PORT, Endpoint, Open, session_in
from tocsin.drivers.http.rest.responses import answer
from tocsin.errors import BadRequest, NotAllowed
from tocsin.event.instant import rfc3339
from tocsin.wire import strict_json
from tocsin.wire.api.topic_views import (
    EntityTokenInfo,
    GrantInfo,
    GrantList,
    RevocationInfo,
    SignInChallenge,
)

if TYPE_CHECKING:
    from tocsin.drivers.access.entities import Entities
    from tocsin.services.topics.grants import Grant

_PROOF = Open("who signs in has not signed in yet, and proves to have the key")
_Body = TypeVar("_Body")


def entity_routes(entities: Entities | None) -> list[Endpoint]:
    """All of them. `entities`: None where nobody signs in."""

    def needed() -> Entities:
        if entities is None:
            raise NotAllowed(
                "auth.mode is open: everybody may do everything, and nobody signs in",
                remedy="Start the broker with auth.mode = required to have grants count.",
            )
        return entities

    async def challenge(request: Request) -> Response:
        found = needed().sign_in.challenge()
        return answer(SignInChallenge(found.nonce, found.audience))

    async def sign_in(request: Request) -> Response:
        from tocsin.services.topics.sign_in import EntityProof

        shown = await _read(request, EntityProof)
        found = needed().sign_in_of(session_in(request), shown)
        ends = rfc3339(found.expires_ns)
        return answer(EntityTokenInfo(found.entity_id, found.token, ends), 201)

    async def present(request: Request) -> Response:
        from tocsin.services.topics.grants import PresentedGrant

        grants, session = needed().grants, session_in(request)
        grants.check_entity(session)
        found = await grants.present(session, await _read(request, PresentedGrant))
        return answer(_grant(found), 201, {"location": f"/topics/grants/{found.id}"})

    async def listed(request: Request) -> Response:
        return answer(GrantList([_grant(e) for e in needed().grants.grants(session_in(request))]))

    async def forget(request: Request) -> Response:
        await needed().grants.forget(session_in(request), request.path_params["id"])
        return Response(status_code=204)

    async def revoke(request: Request) -> Response:
        from tocsin.services.topics.grants import PresentedRevocations

        grants, session = needed().grants, session_in(request)
        grants.check_entity(session)
        found = await grants.revoke(session, await _read(request, PresentedRevocations))
        ends = rfc3339(found.expires_ns)
        return answer(RevocationInfo(found.uuid, found.number, sorted(found.ids), ends))

    return [
        Endpoint("POST", "/topics/sign-in/nonce", challenge, _PROOF),
        Endpoint("POST", "/topics/sign-in", sign_in, _PROOF),
        Endpoint("POST", "/topics/grants", present, BY_PORT),
        Endpoint("GET", "/topics/grants", listed, BY_PORT),
        Endpoint("DELETE", "/topics/grants/{id}", forget, BY_PORT),
        Endpoint("POST", "/topics/revocations", revoke, BY_PORT),
    ]


async def _read(request: Request, type: type[_Body]) -> _Body:
    body = await request.body()
    try:
        strict_json.check(body)
        return msgspec.json.decode(body, type=type)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise BadRequest(
            f"the body cannot be read: {error!s:.200}",
            remedy="Send one JSON object, as GET /docs describes it.",
        ) from None


def _grant(found: Grant) -> GrantInfo:
    return GrantInfo(
        id=found.id,
        holder=found.entity_id,
        owner=found.owner.key.eid,
        uuid=found.owner.uuid,
        topic=found.topic,
        operations=sorted(found.operations),
        expires=rfc3339(found.expires_ns),
        links=[] if found.chain is None else [each.id for each in found.chain.links],
    )
