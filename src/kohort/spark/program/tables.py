"""Tables as values: what is done to them row by row, over flows of upserts.

A table goes from step to step as *upserts*: rows with its columns and `_deleted`. One sets the row of its key, or takes
it out. A row that a condition no longer holds of becomes a deletion of its key. That needs no state: a key that was
never there may be deleted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from kohort.spark.errors import ProgramError
from kohort.spark.program.column_propagation import propagated
from kohort.spark.program.internal_columns import DELETED, PARTITION, VALUELESS
from kohort.spark.program.missing_methods import Advised
from kohort.spark.program.shortcuts import (
    Expression,
    Shortcut,
    check_expression,
    column_of,
    named_columns,
    quoted,
    selected_columns,
    shown_expression,
)
from kohort.spark.program.transform_checks import passed
from kohort.spark.program.written_at import Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_Derived = TypeVar("_Derived")


@dataclass(eq=False)
class TableTransformDef(Written):
    """A step over a table's rows one by one.

    Attributes:
        label: as it was written.
        function: makes rows of the table's, which are without `_deleted`.
        condition: which of them stay; None for all.
    """

    label: str
    function: Callable[[DataFrame], DataFrame] | None = None
    condition: Expression | None = None


@dataclass(eq=False)
class ToTableDef(Written):
    """A stream becomes a table. `deleted`: of which rows the key goes."""

    key: tuple[str, ...]
    deleted: Expression | None
    name: str | None


@dataclass(eq=False)
class ToStreamDef(Written):
    """A table's upserts become rows of a stream. `deleted`: the column that says which delete; None leaves them out."""

    deleted: str | None


@dataclass(eq=False)
class ChangesDef(Written):
    """A table's upserts become its changes: see `kohort.spark.program.operations.TableChanges`.

    Attributes:
        name: of the processor and its store; None for one that follows from the source.
    """

    name: str | None
    pairs: bool


@dataclass(eq=False)
class GroupsDef(Written):
    """An aggregate's groups, as a table's upserts."""


class TableShortcuts(Advised, ABC, Generic[_Derived]):
    """What is done to a table row by row. Each method gives another table, which nothing keeps."""

    @abstractmethod
    def _derived(self, step: TableTransformDef) -> _Derived: ...

    def where(self, condition: Expression) -> _Derived:
        """The table's rows of which a condition is true. A row that it no longer holds of is deleted.

        Args:
            condition: as text, "price > 100", or as Column.

        Raises:
            ProgramError: it is neither.
        """
        check_expression("where", condition)
        return self._derived(TableTransformDef(f"where({shown_expression(condition)})", condition=condition))

    def select(self, *columns: Expression) -> _Derived:
        """The table with these columns alone: names, expressions as text, "price / 100 AS euros", "*", or Columns.

        The columns of its key must be among them; they may be renamed.

        Raises:
            ProgramError: there are none, or one is neither.
        """
        return self._derived(TableTransformDef(*selected_columns(columns)))

    def with_columns(self, columns: Mapping[str, Expression] | None = None, /, **more: Expression) -> _Derived:
        """The table with columns more, or others in place of those of the same name: `with_columns(late="delay > 15")`.

        Raises:
            ProgramError: there are none, or one is neither text nor Column.
        """
        return self._derived(TableTransformDef(*named_columns(columns, more)))


def upserting(step: TableTransformDef, kept: Collection[str]) -> Shortcut:
    """The step as a transform of upserts. `kept`: the columns that deletions have, too."""
    names: list[str] | None = None  # of those columns afterwards: found in the plan once, when the program is compiled

    def function(rows: DataFrame) -> DataFrame:
        nonlocal names
        made = rows
        if step.function is not None:
            made = propagated(step.function(rows.drop(DELETED)), rows, [DELETED])
        if names is None:
            there = passed(made, rows)
            names = [there[name][0] for name in kept if name in there]
        return deleting(made, names, None if step.condition is None else (step.condition, False))

    return Shortcut(step.label, function)


def table_of(step: ToTableDef, kept: Collection[str]) -> Shortcut:
    """A stream's rows as upserts. Those whose key has a null are left out."""

    def function(rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812

        rows = rows.dropna(subset=[f"`{name}`" for name in step.key]).withColumn(DELETED, F.lit(False))
        return deleting(rows, kept, None if step.deleted is None else (step.deleted, True))

    return Shortcut(f"to_table({', '.join(map(repr, step.key))})", function)


def unmarked(rows: DataFrame) -> DataFrame:
    """A table's rows without what said which of its records had no value."""
    return rows.drop(VALUELESS)


def stream_of(step: ToStreamDef) -> Shortcut:
    """A table's upserts as rows of a stream."""

    def function(rows: DataFrame) -> DataFrame:
        if step.deleted is not None:
            return rows.withColumnRenamed(DELETED, step.deleted)
        return rows.where(f"NOT {DELETED}").drop(DELETED)

    return Shortcut("as_stream()", function)


def deleting(rows: DataFrame, kept: Collection[str], condition: tuple[Expression, bool] | None = None) -> DataFrame:
    """Upserts, of which those that delete have the columns `kept` alone.

    Args:
        condition: what more are deleted: those of which it is true, with True, or those of which it isn't, with False.
    """
    from pyspark.sql import functions as F  # noqa: N812

    deleted = F.col(DELETED)
    if condition is not None:
        given, when = condition
        holds = F.coalesce(column_of(rows, given), F.lit(False))
        rows = rows.withColumn(DELETED, deleted | (holds if when else ~holds))
    own = {*kept, DELETED, PARTITION}
    return rows.select(
        *[
            each if name in own else F.when(~deleted, each).alias(name)
            for name, each in ((name, quoted(name)) for name in rows.columns)
        ]
    )


def check_key(where: str, key: Collection[str], passed_on: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What a table's key is called after a step.

    Raises:
        ProgramError: a column of it is gone.
    """
    if gone := [name for name in key if name not in passed_on]:
        raise ProgramError(
            f"{where} doesn't pass {' and '.join(gone)} through unchanged: a table's rows are told apart by the "
            f"columns of its key. For rows by other columns say .as_stream() and .to_table(…), or group by them"
        )
    return tuple(passed_on[name][0] for name in key)
