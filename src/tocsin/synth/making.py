"""Making: window by window, so that memory does not grow with the number of events.

Runs begin in a window; what of theirs is received later waits as rows for the window it falls into.
Unrelated events fill what is left of the window's share, so that the total is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from tocsin.synth import runs, unrelated
from tocsin.synth.plan import MS_PER_DAY, Plan
from tocsin.synth.roster import Roster
from tocsin.synth.rows import At, Mark, empty
from tocsin.synth.runs import Begun
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
AGAIN_MS: Final = (1_000, 2 * HOUR_MS)


@dataclass(frozen=True, slots=True)
class Window:
    """What is received in it, in that order."""

    number: int
    rows: Ints
    begin_us: int
    end_us: int


class Making:
    """The state between windows: what waits, and how much was made."""

    def __init__(self, plan: Plan, world: World, beside: Ints) -> None:
        """`beside`: of how many events of each window others take care."""
        self.plan = plan
        self.world = world
        self.roster = Roster()
        self.waiting: Ints = empty()
        self.windows_total = plan.windows
        self._beside = np.cumsum(beside)
        self._chance = np.random.Generator(np.random.PCG64([plan.seed, 2]))
        self._made = 0
        self._others = 0
        self._budget = 0.0
        self._length_ms = MS_PER_DAY // plan.windows_a_day

    def windows(self) -> Iterator[Window]:
        """All windows, one after the other."""
        for number in range(self.windows_total):
            yield self._window(number)

    def _window(self, number: int) -> Window:
        begin_ms = self._begin_ms(number)
        end_ms = self._begin_ms(number + 1)
        is_last = number == self.windows_total - 1
        fresh = self._scattered(self._begin(number, begin_ms, end_ms))
        everything = np.concatenate([self.waiting, fresh])
        is_now = everything[:, At.RECEIVED_US] < end_ms * 1_000
        now, self.waiting = everything[is_now], everything[~is_now]
        due = self.plan.events * (number + 1) // self.windows_total
        share = max(due - int(self._beside[number]) - self._made, 0)
        if len(now) < share:
            now = np.concatenate([now, self._fill(share - len(now), begin_ms, end_ms)])
        now = now[np.argsort(now[:, At.RECEIVED_US], kind="stable")]
        if is_last and len(now) > share:
            self.waiting = np.concatenate([self.waiting, now[share:]])
            now = now[:share]
        self._made += len(now)
        return Window(number, now, begin_ms * 1_000, end_ms * 1_000)

    def _begin_ms(self, number: int) -> int:
        """A window never spans two dates."""
        day, part = divmod(number, self.plan.windows_a_day)
        return self.plan.start_ms + day * MS_PER_DAY + part * self._length_ms

    def _fill(self, count: int, begin_ms: int, end_ms: int) -> Ints:
        within_us = (begin_ms * 1_000, end_ms * 1_000)
        rows = unrelated.rows_of(count, self._others, within_us, self.world, self._chance)
        self._others += count
        again = self._again(rows)
        again[:, At.RECEIVED_US] = np.maximum(again[:, At.RECEIVED_US], within_us[1])
        self.waiting = np.concatenate([self.waiting, again])
        return rows

    def _scattered(self, rows: Ints) -> Ints:
        """As they arrive: each with its delay, some late, some twice."""
        count = len(rows)
        delay_us = DELAY_US * np.exp(self._chance.normal(0, DELAY_SPREAD, count))
        is_late = self._chance.random(count) < self.plan.late
        late_ms = self._chance.integers(*LATE_MS, int(is_late.sum()))
        rows[:, At.RECEIVED_US] += delay_us.astype(np.int64)
        rows[is_late, At.RECEIVED_US] += late_ms * 1_000
        rows[is_late, At.MARKS] |= Mark.LATE
        return np.concatenate([rows, self._again(rows)])

    def _again(self, rows: Ints) -> Ints:
        again = rows[self._chance.random(len(rows)) < self.plan.duplicates]
        again[:, At.RECEIVED_US] += self._chance.integers(*AGAIN_MS, len(again)) * 1_000
        again[:, At.MARKS] = Mark.DUPLICATE
        return again

    # Which runs begin

    def _begin(self, number: int, begin_ms: int, end_ms: int) -> Ints:
        self._budget += self.plan.events * OF_RUNS / self.windows_total
        begun = self._affordable(begin_ms, end_ms)
        parts = [self._rows_of(begun)]
        if number == int(self.windows_total * LARGE_BEGINS):
            parts.append(self._rows_of(self._large_run(begin_ms)))
        if number == self.windows_total - 1:
            count = round(self.roster.count * RUNNING)
            begun = self._draw(count, max(begin_ms, end_ms - RUNNING_MS), end_ms)
            parts.append(self._rows_of(begun))
        return np.concatenate(parts)

    def _affordable(self, begin_ms: int, end_ms: int) -> Begun:
        """As many runs as the budget has events for; what is left over goes to the next window."""
        enough = int(self._budget / (TYPES_MIN * runs.EVENTS_OF_AN_ACTIVITY)) + 1
        count = min(enough, int(self._budget / 40) + 8)
        drawn = self._draw(count, begin_ms, end_ms)
        run, _, counts = runs.counts_of(self.world, drawn)
        activities = np.bincount(run, weights=counts, minlength=count)
        costs = activities * runs.EVENTS_OF_AN_ACTIVITY + runs.EVENTS_OF_A_RUN
        costs *= 1 + self.plan.duplicates
        fit = int(np.searchsorted(np.cumsum(costs), self._budget, side="right"))
        self._budget -= float(costs[:fit].sum())
        return _first(drawn, fit)

    def _draw(self, count: int, begin_ms: int, end_ms: int) -> Begun:
        chance, world = self._chance, self.world
        start_ms = chance.integers(begin_ms, end_ms, count)
        workflow = chance.choice(len(world.workflows), count, p=world.shares)
        scale = np.minimum(np.exp(chance.normal(0, SCALE_SPREAD, count)), SCALE_MAX)
        return Begun(
            number=np.zeros(count, np.int64),
            workflow=workflow,
            version=(start_ms[:, None] >= world.version_at_ms[workflow]).sum(axis=1) - 1,
            start_ms=start_ms,
            scale=np.rint(scale * 1_000_000) / 1_000_000,
            activities_each=np.zeros(count, np.int64),
            spread_ms=np.zeros(count, np.int64),
        )

    def _large_run(self, begin_ms: int) -> Begun:
        """One run with a great part of all events."""
        plan, world = self.plan, self.world
        one = _first(self._draw(1, begin_ms, begin_ms + 1), 1)
        types = int(world.type_count[LARGE_WORKFLOW])
        activities = plan.events * OF_THE_LARGE_RUN / runs.EVENTS_OF_AN_ACTIVITY
        spread_ms = int((plan.end_ms - plan.start_ms) * LARGE_SPREAD)
        workflow = np.array([LARGE_WORKFLOW])
        version = (one.start_ms[:, None] >= world.version_at_ms[workflow]).sum(axis=1) - 1
        return Begun(
            *(one.number, workflow, version, one.start_ms, one.scale),
            *(np.array([max(int(activities / types), 1)]), np.array([spread_ms])),
        )

    def _rows_of(self, begun: Begun) -> Ints:
        count = len(begun)
        if not count:
            return empty()
        first = self.roster.count
        numbered = Begun(
            np.arange(first, first + count),
            *(begun.workflow, begun.version, begun.start_ms, begun.scale),
            *(begun.activities_each, begun.spread_ms),
        )
        tells_plan = (self._chance.random(count) < WITH_PLAN) & (begun.activities_each == 0)
        plan_scale = np.where(tells_plan, np.rint(begun.scale * 1_000_000), 0).astype(np.int64)
        user = self._chance.integers(0, len(USERS), count)
        self.roster.add(numbered, user, plan_scale)
        return runs.rows_of(self.world, numbered, self._chance)


def _first(begun: Begun, count: int) -> Begun:
    return Begun(*(getattr(begun, name)[:count] for name in Begun.__slots__))
