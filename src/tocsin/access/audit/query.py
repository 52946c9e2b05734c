"""Which lines of the audit log somebody asks for."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from tocsin.access.audit.lines import AuditLine
from tocsin.errors import TocsinError
from tocsin.event.filter import EVERYTHING, Filter, TopicIs
from tocsin.event.filter_text import parse_filter
from tocsin.event.topic import TopicPattern
from tocsin.matching.covering import intersects

_FILTER: Final = "filter/"
_TOPIC: Final = "topic/"


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is empty or None does not matter."""

    principal: str = ""
    action: str = ""
    decision: str = ""
    kind: str = ""
    since: str = ""  # as lines have it, so that it can be compared
    until: str = ""
    topic: TopicPattern | None = None
    limit: int = 100
    after: int | None = None  # the number of a line; without it, the last lines

    def wants(self, line: AuditLine) -> bool:
        if (self.principal and line.principal != self.principal) or (
            self.action and line.action != self.action
        ):
            return False
        if (self.decision and line.decision != self.decision) or (
            self.kind and line.kind != self.kind
        ):
            return False
        if (self.since and line.time < self.since) or (self.until and line.time >= self.until):
            return False
        return self.topic is None or _is_about(line.action, line.resource, self.topic)


def _is_about(action: str, resource: str, topic: TopicPattern) -> bool:
    """Whether what was decided may concern an event on one of these topics."""
    events = _events(action, resource)
    return events is not None and intersects(events, TopicIs(topic))


@lru_cache(maxsize=1_024)
def _events(action: str, resource: str) -> Filter | None:
    """The events that a resource is about; None if it is about none."""
    try:
        if resource.startswith(_FILTER):
            text = resource.removeprefix(_FILTER)
            return EVERYTHING if text in ("everything", "*") else parse_filter(text)
        if action == "publish":
            return TopicIs(TopicPattern.parse(resource))
        if resource.startswith(_TOPIC):
            return TopicIs(TopicPattern.parse(resource.removeprefix(_TOPIC)))
    except TocsinError:  # it was cut, being too long
        return EVERYTHING
    return EVERYTHING if resource == "events" else None
