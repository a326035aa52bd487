"""The columns that the rows of united streams have."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from kohort.spark.errors import ProgramError
from kohort.spark.program.column_checks import without_partition
from kohort.spark.program.shortcuts import Shortcut, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField, StructType

    from kohort.spark.program.streams import UnionDef


def united_columns(definition: UnionDef, wheres: Sequence[str], schemas: Sequence[StructType]) -> StructType:
    """The columns of all streams: the first one's in their order, then those that the others add.

    One may be null if it may be in any of them, or isn't there.

    Args:
        wheres: how messages call each stream.

    Raises:
        ProgramError: one lacks a column, or has one of another type.
    """
    from pyspark.sql.types import StructField, StructType

    found: dict[str, StructField] = {}
    first_in: dict[str, str] = {}
    for where, schema in zip(wheres, schemas, strict=True):
        for field in without_partition(schema).fields:
            there = found.setdefault(field.name, StructField(field.name, field.dataType))
            first_in.setdefault(field.name, where)
            if there.dataType.simpleString() != field.dataType.simpleString():
                raise ProgramError(
                    f"{wheres[0]}: {definition.what}: {field.name!r} is {there.dataType.simpleString().upper()} in "
                    f"{first_in[field.name]}, and {field.dataType.simpleString().upper()} in {where}: cast or rename "
                    f"one of them in a transform"
                )
    if not definition.allow_missing:
        for where, schema in zip(wheres, schemas, strict=True):
            if missing := [name for name in found if name not in schema.names]:
                raise ProgramError(
                    f"{wheres[0]}: {definition.what}: {where} has no column {missing[0]!r}, which "
                    f"{first_in[missing[0]]} has: add it, or say allow_missing_columns=True, which makes it null there"
                )
    return StructType(
        [
            StructField(
                each.name,
                each.dataType,
                any(each.name not in schema.names or schema[each.name].nullable for schema in schemas),
            )
            for each in found.values()
        ]
    )


def with_columns_of(columns: StructType, as_they_are: Collection[str] = ()) -> Shortcut:
    """A transform into these columns. Those that aren't there are null.

    Args:
        as_they_are: columns that have to stay those of the stream: its key, and its event time.
    """

    def made(rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812

        def united(each: StructField) -> Column:
            if each.name not in rows.columns:
                return F.lit(None).cast(each.dataType).alias(each.name)
            column = quoted(each.name)
            if rows.schema[each.name].nullable or not each.nullable or each.name in as_they_are:
                return column
            return F.when(column.isNotNull(), column).alias(each.name)  # the same, but to Spark it may be null

        return rows.select(*map(united, columns.fields))

    return Shortcut("union", made)
