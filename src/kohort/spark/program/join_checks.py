"""Checks whether a stream can be joined to a table, and finds the columns of the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregate_specs import Keyed
from kohort.spark.program.column_checks import check_names, one_of
from kohort.spark.program.compiled import SourceSpec, TableStore
from kohort.spark.program.internal_columns import PARTITION
from kohort.spark.program.streams import JoinDef

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def placed(stream: Keyed, table: TableStore, join: JoinDef) -> tuple[tuple[str, ...], str]:
    """The stream's columns that are joined on, in the table's order, and why rows have to go through a topic by these
    first: "" if they lie where the table's rows do.

    Raises:
        ProgramError: the table can't be joined by these columns.
    """
    on = _matched(f"{stream.where}: join({table.name!r})", stream, table, join)
    if table.is_global:
        return on, ""
    if stream.key != on:
        return on, _not_keyed(stream, on)
    if len(on) > 1 and stream.key_names != table.source.key == on:
        return on, f"its records' keys call these columns {_listed(stream.key_names)}"
    if stream.partitioner != table.source.partitioner == "murmur2":
        return on, f"it is partitioned by {stream.partitioner}, and the table by murmur2"
    return on, ""


def joined(
    stream: Keyed, table: TableStore, join: JoinDef
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...], StructType]:
    """The stream's columns that are joined on, in the table's order; the table's columns that are added, with what they
    are called then; and the columns of the result.

    Raises:
        ProgramError: they can't be joined.
    """
    from pyspark.sql.types import StructField, StructType

    source = table.source
    where = f"{stream.where}: join({table.name!r})"
    on = _matched(where, stream, table, join)
    if not table.is_global:
        _check_placed(where, stream, table, on)
    added = _added(where, source, on, join)
    taken = {name.lower() for name in stream.schema.names}
    if twice := [theirs for theirs, ours in added if ours.lower() in taken]:
        prefix = f"{table.name}_" if table.name.isidentifier() else "table_"
        raise ProgramError(
            f'{where}: both have the column {twice[0]!r}. Say prefix="{prefix}", which goes before the names of the '
            f'table\'s columns, or name those that are wanted, as columns={{"{twice[0]}": "{prefix}{twice[0]}"}}'
        )
    left = join.how == "left"
    fields = [
        StructField(ours, source.schema[theirs].dataType, left or source.schema[theirs].nullable)
        for theirs, ours in added
    ]
    own = [each for each in stream.schema.fields if each.name != PARTITION]
    partition = [each for each in stream.schema.fields if each.name == PARTITION]
    return on, added, StructType([*own, *fields, *partition])


def _matched(where: str, stream: Keyed, table: TableStore, join: JoinDef) -> tuple[str, ...]:
    """The stream's columns that are joined on, in the order of the table's key, whose types they have."""
    key = table.source.key
    given = {name: name for name in key} if join.on is None else join.on
    if set(given.values()) != set(key):
        raise ProgramError(f"{where} on {_listed(tuple(given.values()))}: {_on_the_key(table, given)}")
    by_key = {theirs: ours for ours, theirs in given.items()}
    on = tuple(by_key[name] for name in key)
    for ours, theirs in zip(on, key, strict=True):
        try:
            found = one_of(f"{where} on {ours!r}", ours, stream.schema)
        except ProgramError as error:
            if join.on is not None:
                raise
            hint = f'say on={{"its column": "{theirs}"}}'
            raise ProgramError(f"{error}. Where the stream calls it otherwise, {hint}") from None
        wanted = table.source.schema[theirs].dataType
        if found.simpleString() != wanted.simpleString():
            kind = wanted.simpleString().upper()
            in_table = "in the table" if ours == theirs else f"{theirs!r} is {kind} in the table"
            said = f"{kind} {in_table}" if ours == theirs else in_table
            raise ProgramError(
                f"{where}: {ours!r} is {found.simpleString().upper()} in the stream and {said}; cast it "
                f"in a transform, or say the same type in both schemas"
            )
    return on


def _on_the_key(table: TableStore, given: Mapping[str, str]) -> str:
    """What to write where a join isn't on the table's key."""
    key = table.source.key
    call = "app.global_table" if table.is_global else "app.table"
    if len(given) == len(key):
        said = ", ".join(f'"{ours}": "{theirs}"' for ours, theirs in zip(given, key, strict=True))
    else:
        said = ", ".join(f'"{name}": "{name}"' for name in key)
    return (
        f"a table is joined by its key, {_listed(key)}. Say on={{{said}}}, the stream's column and the table's, or "
        f"give the table that key ({call}(…, key=…))"
    )


def _check_placed(where: str, stream: Keyed, table: TableStore, on: tuple[str, ...]) -> None:
    """Refuses joins of rows whose tasks may not have their part of the table, wherever the rows go."""
    from pyspark.sql.types import BinaryType, DoubleType, FloatType

    key = table.source.key
    for name, theirs in zip(on, key, strict=True):
        kind = table.source.schema[theirs].dataType
        if isinstance(kind, (BinaryType, DoubleType, FloatType)):
            raise ProgramError(
                f"{where} on {name!r}: {name!r} is {kind.simpleString().upper()}, whose text isn't always the "
                f"same, so it can't say which task a row belongs to. Make it a STRING, or the table an app.global_table"
            )
    if len(key) > 1 and stream.key_names != key:
        raise ProgramError(
            f"{where}: keys of several columns have their names in them, and the stream's are "
            f"{_listed(stream.key_names)}, the table's {_listed(key)}, so a row's task may not have its part of the "
            f"table. Rename the stream's columns in a transform, as the table calls them, or make the table an "
            f"app.global_table, which every instance has all of"
        )
    if stream.partitioner != table.source.partitioner:
        raise ProgramError(
            f"{where}: the stream is partitioned by {stream.partitioner}, and the table by {table.source.partitioner}, "
            f"so a row's task may not have its part of the table: say the same partitioner= for both if "
            f"that is how they are written, or make the table an app.global_table, which every instance has all of"
        )


def _added(where: str, source: SourceSpec, on: tuple[str, ...], join: JoinDef) -> tuple[tuple[str, str], ...]:
    """The table's columns that are added, and what they are called then. Of the key, what is there already isn't."""
    if join.columns is None:
        given = {name: name for name in source.schema.names if name not in source.key}
    else:
        given = join.columns
        for name in given:
            one_of(f"{where}: columns: {name!r} of the table", name, source.schema)
    added = tuple((theirs, join.prefix + ours) for theirs, ours in given.items())
    check_names(where, [ours for _, ours in added])
    there = set(zip(source.key, on, strict=True))
    return tuple(pair for pair in added if pair not in there)


def _not_keyed(stream: Keyed, key: tuple[str, ...]) -> str:
    if stream.lost:
        return f"it isn't known to be keyed by {_listed(key)}, since {stream.lost}"
    if not stream.key:
        columns = _quoted(key)
        said = columns if len(key) == 1 else f"({columns})"
        return (
            f"it isn't known to be keyed by {_listed(key)}; if its records are, say key={said} where the stream is made"
        )
    if set(stream.key) == set(key):
        return f"it is keyed by {_listed(stream.key)}, in another order than the table, {_listed(key)}"
    return f"it is keyed by {_listed(stream.key)}, not by {_listed(key)}"


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names))
