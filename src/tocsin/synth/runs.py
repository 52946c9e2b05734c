"""Runs: what happens in them, level by level of their graphs, as rows.

All runs that begin in one window are made at once; each step is one over all their activities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from tocsin.synth.attempts import Attempts, Flags, events_of, use_of
from tocsin.synth.rows import At, Kind, empty, figure
from tocsin.synth.texts import Ints
from tocsin.synth.world import Floats, World

EVENTS_OF_AN_ACTIVITY: Final = 3.5  # on average: queued, executing, half a sample, the end; retries
EVENTS_OF_A_RUN: Final = 2
ATTEMPTS_MAX: Final = 3
FAILING: Final = 0.05  # of attempts
HOPELESS: Final = 0.03  # of failures: nobody tries again
CACHED: Final = 0.01  # of activities
LOST: Final = 0.005  # of runs: they fall silent
ABORTED: Final = 0.01
SKIPPING: Final = 0.5  # of runs that failed: they tell what they leave out
QUEUE_MS: Final = 15_000.0  # on average
RETRY_MS: Final = 2_000
SIZE_SPREAD: Final = 0.6  # sigma of the logarithm, of a run's input and of each activity's in it


@dataclass(frozen=True, slots=True)
class Begun:
    """Runs that begin in one window, one array a property."""

    number: Ints
    workflow: Ints
    version: Ints
    start_ms: Ints
    scale: Floats  # of the number of activities
    activities_each: Ints  # of each type, where it is not 0: a run of another size altogether
    spread_ms: Ints  # over which a level's activities become ready

    def __len__(self) -> int:
        return len(self.number)


@dataclass(frozen=True, slots=True)
class Activities:
    """The activities of some runs: the place of the run among those begun, the type, the number."""

    run: Ints
    type: Ints
    number: Ints


def counts_of(world: World, begun: Begun) -> tuple[Ints, Ints, Ints]:
    """For each run and each of its types: the run's place, the type, how many activities."""
    kinds = world.type_count[begun.workflow]
    run = np.repeat(np.arange(len(begun)), kinds)
    first = np.repeat(np.cumsum(kinds) - kinds, kinds)
    kind = np.arange(len(run)) - first + world.first_type[begun.workflow][run]
    width = world.width_of[kind]
    scaled = np.maximum(np.rint(width * begun.scale[run]).astype(np.int64), 1)
    counts = np.where(width == 1, 1, scaled)
    fixed = begun.activities_each[run]
    return run, kind, np.where(fixed > 0, fixed, counts)


def activities_of(world: World, begun: Begun) -> Activities:
    run_of_pair, type_of_pair, counts = counts_of(world, begun)
    run = np.repeat(run_of_pair, counts)
    before = np.searchsorted(run, np.arange(len(begun)))
    return Activities(run, np.repeat(type_of_pair, counts), np.arange(len(run)) - before[run] + 1)


@dataclass(frozen=True, slots=True)
class Tries:
    """The attempts of activities, each column one try; what did not happen has no meaning."""

    queue_ms: Ints
    run_ms: Ints
    fails: Flags
    happens: Flags

    def offsets_ms(self) -> Ints:
        """When each try is queued, counted from when the activity is ready."""
        taken = np.where(self.happens, self.queue_ms + self.run_ms + RETRY_MS, 0)
        return np.cumsum(taken, axis=1) - taken

    def span_ms(self) -> Ints:
        taken = np.where(self.happens, self.queue_ms + self.run_ms + RETRY_MS, 0)
        return np.asarray(taken.sum(axis=1) - RETRY_MS)


@dataclass(frozen=True, slots=True)
class Fates:
    """How the runs go: when each ends and how, and what becomes of each activity."""

    ready_ms: Ints
    reached: Flags
    skipped: Flags
    final_level: Flags  # of activities: the level at which their run was lost or aborted
    lost: Flags
    aborted: Flags
    failed: Flags
    end_ms: Ints


def rows_of(world: World, begun: Begun, chance: np.random.Generator) -> Ints:
    """Every event of these runs, in no order, received at the moment when it truly happened."""
    acts = activities_of(world, begun)
    count = len(acts.run)
    run_size = np.exp(chance.normal(0, SIZE_SPREAD, len(begun)))
    noise = np.exp(chance.normal(0, SIZE_SPREAD, count))
    inputs = world.input_of[acts.type] * run_size[acts.run] * noise
    cached = chance.random(count) < CACHED
    tries = _tries(world, begun, acts, inputs, chance)
    fates = _fates(world, begun, acts, tries, cached, chance)
    parts = [_of_runs(world, begun, acts, fates)]
    parts += [
        _of_tries(world, begun, acts, tries, fates, inputs, cached, number, chance)
        for number in range(ATTEMPTS_MAX)
    ]
    parts.append(_one_event(acts, begun, fates, fates.reached & cached, Kind.CACHED))
    parts.append(_one_event(acts, begun, fates, fates.skipped, Kind.SKIPPED))
    return np.concatenate(parts)


def _tries(
    world: World, begun: Begun, acts: Activities, inputs: Floats, chance: np.random.Generator
) -> Tries:
    laws, version = world.laws, begun.version[acts.run]
    shape = (len(acts.run), ATTEMPTS_MAX)
    sigma = laws.noise_s[acts.type, version][:, None]
    expected_s = laws.base_s[acts.type, version] + laws.slope_s[acts.type, version] * inputs
    noise = np.exp(sigma * chance.standard_normal(shape) - sigma**2 / 2)
    fails = chance.random(shape) < FAILING
    hopeful = chance.random(shape) >= HOPELESS
    cut = np.where(fails, chance.uniform(0.05, 1.0, shape), 1.0)
    happens = np.ones(shape, np.bool_)
    for number in range(1, ATTEMPTS_MAX):
        happens[:, number] = happens[:, number - 1] & (fails & hopeful)[:, number - 1]
    return Tries(
        queue_ms=(chance.exponential(QUEUE_MS, shape) + 50).astype(np.int64),
        run_ms=np.maximum(expected_s[:, None] * noise * cut * 1_000, 1).astype(np.int64),
        fails=fails,
        happens=happens,
    )


def _fates(
    world: World,
    begun: Begun,
    acts: Activities,
    tries: Tries,
    cached: Flags,
    chance: np.random.Generator,
) -> Fates:
    runs, count = len(begun), len(acts.run)
    fate, last = chance.random(runs), chance.random(runs)
    lost, aborted = fate < LOST, (fate >= LOST) & (fate < LOST + ABORTED)
    levels = np.zeros(runs, np.int64)
    level_of = world.level_of[acts.type]
    np.maximum.at(levels, acts.run, level_of + 1)
    stop = np.where(lost | aborted, (last * levels).astype(np.int64), world.levels)
    jitter_ms = (chance.random(count) * (begun.spread_ms / np.maximum(levels, 1))[acts.run]).astype(
        np.int64
    )
    in_the_end = tries.fails & tries.happens
    in_the_end[:, :-1] &= ~tries.happens[:, 1:]
    gives_up = in_the_end.any(axis=1) & ~cached
    span_ms = np.where(cached, 0, tries.span_ms())
    clock_ms, failed = begun.start_ms + 1_000, np.zeros(runs, np.bool_)
    ready_ms, reached = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    for level in range(world.levels):
        now = (level_of == level) & (level <= stop[acts.run]) & ~failed[acts.run]
        run = acts.run[now]
        ready_ms[now] = clock_ms[run] + jitter_ms[now]
        reached |= now
        np.maximum.at(clock_ms, run, ready_ms[now] + span_ms[now])
        failed[run[gives_up[now] & (level < stop[run])]] = True
    final_level = level_of == stop[acts.run]
    skips = failed & (chance.random(runs) < SKIPPING)
    skipped = ~reached & skips[acts.run]
    ready_ms[skipped] = clock_ms[acts.run[skipped]]
    # What fell silent before a failure could stop it is lost and not failed.
    return Fates(
        *(ready_ms, reached, skipped, final_level & ~failed[acts.run]),
        *(lost & ~failed, aborted & ~failed, failed, clock_ms),
    )


def _of_runs(world: World, begun: Begun, acts: Activities, fates: Fates) -> Ints:
    started = empty(len(begun))
    started[:, At.RUN] = begun.number
    started[:, At.TYPE] = world.first_type[begun.workflow]
    ended = started.copy()
    started[:, At.KIND] = Kind.STARTED
    started[:, At.TIME_MS] = begun.start_ms
    started[:, figure(0)] = np.bincount(acts.run, minlength=len(begun))
    ended[:, At.KIND] = np.select(
        [fates.failed, fates.aborted], [Kind.TERMINATED, Kind.ABORTED], Kind.COMPLETED
    )
    ended[:, At.TIME_MS] = fates.end_ms + 500
    both = np.concatenate([started, ended[~fates.lost]])
    both[:, At.RECEIVED_US] = both[:, At.TIME_MS] * 1_000
    return both


def _of_tries(
    world: World,
    begun: Begun,
    acts: Activities,
    tries: Tries,
    fates: Fates,
    inputs: Floats,
    cached: Flags,
    number: int,
    chance: np.random.Generator,
) -> Ints:
    """The events of one try of all activities that came to it."""
    stops = fates.final_level & (fates.lost | fates.aborted)[acts.run]
    here = fates.reached & ~cached & tries.happens[:, number]
    if number:
        here &= ~stops
    run, kind = acts.run[here], acts.type[here]
    is_aborted = (stops & fates.aborted[acts.run])[here]
    took_ms = tries.run_ms[here, number] // np.where(is_aborted, 2, 1)
    queued_ms = fates.ready_ms[here] + tries.offsets_ms()[here, number]
    rows = empty(len(run))
    rows[:, At.RUN] = begun.number[run]
    rows[:, At.TYPE] = kind
    rows[:, At.ACTIVITY] = acts.number[here]
    rows[:, At.ATTEMPT] = number + 1
    rows[:, At.HOST] = chance.integers(0, len(world.hosts), len(run))
    return events_of(
        Attempts(
            rows=rows,
            queued_ms=queued_ms,
            started_ms=queued_ms + tries.queue_ms[here, number],
            took_ms=took_ms,
            clock_ms=world.clock_ms[rows[:, At.HOST]],
            use=use_of(world, kind, begun.version[run], inputs[here], took_ms, chance),
            cores=np.ceil(world.laws.cores[kind, 0]).astype(np.int64),
            fails=tries.fails[here, number],
            is_lost=(stops & fates.lost[acts.run])[here],
            is_aborted=is_aborted,
        ),
        chance,
    )


def _one_event(acts: Activities, begun: Begun, fates: Fates, which: Flags, kind: Kind) -> Ints:
    """Of activities that never run: that they are skipped, or were done before."""
    rows = empty(int(which.sum()))
    rows[:, At.RUN] = begun.number[acts.run[which]]
    rows[:, At.TYPE] = acts.type[which]
    rows[:, At.ACTIVITY] = acts.number[which]
    rows[:, At.ATTEMPT] = 1
    rows[:, At.KIND] = kind
    rows[:, At.RECEIVED_US] = fates.ready_ms[which] * 1_000
    rows[:, At.TIME_MS] = fates.ready_ms[which]
    return rows
