"""The kinds of resource monitors (paper 004, section 3.2): once, before and after, or all along."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tocsin.client.tracking.monitors.process import Snapshot
from tocsin.client.tracking.run import Value
from tocsin.ontology import in_use

Reading = Callable[[], Value]


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """`before()` when an activity begins; `after(what that returned)` when it ends is the value.

    An activity that is over within `settle_s` is not worth it, and is left alone.
    """

    before: Callable[[], Any]
    after: Callable[[Any], Value]
    settle_s: float = 0.0


class Aggregation(Enum):
    """What is sent of periodic readings: each of them, or one value at the end."""

    EACH = "each"
    AVERAGE = "average"
    PEAK = "peak"


@dataclass(frozen=True, slots=True)
class Periodic:
    """`read()` at the beginning, every so often while the activity runs, and at its end."""

    read: Reading
    every_s: float = 5.0
    aggregation: Aggregation = Aggregation.EACH
    settle_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Inline:
    """A value of two snapshots that the workflow's own thread takes, at the beginning and at the
    end: our own readings of a few microseconds. Others may hang, and a workflow waits for nobody.
    """

    value: Callable[[Snapshot, Snapshot], Value]


# A plain function is called when an activity begins and when it ends; each value is sent.
Monitor = BeforeAfter | Periodic | Inline | Reading

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
