"""How long a workflow will take: before it starts and while it runs, with an 80 % interval."""

from __future__ import annotations

from tocsin.monitor.estimate.estimator import Knowledge, estimate, learn, past_ratios
from tocsin.monitor.estimate.types import Done, Estimate, PastRun, Plan, Planned, RunProgress

__all__ = [
    "Done",
    "Estimate",
    "Knowledge",
    "PastRun",
    "Plan",
    "Planned",
    "RunProgress",
    "estimate",
    "learn",
    "past_ratios",
]
