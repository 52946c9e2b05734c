"""Rows: events as a matrix of integers, one row per event, before their columns are built.

Events wait in this form until they are due: it is small and sorts quickly.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Final

import numpy as np

from tocsin.synth.texts import Floats, Ints

US_PER_MS: Final = 1_000


class Col(IntEnum):
    """The columns of the matrix. From 9 on their meaning depends on the kind of event."""

    RECEIVED_US = 0
    TIME_MS = 1  # by the clock of the event's host
    KIND = 2
    RUN = 3  # of background events: a number of their own
    TYPE = 4
    ACTIVITY = 5
    ATTEMPT = 6
    HOST = 7
    MARKS = 8
    # The end of an attempt. When it is queued, CPU and MEMORY are what it asks for.
    INPUT = 9
    OUTPUT = 10
    CPU = 11  # hundredths of a second; in a sample, tenths of a percent of a core
    MEMORY = 12
    READ = 13
    WRITTEN = 14
    FAULT = 15
    FAULT_NUMBER = 16
    # The start of a run.
    PLANNED = 9
    # Background events.
    VALUE_1 = 9
    VALUE_2 = 10
    VALUE_3 = 11


USAGE: Final = slice(Col.INPUT, Col.WRITTEN + 1)


class Mark(IntFlag):
    """What the truth must know about a row."""

    NONE = 0
    DUPLICATE = 1
    LATE = 2
    HAS_END = 4


Kind = IntEnum(
    "Kind",
    "QUEUED EXECUTING SAMPLE SUCCEEDED FAILED OUT_OF_MEMORY TIMED_OUT CANCELLED SKIPPED CACHED "
    "STARTED COMPLETED TERMINATED ABORTED SENSOR LOAD MEMORY LOG_LINE DATASET",
    start=0,
)
"""What an event is about: an activity, a run (from STARTED on), neither (from SENSOR on)."""

CONCEPTS: Final = {
    Kind.QUEUED: "ActivityInitialized",
    Kind.EXECUTING: "ActivityExecuting",
    Kind.SUCCEEDED: "ActivitySucceeded",
    Kind.FAILED: "ActivityFailed",
    Kind.OUT_OF_MEMORY: "ActivityOutOfMemory",
    Kind.TIMED_OUT: "ActivityTimedOut",
    Kind.CANCELLED: "ActivityCancelled",
    Kind.SKIPPED: "ActivitySkipped",
    Kind.CACHED: "ActivityCached",
    Kind.STARTED: "WorkflowStarted",
    Kind.COMPLETED: "WorkflowCompleted",
    Kind.TERMINATED: "WorkflowTerminated",
    Kind.ABORTED: "WorkflowAborted",
}
"""The concept of the ontology that a message of this kind begins with, if it has one."""

FAILURES: Final = (Kind.FAILED, Kind.OUT_OF_MEMORY, Kind.TIMED_OUT)
ENDS: Final = (Kind.SUCCEEDED, *FAILURES, Kind.CANCELLED)
RUN_KINDS: Final = (Kind.STARTED, Kind.COMPLETED, Kind.TERMINATED, Kind.ABORTED)


def empty(count: int = 0) -> Ints:
    return np.zeros((count, len(Col)), np.int64)


@dataclass(frozen=True, slots=True)
class NewRuns:
    """Runs that begin in one window, one array per property."""

    workflow: Ints
    version: Ints
    start_ms: Ints
    scale: Floats  # of the number of activities
    activities_each: Ints  # of each type, unless 0: a run of another size altogether
    spread_ms: Ints  # over which the activities of a level become ready

    def __len__(self) -> int:
        return len(self.workflow)

    def first(self, count: int) -> NewRuns:
        return NewRuns(*(getattr(self, name)[:count] for name in NewRuns.__slots__))


class RunTable:
    """All runs so far, by number. 41 bytes per run: those of a billion events fit in memory."""

    WORKFLOW, VERSION, USER, START_MS, PLAN_SCALE = range(5)
    """Columns. PLAN_SCALE is in millionths for runs that publish their plan, 0 for others."""

    def __init__(self) -> None:
        self._rows: Ints = np.zeros((1_024, 5), np.int64)
        self.is_in_archive = np.zeros(1_024, np.bool_)  # with at least one event
        self.count = 0

    def add(self, new: NewRuns, user: Ints, plan_scale: Ints) -> None:
        needed = self.count + len(new)
        while needed > len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
            self.is_in_archive = np.concatenate(
                [self.is_in_archive, np.zeros_like(self.is_in_archive)]
            )
        self._rows[self.count : needed] = np.column_stack(
            [new.workflow, new.version, user, new.start_ms, plan_scale]
        )
        self.count = needed

    def of(self, runs: Ints, column: int) -> Ints:
        return np.asarray(self._rows[runs, column])
