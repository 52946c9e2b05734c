"""Rows: an event before it has words. A matrix of whole numbers, one row an event.

Events wait in this form until their time comes: it is small, and sorted quickly.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final

import numpy as np

from tocsin.synth.texts import Ints

US_PER_MS: Final = 1_000


class At(IntEnum):
    """The columns. What the figures are depends on the kind: see `messages` and `unrelated`."""

    RECEIVED_US = 0
    TIME_MS = 1  # as the event says, by the clock of its host
    KIND = 2
    RUN = 3  # of what has nothing to do with runs: a number of its own
    TYPE = 4
    ACTIVITY = 5
    ATTEMPT = 6
    HOST = 7
    MARKS = 8
    FIGURES = 9


FIGURES: Final = 8
WIDTH: Final = At.FIGURES + FIGURES


class Mark(IntFlag):
    """What is to be remembered of a row, for the truth."""

    NONE = 0
    DUPLICATE = 1
    LATE = 2
    HAS_END = 4


class Kind(IntEnum):
    """What the event tells."""

    QUEUED = 0
    EXECUTING = 1
    SAMPLE = 2
    SUCCEEDED = 3
    FAILED = 4
    OUT_OF_MEMORY = 5
    TIMED_OUT = 6
    CANCELLED = 7
    SKIPPED = 8
    CACHED = 9
    STARTED = 10
    COMPLETED = 11
    TERMINATED = 12
    ABORTED = 13
    SENSOR = 14
    LOAD = 15
    MEMORY = 16
    NOTE = 17
    DOCUMENT = 18


LEAD: Final = {
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
"""The event of each kind of message that has one, as the ontology calls it."""

FAILURES: Final = (Kind.FAILED, Kind.OUT_OF_MEMORY, Kind.TIMED_OUT)
OF_RUNS: Final = (Kind.STARTED, Kind.COMPLETED, Kind.TERMINATED, Kind.ABORTED)
UNRELATED: Final = (Kind.SENSOR, Kind.LOAD, Kind.MEMORY, Kind.NOTE, Kind.DOCUMENT)
IN_CONCEPTS: Final = tuple(kind for kind in Kind if kind not in UNRELATED)


def empty(count: int = 0) -> Ints:
    return np.zeros((count, WIDTH), np.int64)


def figure(place: int) -> int:
    """The column of one of the figures."""
    assert 0 <= place < FIGURES
    return At.FIGURES + place
