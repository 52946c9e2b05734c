"""World: workflows with their activities, versions and laws, and the hosts they run on.

Whoever learns from the events can be checked against it: it is told in `_truth.json`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tocsin.synth.plan import Plan
from tocsin.synth.texts import Ints

Floats = npt.NDArray[np.float64]

WORKFLOWS: Final = 40
TYPES_MIN, TYPES_MAX = 3, 25
VERSIONS_MAX: Final = 5
HOSTS: Final = 50
EVOLVING_EVENTS: Final = 10_000  # of fewer, the news of versions would be the greater part
SKEW: Final = 1.3  # the exponent at which the first of 40 has a third
MIB: Final = 1 << 20
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS

# By so much the clock of a host is wrong.
CLOCKS_MS: Final = {
    5: -4 * MINUTE_MS,
    11: 3 * MINUTE_MS,
    17: 12 * MINUTE_MS,  # more ahead than is believed
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


@dataclass(frozen=True, slots=True)
class Laws:
    """What an activity of a type takes, by type and version: y = (base + slope * input) * noise.

    The noise is lognormal with mean 1, so that the line is what is to be expected.
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
    """Arrays by workflow, by type (of all workflows, one after the other), and by host."""

    workflows: tuple[str, ...]
    shares: Floats
    engine_of: Ints
    versions: tuple[tuple[str, ...], ...]
    version_at_ms: Ints  # by workflow and version; those that are not there never come
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

    def told(self) -> dict[str, Any]:
        """The truth about it, for who wants to compare."""
        return {
            "workflows": [self._told_workflow(number) for number in range(len(self.workflows))],
            "clocks_ms": {
                self.hosts[place]: int(self.clock_ms[place])
                for place in np.flatnonzero(self.clock_ms)
            },
        }

    def _told_workflow(self, number: int) -> dict[str, Any]:
        first = int(self.first_type[number])
        types = range(first, first + int(self.type_count[number]))
        return {
            "name": self.workflows[number],
            "share": float(self.shares[number]),
            "engine": ENGINES[self.engine_of[number]],
            "versions": list(self.versions[number]),
            "activities": [
                {
                    "type": self.types[place],
                    "level": int(self.level_of[place]),
                    "parents": [self.types[parent] for parent in self.parents_of[place]],
                    "median_input_bytes": float(self.input_of[place]),
                    "laws": {
                        version: self._told_law(place, count)
                        for count, version in enumerate(self.versions[number])
                    },
                }
                for place in types
            ],
        }

    def _told_law(self, place: int, version: int) -> dict[str, float]:
        return {name: float(getattr(self.laws, name)[place, version]) for name in Laws.__slots__}


def made(plan: Plan) -> World:
    """The world of a plan: the same for the same seed and span."""
    chance = np.random.Generator(np.random.PCG64([plan.seed, 1]))
    weights = np.arange(1, WORKFLOWS + 1) ** -SKEW
    type_count = chance.integers(TYPES_MIN, TYPES_MAX + 1, WORKFLOWS)
    type_count[0] = 9  # the most frequent one is neither the smallest nor the largest
    first_type = np.concatenate(([0], np.cumsum(type_count)[:-1]))
    total = int(type_count.sum())
    workflow_of = np.repeat(np.arange(WORKFLOWS), type_count)
    place_of = np.arange(total) - first_type[workflow_of]
    level_of = place_of * chance.integers(3, 9, WORKFLOWS)[workflow_of] // type_count[workflow_of]
    width_of = np.where(chance.random(total) < 0.5, 1, chance.integers(2, 9, total))
    version_counts = chance.integers(1, VERSIONS_MAX + 1, WORKFLOWS)
    version_counts[0] = VERSIONS_MAX
    if plan.events < EVOLVING_EVENTS:
        version_counts[:] = 1
    return World(
        workflows=tuple(f"{FIELDS[n % len(FIELDS)]}-{WORK[n // len(FIELDS)]}" for n in range(40)),
        shares=weights / weights.sum(),
        engine_of=chance.integers(0, len(ENGINES), WORKFLOWS),
        versions=tuple(
            tuple(f"{number // 3 + 1}.{number % 3}.{chance.integers(0, 10)}" for number in range(n))
            for n in version_counts
        ),
        version_at_ms=_version_times(plan, version_counts, chance),
        types=tuple(_type_name(int(place)) for place in place_of),
        workflow_of=workflow_of,
        first_type=first_type,
        type_count=type_count,
        level_of=level_of,
        width_of=width_of,
        input_of=np.exp(chance.normal(np.log(64 * MIB), 1.2, total)),
        parents_of=_parents(workflow_of, level_of),
        laws=_laws(total, chance),
        hosts=tuple(f"node{number:02d}" for number in range(1, HOSTS + 1)),
        clock_ms=np.array([CLOCKS_MS.get(place, 0) for place in range(HOSTS)], np.int64),
    )


def _type_name(place: int) -> str:
    return STEPS[place % len(STEPS)]


def _version_times(plan: Plan, counts: Ints, chance: np.random.Generator) -> Ints:
    span_ms = plan.end_ms - plan.start_ms
    never_ms = plan.end_ms + span_ms
    later = np.sort(chance.uniform(0.1, 0.9, (WORKFLOWS, VERSIONS_MAX)), axis=1)
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


def _laws(types: int, chance: np.random.Generator) -> Laws:
    """A version takes over the laws of the one before, but for some activities."""

    def over_versions(first: Floats, spread: float) -> Floats:
        steps = np.exp(chance.normal(0, spread, (types, VERSIONS_MAX)))
        steps[chance.random((types, VERSIONS_MAX)) < 0.7] = 1.0
        steps[:, 0] = 1.0
        return first[:, None] * np.cumprod(steps, axis=1)

    def same(first: Floats) -> Floats:
        return np.repeat(first[:, None], VERSIONS_MAX, axis=1)

    per_mib_s = np.exp(chance.normal(np.log(1.5), 0.8, types))
    per_byte = chance.uniform(0.5, 4.0, types)
    return Laws(
        base_s=over_versions(np.exp(chance.normal(np.log(30), 0.9, types)), 0.4),
        slope_s=over_versions(per_mib_s / MIB, 0.4),
        noise_s=same(chance.uniform(0.05, 0.3, types)),
        base_memory=over_versions(chance.uniform(50, 500, types) * MIB, 0.2),
        slope_memory=over_versions(per_byte, 0.2),
        noise_memory=same(chance.uniform(0.02, 0.1, types)),
        output_share=same(chance.uniform(0.05, 1.5, types)),
        cores=same(chance.uniform(0.3, 4.0, types)),
    )
