"""What can be asked about keys, and about the grants of owners of topics."""

from __future__ import annotations

from typing import Final

from tocsin.wire.api.openapi.operation import Json, json_body, operation
from tocsin.wire.api.topic_views import (
    EntityTokenInfo,
    GrantInfo,
    GrantList,
    RevocationInfo,
    SignInChallenge,
)

_BYTES: Final[Json] = {"type": "string", "contentEncoding": "base64"}
_SIGNED: Final[Json] = {"type": "string", "description": "a compact JWS"}


def _object(required: tuple[str, ...], **properties: Json) -> Json:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": properties,
    }


_ADVERTISEMENT: Final = _object(
    ("jws", "tdn_certificate", "creator_certificate"),
    jws=_SIGNED,
    tdn_certificate=_BYTES,
    creator_certificate=_BYTES,
)

GRANT_REQUESTS: Final[Json] = {
    "EntityProof": _object(
        ("key", "proof"),
        key={**_BYTES, "description": "the key: SubjectPublicKeyInfo, DER"},
        proof=_SIGNED,
    ),
    "GrantPresentation": _object(
        ("advertisement",),
        advertisement=_ADVERTISEMENT,
        grants={
            "type": "array",
            "items": _SIGNED,
            "maxItems": 4,
            "description": "from that of the owner to that of the holder; none for the owner",
        },
    ),
    "RevocationsPresentation": _object(
        ("advertisement", "revocations"), advertisement=_ADVERTISEMENT, revocations=_SIGNED
    ),
}

GRANT_OPERATIONS: Final = (
    operation("POST /topics/sign-in/nonce", "What a proof of a key has to name", SignInChallenge),
    operation(
        "POST /topics/sign-in",
        "Sign in by a proof of a key",
        {201: EntityTokenInfo},
        body=json_body("EntityProof"),
    ),
    operation("GET /topics/grants", "Grants of owners of topics: all, or one's own", GrantList),
    operation(
        "POST /topics/grants",
        "Present a grant, which its holder has from then on",
        {201: GrantInfo},
        body=json_body("GrantPresentation"),
    ),
    operation("DELETE /topics/grants/{id}", "Have the broker forget a grant", None),
    operation(
        "POST /topics/revocations",
        "Bring the owner's list of revoked grants",
        RevocationInfo,
        body=json_body("RevocationsPresentation"),
    ),
)
