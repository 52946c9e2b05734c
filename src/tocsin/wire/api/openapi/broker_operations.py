"""What can be asked of the broker: events, subscriptions, directory, blackboard, ingest, server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tocsin.wire.api import arrow, views
from tocsin.wire.api.blackboard_views import (
    ConceptList,
    PublisherInfo,
    PublisherList,
    SubscriberInfo,
    SubscriberList,
)
from tocsin.wire.api.directory_views import DirectoryPage, EntryInfo
from tocsin.wire.api.ingest_views import BatchResult, IngestResult, ReceiverCounts
from tocsin.wire.api.openapi.operation import (
    JSON,
    PAGE,
    Answer,
    Json,
    Media,
    json_body,
    one_of,
    operation,
    query,
    ref,
    seconds,
    whole,
)
from tocsin.wire.api.status_views import StatusInfo, TopicsPage
from tocsin.wire.blackboard.messages import Message, Profile

_KINDS = one_of(("producer", "consumer"))
_OBJECT: Json = {"type": "object"}

_LISTING = (
    *PAGE,
    query("q", "only those with this text in id, sink or filters"),
    query("sort", "by age, or the slowest first", one_of(("created", "behind"))),
)
_FOLLOW = query("after", "the sequence number to go on after; without it, from now", whole(0))
_FILTER = query("filter", "which events, in the filter language")
_LAST_EVENT_ID: Json = {
    **query("Last-Event-ID", "as `after`, and wins over it; a browser sends it when it resumes"),
    "in": "header",
    "schema": whole(0),
}
_TOKEN = query("token", "what the sink was given")
_ADDRESS = query("address", "whose subscription ends")
_ENTRIES = (
    query("kind", "producer or consumer", _KINDS),
    query("event", "only those that offer this event: UptimeCPULoad, {urn:lab}Temperature"),
    query("host", "where it runs"),
    query("filter", "on attributes, name, host, kind and address"),
)
_STREAM = Media(("text/event-stream",))
_LDIF = Media(("text/ldif",))
_HTML = Media(("text/html",))
_PLAIN = Media(("text/plain",))
_DOCUMENT = Media((JSON,))
_HEALTH: Mapping[int, Answer] = {200: views.HealthInfo, 503: views.HealthInfo}
_ENTRY: Mapping[int, Answer] = {200: EntryInfo, 201: EntryInfo}
_CLOUD_EVENTS: Json = {
    "application/cloudevents+json": ref(views.CloudEvent),
    "application/cloudevents-batch+json": {"type": "array", "items": ref(views.CloudEvent)},
    "*/*": {},
}

_EVENTS = (
    operation(
        "GET /events",
        "Read the log",
        views.EventsPage,
        query("after", "the sequence number to go on after", whole(0)),
        query("limit", "how many at most: 1 to 1,000, in Arrow to 100,000", whole(0, 100_000)),
        query("filter", "which events, in the filter language; not in Arrow"),
        query("signatures", "`yes` to have the signatures of events checked; not in Arrow"),
        query("columns", "in Arrow: which columns, as in seq,run,facts.ExitCode"),
        query(
            arrow.CHECKED,
            "in Arrow: `yes` to have a file read to its end before any of it is given",
        ),
    ),
    operation(
        "POST /events",
        "Publish events; answered once they are on disk",
        {202: views.PublishResult},
        body=_CLOUD_EVENTS,
    ),
    operation(
        "GET /events/stream",
        "Follow the log as server-sent events",
        _STREAM,
        *(_FILTER, _FOLLOW, _LAST_EVENT_ID),
    ),
    operation(
        "GET /events/socket",
        "Follow the log, and publish, over a WebSocket",
        {101: None},
        *(_FILTER, _FOLLOW),
    ),
)

_SUBSCRIPTIONS = (
    operation("GET /subscriptions", "List subscriptions", views.SubscriptionsPage, *_LISTING),
    operation(
        "POST /subscriptions",
        "Subscribe a sink",
        {201: views.SubscriptionInfo},
        body=json_body("SubscriptionRequest"),
    ),
    operation("GET /subscriptions/{id}", "Show a subscription", views.SubscriptionInfo),
    operation(
        "PATCH /subscriptions/{id}",
        "Change a subscription",
        views.SubscriptionInfo,
        body=json_body("SubscriptionChange"),
    ),
    operation("DELETE /subscriptions/{id}", "Delete a subscription", None),
    *(
        operation(
            f"{method} /subscriptions/{{id}}/handshake",
            "Confirm, as the sink, that it wants events",
            None,
            _TOKEN,
        )
        for method in ("GET", "POST")
    ),
    operation("GET /boxes", "List message boxes", views.BoxesPage, *_LISTING),
    operation(
        "POST /boxes", "Make a message box", {201: views.BoxInfo}, body=json_body("BoxRequest")
    ),
    operation("GET /boxes/{id}", "Show a message box", views.BoxInfo),
    operation(
        "PATCH /boxes/{id}", "Change a message box", views.BoxInfo, body=json_body("BoxChange")
    ),
    operation("DELETE /boxes/{id}", "Delete a message box", None),
    operation(
        "GET /boxes/{id}/messages",
        "Fetch events from a box; `wait` waits for the first",
        views.MessagesPulled,
        query("max", "how many events at most", whole(1, 1000)),
        query("wait", "seconds to wait for the first", seconds(60)),
        query("ack", "`next` of the last response: acknowledges those events"),
    ),
    operation(
        "GET /deadletters",
        "List dead letters: events that could not be delivered",
        views.DeadLettersPage,
        *PAGE,
        query("subscription", "only those of this subscription"),
    ),
    operation("GET /deadletters/{id}", "Show one", views.DeadLetterInfo),
    operation("DELETE /deadletters/{id}", "Discard one", None),
    operation("POST /deadletters/{id}/redrive", "Send a dead letter again", views.RedriveResult),
)

_DIRECTORY = (
    operation("GET /directory", "Look up producers and consumers", DirectoryPage, *_ENTRIES, *PAGE),
    operation(
        "POST /directory",
        "Register, or register again",
        _ENTRY,
        body=json_body("RegistrationRequest"),
    ),
    operation("GET /directory/{id}", "Show an entry", EntryInfo),
    operation(
        "PUT /directory/{id}",
        "Renew the lease with {}, or replace the entry",
        _ENTRY,
        body=json_body({"anyOf": [ref("RegistrationRequest"), {**_OBJECT, "maxProperties": 0}]}),
    ),
    operation("DELETE /directory/{id}", "Delete an entry", None),
    operation(
        "GET /directory.ldif",
        "The same look-up, as LDIF",
        _LDIF,
        *_ENTRIES,
        query("suffix", "the name that entries are under"),
        query("schema", "in standard classes, or with ours", one_of(("standard", "tocsin"))),
    ),
    operation("GET /directory-schema.ldif", "Our LDAP schema", _LDIF),
)

_BLACKBOARD = (
    operation(
        "POST /blackboard/messages",
        "Publish concept-value pairs; answered once they are on disk",
        {202: views.PublishResult},
        body=json_body({"anyOf": [ref(Message), {"type": "array", "items": ref(Message)}]}),
    ),
    operation("GET /blackboard/concepts", "Every concept", ConceptList),
    operation(
        "GET /blackboard/profile",
        "The aggregate subscription profile",
        Profile,
        query("after", "the version that is known already", whole(0)),
        query("wait", "how long to wait for another version", seconds(60)),
    ),
    operation(
        "GET /blackboard/publishers",
        "List publishers that are notified of the profile",
        PublisherList,
    ),
    operation(
        "POST /blackboard/publishers",
        "Register a publisher, to be notified when the profile changes",
        {201: PublisherInfo},
        body=json_body("PublisherRequest"),
    ),
    operation("DELETE /blackboard/publishers", "Stop notifying an address", None, _ADDRESS),
    operation("DELETE /blackboard/publishers/{id}", "Unregister a publisher", None),
    operation("GET /blackboard/subscribers", "List subscribers and their concepts", SubscriberList),
    operation(
        "PUT /blackboard/subscribers",
        "Subscribe an address, or replace its concepts",
        {200: SubscriberInfo, 201: SubscriberInfo},
        body=json_body("SubscriberRequest"),
    ),
    operation("DELETE /blackboard/subscribers", "Unsubscribe an address", None, _ADDRESS),
    operation("DELETE /blackboard/subscribers/{id}", "Unsubscribe", None, _ADDRESS),
    operation(
        "GET /blackboard/stream",
        "Follow the pairs of some concepts as server-sent events",
        _STREAM,
        query("concepts", "their names, separated by commas; default: all"),
        *(_FOLLOW, _LAST_EVENT_ID),
    ),
    operation(
        "GET /blackboard/socket", "Publish, subscribe and register over a WebSocket", {101: None}
    ),
)

_INGEST = (
    operation("GET /ingest", "Counts of what engines sent so far", ReceiverCounts),
    operation(
        "POST /ingest/nextflow",
        "Receive Nextflow's weblog messages",
        {202: IngestResult},
        body=json_body(_OBJECT),
    ),
    operation(
        "POST /api/v1/lineage",
        "Receive an OpenLineage event",
        {201: IngestResult},
        body=json_body(_OBJECT),
    ),
    operation(
        "POST /api/v1/lineage/batch",
        "Receive a batch of OpenLineage events",
        BatchResult,
        body=json_body({"type": "array", "items": _OBJECT}),
    ),
    operation("GET /gma", "Where producers and consumers find the broker", _DOCUMENT),
    operation(
        "POST /gma",
        "Send one message of the producer/consumer protocol",
        {200: Media(("text/xml",)), 204: None},
        query("role", "consumer, to get events in the answer"),
        body={"text/xml": {}},
    ),
)

_SERVER = (
    operation("GET /", "Status page", _HTML),
    operation("GET /livez", "Liveness: is the broker running?", _HEALTH),
    operation("GET /readyz", "Readiness: does the broker accept events?", _HEALTH),
    operation(
        "GET /clock", "The broker's time, and whether the machine's clock agrees", views.ClockInfo
    ),
    operation("POST /clock/accept", "Accept the machine's clock as right", views.ClockInfo),
    operation("GET /metrics", "Metrics for Prometheus", _PLAIN),
    operation("GET /docs", "This API as a web page", _HTML),
    operation("GET /openapi.json", "This document", _DOCUMENT),
    operation("GET /asyncapi.json", "The event channels, as AsyncAPI", _DOCUMENT),
    operation("GET /errors/{code}", "What an error means", _PLAIN),
    operation("GET /status", "The state of the broker in one answer", StatusInfo),
    operation(
        "GET /topics",
        "List topics with the number of events, rate and last time of each",
        TopicsPage,
        query("pattern", "only topics that match, as in lead/**"),
        query(
            "sort",
            "by name, or the largest first",
            one_of(("topic", "events", "rate", "last")),
        ),
        query("limit", "how many at most", whole(1, 10_000)),
    ),
)

BROKER_OPERATIONS: Final = (
    *_EVENTS,
    *_SUBSCRIPTIONS,
    *_DIRECTORY,
    *_BLACKBOARD,
    *_INGEST,
    *_SERVER,
)
