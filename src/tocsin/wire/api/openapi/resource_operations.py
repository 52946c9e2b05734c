"""What can be asked about resources, and how they are found."""

from __future__ import annotations

from typing import Final

from tocsin.wire.api.openapi.operation import (
    PAGE,
    Json,
    Media,
    json_body,
    one_of,
    operation,
    query,
    whole,
)
from tocsin.wire.api.overlay_views import ROWS_MAX, OverlayStatus
from tocsin.wire.api.resource_request import FIRST_MAX, MODELS, REQUEST_MODELS
from tocsin.wire.api.resource_views import (
    DiscoveryInfo,
    DiscoveryList,
    DiscoveryResult,
    OverlayOptions,
    ResourceInfo,
    ResourcesPage,
)

_VALUES: Json = {
    "type": "object",
    "description": "attributes and their values; quantities as {value: 2, unit: GB}",
}
_DURATION: Json = {"type": ["string", "number", "null"]}

RESOURCE_REQUESTS: Final[Json] = {
    "ResourceRequest": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "id": {"type": ["string", "null"], "description": "without it the broker chooses"},
            "model": one_of(MODELS),
            "advertisement": {
                "type": "string",
                "description": "the ranges of its attributes: [system,=,Linux],[memory,<=,2]; "
                "a static resource with attributes needs none",
            },
            "attributes": _VALUES,
            "kind": {"type": ["string", "null"], "description": "machine, service, ..."},
            "address": {"type": ["string", "null"], "description": "where it is used"},
            "lease": {
                **_DURATION,
                "description": "how long it stays after its last update: an ISO 8601 duration, or "
                "seconds, from 10 s to 30 days; null is until it is withdrawn",
            },
            "registered": {"description": "shown, and ignored when it is sent back"},
            "updated": {"description": "as registered"},
            "expires": {"description": "as registered"},
        },
    },
    "DiscoveryRequest": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "request": {
                "type": "string",
                "description": "conditions joined by and: system = Linux and disk > 120",
            },
            "model": one_of(REQUEST_MODELS),
            "max_age": {**_DURATION, "description": "how old a shared answer may be; 0 is never"},
            "first": {**whole(1, FIRST_MAX), "description": "so many are enough"},
            "order_by": {"type": "string", "description": "free_memory desc, or distance"},
            "timeout": {**_DURATION, "description": "answer after so long, whatever is missing"},
            "expires": {**_DURATION, "description": "when a continuous request ends"},
        },
    },
}

RESOURCE_OPERATIONS: Final = (
    operation(
        "GET /resources",
        "List the resources that are registered here",
        ResourcesPage,
        query("kind", "only those of this kind"),
        query("model", "only static ones, or only dynamic ones", one_of(MODELS)),
        *PAGE,
    ),
    operation(
        "POST /resources",
        "Register a resource, or register it again",
        {200: ResourceInfo, 201: ResourceInfo},
        body=json_body("ResourceRequest"),
    ),
    operation("GET /resources/{id}", "Show a resource", ResourceInfo),
    operation("DELETE /resources/{id}", "Withdraw a resource", None),
    operation(
        "PUT /resources/{id}/attributes",
        "Replace the current values of a dynamic resource, and renew its lease",
        ResourceInfo,
        body=json_body(_VALUES),
    ),
    operation(
        "PATCH /resources/{id}/attributes",
        "Change some values; {} renews the lease",
        ResourceInfo,
        body=json_body(_VALUES),
    ),
    operation("GET /discoveries", "List continuous requests", DiscoveryList),
    operation(
        "POST /discoveries",
        "Find resources, once or continuously",
        {200: DiscoveryResult, 201: DiscoveryInfo},
        body=json_body("DiscoveryRequest"),
    ),
    operation("GET /discoveries/{id}", "Show a continuous request", DiscoveryInfo),
    operation("DELETE /discoveries/{id}", "End a continuous request", None),
    operation(
        "GET /discoveries/{id}/stream",
        "Follow what a continuous request finds as server-sent events",
        Media(("text/event-stream",)),
    ),
    operation(
        "GET /overlay",
        "Links to other brokers, and the routing tables",
        OverlayStatus,
        query("rows", "at most so many rows of each table (100)", whole(0, ROWS_MAX)),
    ),
    operation(
        "DELETE /overlay/brokers/{id}", "Forget a broker that is gone for good, everywhere", None
    ),
    operation("GET /overlay/options", "How requests travel between brokers", OverlayOptions),
    operation(
        "PATCH /overlay/options",
        "Change that, from the next request on",
        OverlayOptions,
        body=json_body({"type": "object"}),
    ),
)
