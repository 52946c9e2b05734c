"""REST clients: what they send as it is written, and a look at what they are answered."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.event.event import Event
from tocsin.event.instant import NS_PER_S
from tocsin.event.subscription import Config, Kind
from tocsin.sim.machine import Machine
from tocsin.sim.network import Request
from tocsin.sim.workload import Want
from tocsin.sim.world import Violation
from tocsin.wire.cloudevents.write import (
    BATCH_TYPE,
    STRUCTURED_TYPE,
    batch,
    binary_headers,
    structured,
)

GZIP = 31  # zlib's name for it
PACKED_EVERY = 5  # of all requests, one is compressed

_encode = msgspec.json.Encoder().encode

Members = dict[str, object]


def publish_request(
    events: list[Event], peer: str, signed_in: Mapping[str, str] | None = None
) -> Request:
    """POST /events, in one of the modes; a repeat of it is the same, to the byte."""
    number = int(events[0].id)
    if len(events) > 1:
        headers, body = {"content-type": BATCH_TYPE}, batch(events)
    elif number % 2:
        headers, body = {"content-type": STRUCTURED_TYPE}, structured(events[0])
    else:
        lines = binary_headers(events[0]).decode().splitlines()
        headers = {name: value for name, _, value in (line.partition(": ") for line in lines)}
        body = events[0].data or b""
    if number % PACKED_EVERY == 0:
        packer = zlib.compressobj(wbits=GZIP)
        headers["content-encoding"] = "gzip"
        body = packer.compress(body) + packer.flush()
    return Request("/events", body, {**headers, **(signed_in or {})}, peer)


def create_body(
    want: Want, sink: str | None, config: Config, expires_ns: int | None, start: int | None
) -> bytes:
    """POST /subscriptions, or /boxes if there is no sink."""
    members: Members = {"filters": want.raw, "config": _config(config, is_box=sink is None)}
    if sink is not None:
        members["sink"] = sink
    if expires_ns is not None:
        members["expires"] = _rfc3339(expires_ns)
    if start is not None:
        members["config"] = _config(config, is_box=sink is None) | {"from": start}
    return _encode(members)


def state_change(state: str) -> Members:
    return {"state": state}


def expiry_change(expires_ns: int | None) -> Members:
    return {"expires": None if expires_ns is None else _rfc3339(expires_ns)}


def config_change(config: Config, kind: Kind) -> Members:
    return {"config": _config(config, is_box=kind is Kind.BOX)}


def _config(config: Config, *, is_box: bool) -> Members:
    """null sets back to the default."""
    limits: Members = {"backlog": config.backlog, "backlog_age_s": config.backlog_age_s}
    return limits if is_box else {"batch": config.batch, "attempts": config.attempts, **limits}


def _rfc3339(moment_ns: int) -> str:
    seconds, fraction = divmod(moment_ns, NS_PER_S)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z"


def pull_query(events_max: int, wait_ms: float, ack: str | None) -> bytes:
    """GET /boxes/ID/messages."""
    acknowledged = "" if ack is None else f"&ack={ack}"
    return f"max={events_max}&wait={wait_ms / 1e3:.6f}{acknowledged}".encode()


def check_answer(machine: Machine, asked: Members | None, result: SubscriptionView) -> None:
    """An answer leaves: the broker has said so, and it says what was asked for."""
    process = machine.process
    task = None if process is None else process.current
    who = f"subscription {result.subscription.id}"
    if task is None or not any(answer is result for answer in task.answers):
        raise Violation(f"{who}: a client was answered before the commit")
    found = result.subscription
    if asked is None or task.is_overtaken:
        return  # another change came after it, and may be in the same commit
    if "filters" in asked and bytes(found.filters) != _encode(asked["filters"]):
        raise Violation(f"{who}: a change of its filter was answered with another")
    if "sink" in asked and found.sink != asked["sink"]:
        raise Violation(f"{who}: a change of its sink was answered with {found.sink}")
    if "expires" in asked:
        expires = None if found.expires_ns is None else _rfc3339(found.expires_ns)
        if expires != asked["expires"]:
            raise Violation(f"{who}: it shall end at {asked['expires']}, and ends at {expires}")
    if "config" in asked:
        config = _config(found.config, is_box=found.kind is Kind.BOX)
        if config != asked["config"]:
            raise Violation(f"{who}: a change of its limits was answered with {config}")


def check_ended(machine: Machine, subscription_id: str) -> None:
    """An answer to a DELETE leaves."""
    process = machine.process
    task = None if process is None else process.current
    if task is None or subscription_id not in task.answers:
        raise Violation(f"subscription {subscription_id}: its end was answered before the commit")
