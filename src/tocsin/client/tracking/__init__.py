"""Report to a blackboard what a workflow does, from inside it (paper 004, section 3.2).

from tocsin.client.tracking import Workflow

with Workflow("forecast") as run:
    with run.activity("fetch", outputs=["raw.nc"]) as step:
        step.milestone("half of it")
"""

from tocsin.client.tracking.activity import Activity
from tocsin.client.tracking.monitors import (
    BeforeAfter,
    Periodic,
    register_monitor,
    unregister_monitor,
)
from tocsin.client.tracking.monitors.kinds import Aggregation
from tocsin.client.tracking.outbox import Counts, Outbox
from tocsin.client.tracking.workflow import Workflow

__all__ = [
    "Activity",
    "Aggregation",
    "BeforeAfter",
    "Counts",
    "Outbox",
    "Periodic",
    "Workflow",
    "register_monitor",
    "unregister_monitor",
]
