"""Boxes over the tags of a workload, as two arrays: all of one kind tested in one go.

A row has a lower and an upper bound for each tag. A request without a tag has the widest bounds
there, so that the tag decides nothing; a resource without a tag has none that anything meets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Self

import numpy as np
from numpy.typing import NDArray

Bounds = Mapping[str, tuple[float, float]]
Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]

ANY = (-inf, inf)
NONE = (inf, -inf)


@dataclass(frozen=True, slots=True)
class Boxes:
    """One row a box, one column a tag."""

    lo: Floats
    hi: Floats

    @classmethod
    def of_requests(cls, tags: Sequence[str], rows: Sequence[Bounds]) -> Self:
        return cls._of(tags, rows, ANY)

    @classmethod
    def of_resources(cls, tags: Sequence[str], rows: Sequence[Bounds]) -> Self:
        return cls._of(tags, rows, NONE)

    @classmethod
    def _of(cls, tags: Sequence[str], rows: Sequence[Bounds], missing: tuple[float, float]) -> Self:
        lo = np.array([[row.get(tag, missing)[0] for tag in tags] for row in rows], np.float64)
        hi = np.array([[row.get(tag, missing)[1] for tag in tags] for row in rows], np.float64)
        return cls(lo.reshape(-1, len(tags)), hi.reshape(-1, len(tags)))

    def __len__(self) -> int:
        return len(self.lo)

    def meeting(self, row: Self) -> Truths:
        """Which of these resources the one request meets, in each tag that it asks for."""
        return np.asarray(((self.lo <= row.hi) & (row.lo <= self.hi)).all(axis=-1))

    def covering(self, row: Self) -> Truths:
        """Which of these requests cover the one request."""
        return np.asarray(((self.lo <= row.lo) & (row.hi <= self.hi)).all(axis=-1))

    def covered_by(self, row: Self) -> Truths:
        """Which of these requests the one request covers."""
        return np.asarray(((row.lo <= self.lo) & (self.hi <= row.hi)).all(axis=-1))
