"""Aggregates over a table's rows, which come in and leave: of each row `_sign` says which, 1 or -1.

What leaves is subtracted, so partial results merge as those of streams do. A row leaves after it came, so what is
merged with the store's state never has less than nothing; a partial alone may.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pyspark.sql import functions as F  # noqa: N812

from kohort.spark.program.aggregates.base import Aggregation, Named, column, state
from kohort.spark.program.aggregates.spreads import combined, folded, nothing, of_spread, parts
from kohort.spark.program.internal_columns import SIGN

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

__all__ = ["LIVE"]

LIVE: Final = "_rows"
"""The aggregate beside the user's that has how many rows are in a group: without any the group is deleted."""


@dataclass(frozen=True)
class SignedCount(Aggregation):
    """How many values there are that aren't null; of rows, without a column."""

    of: str | Column | None = None

    def partial(self, name: str) -> Named:
        return [(name, _signed_count(self.of))]

    def merge(self, name: str) -> Named:
        return [(name, F.coalesce(F.sum(state(name)), F.lit(0)))]

    def finish(self, name: str) -> Column:
        return state(name)


@dataclass(frozen=True)
class SignedSum(Aggregation):
    """The sum, and of how many values: it is null for none.

    Attributes:
        as_type: what values are cast to before they are added; None where they stay as they are.
        mean: whether the result is the mean, not the sum.
        result: the mean's type, if it isn't DOUBLE.
    """

    of: str | Column
    as_type: str | None
    mean: bool = False
    result: DataType | None = None

    def partial(self, name: str) -> Named:
        of = column(self.of) if self.as_type is None else column(self.of).cast(self.as_type)
        total = F.sum(F.when(F.col(SIGN) < 0, -of).otherwise(of))
        return [(f"{name}.sum", total), (f"{name}.count", _signed_count(self.of))]

    def merge(self, name: str) -> Named:
        return [
            (f"{name}.sum", F.sum(state(name, "sum"))),
            (f"{name}.count", F.coalesce(F.sum(state(name, "count")), F.lit(0))),
        ]

    def finish(self, name: str) -> Column:
        total, n = state(name, "sum"), state(name, "count")
        found = F.when(n > 0, total / n if self.mean else total)
        return found if self.result is None else found.cast(self.result)


@dataclass(frozen=True)
class SignedSpread(Aggregation):
    """Count, mean and the sum of squared distances from the mean (m2) of what came, and of what left.

    What left is taken out of what came by Chan's formula the other way round, as soon as fewer left than came. Until
    then, which is so in partials alone, both are kept.
    """

    of: str | Column
    population: bool
    root: bool

    def partial(self, name: str) -> Named:
        found = []
        for part, is_in in (("", F.col(SIGN) > 0), ("_left", F.col(SIGN) < 0)):
            of = F.when(is_in, column(self.of).cast("double"))
            n = F.count(of)
            found += [(f"n{part}", n), (f"mean{part}", F.avg(of)), (f"m2{part}", F.var_pop(of) * n)]
        return [(f"{name}.{part}", each) for part, each in found]

    def merge(self, name: str) -> Named:
        came, left = (folded(name, part) for part in ("", "_left"))
        some = (left["n"] > 0) & (came["n"] > left["n"])
        rest = F.when(some, _apart(came, left)).otherwise(came)
        return parts(name, rest) + parts(name, F.when(some, nothing()).otherwise(left), "_left")

    def finish(self, name: str) -> Column:
        n, m2 = state(name, "n") - state(name, "n_left"), F.greatest(state(name, "m2"), F.lit(0.0))
        return of_spread(n, m2, population=self.population, root=self.root)


@dataclass(frozen=True)
class SignedValues(Aggregation):
    """All values that aren't null, sorted, each with how often it is there.

    Attributes:
        result: the least, the greatest, or how many different ones there are.
        kept: as what values are kept, where `of` makes something else of them.
    """

    of: str | Column
    result: Literal["min", "max", "distinct"]
    kept: str | None = None

    def partial(self, name: str) -> Named:
        of = column(self.of)
        entry = F.struct(of.alias("value"), F.col(SIGN).cast("bigint").alias("n"))
        return [(name, _counted(F.collect_list(F.when(of.isNotNull(), entry))))]

    def merge(self, name: str) -> Named:
        return [(name, _counted(F.flatten(F.collect_list(state(name)))))]

    def finish(self, name: str) -> Column:
        if self.result == "distinct":
            return F.size(state(name)).cast("bigint")
        return F.try_element_at(state(name), F.lit(1 if self.result == "min" else -1))["value"]


def _signed_count(of: str | Column | None) -> Column:
    sign = F.col(SIGN).cast("bigint")
    counted = sign if of is None else F.when(column(of).isNotNull(), sign)
    return F.coalesce(F.sum(counted), F.lit(0))


def _apart(came: Column, left: Column) -> Column:
    """What is left of what came, without what left."""
    return combined(came, left, -left["n"], -left["m2"])


def _counted(entries: Column) -> Column:
    """Entries (value, n) sorted, with one for each value, which has the sum; those of 0 are left out.

    In time that is linear once they are sorted: where a value begins is found first.
    """
    return _with(F.sort_array(entries), lambda all_: _with(_starts(all_), lambda starts: _sums(all_, starts)))


def _starts(entries: Column) -> Column:
    """The places, from 1, at which another value begins."""

    def start(entry: Column, at: Column) -> Column:
        first = (at == 0) | ~entry["value"].eqNullSafe(F.get(entries, at - 1)["value"])
        return F.when(first, at + 1)

    return F.filter(F.transform(entries, start), lambda at: at.isNotNull())


def _sums(entries: Column, starts: Column) -> Column:
    def entry(start: Column, number: Column) -> Column:
        end = F.coalesce(F.get(starts, number + 1), F.size(entries) + 1)
        total = F.aggregate(F.slice(entries, start, end - start), F.lit(0).cast("bigint"), lambda n, one: n + one["n"])
        return F.struct(F.get(entries, start - 1)["value"].alias("value"), total.alias("n"))

    return F.filter(F.transform(starts, entry), lambda one: one["n"] != 0)


def _with(given: Column, function: Callable[[Column], Column]) -> Column:
    """A function of a column, which is computed once."""
    return F.get(F.transform(F.array(given), function), F.lit(0))
