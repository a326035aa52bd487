"""collect_max: the values of all rows that have the most of another column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import MapType

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregates.base import Aggregation, Named, column, if_true, label, state, type_of
from kohort.spark.program.aggregates.filtered import over

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["collect_max"]


@dataclass(frozen=True)
class _CollectMax(Aggregation):
    """The greatest of `by`, and the values that go with it, sorted, or none if there were more than `limit`.

    The values of a greatest only grow, and those of a greater one begin anew: so the result doesn't depend on how rows
    are split.
    """

    of: str | Column
    by: str | Column
    limit: int

    def bound(self, rows: DataFrame, event_time: str | None) -> _CollectMax:
        for given in (self.of, self.by):
            found = type_of(rows, given)
            if isinstance(found, MapType):
                raise ProgramError(
                    f"collect_max({label(self.of)}, by={label(self.by)}): {label(given)} is "
                    f"{found.simpleString().upper()}, which has no order"
                )
        return self

    def filtered(self, condition: Column) -> _CollectMax:
        return replace(self, by=if_true(condition, self.by))

    @property
    def heap_bytes(self) -> int:
        return 256 + 72 * self.limit

    def partial(self, name: str) -> Named:
        of, by = column(self.of), column(self.by)
        counts = of.isNotNull() & by.isNotNull()
        most = F.max(F.when(counts, by))
        values = _of_most(most, F.collect_set(F.when(counts, _entry(by, of))))
        return self._within_limit(name, most, values, F.lit(False))

    def merge(self, name: str) -> Named:
        by, more = state(name, "by"), state(name, "more")
        most = F.max(by)
        values = F.array_distinct(F.flatten(_of_most(most, F.collect_list(_entry(by, state(name, "values"))))))
        of_most = F.max(F.when(by.isNotNull(), F.struct(by.alias("by"), more.alias("more"))))["more"]
        return self._within_limit(name, most, values, F.coalesce(of_most, F.lit(False)))

    def finish(self, name: str) -> Column:
        return F.when(~state(name, "more") & state(name, "by").isNotNull(), state(name, "values"))

    def _within_limit(self, name: str, most: Column, values: Column, more: Column) -> Named:
        more = more | (F.size(values) > self.limit)
        kept = F.slice(F.sort_array(values), 1, F.when(more, 0).otherwise(F.lit(self.limit)))
        return [(f"{name}.by", most), (f"{name}.values", kept), (f"{name}.more", more)]


def collect_max(
    of: str | Column, by: str | Column, limit: int = 100, *, where: str | Column | None = None
) -> Aggregation:
    """The different values of all rows that have the most of another column, sorted: an ARRAY.

        counts.as_stream().group_by("window").aggregate("hot", auctions=collect_max("auction", by="n"))

    It is null while there is no row that has both, and while more values than the limit have the same most.

    Args:
        of: what is wanted of the rows.
        by: what they have the most of.
        limit: the most values that are kept.
        where: as of `count`.

    Raises:
        ProgramError: no limit.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ProgramError(f"collect_max({label(of)}, limit={limit!r}): the limit is a whole number, 1 or more")
    return over(_CollectMax(of, by, limit), where)


def _entry(by: Column, value: Column) -> Column:
    return F.struct(by.alias("by"), value.alias("value"))


def _of_most(most: Column, entries: Column) -> Column:
    """The values of those entries that have the most."""
    # Spark takes no column that is aggregated for one within a lambda, so both go in as one.
    together = F.array(F.struct(most.alias("most"), entries.alias("entries")))
    found = F.transform(together, lambda both: F.filter(both["entries"], lambda entry: entry["by"] == both["most"]))
    return found[0]["value"]
