"""Runs: a simulation of what happens in them, level by level of their graphs, as rows.

All runs that begin in one window are simulated at once; each step is over all their activities.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.synth.rows import US_PER_MS, USAGE, Col, Kind, Mark, NewRuns, empty
from tocsin.synth.texts import Flags, Ints
from tocsin.synth.world import FAULTS, MIB, World

EVENTS_OF_AN_ACTIVITY: Final = 3.5  # on average: queued, executing, half a sample, the end; retries
EVENTS_OF_A_RUN: Final = 2
ATTEMPTS_MAX: Final = 3
FAILING: Final = 0.05  # of attempts
NOT_RETRIED: Final = 0.03  # of failures
CACHED: Final = 0.01  # of activities
LOST: Final = 0.005  # of runs: no more events come
ABORTED: Final = 0.01
SKIPPING: Final = 0.5  # of failed runs: they report which activities they skip
SAMPLED: Final = 0.5  # of attempts
QUEUE_MS: Final = 15_000.0  # on average
RETRY_MS: Final = 2_000
SIZE_SPREAD: Final = 0.6  # sigma of the logarithm, of a run's input and of each activity's in it
REQUEST_STEP: Final = 256 * MIB  # people ask for round amounts of memory, and for some to spare
FAULT_NUMBER_MAX: Final = 1_000_000

_FAULT_KINDS: Final = np.array([fault.kind for fault in FAULTS], np.int64)


def counts_of(world: World, new: NewRuns) -> tuple[Ints, Ints, Ints]:
    """For each run and each of its types: the run's place, the type, how many activities."""
    kinds = world.type_count[new.workflow]
    run = np.repeat(np.arange(len(new)), kinds)
    first = np.repeat(np.cumsum(kinds) - kinds, kinds)
    kind = np.arange(len(run)) - first + world.first_type[new.workflow][run]
    width = world.width_of[kind]
    scaled = np.maximum(np.rint(width * new.scale[run]).astype(np.int64), 1)
    fixed = new.activities_each[run]
    return run, kind, np.where(fixed > 0, fixed, np.where(width == 1, 1, scaled))


class RunSimulation:
    """Arrays by run, by activity, and (two dimensions) by activity and attempt."""

    def __init__(
        self, world: World, new: NewRuns, first_number: int, rng: np.random.Generator
    ) -> None:
        self.world, self.new, self.rng = world, new, rng
        self.run_number = first_number + np.arange(len(new))
        run, kind, counts = counts_of(world, new)
        self.run = np.repeat(run, counts)  # its place among the new ones
        self.type = np.repeat(kind, counts)
        before = np.searchsorted(self.run, np.arange(len(new)))
        self.number = np.arange(len(self.run)) - before[self.run] + 1
        self.version = new.version[self.run]
        run_size = np.exp(rng.normal(0, SIZE_SPREAD, len(new)))
        noise = np.exp(rng.normal(0, SIZE_SPREAD, len(self.run)))
        self.inputs = world.input_of[self.type] * run_size[self.run] * noise
        self.is_cached = rng.random(len(self.run)) < CACHED
        self._simulate_attempts()
        self._simulate_levels()

    def rows(self) -> Ints:
        """Every event of these runs, in no order, received at the moment when it happened."""
        parts = [self._run_events()]
        parts += [self._attempt_events(number) for number in range(ATTEMPTS_MAX)]
        for kind, which in (
            (Kind.CACHED, self.is_reached & self.is_cached),
            (Kind.SKIPPED, self.is_skipped),
        ):
            parts.append(_events(self._rows(which, 1), kind, self.ready_ms[which], 0))
        return np.concatenate(parts)

    def _simulate_attempts(self) -> None:
        """What an attempt that does not happen would take has no meaning."""
        rng, laws, law = self.rng, self.world.laws, (self.type, self.version)
        shape = (len(self.run), ATTEMPTS_MAX)
        sigma = laws.noise_s[law][:, None]
        expected_s = laws.base_s[law] + laws.slope_s[law] * self.inputs
        noise = np.exp(sigma * rng.standard_normal(shape) - sigma**2 / 2)
        self.fails: Flags = rng.random(shape) < FAILING
        is_retried = self.fails & (rng.random(shape) >= NOT_RETRIED)
        cut = np.where(self.fails, rng.uniform(0.05, 1.0, shape), 1.0)
        self.happens: Flags = np.ones(shape, np.bool_)
        self.happens[:, 1:] = np.logical_and.accumulate(is_retried[:, :-1], axis=1)
        self.queue_ms = (rng.exponential(QUEUE_MS, shape) + 50).astype(np.int64)
        took_ms = expected_s[:, None] * noise * cut * 1_000
        self.took_ms = np.maximum(took_ms, 1).astype(np.int64)
        taken_ms = np.where(self.happens, self.queue_ms + self.took_ms + RETRY_MS, 0)
        self.queued_after_ms = np.cumsum(taken_ms, axis=1) - taken_ms  # since it was ready
        self.span_ms = np.where(self.is_cached, 0, taken_ms.sum(axis=1) - RETRY_MS)

    def _simulate_levels(self) -> None:
        """When each activity is ready, if ever, and when and how each run ends."""
        rng, run, runs = self.rng, self.run, len(self.new)
        fate, last = rng.random(runs), rng.random(runs)
        lost, aborted = fate < LOST, (fate >= LOST) & (fate < LOST + ABORTED)
        levels = np.zeros(runs, np.int64)
        level_of = self.world.level_of[self.type]
        np.maximum.at(levels, run, level_of + 1)
        stop = np.where(lost | aborted, (last * levels).astype(np.int64), self.world.levels)
        level_spread_ms = (self.new.spread_ms / np.maximum(levels, 1))[run]
        jitter_ms = (rng.random(len(run)) * level_spread_ms).astype(np.int64)
        last_fails = self.fails & self.happens
        last_fails[:, :-1] &= ~self.happens[:, 1:]
        gives_up = last_fails.any(axis=1) & ~self.is_cached
        clock_ms, failed = self.new.start_ms + 1_000, np.zeros(runs, np.bool_)
        ready_ms, reached = np.zeros(len(run), np.int64), np.zeros(len(run), np.bool_)
        for level in range(self.world.levels):
            now = (level_of == level) & (level <= stop[run]) & ~failed[run]
            here = run[now]
            ready_ms[now] = clock_ms[here] + jitter_ms[now]
            reached |= now
            np.maximum.at(clock_ms, here, ready_ms[now] + self.span_ms[now])
            failed[here[gives_up[now] & (level < stop[here])]] = True
        skips = failed & (rng.random(runs) < SKIPPING)
        self.is_skipped = ~reached & skips[run]
        ready_ms[self.is_skipped] = clock_ms[run[self.is_skipped]]
        self.ready_ms, self.is_reached, self.end_ms = ready_ms, reached, clock_ms
        # A run that failed before it could be lost or aborted has failed.
        self.failed, self.lost, self.aborted = failed, lost & ~failed, aborted & ~failed
        self.is_last_level = (level_of == stop[run]) & ~failed[run]  # of lost and aborted runs

    def _run_events(self) -> Ints:
        started = empty(len(self.new))
        started[:, Col.RUN] = self.run_number
        started[:, Col.TYPE] = self.world.first_type[self.new.workflow]
        how = np.select(
            [self.failed, self.aborted], [Kind.TERMINATED, Kind.ABORTED], Kind.COMPLETED
        )
        ended = _events(started, how, self.end_ms + 500, 0)
        started = _events(started, Kind.STARTED, self.new.start_ms, 0)
        started[:, Col.PLANNED] = np.bincount(self.run, minlength=len(self.new))
        return np.concatenate([started, ended[~self.lost]])

    def _attempt_events(self, number: int) -> Ints:
        """The events of the attempts with this number (from 0), of all activities that have one."""
        rng, world = self.rng, self.world
        is_lost = self.is_last_level & self.lost[self.run]
        is_aborted = self.is_last_level & self.aborted[self.run]
        here = self.is_reached & ~self.is_cached & self.happens[:, number]
        if number:
            here &= ~(is_lost | is_aborted)
        is_lost, is_aborted = is_lost[here], is_aborted[here]
        rows = self._rows(here, number + 1)
        rows[:, Col.HOST] = rng.integers(0, len(world.hosts), len(rows))
        clock_ms = world.clock_ms[rows[:, Col.HOST]]
        took_ms = self.took_ms[here, number] // np.where(is_aborted, 2, 1)
        queued_ms = self.ready_ms[here] + self.queued_after_ms[here, number]
        started_ms = queued_ms + self.queue_ms[here, number]
        usage = self._usage(here, took_ms)
        memory = usage[:, Col.MEMORY - Col.INPUT]

        queued = _events(rows, Kind.QUEUED, queued_ms, 0)
        queued[:, Col.MEMORY] = (memory // REQUEST_STEP + 2) * REQUEST_STEP
        queued[:, Col.CPU] = np.ceil(world.laws.cores[self.type[here], 0])
        executing = _events(rows, Kind.EXECUTING, started_ms, clock_ms)
        executing[:, Col.MARKS] = np.where(is_lost, Mark.NONE, Mark.HAS_END)

        is_sampled, share = rng.random(len(rows)) < SAMPLED, rng.random(len(rows))
        sampled_ms = started_ms + (took_ms * share).astype(np.int64)
        sample = _events(rows, Kind.SAMPLE, sampled_ms, clock_ms)
        sample[:, Col.CPU] = usage[:, Col.CPU - Col.INPUT] * 10_000 // np.maximum(took_ms, 1)
        sample[:, Col.MEMORY] = memory * (0.5 + share / 2)
        sample[:, Col.READ] = usage[:, Col.READ - Col.INPUT] * share

        fault = rng.integers(0, len(FAULTS), len(rows))
        how = np.where(self.fails[here, number], _FAULT_KINDS[fault], Kind.SUCCEEDED)
        how[is_aborted] = Kind.CANCELLED
        ended = _events(rows, how, started_ms + took_ms, clock_ms)
        ended[:, USAGE] = usage
        ended[:, Col.FAULT] = fault
        ended[:, Col.FAULT_NUMBER] = rng.integers(1, FAULT_NUMBER_MAX, len(rows))
        return np.concatenate([queued, executing, sample[is_sampled & ~is_lost], ended[~is_lost]])

    def _usage(self, here: Flags, took_ms: Ints) -> Ints:
        """Input and output bytes, hundredths of CPU seconds, peak memory, bytes read, written."""
        rng, laws, law = self.rng, self.world.laws, (self.type[here], self.version[here])
        inputs, count = self.inputs[here], len(took_ms)
        sigma = laws.noise_memory[law]
        memory = laws.base_memory[law] + laws.slope_memory[law] * inputs
        memory *= np.exp(sigma * rng.standard_normal(count) - sigma**2 / 2)
        output = laws.output_share[law] * inputs * rng.uniform(0.9, 1.1, count)
        cpu = took_ms / 10 * laws.cores[law] * rng.uniform(0.8, 1.0, count)
        read = inputs * rng.uniform(1.0, 1.05, count)
        return np.column_stack([inputs, output, cpu, memory, read, output]).astype(np.int64)

    def _rows(self, which: Flags, attempt: int) -> Ints:
        rows = empty(int(which.sum()))
        rows[:, Col.RUN] = self.run_number[self.run[which]]
        rows[:, Col.TYPE] = self.type[which]
        rows[:, Col.ACTIVITY] = self.number[which]
        rows[:, Col.ATTEMPT] = attempt
        return rows


def _events(rows: Ints, kind: Kind | Ints, moment_ms: Ints, clock_ms: Ints | int) -> Ints:
    """One event for each row, received when it happens, with the time of a clock that is off."""
    rows = rows.copy()
    rows[:, Col.KIND] = kind
    rows[:, Col.RECEIVED_US] = moment_ms * US_PER_MS
    rows[:, Col.TIME_MS] = moment_ms + clock_ms
    return rows
