"""Custom aggregations: those that users make of Spark expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import NumericType

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregates.base import Aggregation, Named, state, type_of
from kohort.spark.program.internal_columns import SIGN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

__all__ = ["aggregation"]


@dataclass(frozen=True)
class CustomAggregation(Aggregation):
    """One state column, which may be a struct."""

    update: Column | Callable[[], Column]
    merging: Callable[[Column], Column]
    finishing: Callable[[Column], Column] | None
    version: str = "1"
    subtracting: Callable[[Column, Column], Column] | None = None

    def bound(self, rows: DataFrame, event_time: str | None) -> CustomAggregation:
        kept = type_of(rows, self._update())
        probe = rows.groupBy().agg(self._update().alias("s"))
        merged = type_of(probe, self._column("merge", self.merging(state("s"))))
        if not _fits(merged, kept):
            raise ProgramError(
                f"aggregation(update=…, merge=…): update gives {kept.simpleString()}, but merge makes "
                f"{merged.simpleString()} of it; what merge gives is merged again, so it must be of the same type"
            )
        if self.subtracting is not None:
            left = type_of(probe, self._column("subtract", self.subtracting(state("s"), state("s"))))
            if not _fits(left, kept):
                raise ProgramError(
                    f"aggregation(update=…, subtract=…): update gives {kept.simpleString()}, but subtract makes "
                    f"{left.simpleString()} of two of it; what it gives is the state from then on, so it must be of "
                    f"the same type"
                )
        return self

    def signed(self, rows: DataFrame) -> SignedCustomAggregation:
        if self.subtracting is None:
            raise ProgramError(
                "what leaves a table's groups is subtracted: say how, aggregation(…, subtract=lambda state, left: …), "
                "of two states of which one has what left; or group the table's rows as a stream, .as_stream(), of "
                "which nothing leaves"
            )
        return SignedCustomAggregation(**{each.name: getattr(self, each.name) for each in fields(self)})

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


@dataclass(frozen=True)
class SignedCustomAggregation(CustomAggregation):
    """The states of what came and of what left. The second one is subtracted once the first has all that ever came:
    a partial alone may have rows that left, and not those that they were when they came.
    """

    @property
    def by_sign(self) -> bool:
        return True

    def partial(self, name: str) -> Named:
        leaves = F.max(SIGN) < 0
        made = self._update()
        return [(f"{name}.came", F.when(~leaves, made)), (f"{name}.left", F.when(leaves, made))]

    def merge(self, name: str) -> Named:
        # Of nulls alone a merge may make something, as a struct of nulls. That would pass for what left.
        return [
            (part, F.when(F.count(state(part)) > 0, self._column("merge", self.merging(state(part)))))
            for part in (f"{name}.came", f"{name}.left")
        ]

    def settled(self, name: str) -> Named:
        assert self.subtracting is not None
        came, left = state(name, "came"), state(name, "left")
        rest = self._column("subtract", self.subtracting(came, left))
        return [
            (f"{name}.came", F.when(came.isNull() | left.isNull(), came).otherwise(rest)),
            (f"{name}.left", F.lit(None)),
        ]

    def finish(self, name: str) -> Column:
        came = state(name, "came")
        return came if self.finishing is None else self._column("finish", self.finishing(came))


def _fits(given: DataType, kept: DataType) -> bool:
    """Whether what is given can be kept: types may differ in what may be null, which says nothing, and as numbers."""
    both_numbers = isinstance(given, NumericType) and isinstance(kept, NumericType)
    return given == kept or both_numbers or given.simpleString() == kept.simpleString()


def aggregation(
    *,
    update: Column | Callable[[], Column],
    merge: Callable[[Column], Column],
    finish: Callable[[Column], Column] | None = None,
    subtract: Callable[[Column, Column], Column] | None = None,
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
        subtract: for tables, whose rows leave: makes the state of two, of all that came and of what left of it. Each is
            of at least one row, and neither is null, but fields of a struct may be. It isn't called, and the state
            stays as it is, while nothing left.
        version: changes when `update`, `merge` or `subtract` begin to mean something else, so that state from before,
            which is of the same type, isn't gone on with: the application needs another id then. Expressions aren't
            compared.

    Raises:
        ProgramError: something that isn't of that kind.
    """
    for what, given in (("merge", merge), ("finish", finish), ("subtract", subtract)):
        if given is not None and not callable(given):
            of = "two Columns, as lambda state, left: state - left" if what == "subtract" else "a Column, as F.max"
            raise ProgramError(f"aggregation({what}=…) takes a function of {of}, not {given!r}")
    if not isinstance(version, str):
        raise ProgramError(f'aggregation(version={version!r}): a version is a text, as "2"')
    return CustomAggregation(update, merge, finish, version, subtract)
