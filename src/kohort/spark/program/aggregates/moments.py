"""Mean, variance and standard deviation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, DecimalType

from kohort.spark.program.aggregates.base import Aggregation, Named, column, if_true, numeric, state, type_of
from kohort.spark.program.aggregates.columnwise import Columnwise, Fold
from kohort.spark.program.aggregates.filtered import over
from kohort.spark.program.aggregates.signed import SignedSpread, SignedSum
from kohort.spark.program.aggregates.spreads import folded, of_spread, parts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["avg", "stddev", "variance"]


@dataclass(frozen=True)
class Avg(Aggregation):
    """Sum and count. Sums are DOUBLE, as in Spark's own avg, but for decimals."""

    of: str | Column
    decimal: DataType | None = None

    def bound(self, rows: DataFrame, event_time: str | None) -> Avg:
        if not isinstance(numeric("avg", rows, self.of), DecimalType):
            return self
        return replace(self, decimal=type_of(rows, F.avg(column(self.of))))

    def filtered(self, condition: Column) -> Avg:
        return replace(self, of=if_true(condition, self.of))

    def signed(self, rows: DataFrame) -> SignedSum:
        return SignedSum(self.of, "double" if self.decimal is None else None, mean=True, result=self.decimal)

    @property
    def columnwise(self) -> Columnwise | None:
        return Columnwise((Fold.SUM, Fold.COUNT), self.of, mean=True) if self.decimal is None else None

    def partial(self, name: str) -> Named:
        of = column(self.of)
        return [
            (f"{name}.sum", F.sum(of.cast("double") if self.decimal is None else of)),
            (f"{name}.count", F.count(of)),
        ]

    def merge(self, name: str) -> Named:
        return [
            (f"{name}.sum", F.sum(state(name, "sum"))),
            (f"{name}.count", F.coalesce(F.sum(state(name, "count")), F.lit(0))),
        ]

    def finish(self, name: str) -> Column:
        total, n = state(name, "sum"), state(name, "count")
        mean = F.when(n > 0, total / n)
        return mean if self.decimal is None else mean.cast(self.decimal)


@dataclass(frozen=True)
class Spread(Aggregation):
    """Count, mean and the sum of squared distances from the mean (m2)."""

    of: str | Column
    population: bool
    root: bool

    def bound(self, rows: DataFrame, event_time: str | None) -> Spread:
        numeric("stddev" if self.root else "variance", rows, self.of)
        return self

    def filtered(self, condition: Column) -> Spread:
        return replace(self, of=if_true(condition, self.of))

    def signed(self, rows: DataFrame) -> SignedSpread:
        return SignedSpread(self.of, self.population, self.root)

    def partial(self, name: str) -> Named:
        of = column(self.of).cast("double")
        n = F.count(of)
        return [(f"{name}.n", n), (f"{name}.mean", F.avg(of)), (f"{name}.m2", F.var_pop(of) * n)]

    def merge(self, name: str) -> Named:
        return parts(name, folded(name))

    def finish(self, name: str) -> Column:
        return of_spread(state(name, "n"), state(name, "m2"), population=self.population, root=self.root)


def avg(of: str | Column, *, where: str | Column | None = None) -> Aggregation:
    """The mean of what isn't null; null if there is nothing. DOUBLE, or DECIMAL of decimals. `where` as of `count`."""
    return over(Avg(of), where)


def variance(of: str | Column, *, population: bool = False, where: str | Column | None = None) -> Aggregation:
    """The variance of what isn't null: of a sample (null for less than two), or of the whole population. DOUBLE.

    `where` as of `count`.
    """
    return over(Spread(of, population, root=False), where)


def stddev(of: str | Column, *, population: bool = False, where: str | Column | None = None) -> Aggregation:
    """The standard deviation of what isn't null: the root of `variance`. DOUBLE. `where` as of `count`."""
    return over(Spread(of, population, root=True), where)
