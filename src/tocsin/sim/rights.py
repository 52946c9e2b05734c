"""Rights as they are granted in a simulated world: how each is written, and what it is about.

Which events a right is about is worked out here, without a filter or a policy of the broker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from random import Random
from typing import Any, Final

import msgspec

from tocsin.access.decision import Action
from tocsin.event.event import Event
from tocsin.event.filter import Filter
from tocsin.event.filter_eval import matches
from tocsin.event.instant import rfc3339, rfc3339_ns
from tocsin.sim.workload import LEVELS, TOPICS, TYPES

PUBLISH, SUBSCRIBE, READ, MANAGE = (action.value for action in Action)
EVERY_ACTION: Final = frozenset((PUBLISH, SUBSCRIBE, READ, MANAGE))
LINKS: Final = "link/*"
RESOURCES: Final = "resource/*"


@dataclass(frozen=True, slots=True)
class Shape:
    """What the filters of rights look at."""

    topic: str
    level: int | None
    kind: str | None


@dataclass(frozen=True, slots=True)
class Scope:
    """Some of all events."""

    topic: str  # as it is written; empty for every one
    filter: str
    holds: Callable[[Shape], bool]


EVERYTHING: Final = Scope("", "", lambda shape: True)
SCOPES: Final = (
    EVERYTHING,
    Scope("lab/**", "", lambda shape: shape.topic.startswith("lab/")),
    Scope("*/b", "", lambda shape: shape.topic in ("lab/b", "sky/b")),
    Scope("", "level >= 5", lambda shape: shape.level is not None and shape.level >= 5),
    Scope("sky/**", "kind = 'x'", lambda s: s.topic.startswith("sky/") and s.kind == "x"),
)
_BY_TEXT: Final = {(each.topic, each.filter): each for each in SCOPES}


@dataclass(frozen=True, slots=True)
class Right:
    """One right: about the events of a scope, or about a resource."""

    actions: frozenset[str]
    scope: Scope | None
    resource: str = ""
    expires_ns: int | None = None

    @property
    def is_whole(self) -> bool:
        return self.scope is EVERYTHING

    def is_about(self, resource: str) -> bool:
        """Whether it names this resource, or all of its kind."""
        named = self.resource
        return named == resource or (named.endswith("/*") and resource.startswith(named[:-1]))

    def written(self) -> dict[str, Any]:
        """As somebody writes it who grants it."""
        found: dict[str, Any] = {"action": sorted(self.actions)}
        if self.scope is None:
            found["resource"] = self.resource
        else:
            if self.scope.topic:
                found["topic"] = self.scope.topic
            if self.scope.filter:
                found["filter"] = self.scope.filter
        if self.expires_ns is not None:
            found["expires"] = rfc3339(self.expires_ns, 9)
        return found


def read_right(kept: dict[str, Any]) -> Right:
    """A right as a broker keeps it."""
    actions = kept["action"]
    names = frozenset([actions] if isinstance(actions, str) else actions)
    expires = kept.get("expires")
    expires_ns = None if expires is None else rfc3339_ns(expires)
    if "resource" in kept:
        return Right(names, None, kept["resource"], expires_ns)
    topic = kept.get("topic", "")
    scope = _BY_TEXT["" if topic == "**" else topic, kept.get("filter", "")]
    return Right(names, scope, "", expires_ns)


def draw_right(random: Random, actions: frozenset[str], expires_ns: int | None = None) -> Right:
    return Right(actions, random.choice(SCOPES), "", expires_ns)


def draw_actions(random: Random) -> frozenset[str]:
    return frozenset(
        random.choice(
            (
                (PUBLISH,),
                (SUBSCRIBE,),
                (PUBLISH, SUBSCRIBE),
                (SUBSCRIBE, READ),
                (PUBLISH, SUBSCRIBE, READ),
            )
        )
    )


def shape_of(event: Event) -> Shape:
    level, kind = _content(event.data or b"")
    return Shape(event.topic, level, kind)


@lru_cache(maxsize=1024)
def _content(data: bytes) -> tuple[int | None, str | None]:
    if not data.startswith(b'{"level"'):
        return None, None
    found = msgspec.json.decode(data)
    return found["level"], found["kind"]


def overlap(scope: Scope, filter: Filter) -> bool:
    """True if an event of this simulation is of both."""
    return any(matches(filter, event) and scope.holds(shape) for event, shape in _domain())


@lru_cache(maxsize=len(TOPICS))
def shapes_on(topic: str) -> list[Shape]:
    """Of all events of this simulation on a topic."""
    return [shape for _, shape in _domain() if shape.topic == topic]


@lru_cache(maxsize=1)
def _domain() -> list[tuple[Event, Shape]]:
    every = product(TOPICS, TYPES, range(LEVELS), "xy")
    events = [
        Event(
            id="",
            source="/",
            type=type,
            topic=topic,
            subject=f"{level}{kind}",
            data=msgspec.json.encode({"level": level, "kind": kind}),
        )
        for topic, type, level, kind in every
    ]
    return [(event, shape_of(event)) for event in events]
