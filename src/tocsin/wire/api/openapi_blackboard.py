"""The blackboard's part of the description of the API."""

from __future__ import annotations

from tocsin.wire.api.blackboard_views import (
    ConceptsShown,
    PublisherShown,
    PublishersShown,
    SubscriberShown,
    SubscribersShown,
)
from tocsin.wire.api.openapi_parts import (
    ID,
    Json,
    object_of,
    operation,
    query,
    refer,
    seconds,
    text,
    whole,
)
from tocsin.wire.blackboard.messages import Message, Profile

BLACKBOARD_SHOWN = (
    ConceptsShown,
    Message,
    Profile,
    PublisherShown,
    PublishersShown,
    SubscriberShown,
    SubscribersShown,
)

_ADDRESS: Json = {"type": "string", "format": "uri"}
_CONCEPTS: Json = {"type": "array", "items": text(), "minItems": 1, "maxItems": 10_000}

BLACKBOARD_ASKED: Json = {
    "PublisherAsked": object_of({"address": _ADDRESS}, required=("address",)),
    "SubscriberAsked": object_of(
        {"address": _ADDRESS, "concepts": _CONCEPTS}, required=("address", "concepts")
    ),
}


def blackboard_paths() -> Json:
    one_or_many = {"anyOf": [refer("Message"), {"type": "array", "items": refer("Message")}]}
    version = query("after", "the version that is known already", whole(0))
    wait = query("wait", "how long to wait for another version", seconds(60))
    address = query("address", "whose subscription ends", text())
    asked = {"application/json": refer("SubscriberAsked")}
    shown: dict[int, str | None] = {200: "SubscriberShown", 201: "SubscriberShown"}
    return {
        "/blackboard/messages": {
            "post": operation(
                "Publish concept-value pairs; answered once they are on disk",
                {202: "AcceptedShown"},
                body={"application/json": one_or_many},
            )
        },
        "/blackboard/concepts": {"get": operation("Every concept", {200: "ConceptsShown"})},
        "/blackboard/profile": {
            "get": operation(
                "The aggregate subscription profile", {200: "Profile"}, parameters=[version, wait]
            )
        },
        "/blackboard/publishers": {
            "get": operation(
                "List publishers that are notified of the profile", {200: "PublishersShown"}
            ),
            "post": operation(
                "Register a publisher, to be notified when the profile changes",
                {201: "PublisherShown"},
                body={"application/json": refer("PublisherAsked")},
            ),
            "delete": operation("Stop notifying an address", {204: None}, parameters=[address]),
        },
        "/blackboard/publishers/{id}": {
            "delete": operation("Unregister a publisher", {204: None}, parameters=[ID])
        },
        "/blackboard/subscribers": {
            "get": operation("List subscribers and their concepts", {200: "SubscribersShown"}),
            "put": operation("Subscribe an address, or replace its concepts", shown, body=asked),
            "delete": operation("Unsubscribe an address", {204: None}, parameters=[address]),
        },
        "/blackboard/subscribers/{id}": {
            "delete": operation("Unsubscribe", {204: None}, parameters=[ID, address])
        },
        **_streams(),
    }


def _streams() -> Json:
    stream = operation(
        "Follow the pairs of some concepts as server-sent events",
        {},
        parameters=[
            query("concepts", "their names, separated by commas; default: all", text()),
            query("after", "the sequence number to go on after; without it, from now", whole(0)),
            {
                "name": "Last-Event-ID",
                "in": "header",
                "description": "as `after`, and wins over it",
                "schema": whole(0),
            },
        ],
    )
    stream["responses"]["200"] = {
        "description": "messages follow",
        "content": {"text/event-stream": {}},
    }
    socket = operation("Publish, subscribe and register over a WebSocket", {})
    socket["responses"]["101"] = {"description": "messages follow"}
    return {"/blackboard/stream": {"get": stream}, "/blackboard/socket": {"get": socket}}
