"""Who measures what: one monitor for each concept, in all workflows of the process."""

from __future__ import annotations

from tocsin.client.tracking.monitors.kinds import Monitor
from tocsin.ontology import in_use

_registered: dict[str, Monitor] = {}
_version = [0]


def register_monitor(concept: str, monitor: Monitor) -> None:
    """Have `monitor` measure the concept from now on, in place of any other that did.

    It is run only while the concept is in the aggregate profile. Raises UnknownConcept.
    """
    _registered[in_use().resolve(concept)] = monitor
    _version[0] += 1


def unregister_monitor(concept: str) -> None:
    """What Tocsin itself can measure is measured so again."""
    _registered.pop(in_use().resolve(concept), None)
    _version[0] += 1


def registered() -> dict[str, Monitor]:
    return dict(_registered)


def version() -> int:
    """Another one each time that a monitor is registered."""
    return _version[0]
