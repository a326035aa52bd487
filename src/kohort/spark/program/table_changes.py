"""What a processor of a table's changes keeps and gives, with the types of its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregate_specs import group_types
from kohort.spark.program.column_checks import check_types
from kohort.spark.program.internal_columns import DELETED, SIGN
from kohort.spark.program.operations import AFTER, BEFORE, CHANGE, KEPT, TableChanges
from kohort.spark.program.processor_specs import Process, StateKind, StateSpec
from kohort.spark.program.selections import Changelog

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def table_changes(
    where: str,
    name: str,
    operation: TableChanges,
    key: tuple[str, ...],
    upserts: StructType,
    routed_by: tuple[str, ...],
    event_time: str | None,
    changelog: Changelog,
) -> Process:
    """The changes of a table.

    Args:
        where: how messages call it.
        name: of the processor and its store.
        key: the table's.
        upserts: their columns.
        routed_by: what the subtopology's input is keyed by.

    Raises:
        ProgramError: it can't be kept, or a column has the name of one that is added.
    """
    from pyspark.sql.types import IntegerType, StringType, StructField, StructType

    check_types(where, upserts)
    group = group_types(f"{where}: key", key, upserts)
    own = [StructField(name, kind) for name, kind in group]
    kept = [StructField(each.name, each.dataType) for each in upserts.fields if each.name not in (*key, DELETED)]
    if operation.pairs:
        added = [StructField(CHANGE, StringType())]
        added += [StructField(side, StructType(kept)) for side in (BEFORE, AFTER) if kept]
        if taken := [each.name for each in added if each.name in map(str.lower, key)]:
            raise ProgramError(f"{where}: it adds a column {taken[0]!r}, which is of the key already: rename that")
    else:
        added = [*kept, StructField(SIGN, IntegerType())]
    state = StateSpec(KEPT, name, changelog(name, f"changes {name!r}"), StateKind.VALUE, StructType(kept))
    output = StructType([*own, *added])
    return Process(name, group, upserts, output, operation, (state,), routed_by, event_time)
