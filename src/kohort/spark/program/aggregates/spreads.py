"""Count, mean and the sum of squared distances from the mean (m2), of which a variance is made.

Two are merged by Chan's formula, which never takes the difference of large, nearly equal numbers, as sums of squares
would. That isn't a sum, so partials of a key, of which there are few, are collected and folded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from kohort.spark.program.aggregates.base import Named, state

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["combined", "folded", "nothing", "of_spread", "parts"]


def nothing() -> Column:
    """The spread of no values."""
    return F.struct(F.lit(0.0).alias("n"), F.lit(0.0).alias("mean"), F.lit(0.0).alias("m2"))


def folded(name: str, part: str = "") -> Column:
    """The partials of a key as one struct of n, mean and m2. `part`: what their columns' names end with."""
    n, mean, m2 = (state(name, f"{what}{part}") for what in ("n", "mean", "m2"))
    some = F.when(n > 0, F.struct(n.cast("double").alias("n"), mean.alias("mean"), m2.alias("m2")))
    return F.aggregate(
        F.collect_list(some), nothing(), lambda one, other: combined(one, other, other["n"], other["m2"])
    )


def combined(one: Column, other: Column, count: Column, m2: Column) -> Column:
    """Chan's formula; a negative count of the other takes it out."""
    n = one["n"] + count
    between = other["mean"] - one["mean"]
    return F.struct(
        n.alias("n"),
        (one["mean"] + between * (count / n)).alias("mean"),
        (one["m2"] + m2 + between * between * (one["n"] * count / n)).alias("m2"),
    )


def parts(name: str, spread: Column, part: str = "") -> Named:
    """The state columns of a struct as `folded` makes it."""
    n = spread["n"]
    found = [(f"{name}.{what}{part}", F.when(n > 0, spread[what])) for what in ("mean", "m2")]
    return [(f"{name}.n{part}", n.cast("bigint")), *found]


def of_spread(n: Column, m2: Column, *, population: bool, root: bool) -> Column:
    """The variance, or its root, the standard deviation."""
    variance = F.when(n > 0, m2 / n) if population else F.when(n > 1, m2 / (n - 1))
    return F.sqrt(variance) if root else variance
