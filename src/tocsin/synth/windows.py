"""Windows: events are generated window by window, so that memory does not grow with their number.

Runs begin in a window; their events that are received later wait as rows for a later window.
Background events fill what is left of the window's share, so that the total is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tocsin.synth import background, runs
from tocsin.synth.plan import Plan
from tocsin.synth.rows import US_PER_MS, Col, Mark, NewRuns, RunTable, empty
from tocsin.synth.runs import RunSimulation
from tocsin.synth.texts import Ints
from tocsin.synth.world import HOUR_MS, MINUTE_MS, TYPES_MIN, USERS, World

OF_RUNS: Final = 0.88  # of all events
OF_THE_LARGE_RUN: Final = 0.02
LARGE_BEGINS, LARGE_SPREAD = 0.2, 0.6  # of the span
LARGE_WORKFLOW: Final = 1
RUNNING: Final = 0.01  # of all runs: begun so late that they have not ended
RUNNING_MS: Final = HOUR_MS
SCALE_SPREAD: Final = 0.5
SCALE_MAX: Final = 12.0
WITH_PLAN: Final = 0.05
DELAY_US: Final = 60_000.0  # from an event to the broker, median
DELAY_SPREAD: Final = 0.8
LATE_MS: Final = (2 * MINUTE_MS, 6 * HOUR_MS)
DUPLICATE_MS: Final = (1_000, 2 * HOUR_MS)


@dataclass(frozen=True, slots=True)
class Window:
    """The rows received in it, in that order."""

    number: int
    rows: Ints
    begin_us: int
    end_us: int


class WindowGenerator:
    """The state between windows: which rows wait, and how many were generated."""

    def __init__(self, plan: Plan, world: World, single_events: Ints) -> None:
        """`single_events`: how many events of each window are added to it by the caller."""
        self.plan = plan
        self.world = world
        self.runs = RunTable()
        self.waiting: Ints = empty()
        due = plan.events * np.arange(1, plan.windows + 1) // plan.windows
        self._rows_due = due - np.cumsum(single_events)
        self._rng = np.random.default_rng([plan.seed, 2])
        self._generated = 0
        self._background = 0
        self._budget = 0.0  # of events, for runs

    def windows(self) -> Iterator[Window]:
        begins_ms = self.plan.window_begins_ms().tolist()
        for number in range(self.plan.windows):
            yield self._window(number, begins_ms[number], begins_ms[number + 1])

    def _window(self, number: int, begin_ms: int, end_ms: int) -> Window:
        begin_us, end_us = begin_ms * US_PER_MS, end_ms * US_PER_MS
        rows = np.concatenate([self.waiting, self._received(self._begin(number, begin_ms, end_ms))])
        is_now = rows[:, Col.RECEIVED_US] < end_us
        now, self.waiting = rows[is_now], rows[~is_now]
        share = max(int(self._rows_due[number]) - self._generated, 0)
        if len(now) < share:
            now = np.concatenate([now, self._fill(share - len(now), begin_us, end_us)])
        now = now[np.argsort(now[:, Col.RECEIVED_US], kind="stable")]
        if number == self.plan.windows - 1 and len(now) > share:
            self.waiting = np.concatenate([self.waiting, now[share:]])
            now = now[:share]
        self._generated += len(now)
        return Window(number, now, begin_us, end_us)

    def _fill(self, count: int, begin_us: int, end_us: int) -> Ints:
        window_us = (begin_us, end_us)
        rows = background.rows_of(count, self._background, window_us, self.world, self._rng)
        self._background += count
        later = self._duplicates(rows)
        later[:, Col.RECEIVED_US] = np.maximum(later[:, Col.RECEIVED_US], end_us)
        self.waiting = np.concatenate([self.waiting, later])
        return rows

    def _received(self, rows: Ints) -> Ints:
        """As they arrive: each with its delay, some late, some twice."""
        delay_us = DELAY_US * np.exp(self._rng.normal(0, DELAY_SPREAD, len(rows)))
        is_late = self._rng.random(len(rows)) < self.plan.late
        late_ms = self._rng.integers(*LATE_MS, int(is_late.sum()))
        rows[:, Col.RECEIVED_US] += delay_us.astype(np.int64)
        rows[is_late, Col.RECEIVED_US] += late_ms * US_PER_MS
        rows[is_late, Col.MARKS] |= Mark.LATE
        return np.concatenate([rows, self._duplicates(rows)])

    def _duplicates(self, rows: Ints) -> Ints:
        copies = rows[self._rng.random(len(rows)) < self.plan.duplicates]
        later_ms = self._rng.integers(*DUPLICATE_MS, len(copies))
        copies[:, Col.RECEIVED_US] += later_ms * US_PER_MS
        copies[:, Col.MARKS] = Mark.DUPLICATE
        return copies

    # Which runs begin

    def _begin(self, number: int, begin_ms: int, end_ms: int) -> Ints:
        self._budget += self.plan.events * OF_RUNS / self.plan.windows
        parts = [self._simulate(self._within_budget(begin_ms, end_ms))]
        if number == int(self.plan.windows * LARGE_BEGINS):
            parts.append(self._simulate(self._large_run(begin_ms)))
        if number == self.plan.windows - 1:
            count = round(self.runs.count * RUNNING)
            late = self._draw(count, max(begin_ms, end_ms - RUNNING_MS), end_ms)
            parts.append(self._simulate(late))
        return np.concatenate(parts)

    def _within_budget(self, begin_ms: int, end_ms: int) -> NewRuns:
        """As many runs as the budget has events for; the rest is left for the next window."""
        enough = int(self._budget / (TYPES_MIN * runs.EVENTS_OF_AN_ACTIVITY)) + 1
        count = min(enough, int(self._budget / 40) + 8)
        drawn = self._draw(count, begin_ms, end_ms)
        run, _, counts = runs.counts_of(self.world, drawn)
        activities = np.bincount(run, weights=counts, minlength=count)
        costs = activities * runs.EVENTS_OF_AN_ACTIVITY + runs.EVENTS_OF_A_RUN
        costs *= 1 + self.plan.duplicates
        fit = int(np.searchsorted(np.cumsum(costs), self._budget, side="right"))
        self._budget -= float(costs[:fit].sum())
        return drawn.first(fit)

    def _draw(self, count: int, begin_ms: int, end_ms: int) -> NewRuns:
        rng, world = self._rng, self.world
        start_ms = rng.integers(begin_ms, end_ms, count)
        workflow = rng.choice(len(world.workflows), count, p=world.shares)
        scale = np.minimum(np.exp(rng.normal(0, SCALE_SPREAD, count)), SCALE_MAX)
        return NewRuns(
            workflow=workflow,
            version=world.version_at(workflow, start_ms),
            start_ms=start_ms,
            scale=np.rint(scale * 1_000_000) / 1_000_000,
            activities_each=np.zeros(count, np.int64),
            spread_ms=np.zeros(count, np.int64),
        )

    def _large_run(self, begin_ms: int) -> NewRuns:
        """One run with a great part of all events."""
        one = self._draw(1, begin_ms, begin_ms + 1)
        workflow = np.array([LARGE_WORKFLOW])
        activities = self.plan.events * OF_THE_LARGE_RUN / runs.EVENTS_OF_AN_ACTIVITY
        each = int(activities / int(self.world.type_count[LARGE_WORKFLOW]))
        spread_ms = int((self.plan.end_ms - self.plan.start_ms) * LARGE_SPREAD)
        return replace(
            one,
            workflow=workflow,
            version=self.world.version_at(workflow, one.start_ms),
            activities_each=np.array([max(each, 1)]),
            spread_ms=np.array([spread_ms]),
        )

    def _simulate(self, new: NewRuns) -> Ints:
        if not len(new):
            return empty()
        has_plan = (self._rng.random(len(new)) < WITH_PLAN) & (new.activities_each == 0)
        plan_scale = np.where(has_plan, np.rint(new.scale * 1_000_000), 0).astype(np.int64)
        first = self.runs.count
        self.runs.add(new, self._rng.integers(0, len(USERS), len(new)), plan_scale)
        return RunSimulation(self.world, new, first, self._rng).rows()
