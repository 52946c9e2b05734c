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
        if _says_never_null(asked.field(field.name), field):
            raise BadSourceOption(
                f"the schema says that {field.name} is never null, and in an archive it may be",
                remedy="Leave NOT NULL out, or .schema() altogether.",
            )
        if not _same(asked.field(field.name).type, field.type):
            raise BadSourceOption(
                f"the schema has {field.name} as {asked.field(field.name).type}, "
                f"and the archive as {field.type}",
                remedy=REMEDY,
            )
    return asked


def _says_never_null(asked: pa.Field, known: pa.Field) -> bool:
    """Spark believes it, and answers accordingly. True also if it is said of a member."""
    if known.nullable and not asked.nullable:
        return True
    if pa.types.is_list(known.type) and pa.types.is_list(asked.type):
        return _says_never_null(asked.type.value_field, known.type.value_field)
    if pa.types.is_struct(known.type) and pa.types.is_struct(asked.type):
        members = {each.name: each for each in known.type}
        return any(
            each.name in members and _says_never_null(each, members[each.name])
            for each in asked.type
        )
    return False


def _same(asked: pa.DataType, known: pa.DataType) -> bool:
    if pa.types.is_struct(known) and pa.types.is_struct(asked):
        return {each.name: each.type for each in asked} == {each.name: each.type for each in known}
    return bool(asked == known)
