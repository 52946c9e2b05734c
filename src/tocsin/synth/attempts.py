"""Attempts: what one try of an activity tells, from the queue to its end, and what it uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tocsin.synth.faults import FAULTS
from tocsin.synth.rows import US_PER_MS, At, Kind, Mark, figure
from tocsin.synth.texts import Ints
from tocsin.synth.world import MIB, Floats, World

Flags: TypeAlias = npt.NDArray[np.bool_]

SAMPLED: Final = 0.5  # of attempts
REQUEST_STEP: Final = 256 * MIB  # people ask for round amounts of memory, and for some to spare
FAULT_NUMBER_MAX: Final = 1_000_000

_FAULT_KINDS: Final = np.array([fault.kind for fault in FAULTS], np.int64)


@dataclass(frozen=True, slots=True)
class Attempts:
    """Many attempts, one array a property. `rows` say of which run, activity, number and host."""

    rows: Ints
    queued_ms: Ints
    started_ms: Ints
    took_ms: Ints
    clock_ms: Ints  # by so much the clock of its host is wrong
    use: Ints
    cores: Ints
    fails: Flags
    is_lost: Flags  # nothing is heard of its run after it began
    is_aborted: Flags

    def event(self, what: Kind | Ints, moment_ms: Ints, clock_ms: Ints | int) -> Ints:
        """One event of each, received when it happens, dated by a clock."""
        rows = self.rows.copy()
        rows[:, At.KIND] = what
        rows[:, At.RECEIVED_US] = moment_ms * US_PER_MS
        rows[:, At.TIME_MS] = moment_ms + clock_ms
        return rows


def events_of(tried: Attempts, chance: np.random.Generator) -> Ints:
    """Everything that these attempts tell."""
    queued = tried.event(Kind.QUEUED, tried.queued_ms, 0)
    queued[:, figure(0)] = (tried.use[:, 3] // REQUEST_STEP + 2) * REQUEST_STEP
    queued[:, figure(1)] = tried.cores
    executing = tried.event(Kind.EXECUTING, tried.started_ms, tried.clock_ms)
    executing[:, At.MARKS] = np.where(tried.is_lost, Mark.NONE, Mark.HAS_END)
    return np.concatenate([queued, executing, _samples(tried, chance), _ends(tried, chance)])


def _samples(tried: Attempts, chance: np.random.Generator) -> Ints:
    """Tenths of a percent of a core, bytes resident, bytes read so far."""
    count, use = len(tried.rows), tried.use
    sampled = chance.random(count) < SAMPLED
    share = chance.random(count)
    moment_ms = tried.started_ms + (tried.took_ms * share).astype(np.int64)
    sample = tried.event(Kind.SAMPLE, moment_ms, tried.clock_ms)
    sample[:, figure(0)] = use[:, 2] * 10_000 // np.maximum(tried.took_ms, 1)
    sample[:, figure(1)] = (use[:, 3] * (0.5 + share / 2)).astype(np.int64)
    sample[:, figure(2)] = (use[:, 4] * share).astype(np.int64)
    return np.asarray(sample[sampled & ~tried.is_lost])


def _ends(tried: Attempts, chance: np.random.Generator) -> Ints:
    """What was used, then which fault it was and a number for its message."""
    count = len(tried.rows)
    fault = chance.integers(0, len(FAULTS), count)
    well = np.where(tried.is_aborted, Kind.CANCELLED, Kind.SUCCEEDED)
    what = np.where(tried.fails & ~tried.is_aborted, _FAULT_KINDS[fault], well)
    ended = tried.event(what, tried.started_ms + tried.took_ms, tried.clock_ms)
    ended[:, At.FIGURES : At.FIGURES + tried.use.shape[1]] = tried.use
    ended[:, figure(6)] = fault
    ended[:, figure(7)] = chance.integers(1, FAULT_NUMBER_MAX, count)
    return np.asarray(ended[~tried.is_lost])


def use_of(
    world: World,
    kind: Ints,
    version: Ints,
    inputs: Floats,
    took_ms: Ints,
    chance: np.random.Generator,
) -> Ints:
    """Input and output bytes, hundredths of CPU seconds, peak memory, bytes read and written."""
    laws, count = world.laws, len(kind)
    sigma = laws.noise_memory[kind, version]
    memory = laws.base_memory[kind, version] + laws.slope_memory[kind, version] * inputs
    memory *= np.exp(sigma * chance.standard_normal(count) - sigma**2 / 2)
    output = laws.output_share[kind, version] * inputs * chance.uniform(0.9, 1.1, count)
    cpu = took_ms / 10 * laws.cores[kind, version] * chance.uniform(0.8, 1.0, count)
    read = inputs * chance.uniform(1.0, 1.05, count)
    return np.column_stack([inputs, output, cpu, memory, read, output]).astype(np.int64)
