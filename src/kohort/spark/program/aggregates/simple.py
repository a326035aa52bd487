"""Aggregates whose state is their result: count, sum, min, max."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegralType

from kohort.spark.program.aggregates.base import Aggregation, Named, column, if_true, numeric, state, type_of
from kohort.spark.program.aggregates.columnwise import Columnwise, Fold
from kohort.spark.program.aggregates.filtered import over
from kohort.spark.program.aggregates.signed import SignedCount, SignedSum, SignedValues

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["count", "count_if", "max_", "min_", "sum_"]


@dataclass(frozen=True)
class Count(Aggregation):
    of: str | Column | None

    def filtered(self, condition: Column) -> Count:
        return replace(self, of=if_true(condition, F.lit(1) if self.of is None else self.of))

    def signed(self, rows: DataFrame) -> SignedCount:
        return SignedCount(self.of)

    @property
    def columnwise(self) -> Columnwise:
        return Columnwise((Fold.COUNT,), self.of)

    def partial(self, name: str) -> Named:
        return [(name, F.count(F.lit(1) if self.of is None else column(self.of)))]

    def merge(self, name: str) -> Named:
        return [(name, F.coalesce(F.sum(state(name)), F.lit(0)))]

    def finish(self, name: str) -> Column:
        return state(name)


@dataclass(frozen=True)
class Sum(Aggregation):
    of: str | Column

    def bound(self, rows: DataFrame, event_time: str | None) -> Sum:
        numeric("sum_", rows, self.of)
        return self

    def filtered(self, condition: Column) -> Sum:
        return replace(self, of=if_true(condition, self.of))

    def signed(self, rows: DataFrame) -> SignedSum:
        # The least of whole numbers has no negative of its own type.
        is_whole = isinstance(type_of(rows, self.of), IntegralType)
        return SignedSum(self.of, "bigint" if is_whole else None)

    @property
    def columnwise(self) -> Columnwise:
        return Columnwise((Fold.SUM,), self.of)

    def partial(self, name: str) -> Named:
        return [(name, F.sum(column(self.of)))]

    def merge(self, name: str) -> Named:
        return [(name, F.sum(state(name)))]

    def finish(self, name: str) -> Column:
        return state(name)


@dataclass(frozen=True)
class Extreme(Aggregation):
    of: str | Column
    largest: bool

    def filtered(self, condition: Column) -> Extreme:
        return replace(self, of=if_true(condition, self.of))

    def signed(self, rows: DataFrame) -> SignedValues:
        return SignedValues(self.of, "max" if self.largest else "min")

    @property
    def columnwise(self) -> Columnwise:
        return Columnwise((Fold.MAX if self.largest else Fold.MIN,), self.of)

    def partial(self, name: str) -> Named:
        return [(name, self._best(column(self.of)))]

    def merge(self, name: str) -> Named:
        return [(name, self._best(state(name)))]

    def finish(self, name: str) -> Column:
        return state(name)

    def _best(self, of: Column) -> Column:
        return F.max(of) if self.largest else F.min(of)


def count(of: str | Column | None = None, *, where: str | Column | None = None) -> Aggregation:
    """How many rows there are, or in how many `of` isn't null. BIGINT.

    Args:
        of: a column; None counts rows.
        where: a condition, as text ("price < 100") or Column: only rows of which it is true count. All aggregates
            take one.
    """
    return over(Count(of), where)


def count_if(condition: str | Column) -> Aggregation:
    """Of how many rows a condition is true, given as text ("price < 100") or Column. BIGINT."""
    return over(Count(None), condition)


def sum_(of: str | Column, *, where: str | Column | None = None) -> Aggregation:
    """The sum of what isn't null; null if there is nothing. `where` as of `count`.

    Its type is that of Spark's `sum`: BIGINT, DOUBLE or DECIMAL. A BIGINT that overflows fails, as in Spark.
    """
    return over(Sum(of), where)


def min_(of: str | Column, *, where: str | Column | None = None) -> Aggregation:
    """The smallest value that isn't null; null if there is none. `where` as of `count`."""
    return over(Extreme(of, largest=False), where)


def max_(of: str | Column, *, where: str | Column | None = None) -> Aggregation:
    """The largest value that isn't null; null if there is none. NaN is larger than all numbers, as in Spark.

    `where` as of `count`.
    """
    return over(Extreme(of, largest=True), where)
