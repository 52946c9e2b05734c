"""The schemas of what is sent in requests, where no type has them."""

from __future__ import annotations

from tocsin.wire.api.openapi.operation import TEXT, Json, whole


def _object(properties: Json, required: tuple[str, ...] = ()) -> Json:
    """A JSON object with these members and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


FILTERS: Json = {
    "type": "array",
    "description": "all of them must match",
    "items": {"type": "object", "minProperties": 1, "maxProperties": 1},
}
_EXPIRES: Json = {
    "type": ["string", "null"],
    "description": "an RFC 3339 time, or an ISO 8601 duration from now; null is never",
}
_OWNER: Json = {
    "type": "string",
    "description": "the principal that it is given to, by who may manage it",
}
_KEEPING: Json = {
    "backlog": {**whole(1), "description": "waiting events kept; the oldest are dropped first"},
    "backlog_age_s": {"type": "number", "description": "how old a waiting event may become"},
}
_FROM: Json = {
    "from": {
        "type": ["integer", "string"],
        "description": "begin after this sequence number, or with this time",
    }
}
_CREDENTIAL: Json = {
    "type": ["object", "null"],
    "description": "what the sink wants to see with each request: sealed, and never shown",
    "properties": {
        "bearer": {"type": "string"},
        "basic": {
            "type": "object",
            "properties": {"user": {"type": "string"}, "password": {"type": "string"}},
            "required": ["user", "password"],
        },
        "header": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
            "required": ["name", "value"],
        },
    },
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
}
_PUSHING: Json = {
    "mode": {"enum": ["binary", "structured", "blackboard"]},
    "batch": {**whole(1, 1000), "description": "events in one POST"},
    "secret": {"type": "string", "description": "a Standard Webhooks secret, whsec_..."},
    "credential": _CREDENTIAL,
    "attempts": whole(1, 100),
    "timeout_s": {"type": "number", "minimum": 0.1, "maximum": 300},
    **_KEEPING,
}
_NAMES: Json = {"type": "array", "items": {"type": "string"}}
_ADDRESS: Json = {"type": "string", "format": "uri"}
_CONCEPTS: Json = {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 10_000}


REQUESTS: Json = {
    "SubscriptionRequest": _object(
        {
            "sink": {"type": "string", "format": "uri"},
            "protocol": {"enum": ["HTTP", "GMA"]},
            "filters": FILTERS,
            "config": _object({**_PUSHING, **_FROM}),
            "expires": _EXPIRES,
        },
        required=("sink",),
    ),
    "SubscriptionChange": _object(
        {
            "state": {"enum": ["active", "paused"]},
            "sink": {"type": "string", "format": "uri"},
            "protocol": {"enum": ["HTTP", "GMA"]},
            "filters": FILTERS,
            "config": _object(_PUSHING),
            "expires": _EXPIRES,
            "owner": _OWNER,
        }
    ),
    "BoxRequest": _object(
        {"filters": FILTERS, "config": _object({**_KEEPING, **_FROM}), "expires": _EXPIRES}
    ),
    "BoxChange": _object(
        {
            "state": {"enum": ["active", "paused"]},
            "filters": FILTERS,
            "config": _object(_KEEPING),
            "expires": _EXPIRES,
            "owner": _OWNER,
        }
    ),
    "RegistrationRequest": _object(
        {
            "id": {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,63}$"},
            "kind": {"enum": ["producer", "consumer"]},
            "name": TEXT,
            "address": {"type": ["string", "null"], "description": "host:port, or a URL"},
            "host": {
                "type": "string",
                "description": "where it runs; default: the host in the address",
            },
            "events": {
                "type": "array",
                "items": {
                    "anyOf": [
                        TEXT,
                        _object(
                            {"name": TEXT, "namespace": TEXT, "parameters": _NAMES},
                            required=("name",),
                        ),
                    ]
                },
            },
            "attributes": {"type": "object"},
            "lease": {
                "type": ["string", "number"],
                "description": "an ISO 8601 duration, or seconds: from 10 s to 7 days",
            },
            "registered": {**TEXT, "description": "shown, and ignored when it is sent back"},
            "expires": {"type": ["string", "null"], "description": "as registered"},
        },
        required=("kind", "name"),
    ),
    "PublisherRequest": _object({"address": _ADDRESS}, required=("address",)),
    "SubscriberRequest": _object(
        {"address": _ADDRESS, "concepts": _CONCEPTS}, required=("address", "concepts")
    ),
}
