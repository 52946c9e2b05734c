"""The event channels described as AsyncAPI 3.0: where they come in, and where they go out."""

from __future__ import annotations

from typing import Any

from tocsin import __version__
from tocsin.wire.api.openapi.document import description

Json = dict[str, Any]

STRUCTURED = "application/cloudevents+json"


def asynchronous(address: str, *, tls: bool = False) -> Json:
    """The document at /asyncapi.json; `address` is where the broker listens."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Tocsin",
            "version": __version__,
            "description": "A durable event-notification broker that speaks CloudEvents. "
            "What it receives is acknowledged once it is on disk; what it sends, it sends at "
            "least once, in order per publisher and subscription.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": STRUCTURED,
        "servers": {
            "http": {"host": address, "protocol": "https" if tls else "http"},
            "socket": {"host": address, "protocol": "wss" if tls else "ws"},
        },
        "channels": {
            "events": _channel("/events", "Publish events, one or a batch.", "http"),
            "stream": _channel("/events/stream", "Follow events as server-sent events.", "http"),
            "socket": _channel("/events/socket", "Follow and publish by WebSocket.", "socket"),
            "webhook": _channel(None, "A subscription's sink: one POST per event, or per batch."),
        },
        "operations": {
            "publish": _operation("receive", "events"),
            "follow": _operation("send", "stream"),
            "followBySocket": _operation("send", "socket"),
            "publishBySocket": _operation("receive", "socket"),
            "push": _operation("send", "webhook"),
        },
        "components": {
            "messages": {
                "event": {
                    "name": "CloudEvent",
                    "contentType": STRUCTURED,
                    "payload": {"$ref": "#/components/schemas/CloudEvent"},
                }
            },
            "schemas": {"CloudEvent": description()["components"]["schemas"]["CloudEvent"]},
        },
    }


def _channel(address: str | None, summary: str, server: str | None = None) -> Json:
    channel: Json = {
        "address": address,
        "summary": summary,
        "messages": {"event": {"$ref": "#/components/messages/event"}},
    }
    if server is not None:
        channel["servers"] = [{"$ref": f"#/servers/{server}"}]
    return channel


def _operation(action: str, channel: str) -> Json:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "messages": [{"$ref": f"#/channels/{channel}/messages/event"}],
    }
