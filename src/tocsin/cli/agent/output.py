"""What `tocsin agent --once` and `--list` print: events, and the list of event types."""

from __future__ import annotations

import sys
from typing import Any

from tocsin.agent import PROBES, Monitor, Probe
from tocsin.cli.event_lines import performance_json
from tocsin.cli.render import safe, show, show_json, table
from tocsin.wire.gma.messages import Element, PerformanceEvent

_THOUSANDS = ("", "k", "M", "G", "T", "P", "E")
# "Cores 2" is clear without its unit; only programs need it.
_COUNTED = frozenset({"cores", "processes", "packets", "operations"})


def show_event(event: PerformanceEvent, *, as_json: bool) -> None:
    """One event on a line."""
    if as_json:
        line = performance_json(event)
        sys.stdout.write(safe(line) if sys.stdout.isatty() else line)
    else:
        show(event_line(event))


def event_line(event: PerformanceEvent) -> str:
    """The event as a person reads it."""
    values = "  ".join(f"{each.name} {_value_text(each)}" for each in event.elements)
    return f"{event.time}  {event.name.local}  {values}".replace("\n", " ")


def _value_text(element: Element) -> str:
    value, units = element.value, element.units
    if isinstance(value, bool):
        return "yes" if value else "no"
    if units is None or units in _COUNTED or isinstance(value, str | tuple):
        return str(value)
    if units in ("B", "B/s"):
        return _short(float(value), units)
    if isinstance(value, float):
        return f"{value:.4g} {units}" if abs(value) < 10_000 else f"{value:.0f} {units}"
    return f"{value} {units}"


def _short(value: float, units: str) -> str:
    """Bytes, in the largest unit that leaves something in front of the point."""
    power = 0
    while abs(value) >= 999.5 and power < len(_THOUSANDS) - 1:
        value /= 1_000
        power += 1
    return f"{value:.3g} {_THOUSANDS[power]}{units}"


def show_list(monitor: Monitor, *, as_json: bool) -> None:
    """Every event there could be: what it is asked for with, and if not here, why not."""
    wanted = [each for each in PROBES if each.name in {**monitor.probes, **monitor.missing}]
    if as_json:
        for probe in wanted:
            show_json(_listed(probe, monitor.missing.get(probe.name)))
        return
    here = [each for each in wanted if each.name in monitor.probes]
    rows = [(each.name.local, ", ".join(each.parameters), each.about) for each in here]
    table(("EVENT", "PARAMETERS", "WHAT IT MEASURES"), rows)
    if monitor.missing:
        show("\nNot on this machine:")
    width = max((len(name.local) for name in monitor.missing), default=0)
    for name, why in monitor.missing.items():
        show(f"{name.local:<{width}}  {why}")


def _listed(probe: Probe[Any], why_not: str | None) -> dict[str, object]:
    return {
        "name": probe.name.local,
        "namespace": probe.name.namespace,
        "parameters": list(probe.parameters),
        "about": probe.about,
        "offered": why_not is None,
        "why_not": why_not,
    }
