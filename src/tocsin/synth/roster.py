"""Roster: what is known of every run, by its number; their events tell it when their time comes."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from tocsin.synth.runs import Begun
from tocsin.synth.texts import Ints


class Of(IntEnum):
    """The columns."""

    WORKFLOW = 0
    VERSION = 1
    USER = 2
    START_MS = 3
    PLAN_SCALE = 4  # of those that tell their plan, in millionths; of others 0


class Roster:
    """Grows as runs begin. Forty bytes a run: those of a billion events still fit."""

    def __init__(self) -> None:
        self._rows: Ints = np.zeros((1_024, len(Of)), np.int64)
        self.count = 0

    def add(self, begun: Begun, user: Ints, plan_scale: Ints) -> None:
        needed = self.count + len(begun)
        while needed > len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[self.count : needed] = np.column_stack(
            [begun.workflow, begun.version, user, begun.start_ms, plan_scale]
        )
        self.count = needed

    def of(self, runs: Ints, column: Of) -> Ints:
        return np.asarray(self._rows[runs, column])
