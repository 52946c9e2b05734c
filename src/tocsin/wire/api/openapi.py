"""The API described as OpenAPI 3.1: schemas from the types that are answered with."""

from __future__ import annotations

import re

import msgspec

from tocsin import __version__
from tocsin.wire.api import views
from tocsin.wire.api.openapi_blackboard import (
    BLACKBOARD_ASKED,
    BLACKBOARD_SHOWN,
    blackboard_paths,
)
from tocsin.wire.api.openapi_directory import (
    DIRECTORY_ASKED,
    DIRECTORY_SHOWN,
    directory_paths,
)
from tocsin.wire.api.openapi_events import read_events
from tocsin.wire.api.openapi_ingest import INGEST_SHOWN, ingest_paths
from tocsin.wire.api.openapi_parts import (
    ID,
    REFERENCE,
    Json,
    in_path,
    object_of,
    operation,
    plain,
    query,
    refer,
    seconds,
    text,
    whole,
)
from tocsin.wire.api.openapi_runs import RUNS_SHOWN, runs_asked, runs_paths
from tocsin.wire.api.problem import MEDIA_TYPE, Problem
from tocsin.wire.api.status_views import STATUS_SHOWN

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
    views.ClockShown,
    views.HealthShown,
    *DIRECTORY_SHOWN,
    *BLACKBOARD_SHOWN,
    *RUNS_SHOWN,
    *INGEST_SHOWN,
    *STATUS_SHOWN,
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
            "description": "Publish and read events, subscribe sinks, pull from message boxes, "
            "watch workflow runs. Errors are RFC 9457 problems with a code and a remedy.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "this broker"}],
        "paths": _with_ids(_paths()),
        "components": {"schemas": _schemas(), "responses": {"Problem": _problem()}},
    }


def _paths() -> Json:
    return {
        **_event_paths(),
        **_subscription_paths(),
        **_box_paths(),
        **_dead_letter_paths(),
        **directory_paths(),
        **blackboard_paths(),
        **runs_paths(),
        **ingest_paths(),
        **_performance_paths(),
        **_operation_paths(),
        **_status_paths(),
    }


def _with_ids(paths: Json) -> Json:
    """Every operation with an id, made from its method and path: stable, and read by generators."""
    for path, methods in paths.items():
        words = re.findall(r"[A-Za-z0-9]+", path.replace("{", "by_")) or ["page"]
        for method, described in methods.items():
            described["operationId"] = "_".join([method, *words])
    return paths


def _event_paths() -> Json:
    return {
        "/events": {
            "get": read_events(),
            "post": operation(
                "Publish events; answered once they are on disk",
                {202: "AcceptedShown"},
                body={
                    "application/cloudevents+json": refer("CloudEvent"),
                    "application/cloudevents-batch+json": {
                        "type": "array",
                        "items": refer("CloudEvent"),
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
            "post": operation(
                "Subscribe a sink",
                {201: "SubscriptionShown"},
                body={"application/json": refer("SubscriptionAsked")},
            ),
        },
        "/subscriptions/{id}": _one("subscription", "SubscriptionShown", "SubscriptionChange"),
        "/subscriptions/{id}/handshake": {
            method: operation(
                "Confirm, as the sink, that it wants events",
                {204: None},
                parameters=[ID, query("token", "what the sink was given", text())],
            )
            for method in ("get", "post")
        },
    }


def _box_paths() -> Json:
    return {
        "/boxes": {
            "get": _listing("List message boxes", "BoxesPage"),
            "post": operation(
                "Make a message box",
                {201: "BoxShown"},
                body={"application/json": refer("BoxAsked")},
            ),
        },
        "/boxes/{id}": _one("message box", "BoxShown", "BoxChange"),
        "/boxes/{id}/messages": {
            "get": operation(
                "Fetch events from a box; `wait` waits for the first",
                {200: "MessagesPulled"},
                parameters=[
                    ID,
                    query("max", "how many events at most", whole(1, 1000)),
                    query("wait", "seconds to wait for the first", seconds(60)),
                    query("ack", "`next` of the last response: acknowledges those events", text()),
                ],
            )
        },
    }


def _performance_paths() -> Json:
    message = operation(
        "Send one message of the producer/consumer protocol",
        {204: None},
        parameters=[query("role", "consumer, to get events in the answer", text())],
        body={"text/xml": {}},
    )
    message["responses"]["200"] = {"description": "the reply", "content": {"text/xml": {}}}
    where = plain("Where producers and consumers find the broker", "application/json")
    return {"/gma": {"get": where, "post": message}}


def _dead_letter_paths() -> Json:
    return {
        "/deadletters": {
            "get": operation(
                "List dead letters: events that could not be delivered",
                {200: "DeadLettersPage"},
                parameters=[
                    query("limit", "how many at most", whole(1, 1000)),
                    query("after", "`next` of the last response", text()),
                    query("subscription", "only those of this subscription", text()),
                ],
            )
        },
        "/deadletters/{id}": {
            "get": operation("Show one", {200: "DeadLetterShown"}, parameters=[ID]),
            "delete": operation("Discard one", {204: None}, parameters=[ID]),
        },
        "/deadletters/{id}/redrive": {
            "post": operation("Send a dead letter again", {200: "RedrivenShown"}, parameters=[ID])
        },
    }


def _operation_paths() -> Json:
    code = in_path("code", "a code such as T104")
    return {
        "/": {"get": plain("Status page", "text/html")},
        "/livez": {
            "get": operation(
                "Liveness: is the broker running?", {200: "HealthShown", 503: "HealthShown"}
            )
        },
        "/readyz": {
            "get": operation(
                "Readiness: does the broker accept events?",
                {200: "HealthShown", 503: "HealthShown"},
            )
        },
        "/clock": {
            "get": operation(
                "The broker's time, and whether the machine's clock agrees", {200: "ClockShown"}
            )
        },
        "/clock/accept": {
            "post": operation("Accept the machine's clock as right", {200: "ClockShown"})
        },
        "/metrics": {"get": plain("Metrics for Prometheus", "text/plain")},
        "/docs": {"get": plain("This API as a web page", "text/html")},
        "/openapi.json": {"get": plain("This document", "application/json")},
        "/asyncapi.json": {"get": plain("The event channels, as AsyncAPI", "application/json")},
        "/errors/{code}": {"get": plain("What an error means", "text/plain", parameters=[code])},
    }


def _status_paths() -> Json:
    return {
        "/status": {
            "get": operation("The state of the broker in one answer", {200: "StatusShown"})
        },
        "/topics": {
            "get": operation(
                "List topics with the number of events, rate and last time of each",
                {200: "TopicsPage"},
                parameters=[
                    query("pattern", "only topics that match, as in lead/**", text()),
                    query(
                        "sort",
                        "by name, or the largest first",
                        {"enum": ["topic", "events", "rate", "last"]},
                    ),
                    query("limit", "how many at most", whole(1, 10_000)),
                ],
            )
        },
    }


def _one(noun: str, shown: str, change: str) -> Json:
    return {
        "get": operation(f"Show a {noun}", {200: shown}, parameters=[ID]),
        "patch": operation(
            f"Change a {noun}",
            {200: shown},
            parameters=[ID],
            body={"application/json": refer(change)},
        ),
        "delete": operation(f"Delete a {noun}", {204: None}, parameters=[ID]),
    }


def _listing(summary: str, page: str) -> Json:
    return operation(
        summary,
        {200: page},
        parameters=[
            query("limit", "how many at most", whole(1, 1000)),
            query("after", "`next` of the last response", text()),
            query("q", "only those with this text in id, sink or filters", text()),
            query("sort", "by age, or the slowest first", {"enum": ["created", "behind"]}),
        ],
    )


def _stream(summary: str, status: int) -> Json:
    streaming = operation(
        summary,
        {},
        parameters=[
            query("filter", "which events, in the filter language", text()),
            query("after", "the sequence number to go on after; without it, from now", whole(0)),
        ],
    )
    content: Json = {}
    if status == 200:
        content = {"content": {"text/event-stream": {}}}
        words = "as `after`, and wins over it; a browser sends it when it resumes"
        header = {"name": "Last-Event-ID", "in": "header", "description": words}
        streaming["parameters"].append({**header, "schema": whole(0)})
    streaming["responses"][str(status)] = {"description": "events follow", **content}
    return streaming


def _problem() -> Json:
    return {
        "description": "an error, as RFC 9457 problem details",
        "content": {MEDIA_TYPE: {"schema": refer("Problem")}},
    }


def _schemas() -> Json:
    _, schemas = msgspec.json.schema_components(_SHOWN, ref_template=REFERENCE)
    # What the types keep as raw JSON, said in full.
    for name in ("EventsPage", "MessagesPulled"):
        schemas[name]["properties"]["events"] = {"type": "array", "items": refer("CloudEvent")}
    schemas["DeadLetterShown"]["properties"]["event"] = refer("CloudEvent")
    for name in ("SubscriptionShown", "BoxShown"):
        schemas[name]["properties"]["filters"] = _FILTERS
    schemas["CloudEvent"]["properties"]["data"] = {}
    return {**schemas, **_ASKED, **DIRECTORY_ASKED, **BLACKBOARD_ASKED, **runs_asked()}


_FILTERS: Json = {
    "type": "array",
    "description": "all of them must match",
    "items": {"type": "object", "minProperties": 1, "maxProperties": 1},
}
_EXPIRES: Json = {
    "type": ["string", "null"],
    "description": "an RFC 3339 time, or an ISO 8601 duration from now; null is never",
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
_PUSHING: Json = {
    "mode": {"enum": ["binary", "structured", "blackboard"]},
    "batch": {**whole(1, 1000), "description": "events in one POST"},
    "secret": {"type": "string", "description": "a Standard Webhooks secret, whsec_..."},
    "attempts": whole(1, 100),
    "timeout_s": {"type": "number", "minimum": 0.1, "maximum": 300},
    **_KEEPING,
}


_ASKED: Json = {
    "SubscriptionAsked": object_of(
        {
            "sink": {"type": "string", "format": "uri"},
            "protocol": {"enum": ["HTTP", "GMA"]},
            "filters": _FILTERS,
            "config": object_of({**_PUSHING, **_FROM}),
            "expires": _EXPIRES,
        },
        required=("sink",),
    ),
    "SubscriptionChange": object_of(
        {
            "state": {"enum": ["active", "paused"]},
            "sink": {"type": "string", "format": "uri"},
            "protocol": {"enum": ["HTTP", "GMA"]},
            "filters": _FILTERS,
            "config": object_of(_PUSHING),
            "expires": _EXPIRES,
        }
    ),
    "BoxAsked": object_of(
        {"filters": _FILTERS, "config": object_of({**_KEEPING, **_FROM}), "expires": _EXPIRES}
    ),
    "BoxChange": object_of(
        {
            "state": {"enum": ["active", "paused"]},
            "filters": _FILTERS,
            "config": object_of(_KEEPING),
            "expires": _EXPIRES,
        }
    ),
}
