"""How long a task of each type takes: models of the logarithm of its runtime, from past runs.

A type's level in this run follows the input that reaches the type and the number of its parents,
or similar runs, whichever explained past runs better; so does whether it starts from a time in
proportion to that input, or from one time for all; its tasks differ by their own input; what is
left is spread as it was in the most similar runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tocsin.monitor.estimate.run_digest import RANKS, RunDigest, TypeRecord, mean_parents, slope
from tocsin.monitor.estimate.shape import Floats, Shape
from tocsin.monitor.estimate.similar import TREND, Similar, compare, fit, kernel

NOISES = (0.01, 0.1)
RANGES = (0.5, 2.0)
OTHER_VERSION_NOISE = 1.0  # another version of an activity counts this much less
NEAREST = 4
GROWTHS = (0.0, 1.0)  # a type's time has nothing to do with its input, or is in proportion to it
SPREAD_MIN = 0.03
NARROWED_MIN = 0.3
SPREAD_UNKNOWN = 1.0


@dataclass(frozen=True, slots=True)
class TypeModel:
    """What to expect of one type: a level for each of its tasks, and how they scatter about it."""

    levels: Floats
    deviations: Floats
    spread: float  # of the level from run to run
    scatter: float  # of tasks within a run
    errors: Mapping[int, float]  # by past run: its level less what the others say
    heredity: float = 0.0  # of how much its parents differ from their kind, as much it differs
    narrowed: float = 1.0  # the scatter that is left where its parents are known
    scale: Floats | None = None  # of the scatter of each task, once something is inherited


@dataclass(frozen=True, slots=True)
class Runtimes:
    """Models by type, and the variance that all types of a run have in common: a slow machine."""

    types: Mapping[str, TypeModel]
    shared: float


def runtimes(past: Sequence[RunDigest], shape: Shape, view: Similar) -> Runtimes:
    """Models for the tasks of `shape`; types that no past run had are left out."""
    types = {}
    for name in shape.members:
        model = _type_model(name, past, shape, view)
        if model is not None:
            types[name] = model
    return Runtimes(types, _shared_variance(list(types.values())))


def _bounded(error: float) -> float:
    return min(max(error, -1.0), 1.0)


def _type_model(
    name: str, past: Sequence[RunDigest], shape: Shape, view: Similar
) -> TypeModel | None:
    having = [place for place, run in enumerate(past) if name in run.types]
    if not having:
        return None
    records = [past[place].types[name] for place in having]
    flow = shape.flow[shape.members[name]]
    across = float(flow.mean())
    own = [(record.flow if across > 0 else 0.0, record.parents) for record in records]
    distances, products = compare(np.array([*own, (across, mean_parents(shape, name))]))
    places = np.array([*having, len(past)])
    by_run = view.middle[np.ix_(places, places)] + TREND * products
    kernels = [by_run, *(kernel(distances, products, reach) for reach in RANGES)]
    other = np.array([past[p].shape.versions[name] != shape.versions[name] for p in having])
    noise = np.array([record.variance / record.count for record in records])
    noise += OTHER_VERSION_NOISE * other
    levels = np.array([record.level for record in records])
    inputs = np.array([*(record.flow for record in records), across])
    growths = GROWTHS if inputs.min() > 0 else GROWTHS[:1]  # not all inputs may be known
    ways = [(each, floor, grown) for each in kernels for floor in NOISES for grown in growths]
    level, errors = fit(
        np.array([each for each, _, _ in ways]),
        np.array([noise + floor for _, floor, _ in ways]),
        levels,
        np.array([grown * inputs for _, _, grown in ways]),
    )
    grows = slope(
        sum(record.flow_squares for record in records),
        sum(record.flow_products for record in records),
    )
    nearest = np.argsort(view.distances[having], kind="stable")[:NEAREST]
    weights = np.array(
        [min(records[n].count, 20) / (0.3 + view.distances[having[n]]) for n in nearest]
    )
    weights /= weights.sum()
    deviations = np.einsum("r,rq->q", weights, np.array([records[n].deviations for n in nearest]))
    heredity, narrowed = _heredity(records)
    spread = math.sqrt(float(np.mean(errors**2)) + SPREAD_MIN**2)
    return TypeModel(
        levels=level + grows * (flow - across),
        deviations=deviations,
        spread=spread if len(having) > 1 else SPREAD_UNKNOWN,
        scatter=max(float(deviations.std()), 0.05),
        errors=dict(zip(having, errors.tolist(), strict=True)),
        heredity=heredity,
        narrowed=narrowed,
    )


def _heredity(records: Sequence[TypeRecord]) -> tuple[float, float]:
    """How a task follows those before it, and what is left of the scatter by then."""
    squares = sum(record.kin_squares for record in records)
    products = sum(record.kin_products for record in records)
    total = sum(record.variance * record.count for record in records)
    heredity = slope(squares, products)
    if heredity <= 0 or total <= 0:
        return 0.0, 1.0
    left = 1 - heredity * (2 * products - heredity * squares) / total
    return heredity, math.sqrt(min(max(left, NARROWED_MIN**2), 1.0))


def _shared_variance(models: Sequence[TypeModel]) -> float:
    """The mean product of two types' errors in one run: what they have in common."""
    total, pairs = 0.0, 0
    runs = {run for model in models for run in model.errors}
    for run in runs:
        errors = [_bounded(m.errors[run]) for m in models if run in m.errors]
        number = len(errors)
        if number > 1:
            total += sum(errors) ** 2 - sum(error * error for error in errors)
            pairs += number * (number - 1)
    return max(total / pairs, 0.0) if pairs else 0.0


def unknown_type(levels: Floats) -> TypeModel:
    """A model for a type nobody has seen: flat, and easily moved by what this run shows."""
    return TypeModel(levels, np.zeros(len(RANKS)), SPREAD_UNKNOWN, SPREAD_UNKNOWN, {})
