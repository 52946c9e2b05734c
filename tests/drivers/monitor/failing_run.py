"""A run that fails after a retry, as its messages."""

from __future__ import annotations

from monitor.runs import RECEIVED_NS, activity_pairs, run_pairs

NOW_NS = RECEIVED_NS
FAILING = (
    run_pairs("WorkflowStarted", 0, WorkflowName="blast", WorkflowVersion="1", UserName="ada"),
    activity_pairs("split-1", "ActivityExecuting", 1),
    activity_pairs("split-1", "ActivitySucceeded", 5, CpuSeconds="3.5", MemoryPeak="100"),
    activity_pairs("align-1", "ActivityExecuting", 6, ParentActivity="split-1"),
    activity_pairs("align-1", "ActivityRetrying", 8, ExitCode="1", ErrorMessage="disk 7 full"),
    activity_pairs("align-1", "ActivityExecuting", 9, Attempt="2"),
    activity_pairs(
        "align-1", "ActivityFailed", 12, Attempt="2", ExitCode="1", ErrorMessage="disk 9 full"
    ),
    activity_pairs("align-2", "ActivityExecuting", 6.5, CpuSeconds="1.5", MemoryPeak="300"),
    run_pairs("WorkflowTerminated", 13, ErrorMessage="align-1 failed", PlannedActivities="4"),
)
