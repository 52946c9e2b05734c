"""What follows from attempts, by Polars."""

from __future__ import annotations

import polars as pl

KIND = ("workflow", "activity", "version")


def tables(attempts: pl.LazyFrame) -> dict[str, pl.LazyFrame]:
    return {}
