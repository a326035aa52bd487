"""count_distinct: exact numbers of different values, which are all kept as long as there aren't too many."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    StructType,
    TimestampType,
)

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregates.base import Aggregation, Named, column, if_true, label, state, type_of
from kohort.spark.program.aggregates.filtered import over
from kohort.spark.program.aggregates.signed import SignedValues

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["count_distinct"]

Kept = Literal["number", "micros", "base64", "float", "text"]
"""As what values are kept: whole numbers and times as numbers, all others as texts, one for each value."""


@dataclass(frozen=True)
class DistinctValues(Aggregation):
    """The values, sorted, or none if there were more than `limit`.

    A set only grows, so whether it has outgrown the limit doesn't depend on how rows are split.
    """

    of: str | Column
    limit: int
    kept: Kept | None = None

    def bound(self, rows: DataFrame, event_time: str | None) -> DistinctValues:
        found = type_of(rows, self.of)
        if isinstance(found, (ArrayType, MapType, StructType)):
            raise ProgramError(
                f"count_distinct({label(self.of)}): {label(self.of)} is {found.simpleString().upper()}; "
                f"it takes columns of single values"
            )
        if isinstance(found, IntegralType):
            return replace(self, kept="number")
        # A timestamp's text depends on the session's time zone.
        if isinstance(found, TimestampType):
            return replace(self, kept="micros")
        if isinstance(found, BinaryType):
            return replace(self, kept="base64")
        return replace(self, kept="float" if isinstance(found, (DoubleType, FloatType)) else "text")

    def filtered(self, condition: Column) -> DistinctValues:
        return replace(self, of=if_true(condition, self.of))

    def signed(self, rows: DataFrame) -> SignedValues:
        return SignedValues(self._value(), "distinct", self.kept)

    @property
    def heap_bytes(self) -> int:
        return 256 + 72 * self.limit

    def partial(self, name: str) -> Named:
        return self._within_limit(name, F.collect_set(self._value()), F.lit(False))

    def merge(self, name: str) -> Named:
        values = F.array_distinct(F.flatten(F.collect_list(state(name, "values"))))
        return self._within_limit(name, values, F.coalesce(F.bool_or(state(name, "more")), F.lit(False)))

    def finish(self, name: str) -> Column:
        return F.when(~state(name, "more"), F.size(state(name, "values")).cast("bigint"))

    def _value(self) -> Column:
        of = column(self.of)
        match self.kept:
            case "number":
                return of.cast("bigint")
            case "micros":
                return F.unix_micros(of)
            case "base64":
                return F.base64(of)
            case "float":
                return (of + F.lit(0.0)).cast("string")  # -0.0 and 0.0 are one value
            case "text":
                return of.cast("string")
            case None:
                raise TypeError("count_distinct must be bound to rows before it is computed")

    def _within_limit(self, name: str, values: Column, more: Column) -> Named:
        more = more | (F.size(values) > self.limit)
        kept = F.slice(F.sort_array(values), 1, F.when(more, 0).otherwise(F.lit(self.limit)))
        return [(f"{name}.values", kept), (f"{name}.more", more)]


def count_distinct(of: str | Column, limit: int = 1_000, *, where: str | Column | None = None) -> Aggregation:
    """How many different values there are that aren't null, exactly. BIGINT; null once there are more than `limit`.

    All values of a group are kept in its state, and written to store and changelog each time that the group changes:
    as many bytes as their texts have, and some 5 for each. So it is for values of which a group has few. Beyond the
    limit they are forgotten, and the result stays null; `approx_distinct` beside it says about how many there are.
    Of a table's rows, which may leave, all are kept with their numbers, and the limit doesn't hold.

    Args:
        of: a column of single values.
        limit: the most that are kept.
        where: as of `count`.

    Raises:
        ProgramError: no limit.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ProgramError(f"count_distinct({label(of)}, limit={limit!r}): the limit is a whole number, 1 or more")
    return over(DistinctValues(of, limit), where)
