"""Kinds: what attempts are one of, by number; and all values of a kind, in order.

The kinds are few and have three texts for a name. Where millions of attempts are sorted by kind,
they are sorted by a number.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tocsin.pipeline.spark.schemas import KIND, same

NO: Final = "no"


def numbered(kinds: DataFrame) -> DataFrame:
    """One row a kind: each gets a number."""
    return kinds.withColumn(NO, F.row_number().over(Window.orderBy(*KIND)))


def of_kind(values: DataFrame, kinds: DataFrame, *names: str) -> DataFrame:
    """Each value with the number of its kind and these columns of it, in place of its name."""
    wanted = F.broadcast(kinds.select(*KIND, NO, *names)).alias("kind")
    joined = values.alias("value").join(wanted, same("value", "kind", KIND), "inner")
    kept = (name for name in values.columns if name not in KIND)
    return joined.select(
        *(f"kind.{name}" for name in (NO, *names)), *(f"value.{name}" for name in kept)
    )


def in_order(value: Column) -> Column:
    """All values of a group, ascending: eight bytes each, so a million are eight megabytes."""
    return F.sort_array(F.collect_list(value))


def quantile(ordered: str, share: float) -> Column:
    """Linear between the two nearest; null of none."""
    place = (F.size(ordered) - 1) * F.lit(share)
    below, above = (F.get(F.col(ordered), side(place)) for side in (F.floor, F.ceil))
    return below + (above - below) * (place - F.floor(place))
