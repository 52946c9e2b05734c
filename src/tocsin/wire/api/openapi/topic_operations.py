"""What can be asked about the discovery of topics."""

from __future__ import annotations

from typing import Final

from tocsin.event.control_topic import FLOOD_HOPS_MAX
from tocsin.wire.api.control_request import BASE64_CHARS_MAX
from tocsin.wire.api.control_views import ControlSent
from tocsin.wire.api.openapi.operation import (
    Json,
    Media,
    json_body,
    one_of,
    operation,
    query,
    whole,
)

TOPIC_REQUESTS: Final[Json] = {
    "ControlRequest": {
        "type": "object",
        "additionalProperties": False,
        "required": ["topic", "kind"],
        "properties": {
            "topic": {
                "type": "string",
                "description": "Services/Discovery/Topics or Services/Discovery/"
                "TopicDiscoveryNode, perhaps with /TDN-ID; or Entity/ID",
            },
            "kind": {"type": "string", "pattern": "^[a-z0-9.-]{1,64}$"},
            "body": {
                "type": "string",
                "contentEncoding": "base64",
                "maxLength": BASE64_CHARS_MAX,
            },
            "to": {
                "type": ["string", "null"],
                "description": "the id of a broker; * for everybody near; "
                "without it the topic discovery nodes that the topic names",
            },
            "ttl": {
                **whole(1, FLOOD_HOPS_MAX),
                "description": "over how many links what is for everybody goes",
            },
        },
    },
}

TOPIC_OPERATIONS: Final = (
    operation(
        "POST /topics/messages",
        "Send a control message; nothing keeps it for whoever is away",
        {202: ControlSent},
        body=json_body("ControlRequest"),
    ),
    operation(
        "GET /topics/messages/stream",
        "Follow the control messages for the entity that asks, as server-sent events",
        Media(("text/event-stream",)),
        query("requests", "also what is for every entity", one_of(("no", "yes"))),
    ),
)
