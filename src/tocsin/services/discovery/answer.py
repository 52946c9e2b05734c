"""Answer: what was found for a one-time request, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tocsin.event.event import Value
from tocsin.event.instant import rfc3339
from tocsin.event.value import Quantity
from tocsin.overlay.discovery.effects import Resource, Summary
from tocsin.wire.api.resource_views import DiscoveryResult, FoundResource


@dataclass(frozen=True, slots=True)
class Hit:
    """A resource, and how long its broker took to answer; None if it was known here."""

    resource: Resource
    round_trip_s: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """All that was found for one request."""

    found: list[Hit]
    summary: Summary
    stopped_early: bool = False


def resource_view(found: Hit) -> FoundResource:
    resource = found.resource
    return FoundResource(
        id=resource.id,
        broker=resource.broker,
        attributes=attributes_view(resource.attributes),
        ranges=dict(resource.ranges),
        as_of=rfc3339(resource.as_of_ns),
        kind=resource.kind or None,
        address=resource.address or None,
        hops=resource.hops,
        round_trip_s=None if found.round_trip_s is None else round(found.round_trip_s, 6),
    )


def answer_view(answer: Answer) -> DiscoveryResult:
    summary = answer.summary
    return DiscoveryResult(
        resources=[resource_view(each) for each in answer.found],
        brokers=list(summary.brokers),
        messages=summary.messages,
        shared=summary.shared,
        oldest=rfc3339(summary.oldest_ns),
        stopped_early=answer.stopped_early or summary.stopped_early,
        incomplete=summary.incomplete or None,
        why_empty=summary.why_empty or None,
    )


def attributes_view(attributes: Mapping[str, Value]) -> dict[str, object]:
    return {name: _attribute(value) for name, value in attributes.items()}


def _attribute(value: Value) -> object:
    if not isinstance(value, Quantity):
        return value
    members = {"value": value.value, "unit": value.unit, "accuracy": value.accuracy}
    return {name: each for name, each in members.items() if each is not None}
