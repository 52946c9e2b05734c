"""Similar past runs: a Gaussian process over what is known of a run before it starts.

It is a weighted mean of past runs, nearer ones weighing more, that follows a trend where there is
one. Several kernels, each about one time for all or about a time in proportion to the input, are
averaged by how well each explains the past (their evidence), so nothing is tuned to an application.
Odd runs are believed less (Huber's weights).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tocsin.monitor.estimate.shape import Floats

# In natural logarithms: runs whose features differ by a factor e**RANGE still count for each other.
RANGES = (0.5, 1.0, 2.0)
NOISES = (0.02, 0.1)
BEND = 0.5  # variance of what a trend does not explain
TREND = 0.3  # variance of a trend's slope
LEVEL = 1.0  # variance of the common level

HUBER = 1.345  # 95 % as good as least squares where noise is Gaussian
ROUNDS = 3
SCALE_MIN = 0.02
MAD_TO_SD = 1.4826


@dataclass(frozen=True, slots=True)
class Similar:
    """Past runs seen from one run. The last row and column of each kernel are that run's.

    `expected` is what each kernel starts from; `middle` is the kernel of the middle range alone.
    """

    kernels: Floats
    noises: Floats
    expected: Floats
    distances: Floats
    middle: Floats

    def predict(self, past: Floats) -> float:
        """The value to expect for this run, from those of the past runs."""
        noise = np.repeat(self.noises[:, None], len(past), axis=1)
        return fit(self.kernels, noise, past, self.expected)[0]


def similar(past: Sequence[Mapping[str, float]], now: Mapping[str, float]) -> Similar:
    """`past` runs as seen from `now`."""
    known = {name for row in past for name in row}
    if not now["bytes"]:
        known.discard("bytes")  # they are not known: a run without input would be another matter
    rows = _table([*past, now], names=sorted(known))
    distances, products = compare(rows)
    grows = _growths([*past, now])
    ways = [
        (kernel(distances, products, reach), noise, growth)
        for reach in RANGES
        for noise in NOISES
        for growth in grows
    ]
    return Similar(
        kernels=np.array([each for each, _, _ in ways]),
        noises=np.array([noise for _, noise, _ in ways]),
        expected=np.array([growth for _, _, growth in ways]),
        distances=distances[-1, :-1],
        middle=kernel(distances, products, RANGES[1]),
    )


def _growths(rows: Sequence[Mapping[str, float]]) -> list[Floats]:
    """What a run's time may be in proportion to: nothing, or its input where that is known."""
    found = [np.zeros(len(rows))]
    values = np.array([row["bytes"] for row in rows])
    if values.min() > 0 and np.ptp(values[:-1]) > 0:
        found.append(values)
    return found


def _table(rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> Floats:
    """Features as rows of numbers; those of types weigh as one, however many there are."""
    types = sum(name.startswith("type ") for name in names)
    scale = [types**-0.5 if name.startswith("type ") else 1.0 for name in names]
    values = [[row.get(name, 0.0) for name in names] for row in rows]
    return np.asarray(np.array(values) * np.array(scale), dtype=np.float64)


def compare(rows: Floats) -> tuple[Floats, Floats]:
    """Squared distances and products of all rows, about the middle of all but the last."""
    centred = rows - rows[:-1].mean(axis=0)
    squares = (centred**2).sum(axis=1)
    products = centred @ centred.T
    distances = np.maximum(squares[:, None] + squares[None, :] - 2 * products, 0.0)
    return distances, products


def kernel(distances: Floats, products: Floats, reach: float) -> Floats:
    """How much each row counts for each other: near ones much, and all of them of a trend."""
    return np.asarray(BEND * np.exp(-0.5 * distances / reach**2) + TREND * products + LEVEL)


def fit(
    kernels: Floats, noise: Floats, values: Floats, expected: Floats | None = None
) -> tuple[float, Floats]:
    """The value to expect in the last place, and what each other misses by the rest of them.

    `noise` has a row for each kernel and a column for each value; `expected` too, and a column
    more for the last place: what each kernel starts from.
    """
    if expected is None:
        expected = np.zeros((len(kernels), len(values) + 1))
    beyond = values - expected[:, :-1]
    middle = np.median(beyond, axis=1, keepdims=True)
    centred = beyond - middle
    inner = kernels[:, :-1, :-1]
    eye = np.eye(len(values))
    trusted = noise
    for last in range(ROUNDS - 1, -1, -1):
        covariance = inner + trusted[:, :, None] * eye
        inverse = np.linalg.inv(covariance)
        weights = np.einsum("kij,kj->ki", inverse, centred)
        errors = weights / np.diagonal(inverse, axis1=1, axis2=2)
        if last:
            trusted = np.asarray(noise * _distrust(np.asarray(errors)))
    fits = np.einsum("ki,ki->k", weights, centred)
    evidence = -0.5 * fits - 0.5 * np.linalg.slogdet(covariance)[1]
    share = np.exp(evidence - evidence.max())
    share /= share.sum()
    predicted = np.einsum("kn,kn->k", kernels[:, -1, :-1], weights)
    predicted += middle[:, 0] + expected[:, -1]
    return float(share @ predicted), np.asarray(share @ errors)


def _distrust(errors: Floats) -> Floats:
    """By how much to raise each value's noise: 1 for most, more for those far from the others."""
    sizes = np.abs(errors)
    scale = np.maximum(MAD_TO_SD * np.median(sizes, axis=-1, keepdims=True), SCALE_MIN)
    return np.asarray(np.maximum(1.0, sizes / (HUBER * scale)) ** 2)
