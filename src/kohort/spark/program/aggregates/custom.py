"""Custom aggregations: those that users make of Spark expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import NumericType

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregates.base import Aggregation, Named, state, type_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["aggregation"]


@dataclass(frozen=True)
class CustomAggregation(Aggregation):
    """One state column, which may be a struct."""

    update: Column | Callable[[], Column]
    merging: Callable[[Column], Column]
    finishing: Callable[[Column], Column] | None
    version: str = "1"

    def bound(self, rows: DataFrame, event_time: str | None) -> CustomAggregation:
        kept = type_of(rows, self._update())
        probe = rows.groupBy().agg(self._update().alias("s"))
        merged = type_of(probe, self._column("merge", self.merging(state("s"))))
        if merged != kept and not (isinstance(merged, NumericType) and isinstance(kept, NumericType)):
            if merged.simpleString() == kept.simpleString():
                return self  # they differ in what may be null, which says nothing
            raise ProgramError(
                f"aggregation(update=…, merge=…): update gives {kept.simpleString()}, but merge makes "
                f"{merged.simpleString()} of it; what merge gives is merged again, so it must be of the same type"
            )
        return self

    def partial(self, name: str) -> Named:
        return [(name, self._update())]

    def merge(self, name: str) -> Named:
        return [(name, self._column("merge", self.merging(state(name))))]

    def finish(self, name: str) -> Column:
        return state(name) if self.finishing is None else self._column("finish", self.finishing(state(name)))

    def _update(self) -> Column:
        return self._column("update", self.update() if callable(self.update) else self.update)

    @staticmethod
    def _column(what: str, given: object) -> Column:
        from pyspark.sql import Column

        if not isinstance(given, Column):
            raise ProgramError(f"aggregation({what}=…) gives {given!r}, which is no Spark Column")
        return given


def aggregation(
    *,
    update: Column | Callable[[], Column],
    merge: Callable[[Column], Column],
    finish: Callable[[Column], Column] | None = None,
    version: str = "1",
) -> Aggregation:
    """An aggregate of your own, of Spark expressions.

        longest = aggregation(
            update=lambda: F.max(F.struct("distance", "flight")),
            merge=F.max,
            finish=lambda best: best["flight"],
            version="1",
        )

    Partial results of any split of the rows, merged in any order, must be what `update` gives over all of them: sums
    and extremes are such, means aren't (keep their sum and count in a struct). `merge` must take nulls for nothing.

    Args:
        update: an aggregate over the stream's columns, which gives the state. As a function it is called when there is
            a Spark session, which Columns need.
        merge: makes an aggregate expression of the column that has states in it.
        finish: makes the result of the merged state; by default that is the result.
        version: changes when `update` or `merge` begin to mean something else, so that state from before, which is of
            the same type, isn't gone on with: the application needs another id then. Expressions aren't compared.

    Raises:
        ProgramError: something that isn't of that kind.
    """
    for what, given in (("merge", merge), ("finish", finish)):
        if given is not None and not callable(given):
            raise ProgramError(f"aggregation({what}=…) takes a function of a Column, as F.max, not {given!r}")
    if not isinstance(version, str):
        raise ProgramError(f'aggregation(version={version!r}): a version is a text, as "2"')
    return CustomAggregation(update, merge, finish, version)
