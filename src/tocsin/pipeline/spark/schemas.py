"""Schemas: each table's columns and types in Spark, made from the one definition of the archive."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, DoubleType, StructType

from tocsin.tables.schemas import TABLES

KIND: Final = ("workflow", "activity", "version")  # what an attempt is one of
RAN: Final = (
    "succeeded",
    "failed",
    "retrying",
    "cancelled",
)  # states of attempts that ran and ended
FAILED: Final = ("failed", "retrying")
SUCCEEDED: Final = "succeeded"
# A finite number may still be so large that its square is none: it is no measurement then.
MEASURE_MAX: Final = 1e100


def spark_schema(schema: pa.Schema) -> StructType:
    """The columns of an Arrow schema as Spark has them."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=False)


@cache
def table_schema(name: str) -> StructType:
    return spark_schema(TABLES[name])


def fitted(df: DataFrame, name: str) -> DataFrame:
    """The columns of the table, in its order and types; a number that is none is null."""
    return df.selectExpr(*(_fitted(field.name, field.dataType) for field in table_schema(name)))


def _fitted(name: str, kind: DataType) -> str:
    # As text, which Spark reads at once; a hundred objects take a hundred calls.
    value = f"CAST(`{name}` AS {kind.simpleString()})"
    if isinstance(kind, DoubleType):
        value = f"CASE WHEN abs({value}) < double('infinity') THEN {value} END"
    return f"{value} AS `{name}`"


def measured(name: str) -> Column:
    """The column where it is a number that can be reckoned with."""
    value = F.col(name).cast("double")
    return F.when(F.abs(value) <= MEASURE_MAX, value)


def same(left: str, right: str, keys: Iterable[str]) -> Column:
    """Joins two aliased frames on keys of which some may be null."""
    condition = F.lit(True)
    for key in keys:
        condition &= F.col(f"{left}.{key}").eqNullSafe(F.col(f"{right}.{key}"))
    return condition
