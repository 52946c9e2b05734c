"""Asked: the columns of a user's own schema, which must be among those of an archive."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from tocsin.archive.selection import NoSuchColumn, paths, select
from tocsin.errors.spark import BadSourceOption

REMEDY: Final = "Leave .schema() out, and name what you need with the option columns."


def asked_for(schema: StructType) -> pa.Schema:
    """The schema that Spark wants, ours or a user's own. Raises BadSourceOption."""
    asked: Any = to_arrow_schema(schema, timezone="UTC")
    try:
        known = select(paths(asked))
    except NoSuchColumn as error:
        raise BadSourceOption(f"the schema: {error}", remedy=REMEDY) from None
    for field in known:
        if not _same(asked.field(field.name).type, field.type):
            raise BadSourceOption(
                f"the schema has {field.name} as {asked.field(field.name).type}, "
                f"and the archive as {field.type}",
                remedy=REMEDY,
            )
    return asked


def _same(asked: pa.DataType, known: pa.DataType) -> bool:
    if pa.types.is_struct(known) and pa.types.is_struct(asked):
        return {each.name: each.type for each in asked} == {each.name: each.type for each in known}
    return bool(asked == known)
