"""CloudEvents as they are read in tests."""

from __future__ import annotations

import json

from tocsin.event.event import Event
from tocsin.wire.cloudevents import Limits, read_events

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
LIMITS = Limits()
LEAST = {"specversion": "1.0", "id": "1", "source": "/radar", "type": "echo"}
HEADERS = {f"ce-{name}": value for name, value in LEAST.items()}


def read_one(body: bytes, limits: Limits = LIMITS) -> Event:
    (event,) = read_events(STRUCTURED, {}, body, limits)
    return event


def with_members(**members: object) -> bytes:
    return json.dumps({**LEAST, **members}).encode()


def with_data(data: bytes) -> bytes:
    return b'{"specversion":"1.0","id":"1","source":"/radar","type":"echo","data":%b}' % data


def least() -> dict[str, str]:
    return {name: value for name, value in LEAST.items() if name != "specversion"}
