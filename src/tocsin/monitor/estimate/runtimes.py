"""How long a task of each type takes: models of the logarithm of its runtime, from past runs.

A type's level in this run follows similar runs, and the input that reaches the type; its tasks
differ by their own input; what is left is spread as it was in the most similar runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tocsin.monitor.estimate.experience import RANKS, Experience
from tocsin.monitor.estimate.shape import Floats, Shape
from tocsin.monitor.estimate.similar import HUBER, MAD_TO_SD, SCALE_MIN, TREND, Similar

KERNEL = 2  # of the kernels of `similar`, the middle range
NOISE = 0.1
SLOPE_MAX = 1.5  # runtime against input, in logarithms; steeper is chance
SLOPE_PRIOR = 1.0  # squares of input that speak for no slope at all
OTHER_VERSION_NOISE = 1.0  # another version of an activity tells this much less
NEAREST = 4
SPREAD_MIN = 0.03
SPREAD_UNKNOWN = 1.0


@dataclass(frozen=True, slots=True)
class TypeModel:
    """What to expect of one type: a level for each of its tasks, and how they scatter about it."""

    levels: Floats
    deviations: Floats
    spread: float  # of the level from run to run
    scatter: float  # of tasks within a run
    errors: Mapping[int, float]  # by past run: its level less what the others say


@dataclass(frozen=True, slots=True)
class Runtimes:
    """Models by type, and the variance that all types of a run have in common: a slow machine."""

    types: Mapping[str, TypeModel]
    shared: float


def runtimes(past: Sequence[Experience], shape: Shape, view: Similar) -> Runtimes:
    """Models for the tasks of `shape`; types that no past run had are left out."""
    types = {}
    for name in shape.members:
        model = _type_model(name, past, shape, view)
        if model is not None:
            types[name] = model
    return Runtimes(types, _shared_variance(list(types.values())))


def _type_model(
    name: str, past: Sequence[Experience], shape: Shape, view: Similar
) -> TypeModel | None:
    having = [place for place, run in enumerate(past) if name in run.types]
    if not having:
        return None
    records = [past[place].types[name] for place in having]
    flow = shape.flow[shape.members[name]]
    across = float(flow.mean())
    levels = np.array([record.level for record in records])
    flows = np.array([record.flow for record in records] + [across])
    flows -= flows[:-1].mean()
    places = np.array([*having, len(past)])
    kernel = view.kernels[KERNEL][np.ix_(places, places)] + TREND * np.outer(flows, flows)
    other = np.array([past[p].shape.versions[name] != shape.versions[name] for p in having])
    noise = NOISE + np.array([record.variance / record.count for record in records])
    noise += OTHER_VERSION_NOISE * other
    level, errors = _level(kernel, levels, noise)
    squares = sum(record.flow_squares for record in records)
    products = sum(record.flow_products for record in records)
    slope = min(max(products / (squares + SLOPE_PRIOR), 0.0), SLOPE_MAX)
    nearest = np.argsort(view.distances[having], kind="stable")[:NEAREST]
    weights = np.array(
        [min(records[n].count, 20) / (0.3 + view.distances[having[n]]) for n in nearest]
    )
    weights /= weights.sum()
    deviations = np.einsum("r,rq->q", weights, np.array([records[n].deviations for n in nearest]))
    spread = math.sqrt(float(np.mean(errors**2)) + SPREAD_MIN**2)
    return TypeModel(
        levels=level + slope * (flow - across),
        deviations=deviations,
        spread=spread if len(having) > 1 else SPREAD_UNKNOWN,
        scatter=max(float(deviations.std()), 0.05),
        errors=dict(zip(having, errors.tolist(), strict=True)),
    )


def _level(kernel: Floats, levels: Floats, noise: Floats) -> tuple[float, Floats]:
    """The level expected here, and by how much each past one missed what the others say."""
    middle = float(np.median(levels))
    for last in (False, True):
        inverse = np.linalg.inv(kernel[:-1, :-1] + np.diag(noise))
        weights = inverse @ (levels - middle)
        errors = weights / np.diag(inverse)
        if not last:
            scale = max(MAD_TO_SD * float(np.median(np.abs(errors))), SCALE_MIN)
            noise = noise * np.maximum(1.0, np.abs(errors) / (HUBER * scale)) ** 2
    return middle + float(kernel[-1, :-1] @ weights), errors


def _shared_variance(models: Sequence[TypeModel]) -> float:
    """The mean product of two types' errors in one run: what they have in common."""
    total, pairs = 0.0, 0
    runs = {run for model in models for run in model.errors}
    for run in runs:
        errors = [min(max(m.errors[run], -1.0), 1.0) for m in models if run in m.errors]
        number = len(errors)
        if number > 1:
            total += sum(errors) ** 2 - sum(error * error for error in errors)
            pairs += number * (number - 1)
    return max(total / pairs, 0.0) if pairs else 0.0


def unknown_type(levels: Floats) -> TypeModel:
    """A model for a type nobody has seen: flat, and easily moved by what this run shows."""
    return TypeModel(levels, np.zeros(len(RANKS)), SPREAD_UNKNOWN, SPREAD_UNKNOWN, {})
