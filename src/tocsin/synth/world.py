"""World: workflows with their activities, versions and laws, the hosts they run on, and faults.

Models learnt from the events can be checked against it: `_truth.json` contains it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from tocsin.synth.plan import Plan
from tocsin.synth.rows import Kind
from tocsin.synth.texts import Floats, Ints

WORKFLOWS: Final = 40
TYPES_MIN, TYPES_MAX = 3, 25
VERSIONS_MAX: Final = 5
HOSTS: Final = 50
EVOLVING_EVENTS: Final = 10_000  # with fewer, messages about versions would be the greater part
SKEW: Final = 1.3  # the exponent at which the first of 40 has a third
MIB: Final = 1 << 20
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS

# How far the clock of a host is off.
CLOCKS_MS: Final = {
    5: -4 * MINUTE_MS,
    11: 3 * MINUTE_MS,
    17: 12 * MINUTE_MS,  # further ahead than readers accept
    23: -5 * HOUR_MS,  # another zone
    31: -6 * 365 * 24 * HOUR_MS,  # its battery is dead
}
FIELDS: Final = ("climate", "genome", "seismic", "galaxy", "protein", "ocean", "neuron", "plasma")
WORK: Final = ("assembly", "forecast", "survey", "screening", "inversion")
STEPS: Final = (
    *("fetch", "check", "split", "align", "sort", "merge", "filter", "call", "grid", "regrid"),
    *("fit", "train", "score", "simulate", "assimilate", "stack", "detect", "classify", "index"),
    *("compress", "plot", "report", "archive", "calibrate", "average"),
)
ENGINES: Final = ("snakemake", "parsl", "dask", "pegasus")
USERS: Final = tuple(f"user{number:02d}" for number in range(24))


class Fault(NamedTuple):
    """A way in which activities fail. Messages of one fault differ in their two numbers."""

    kind: Kind
    exit_code: int
    message: str
    trace: str | None = None


_TRACE: Final = (
    'Traceback (most recent call last):\n  File "/opt/flows/steps.py", line {}, in main\n    {}\n{}'
)
FAULTS: Final = (
    Fault(Kind.FAILED, 1, "cannot open /scratch/job-{}/part-{}.nc: No such file or directory"),
    Fault(Kind.FAILED, 28, "No space left on device: /scratch/job-{}/tmp.{}"),
    Fault(Kind.OUT_OF_MEMORY, 137, "Killed: process {} used more than {} MiB"),
    Fault(Kind.TIMED_OUT, 124, "job {} exceeded its limit of {} minutes"),
    Fault(Kind.FAILED, 139, "segmentation fault at address 0x7f{} in thread {}"),
    Fault(
        *(Kind.FAILED, 1, "ValueError: shape ({}, {}) does not fit"),
        _TRACE.format(88, "grid.reshape(shape)", "ValueError: shape does not fit"),
    ),
    Fault(
        *(Kind.FAILED, 1, "KeyError: station {} is not in catalogue {}"),
        _TRACE.format(131, "catalogue[station]", "KeyError: station"),
    ),
    Fault(Kind.FAILED, 5, "I/O error reading block {} of /data/archive/volume-{}.h5"),
    Fault(Kind.FAILED, 110, "connection to 10.0.{} timed out after {} s"),
    Fault(Kind.FAILED, 2, "checksum of input {} differs in byte {}"),
    Fault(Kind.FAILED, 255, "the scheduler lost job {} on rack {}"),
    Fault(Kind.FAILED, 3, "the solver did not converge after {} iterations, residual 0.{}"),
)


@dataclass(frozen=True, slots=True)
class Laws:
    """What an activity of a type takes, by type and version: y = (base + slope * input) * noise.

    The noise is lognormal with mean 1, so that the line is the expectation.
    """

    base_s: Floats
    slope_s: Floats  # per byte, as the next
    noise_s: Floats  # sigma of the logarithm, as the next
    base_memory: Floats
    slope_memory: Floats
    noise_memory: Floats
    output_share: Floats
    cores: Floats


@dataclass(frozen=True, slots=True)
class World:
    """Arrays by workflow, by activity type (those of all workflows, in order), and by host."""

    workflows: tuple[str, ...]
    shares: Floats
    engine_of: Ints
    versions: tuple[tuple[str, ...], ...]
    version_at_ms: Ints  # by workflow and version; missing ones never come
    types: tuple[str, ...]
    workflow_of: Ints
    first_type: Ints
    type_count: Ints
    level_of: Ints
    width_of: Ints
    input_of: Floats  # median bytes
    parents_of: tuple[tuple[int, ...], ...]
    laws: Laws
    hosts: tuple[str, ...]
    clock_ms: Ints

    @property
    def levels(self) -> int:
        return int(np.max(self.level_of)) + 1

    def types_of(self, workflow: int) -> range:
        first = int(self.first_type[workflow])
        return range(first, first + int(self.type_count[workflow]))

    def version_at(self, workflow: Ints, moment_ms: Ints) -> Ints:
        """The number of the version that is current at the moment."""
        return np.asarray((moment_ms[:, None] >= self.version_at_ms[workflow]).sum(axis=1) - 1)

    def to_dict(self) -> dict[str, Any]:
        return {
            "workflows": [
                {
                    "name": name,
                    "share": float(self.shares[number]),
                    "engine": ENGINES[self.engine_of[number]],
                    "versions": list(self.versions[number]),
                    "activities": [self._activity(each) for each in self.types_of(number)],
                }
                for number, name in enumerate(self.workflows)
            ],
            "clocks_ms": {
                self.hosts[place]: int(self.clock_ms[place])
                for place in np.flatnonzero(self.clock_ms)
            },
        }

    def _activity(self, place: int) -> dict[str, Any]:
        return {
            "type": self.types[place],
            "level": int(self.level_of[place]),
            "parents": [self.types[parent] for parent in self.parents_of[place]],
            "median_input_bytes": float(self.input_of[place]),
            "laws": {
                version: {
                    name: float(getattr(self.laws, name)[place, number]) for name in Laws.__slots__
                }
                for number, version in enumerate(self.versions[self.workflow_of[place]])
            },
        }


def world_of(plan: Plan) -> World:
    """The same for the same seed and span."""
    rng = np.random.Generator(np.random.PCG64([plan.seed, 1]))
    weights = np.arange(1, WORKFLOWS + 1) ** -SKEW
    type_count = rng.integers(TYPES_MIN, TYPES_MAX + 1, WORKFLOWS)
    type_count[0] = 9  # the most frequent one is neither the smallest nor the largest
    first_type = np.concatenate(([0], np.cumsum(type_count)[:-1]))
    total = int(type_count.sum())
    workflow_of = np.repeat(np.arange(WORKFLOWS), type_count)
    place_of = np.arange(total) - first_type[workflow_of]
    level_of = place_of * rng.integers(3, 9, WORKFLOWS)[workflow_of] // type_count[workflow_of]
    width_of = np.where(rng.random(total) < 0.5, 1, rng.integers(2, 9, total))
    version_counts = rng.integers(1, VERSIONS_MAX + 1, WORKFLOWS)
    version_counts[0] = VERSIONS_MAX
    if plan.events < EVOLVING_EVENTS:
        version_counts[:] = 1
    return World(
        workflows=tuple(f"{FIELDS[n % len(FIELDS)]}-{WORK[n // len(FIELDS)]}" for n in range(40)),
        shares=weights / weights.sum(),
        engine_of=rng.integers(0, len(ENGINES), WORKFLOWS),
        versions=tuple(
            tuple(f"{number // 3 + 1}.{number % 3}.{rng.integers(0, 10)}" for number in range(n))
            for n in version_counts
        ),
        version_at_ms=_version_times(plan, version_counts, rng),
        types=tuple(STEPS[place % len(STEPS)] for place in place_of),
        workflow_of=workflow_of,
        first_type=first_type,
        type_count=type_count,
        level_of=level_of,
        width_of=width_of,
        input_of=np.exp(rng.normal(np.log(64 * MIB), 1.2, total)),
        parents_of=_parents(workflow_of, level_of),
        laws=_laws(total, rng),
        hosts=tuple(f"node{number:02d}" for number in range(1, HOSTS + 1)),
        clock_ms=np.array([CLOCKS_MS.get(place, 0) for place in range(HOSTS)], np.int64),
    )


def _version_times(plan: Plan, counts: Ints, rng: np.random.Generator) -> Ints:
    span_ms = plan.end_ms - plan.start_ms
    never_ms = plan.end_ms + span_ms
    later = np.sort(rng.uniform(0.1, 0.9, (WORKFLOWS, VERSIONS_MAX)), axis=1)
    moments = plan.start_ms + (later * span_ms).astype(np.int64)
    moments[:, 0] = plan.start_ms
    moments[np.arange(VERSIONS_MAX)[None, :] >= counts[:, None]] = never_ms
    return moments


def _parents(workflow_of: Ints, level_of: Ints) -> tuple[tuple[int, ...], ...]:
    """Each type follows all types of the nearest level before its own."""
    found: list[tuple[int, ...]] = []
    for workflow, level in zip(workflow_of, level_of, strict=True):
        before = np.flatnonzero((workflow_of == workflow) & (level_of < level))
        nearest = np.max(level_of[before]) if len(before) else -1
        found.append(tuple(int(each) for each in before if level_of[each] == nearest))
    return tuple(found)


def _laws(types: int, rng: np.random.Generator) -> Laws:
    """Most activities keep the law that they have in the version before."""

    def over_versions(first: Floats, spread: float) -> Floats:
        steps = np.exp(rng.normal(0, spread, (types, VERSIONS_MAX)))
        steps[rng.random((types, VERSIONS_MAX)) < 0.7] = 1.0
        steps[:, 0] = 1.0
        return first[:, None] * np.cumprod(steps, axis=1)

    def same(first: Floats) -> Floats:
        return np.repeat(first[:, None], VERSIONS_MAX, axis=1)

    per_mib_s = np.exp(rng.normal(np.log(1.5), 0.8, types))
    per_byte = rng.uniform(0.5, 4.0, types)
    return Laws(
        base_s=over_versions(np.exp(rng.normal(np.log(30), 0.9, types)), 0.4),
        slope_s=over_versions(per_mib_s / MIB, 0.4),
        noise_s=same(rng.uniform(0.05, 0.3, types)),
        base_memory=over_versions(rng.uniform(50, 500, types) * MIB, 0.2),
        slope_memory=over_versions(per_byte, 0.2),
        noise_memory=same(rng.uniform(0.02, 0.1, types)),
        output_share=same(rng.uniform(0.05, 1.5, types)),
        cores=same(rng.uniform(0.3, 4.0, types)),
    )
