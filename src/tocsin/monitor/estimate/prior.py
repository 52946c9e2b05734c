"""What the pipeline's tables add to the models of runtimes that past runs taught.

The tables hold more runs than are used here, and less of each: no order, no neighbours. So
they are a prior. It weighs as many runs as the tables have beyond those known here, but only a few,
and less the older they are. An activity that no past run had goes by the tables alone. Where the
tables hold nothing new, nothing changes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tocsin.monitor.estimate.run_digest import RANKS, RunDigest
from tocsin.monitor.estimate.runtimes import SPREAD_MIN, Runtimes, TypeModel
from tocsin.monitor.estimate.shape import Floats, Shape
from tocsin.monitor.estimate.state import RUNTIME_S_MIN
from tocsin.monitor.history.tables import Expected, StatsRow, WorkflowTables

# Past runs that the tables weigh at most, however many they hold: 3 helped no more where one run
# was known, and hurt a little where three were.
RUNS_MAX = 1.0
HALF_LIFE_S = 90 * 86_400.0  # after so long without an attempt they weigh half
OTHER_VERSION = 0.25  # of a run: what one of another version weighs
SHARE_MIN = 0.01  # below it they are left out, and not named as a source
# How far tasks of one run lie apart, beside those of all runs. The tables lack it; were it as
# far, the longest of a hundred tasks in a short run would be as long as the longest ever. On runs
# of five applications (docs/estimates.md) 0.3 was nearer than 0.5, and far nearer than 1.
WITHIN = 0.3
SCATTER_MIN = 0.05
ALIKE = 0.01  # variance, of logarithms, that is as good as none
MEDIAN_TO_SD = 0.6745  # half of a normal distribution is within so many standard deviations

# Standard normal quantiles at RANKS, by the series of Abramowitz and Stegun 26.2.23 (error < 5e-4).
_TAIL = np.sqrt(-2 * np.log(np.minimum(RANKS, 1 - RANKS)))
_NORMAL: Floats = np.sign(RANKS - 0.5) * (
    _TAIL
    - (2.515517 + 0.802853 * _TAIL + 0.010328 * _TAIL**2)
    / (1 + 1.432788 * _TAIL + 0.189269 * _TAIL**2 + 0.001308 * _TAIL**3)
)


@dataclass(frozen=True, slots=True)
class FromTables:
    """What the tables gave to a model: on how many attempts that goes, and of other versions."""

    attempts: int = 0
    activities: tuple[str, ...] = ()
    other_versions: tuple[str, ...] = ()


def informed(
    models: Runtimes, past: Sequence[RunDigest], shape: Shape, tables: WorkflowTables | None
) -> tuple[Runtimes, FromTables]:
    """The models with what the tables know beyond them, and what that was."""
    if tables is None:
        return models, FromTables()
    types: dict[str, TypeModel] = dict(models.types)
    used: dict[str, Expected] = {}
    for name in shape.members:
        expected = tables.expected(name, shape.versions[name]) if name else None
        if expected is None:
            continue
        prior, own = _model(expected, shape.inputs[shape.members[name]]), models.types.get(name)
        share = 1.0
        if own is not None:
            weight = _weight(name, expected, past, tables) * _sharpness(own, prior)
            share = weight / (weight + _weight_here(name, past, shape))
        if share < SHARE_MIN:
            continue
        types[name] = prior if own is None else _between(own, prior, share)
        used[name] = expected
    return replace(models, types=types), _from_tables(used)


def _from_tables(used: Mapping[str, Expected]) -> FromTables:
    return FromTables(
        sum(each.stats.succeeded for each in used.values()),
        tuple(used),
        tuple(name for name, each in used.items() if not each.is_same_version),
    )


def _weight(
    name: str, expected: Expected, past: Sequence[RunDigest], tables: WorkflowTables
) -> float:
    """How many runs the tables stand for, beside those that are known here."""
    row = expected.stats
    # The same runs may be in both, and must not count twice.
    in_both = sum(
        tables.learned.may_hold(run.settled_seq, run.last_received_ns)
        and run.shape.versions[name] == row.version
        for run in past
        if name in run.types
    )
    weight = min(max(row.runs - in_both, 0), RUNS_MAX)
    weight *= math.exp2(-tables.age_s(row) / HALF_LIFE_S)
    return weight if expected.is_same_version else weight * OTHER_VERSION


def _weight_here(name: str, past: Sequence[RunDigest], shape: Shape) -> float:
    versions = [run.shape.versions[name] for run in past if name in run.types]
    return sum(1.0 if each == shape.versions[name] else OTHER_VERSION for each in versions)


def _sharpness(own: TypeModel, prior: TypeModel) -> float:
    """1 if tasks differ no more in all runs than in one. If they do, runs differ from each other,
    and the middle of all says less of this one than those that are like it."""
    within, among = own.scatter**2 + ALIKE, prior.spread**2 + ALIKE
    return min(within / among, 1.0)


def _model(expected: Expected, inputs: Floats) -> TypeModel:
    """A model from the tables alone. `inputs` are the bytes that each task reads, or not known."""
    levels = np.log([expected.seconds(size) or RUNTIME_S_MIN for size in inputs.tolist()])
    deviations = _deviations(expected.stats)
    if expected.line is not None and np.isfinite(inputs).all():
        deviations = _about_the_line(expected, deviations)
    spread = math.sqrt(float(deviations.var()) + SPREAD_MIN**2)
    if expected.stats.runs > 1:
        deviations = deviations * WITHIN
    scatter = max(float(deviations.std()), SCATTER_MIN)
    return TypeModel(np.asarray(levels), deviations, spread, scatter, {})


def _deviations(row: StatsRow) -> Floats:
    """How durations lie about their median, in logarithms: through the quantiles that are known."""
    known = [
        (rank, value)
        for rank, value in zip(
            (0.0, 0.1, 0.5, 0.9, 0.99, 1.0),
            (row.min_s, row.p10_s, row.p50_s, row.p90_s, row.p99_s, row.max_s),
            strict=True,
        )
        if value is not None
    ]
    logs = np.log(np.maximum([value for _, value in known], RUNTIME_S_MIN))
    curve = np.interp(RANKS, [rank for rank, _ in known], np.maximum.accumulate(logs))
    return np.asarray(curve - np.interp(0.5, RANKS, curve))


def _about_the_line(expected: Expected, plain: Floats) -> Floats:
    """How durations lie about what the line says; never wider than about their median."""
    line = expected.line
    assert line is not None
    if line.median_error is not None:
        sd = math.log1p(line.median_error) / MEDIAN_TO_SD
    else:
        sd = (line.rmse or 0.0) / max(line.mean or 0.0, RUNTIME_S_MIN)
    about = _NORMAL * sd
    return about if float(about.std()) < float(plain.std()) else plain


def _between(own: TypeModel, prior: TypeModel, share: float) -> TypeModel:
    return TypeModel(
        levels=own.levels + share * (prior.levels - own.levels),
        deviations=own.deviations + share * (prior.deviations - own.deviations),
        spread=math.sqrt((1 - share) * own.spread**2 + share * prior.spread**2),
        scatter=math.sqrt((1 - share) * own.scatter**2 + share * prior.scatter**2),
        errors=own.errors,
    )
