"""How long a workflow will take: before it starts and while it runs, with an 80 % interval."""

from __future__ import annotations

from tocsin.monitor.estimate.estimator import Knowledge, estimate, learn, past_ratios
from tocsin.monitor.estimate.facts import Done, Estimate, Moment, PastRun, Plan, Planned

__all__ = [
    "Done",
    "Estimate",
    "Knowledge",
    "Moment",
    "PastRun",
    "Plan",
    "Planned",
    "estimate",
    "learn",
    "past_ratios",
]
