"""The API described as OpenAPI 3.1: schemas from the types that are answered with."""

from __future__ import annotations

from typing import Any

import msgspec

from tocsin import __version__
from tocsin.wire.api import views
from tocsin.wire.api.problem import MEDIA_TYPE, Problem

Json = dict[str, Any]

_REFERENCE = "#/components/schemas/{name}"
_SHOWN = (
    views.AcceptedShown,
    views.CloudEvent,
    views.EventsPage,
    views.MessagesPulled,
    views.SubscriptionShown,
    views.SubscriptionsPage,
    views.BoxShown,
    views.BoxesPage,
    views.DeadLetterShown,
    views.DeadLettersPage,
    views.RedrivenShown,
    views.HealthShown,
    Problem,
)


def description() -> Json:
    """The document at /openapi.json."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tocsin",
            "version": __version__,
            "summary": "A durable event-notification broker that speaks CloudEvents.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": _paths(),
        "components": {"schemas": _schemas(), "responses": {"Problem": _problem()}},
    }


def _paths() -> Json:
    return {
        **_event_paths(),
        **_subscription_paths(),
        **_box_paths(),
        **_dead_letter_paths(),
        **_operation_paths(),
    }


def _event_paths() -> Json:
    return {
        "/events": {
            "get": _operation(
                "Read the log",
                {200: "EventsPage"},
                parameters=[
                    _query("after", "the sequence number to go on after", _whole(0)),
                    _query("limit", "how many events at most", _whole(1, 1000)),
                    _query("filter", "which events, in the filter language", _text()),
                ],
            ),
            "post": _operation(
                "Publish events; answered once they are on disk",
                {202: "AcceptedShown"},
                body={
                    "application/cloudevents+json": _refer("CloudEvent"),
                    "application/cloudevents-batch+json": {
                        "type": "array",
                        "items": _refer("CloudEvent"),
                    },
                    "*/*": {},
                },
            ),
        },
        "/events/stream": {"get": _stream("Follow the log as server-sent events", 200)},
        "/events/socket": {"get": _stream("Follow the log, and publish, over a WebSocket", 101)},
    }


def _subscription_paths() -> Json:
    return {
        "/subscriptions": {
            "get": _listing("List subscriptions", "SubscriptionsPage"),
            "post": _operation(
                "Subscribe a sink",
                {201: "SubscriptionShown"},
                body={"application/json": _refer("SubscriptionAsked")},
            ),
        },
        "/subscriptions/{id}": _one("subscription", "SubscriptionShown", "SubscriptionChange"),
        "/subscriptions/{id}/handshake": {
            method: _operation(
                "Confirm, as the sink, that it wants events",
                {204: None},
                parameters=[_ID, _query("token", "what the sink was given", _text())],
            )
            for method in ("get", "post")
        },
    }


def _box_paths() -> Json:
    return {
        "/boxes": {
            "get": _listing("List message boxes", "BoxesPage"),
            "post": _operation(
                "Make a message box",
                {201: "BoxShown"},
                body={"application/json": _refer("BoxAsked")},
            ),
        },
        "/boxes/{id}": _one("message box", "BoxShown", "BoxChange"),
        "/boxes/{id}/messages": {
            "get": _operation(
                "Fetch events from a box, waiting for the first if told to",
                {200: "MessagesPulled"},
                parameters=[
                    _ID,
                    _query("max", "how many events at most", _whole(1, 1000)),
                    _query("wait", "seconds to wait for the first", _seconds(60)),
                    _query("ack", "`next` of the call before: those events are done", _text()),
                ],
            )
        },
    }


def _dead_letter_paths() -> Json:
    return {
        "/deadletters": {
            "get": _operation(
                "List what was given up",
                {200: "DeadLettersPage"},
                parameters=[
                    _query("limit", "how many at most", _whole(1, 1000)),
                    _query("after", "`next` of the call before", _text()),
                    _query("subscription", "only those of this subscription", _text()),
                ],
            )
        },
        "/deadletters/{id}": {
            "get": _operation("Show one", {200: "DeadLetterShown"}, parameters=[_ID]),
            "delete": _operation("Discard one", {204: None}, parameters=[_ID]),
        },
        "/deadletters/{id}/redrive": {
            "post": _operation("Send one again", {200: "RedrivenShown"}, parameters=[_ID])
        },
    }


def _operation_paths() -> Json:
    code = {"name": "code", "in": "path", "required": True, "schema": _text()}
    return {
        "/": {"get": _plain("A page for people", "text/html")},
        "/livez": {"get": _operation("Does it run?", {200: "HealthShown", 503: "HealthShown"})},
        "/readyz": {
            "get": _operation("Does it take events?", {200: "HealthShown", 503: "HealthShown"})
        },
        "/metrics": {"get": _plain("Metrics for Prometheus", "text/plain")},
        "/openapi.json": {"get": _plain("This document", "application/json")},
        "/asyncapi.json": {"get": _plain("The ways of events", "application/json")},
        "/errors/{code}": {"get": _plain("What an error means", "text/plain", parameters=[code])},
    }


def _one(noun: str, shown: str, change: str) -> Json:
    return {
        "get": _operation(f"Show a {noun}", {200: shown}, parameters=[_ID]),
        "patch": _operation(
            f"Change a {noun}",
            {200: shown},
            parameters=[_ID],
            body={"application/json": _refer(change)},
        ),
        "delete": _operation(f"End a {noun}", {204: None}, parameters=[_ID]),
    }


def _listing(summary: str, page: str) -> Json:
    return _operation(
        summary,
        {200: page},
        parameters=[
            _query("limit", "how many at most", _whole(1, 1000)),
            _query("after", "`next` of the call before", _text()),
            _query("q", "only those with this text in id, sink or filters", _text()),
            _query("sort", "by age, or the slowest first", {"enum": ["created", "behind"]}),
        ],
    )


def _operation(
    summary: str,
    answers: dict[int, str | None],
    *,
    parameters: list[Json] | None = None,
    body: dict[str, Json] | None = None,
) -> Json:
    responses: Json = {"default": {"$ref": "#/components/responses/Problem"}}
    for status, schema in answers.items():
        response: Json = {"description": "done"}
        if schema is not None:
            response["content"] = {"application/json": {"schema": _refer(schema)}}
        responses[str(status)] = response
    operation: Json = {"summary": summary, "responses": responses}
    if parameters:
        operation["parameters"] = parameters
    if body:
        content = {media_type: {"schema": schema} for media_type, schema in body.items()}
        operation["requestBody"] = {"content": content}
    return operation


def _plain(summary: str, media_type: str, parameters: list[Json] | None = None) -> Json:
    operation = _operation(summary, {}, parameters=parameters)
    operation["responses"]["200"] = {"description": "done", "content": {media_type: {}}}
    return operation


def _stream(summary: str, status: int) -> Json:
    operation = _operation(
        summary,
        {},
        parameters=[
            _query("filter", "which events, in the filter language", _text()),
            _query("after", "the sequence number to go on after; without it, from now", _whole(0)),
        ],
    )
    content: Json = {}
    if status == 200:
        content = {"content": {"text/event-stream": {}}}
        words = "as `after`, and wins over it; a browser sends it when it resumes"
        header = {"name": "Last-Event-ID", "in": "header", "description": words}
        operation["parameters"].append({**header, "schema": _whole(0)})
    operation["responses"][str(status)] = {"description": "events follow", **content}
    return operation


def _query(name: str, words: str, schema: Json) -> Json:
    return {"name": name, "in": "query", "description": words, "schema": schema}


def _refer(name: str) -> Json:
    return {"$ref": _REFERENCE.format(name=name)}


def _text() -> Json:
    return {"type": "string"}


def _whole(least: int, most: int | None = None) -> Json:
    return {"type": "integer", "minimum": least, **({} if most is None else {"maximum": most})}


def _seconds(most: float) -> Json:
    return {"type": "number", "minimum": 0, "maximum": most}


_ID: Json = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}


def _problem() -> Json:
    return {
        "description": "an error, as RFC 9457 problem details",
        "content": {MEDIA_TYPE: {"schema": _refer("Problem")}},
    }


def _schemas() -> Json:
    _, schemas = msgspec.json.schema_components(_SHOWN, ref_template=_REFERENCE)
    # What the types keep as raw JSON, said in full.
    for name in ("EventsPage", "MessagesPulled"):
        schemas[name]["properties"]["events"] = {"type": "array", "items": _refer("CloudEvent")}
    schemas["DeadLetterShown"]["properties"]["event"] = _refer("CloudEvent")
    for name in ("SubscriptionShown", "BoxShown"):
        schemas[name]["properties"]["filters"] = _FILTERS
    schemas["CloudEvent"]["properties"]["data"] = {}
    return {**schemas, **_ASKED}


_FILTERS: Json = {
    "type": "array",
    "description": "all of them must hold",
    "items": {"type": "object", "minProperties": 1, "maxProperties": 1},
}
_EXPIRES: Json = {
    "type": ["string", "null"],
    "description": "an RFC 3339 time, or an ISO 8601 duration from now; null is never",
}
_KEEPING: Json = {
    "backlog": {**_whole(1), "description": "waiting events kept; the oldest go first"},
    "backlog_age_s": {"type": "number", "description": "how old a waiting event may become"},
}
_FROM: Json = {
    "from": {
        "type": ["integer", "string"],
        "description": "begin after this sequence number, or with this time",
    }
}
_PUSHING: Json = {
    "mode": {"enum": ["binary", "structured"]},
    "batch": {**_whole(1, 1000), "description": "events in one POST"},
    "secret": {"type": "string", "description": "a Standard Webhooks secret, whsec_..."},
    "attempts": _whole(1, 100),
    "timeout_s": {"type": "number", "minimum": 0.1, "maximum": 300},
    **_KEEPING,
}


def _object(properties: Json, required: tuple[str, ...] = ()) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_ASKED: Json = {
    "SubscriptionAsked": _object(
        {
            "sink": {"type": "string", "format": "uri"},
            "protocol": {"enum": ["HTTP"]},
            "filters": _FILTERS,
            "config": _object({**_PUSHING, **_FROM}),
            "expires": _EXPIRES,
        },
        required=("sink",),
    ),
    "SubscriptionChange": _object(
        {
            "state": {"enum": ["active", "paused"]},
            "sink": {"type": "string", "format": "uri"},
            "protocol": {"enum": ["HTTP"]},
            "filters": _FILTERS,
            "config": _object(_PUSHING),
            "expires": _EXPIRES,
        }
    ),
    "BoxAsked": _object(
        {"filters": _FILTERS, "config": _object({**_KEEPING, **_FROM}), "expires": _EXPIRES}
    ),
    "BoxChange": _object(
        {
            "state": {"enum": ["active", "paused"]},
            "filters": _FILTERS,
            "config": _object(_KEEPING),
            "expires": _EXPIRES,
        }
    ),
}
