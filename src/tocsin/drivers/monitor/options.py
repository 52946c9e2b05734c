"""MonitorOptions: what the monitor may keep, and for how long it waits for a silent run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tocsin.monitor.rules import WANTED


@dataclass(frozen=True, slots=True)
class MonitorOptions:
    """The settings of the monitoring service."""

    concepts: tuple[str, ...] = WANTED
    """What it subscribes to, for the aggregate profile. It folds whatever comes."""
    silence_s: float = 6 * 3_600.0
    """A run that sends nothing for so long is lost, unless its heartbeat says otherwise."""
    retain_age_s: float = 365 * 86_400.0
    """How long a run is kept after its last event."""
    runs_max: int = 100_000
    events_per_run: int = 10_000
    """The last events of a run; what came before its failures is kept beside them."""
    alerts: bool = True
    """Whether what goes slower than usual is published."""
    look_every_s: float = 5.0
    """How often it is looked for, and runs under way are counted."""
    past_runs_max: int = 50
    """How many runs of a workflow an estimate learns from."""
    tables: Path | None = None
    """Where the pipeline's tables are, if they are to be used."""
    tables_named: bool = False
    """Whether somebody named that place, and wants to know if nothing is there."""
    tables_old_s: float = 7 * 86_400.0
    """Tables that were made longer ago are used all the same, and marked as old."""
