"""Similar past runs: a Gaussian process over what is known of a run before it starts.

It is a weighted mean of past runs, nearer ones weighing more, that follows a trend where there is
one. Several ranges and noises are averaged by how well each explains the past (their evidence), so
nothing is tuned to an application. Odd runs are believed less (Huber's weights).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tocsin.monitor.estimate.shape import Floats

# In natural logarithms: runs whose features differ by a factor e**RANGE still tell of each other.
RANGES = (0.5, 1.0, 2.0)
NOISES = (0.02, 0.1)
BEND = 0.5  # variance of what a trend does not explain
TREND = 0.3  # variance of a trend's slope
LEVEL = 1.0  # variance of the common level

HUBER = 1.345  # 95 % as good as least squares where noise is Gaussian
ROUNDS = 3
SCALE_MIN = 0.02
MAD_TO_SD = 1.4826


def table(rows: Sequence[Mapping[str, float]]) -> Floats:
    """Features as rows of numbers; those of types weigh as one, however many there are."""
    names = sorted({name for row in rows for name in row})
    types = sum(name.startswith("type ") for name in names)
    scale = [types**-0.5 if name.startswith("type ") else 1.0 for name in names]
    values = [[row.get(name, 0.0) for name in names] for row in rows]
    return np.asarray(np.array(values) * np.array(scale), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Similar:
    """Past runs seen from one run. The last row and column of each kernel are that run's."""

    kernels: Floats
    noises: Floats
    distances: Floats

    def predict(self, past: Floats) -> float:
        """The value to expect for this run, from those of the past runs."""
        middle = float(np.median(past))
        weights, chosen = self._solve(past - middle)
        each = np.einsum("kn,kn->k", self.kernels[:, -1, :-1], weights)
        return middle + float(chosen @ each)

    def _solve(self, centred: Floats) -> tuple[Floats, Floats]:
        """The weight of each past run under each kernel, and each kernel's share."""
        count = len(centred)
        inner = self.kernels[:, :-1, :-1]
        noise = np.repeat(self.noises[:, None], count, axis=1)
        eye = np.eye(count)
        for last in range(ROUNDS - 1, -1, -1):
            covariance = inner + noise[:, :, None] * eye
            inverse: Floats = np.linalg.inv(covariance)
            weights = inverse @ centred
            if last:
                noise = self.noises[:, None] * distrust(weights, inverse)
        evidence = -0.5 * (weights @ centred) - 0.5 * np.linalg.slogdet(covariance)[1]
        chosen = np.exp(evidence - evidence.max())
        return weights, chosen / chosen.sum()


def distrust(weights: Floats, inverse: Floats) -> Floats:
    """By how much to raise each run's noise: 1 for most, more for those far from the others."""
    errors = np.abs(weights / np.diagonal(inverse, axis1=-2, axis2=-1))
    scale = np.maximum(MAD_TO_SD * np.median(errors, axis=-1, keepdims=True), SCALE_MIN)
    return np.asarray(np.maximum(1.0, errors / (HUBER * scale)) ** 2)


def similar(past: Sequence[Mapping[str, float]], now: Mapping[str, float]) -> Similar:
    """`past` runs as seen from `now`."""
    known = {name for row in past for name in row}
    here = {name: value for name, value in now.items() if name in known}
    rows = table([*past, here])
    rows = rows - rows[:-1].mean(axis=0)
    squares = (rows**2).sum(axis=1)
    products = rows @ rows.T
    distances = np.maximum(squares[:, None] + squares[None, :] - 2 * products, 0.0)
    kernels = [
        BEND * np.exp(-0.5 * distances / reach**2) + TREND * products + LEVEL
        for reach in RANGES
        for _ in NOISES
    ]
    return Similar(
        kernels=np.array(kernels),
        noises=np.array(NOISES * len(RANGES)),
        distances=distances[-1, :-1],
    )
