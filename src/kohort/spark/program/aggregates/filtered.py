"""Aggregates over some of the rows: `where=`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregates.base import Aggregation, Named, label, type_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["over"]


@dataclass(frozen=True)
class Filtered(Aggregation):
    """Becomes, when it is bound, an aggregation of another kind, which has the condition in its expressions."""

    of: Aggregation
    condition: str | Column

    def bound(self, rows: DataFrame, event_time: str | None) -> Aggregation:
        condition = F.expr(self.condition) if isinstance(self.condition, str) else self.condition
        found = type_of(rows, condition)
        if not isinstance(found, BooleanType):
            raise ProgramError(
                f'where={label(self.condition)} takes a condition, as "price < 100", but this is '
                f"{found.simpleString().upper()}"
            )
        return self.of.bound(rows, event_time).filtered(condition)

    def partial(self, name: str) -> Named:
        raise TypeError("an aggregate with a condition must be bound to rows before it is computed")

    merge = partial

    def finish(self, name: str) -> Column:
        raise TypeError("an aggregate with a condition must be bound to rows before it is computed")


def over(aggregation: Aggregation, where: str | Column | None) -> Aggregation:
    """The aggregation over the rows of which a condition is true; over all if there is none.

    Raises:
        ProgramError: it is no condition.
    """
    if where is None:
        return aggregation
    if not isinstance(where, (str, Column)):
        raise ProgramError(f'where={where!r}: give a condition as text or Column, as "price < 100"')
    return Filtered(aggregation, where)
