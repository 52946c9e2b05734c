"""What a host tells, as lines: events for a person or for a program, and the list of them."""

from __future__ import annotations

from typing import Any

from tocsin.client.host import PROBES, Monitor, Probe
from tocsin.console.render import show, show_json, table
from tocsin.wire.gma.messages import Element, PerformanceEvent


def show_event(event: PerformanceEvent, *, as_json: bool) -> None:
    """One event on a line."""
    if as_json:
        show_json(event_json(event))
    else:
        show(event_line(event))


def event_json(event: PerformanceEvent) -> dict[str, object]:
    """The event as `tocsin sub --as gma --json` has it."""
    return {
        "name": event.name.local,
        "namespace": event.name.namespace,
        "time": event.time,
        "elements": [_json_element(each) for each in event.elements],
    }


def _json_element(element: Element) -> dict[str, object]:
    told: dict[str, object] = {"name": element.name, "value": element.value}
    return told if element.units is None else {**told, "unit": element.units}


def event_line(event: PerformanceEvent) -> str:
    """The event as a person reads it."""
    told = "  ".join(f"{each.name} {_worded(each)}" for each in event.elements)
    return f"{event.time}  {event.name.local}  {told}"


def _worded(element: Element) -> str:
    value = str(element.value).lower() if isinstance(element.value, bool) else str(element.value)
    return value if element.units is None else f"{value} {element.units}"


def show_list(monitor: Monitor, *, as_json: bool) -> None:
    """Every event there could be: what it is asked for with, and if not here, why not."""
    wanted = [each for each in PROBES if each.name in {**monitor.probes, **monitor.missing}]
    if as_json:
        for probe in wanted:
            show_json(_listed(probe, monitor.missing.get(probe.name)))
        return
    here = [each for each in wanted if each.name in monitor.probes]
    rows = [(each.name.local, ", ".join(each.parameters), each.about) for each in here]
    table(("EVENT", "PARAMETERS", "ABOUT"), rows)
    if monitor.missing:
        show("\nNot on this machine:")
    for name, why in monitor.missing.items():
        show(f"{name.local}: {why}")


def _listed(probe: Probe[Any], why_not: str | None) -> dict[str, object]:
    return {
        "name": probe.name.local,
        "namespace": probe.name.namespace,
        "parameters": list(probe.parameters),
        "offered": why_not is None,
        "why_not": why_not,
    }
