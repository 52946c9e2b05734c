"""Numbers: a sequence number stands for one record. Which records stand under another's?"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tocsin.pipeline.fold.clean import reason
from tocsin.pipeline.spark.broadcast import LISTED_MAX, Keep, listed

ROW: Final = "row"
"""What differs between two records with the same number."""
OF_FILES: Final = "xxhash64(_metadata.file_path, _metadata.row_index)"
"""An expression for it, where the records are read from files."""
REGION_BITS: Final = 15  # regions of 32,768 numbers, so that those which are named stay few


def crowds(records: DataFrame) -> DataFrame:
    """Each `crowd` of 64 numbers in a row that has more records than numbers.

    Sixty-four bits show which of them are there: far fewer rows than to count each number.
    """
    bit = F.expr("shiftleft(1L, CAST(seq & 63 AS INT))")
    counted = records.groupBy(F.shiftright("seq", 6).alias("crowd")).agg(
        F.count("*").alias("rows"), F.bit_count(F.bit_or(bit)).alias("numbers")
    )
    return counted.where("rows > numbers").select("crowd")


def misnumbered(records: DataFrame, keep: Keep) -> DataFrame | None:
    """The (seq, row) of each record whose number is another's; None if there is none."""
    region = F.shiftright("crowd", REGION_BITS - 6).alias("region")
    crowded = [
        each.region for each in crowds(records.where("seq > 0")).select(region).distinct().collect()
    ]
    if not crowded:
        return None
    some = records.where(F.shiftright("seq", REGION_BITS).isin(crowded) & (F.col("seq") > 0))
    twice = keep(some.groupBy("seq").agg(F.count("*").alias("n")).where("n > 1"))
    # Of several, one that can be used keeps the number.
    is_bad = reason().isNotNull()
    order = Window.partitionBy("seq").orderBy(is_bad, "received", "source", "id", ROW)
    placed = some.join(twice, "seq", "left_semi").withColumn("place", F.row_number().over(order))
    return keep(placed.where("place > 1").select("seq", ROW))


def numbered(records: DataFrame, wrong: DataFrame | None) -> DataFrame:
    """Only those records that have a number of their own, or none at all."""
    if wrong is None:
        return records
    found = wrong.limit(LISTED_MAX + 1).collect()
    if len(found) > LISTED_MAX:
        return records.alias("r").join(wrong.alias("w"), _are_the_same("r", "w"), "left_anti")
    numbers, rows = listed(each.seq for each in found), listed(each[ROW] for each in found)
    return records.where(f"NOT coalesce(seq IN ({numbers}) AND {ROW} IN ({rows}), false)")


def unnumbered(records: DataFrame, wrong: DataFrame | None) -> DataFrame:
    """All records; those that have another's number, without one."""
    if wrong is None:
        return records
    marked = records.alias("r").join(wrong.alias("w"), _are_the_same("r", "w"), "left")
    own = F.when(F.col("w.seq").isNull(), F.col("r.seq"))
    return marked.select(
        *(own.alias(name) if name == "seq" else F.col(f"r.{name}") for name in records.columns)
    )


def _are_the_same(one: str, other: str) -> Column:
    """By the number first, and by the row only where that is the same: looking for one number is
    quicker than looking for two."""
    of_row = F.col(f"{one}.{ROW}").bitwiseXOR(F.col(f"{other}.{ROW}"))
    return (F.col(f"{one}.seq") == F.col(f"{other}.seq")) & (of_row == 0)
