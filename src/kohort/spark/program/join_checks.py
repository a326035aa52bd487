"""Checks whether a stream can be joined to a table, and finds the columns of the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregate_specs import Keyed
from kohort.spark.program.column_checks import one_of
from kohort.spark.program.compiled import TableStore
from kohort.spark.program.internal_columns import PARTITION
from kohort.spark.program.streams import JoinDef

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def joined(stream: Keyed, table: TableStore, join: JoinDef) -> tuple[tuple[str, ...], StructType]:
    """The columns that are joined on, in the table's order, and the columns of the result.

    Raises:
        ProgramError: they can't be joined.
    """
    from pyspark.sql.types import BinaryType, DoubleType, FloatType, StructField, StructType

    key, columns = table.source.key, table.source.schema
    call = "app.global_table" if table.is_global else "app.table"
    where = f"{stream.where}: join({table.name!r})"
    on = key if join.on is None else join.on
    if set(on) != set(key):
        raise ProgramError(
            f"{where} on {_listed(on)}: a table is joined by its key, {_listed(key)}. Rename the stream's column in a "
            f"transform, or give the table that key ({call}(…, key=…))"
        )
    for name in key:
        found = one_of(f"{where} on {name!r}", name, stream.schema)
        wanted = columns[name].dataType
        if found.simpleString() != wanted.simpleString():
            theirs = wanted.simpleString().upper()
            raise ProgramError(
                f"{where}: {name!r} is {found.simpleString().upper()} in the stream and {theirs} in the table; cast it "
                f"in a transform, or say the same type in both schemas"
            )
        if not table.is_global and isinstance(wanted, (BinaryType, DoubleType, FloatType)):
            raise ProgramError(
                f"{where} on {name!r}: {name!r} is {wanted.simpleString().upper()}, whose text isn't always the "
                f"same, so it can't say which task a row belongs to. Make it a STRING, or the table an app.global_table"
            )
    if not table.is_global and stream.key != key:
        raise ProgramError(f"{where}: {_not_keyed(stream, key)}")
    if not table.is_global and stream.partitioner != table.source.partitioner:
        columns_named = ", ".join(f'"{name}"' for name in key)
        repartitioned = (
            f"put .repartition({columns_named}) before the join, " if stream.partitioner != "murmur2" else ""
        )
        raise ProgramError(
            f"{where}: the stream is partitioned by {stream.partitioner}, and the table by {table.source.partitioner}, "
            f"so a row's task may not have its part of the table: {repartitioned}say the same partitioner= for both if "
            f"that is how they are written, or make the table an app.global_table, which every instance has all of"
        )
    added = [each for each in columns.fields if each.name not in key]
    taken = {name.lower() for name in stream.schema.names}
    if twice := [each.name for each in added if each.name.lower() in taken]:
        raise ProgramError(
            f"{where}: both have the column {twice[0]!r}. Rename it in a transform of the stream, or leave it out of "
            f"the table's schema"
        )
    if join.how == "left":
        added = [StructField(each.name, each.dataType, nullable=True) for each in added]
    own = [each for each in stream.schema.fields if each.name != PARTITION]
    partition = [each for each in stream.schema.fields if each.name == PARTITION]
    return key, StructType([*own, *added, *partition])


def _not_keyed(stream: Keyed, key: tuple[str, ...]) -> str:
    columns = ", ".join(f'"{name}"' for name in key)
    if stream.lost:
        known = f"the stream is no longer known to be keyed by {_listed(key)}, since {stream.lost}"
    elif not stream.key:
        said = columns if len(key) == 1 else f"({columns})"
        remedy = f"if its records are, say key={said} where the stream is made"
        known = f"the stream isn't known to be keyed by {_listed(key)} ({remedy})"
    elif set(stream.key) == set(key):
        known = f"the stream is keyed by {_listed(stream.key)}, in another order than the table, {_listed(key)}"
    else:
        known = f"the stream is keyed by {_listed(stream.key)}, not by {_listed(key)}"
    return (
        f"{known}, so a row's task may not have its part of the table. Put .repartition({columns}) before the join, or "
        f"make it an app.global_table, which every instance has all of"
    )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names))
