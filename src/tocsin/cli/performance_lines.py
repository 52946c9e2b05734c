"""Performance events as JSON: one shape, whoever prints them."""

from __future__ import annotations

import json

from tocsin.wire.gma.messages import Element, PerformanceEvent


def json_line(event: PerformanceEvent) -> str:
    """The event as one line, for programs."""
    told = {
        "name": event.name.local,
        "namespace": event.name.namespace,
        "time": event.time,
        "elements": [_element(each) for each in event.elements],
    }
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")) + "\n"


def _element(element: Element) -> dict[str, object]:
    value: object = element.value
    if isinstance(element.value, tuple):
        value = [_element(each) for each in element.value]
    told = {"name": element.name, "value": value}
    extras = {"unit": element.units, "accuracy": element.accuracy}
    return told | {name: text for name, text in extras.items() if text is not None}
