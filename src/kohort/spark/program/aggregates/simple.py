"""Aggregates whose state is their result: count, sum, min, max."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from kohort.spark.program.aggregates.base import Aggregation, Named, column, numeric, state
from kohort.spark.program.aggregates.columnwise import Columnwise, Fold

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["count", "max_", "min_", "sum_"]


@dataclass(frozen=True)
class Count(Aggregation):
    of: str | Column | None

    @property
    def columnwise(self) -> Columnwise:
        return Columnwise((Fold.COUNT,))

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

    @property
    def columnwise(self) -> Columnwise:
        return Columnwise((Fold.SUM,))

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

    @property
    def columnwise(self) -> Columnwise:
        return Columnwise((Fold.MAX if self.largest else Fold.MIN,))

    def partial(self, name: str) -> Named:
        return [(name, self._best(column(self.of)))]

    def merge(self, name: str) -> Named:
        return [(name, self._best(state(name)))]

    def finish(self, name: str) -> Column:
        return state(name)

    def _best(self, of: Column) -> Column:
        return F.max(of) if self.largest else F.min(of)


def count(of: str | Column | None = None) -> Aggregation:
    """How many rows there are, or in how many `of` isn't null. BIGINT."""
    return Count(of)


def sum_(of: str | Column) -> Aggregation:
    """The sum of what isn't null; null if there is nothing.

    Its type is that of Spark's `sum`: BIGINT, DOUBLE or DECIMAL. A BIGINT that overflows fails, as in Spark.
    """
    return Sum(of)


def min_(of: str | Column) -> Aggregation:
    """The smallest value that isn't null; null if there is none."""
    return Extreme(of, largest=False)


def max_(of: str | Column) -> Aggregation:
    """The largest value that isn't null; null if there is none. NaN is larger than all numbers, as in Spark."""
    return Extreme(of, largest=True)
