"""first, last and collect: values in the order of event time, then of offset."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DateType, IntegralType, TimestampNTZType, TimestampType

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregates.base import Aggregation, Named, column, if_true, label, state, type_of
from kohort.spark.program.aggregates.filtered import over
from kohort.spark.program.aggregates.signed import SignedValues
from kohort.spark.program.internal_columns import OFFSET

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["collect", "first", "last"]

_A = TypeVar("_A", "_End", "_Collect")

Unit = Literal["number", "micros"]
"""What `by` is compared as: a whole number, or the microseconds of a time, which go through JSON without loss."""


@dataclass(frozen=True)
class _End(Aggregation):
    """The value at the least or greatest time; of several at the same time that of the least or greatest offset, and
    of several at that (of other partitions, or rows of one record) the least or greatest value. So it doesn't depend on
    the order of the rows.
    """

    of: str | Column
    by: str | Column | None
    latest: bool
    ignore_nulls: bool
    unit: Unit | None = None

    @property
    def by_offset(self) -> bool:
        return True

    def bound(self, rows: DataFrame, event_time: str | None) -> _End:
        return _timed(self, "last" if self.latest else "first", rows, event_time)

    def filtered(self, condition: Column) -> _End:
        return replace(self, by=if_true(condition, _by(self)))

    def partial(self, name: str) -> Named:
        of, at = column(self.of), _moment(self)
        wanted = at.isNotNull() & of.isNotNull() if self.ignore_nulls else at.isNotNull()
        return self._best(name, wanted, at, F.col(OFFSET), of)

    def merge(self, name: str) -> Named:
        at = state(name, "at")
        return self._best(name, at.isNotNull(), at, state(name, "offset"), state(name, "value"))

    def finish(self, name: str) -> Column:
        return state(name, "value")

    def _best(self, name: str, wanted: Column, at: Column, offset: Column, value: Column) -> Named:
        entries = F.when(wanted, _entry(at, offset, value))
        best = F.max(entries) if self.latest else F.min(entries)
        return [(f"{name}.{part}", best[part]) for part in ("at", "offset", "value")]


@dataclass(frozen=True)
class _Collect(Aggregation):
    """An array of (time, offset, value), in order, of bounded length."""

    of: str | Column
    limit: int
    by: str | Column | None
    latest: bool
    unit: Unit | None = None

    @property
    def heap_bytes(self) -> int:
        return 256 + 72 * self.limit

    @property
    def by_offset(self) -> bool:
        return True

    def bound(self, rows: DataFrame, event_time: str | None) -> _Collect:
        return _timed(self, "collect", rows, event_time)

    def filtered(self, condition: Column) -> _Collect:
        return replace(self, by=if_true(condition, _by(self)))

    def signed(self, rows: DataFrame) -> _SignedCollect:
        return _SignedCollect(self.of, self.limit, self.by, self.latest, self.unit)

    def partial(self, name: str) -> Named:
        of, at = column(self.of), _moment(self)
        entry = F.when(at.isNotNull() & of.isNotNull(), _entry(at, F.col(OFFSET), of))
        return [(name, self._bounded(F.collect_list(entry)))]

    def merge(self, name: str) -> Named:
        return [(name, self._bounded(F.flatten(F.collect_list(state(name)))))]

    def finish(self, name: str) -> Column:
        values = F.transform(state(name), lambda entry: entry["value"])
        return F.reverse(values) if self.latest else values

    def _bounded(self, entries: Column) -> Column:
        return F.slice(F.sort_array(entries, asc=not self.latest), 1, self.limit)


@dataclass(frozen=True)
class _SignedCollect(_Collect):
    """Of a table's rows, which may leave: all (time, value) are kept, each with how often it is there."""

    @property
    def by_offset(self) -> bool:
        return False

    def partial(self, name: str) -> Named:
        return self._entries.partial(name)

    def merge(self, name: str) -> Named:
        return self._entries.merge(name)

    def finish(self, name: str) -> Column:
        def values(entry: Column) -> Column:
            return F.array_repeat(entry["value"]["value"], F.least(entry["n"], F.lit(self.limit)).cast("int"))

        # Each is there at least once, so the result needs no more entries than it may have values.
        return self._end(F.flatten(F.transform(self._end(state(name)), values)))

    @property
    def _entries(self) -> SignedValues:
        of, at = column(self.of), _moment(self)
        entry = F.struct(at.alias("at"), of.alias("value"))
        return SignedValues(F.when(at.isNotNull() & of.isNotNull(), entry), "max" if self.latest else "min")

    def _end(self, given: Column) -> Column:
        """The first of an array, or the last."""
        start = F.greatest(F.size(given) - (self.limit - 1), F.lit(1)) if self.latest else F.lit(1)
        return F.slice(given, start, F.lit(self.limit))


def first(
    of: str | Column,
    *,
    by: str | Column | None = None,
    ignore_nulls: bool = False,
    where: str | Column | None = None,
) -> Aggregation:
    """The value of the row with the least event time; of several, of the one that came first.

    "First" is within a partition. Of rows of several partitions at the same time it is that of the least offset.

    Args:
        of: what is wanted of the row.
        by: a column of times (or whole numbers) to go by; by default the stream's `event_time`. Rows without it don't
            count.
        ignore_nulls: take the first value that isn't null.
        where: as of `count`.
    """
    return over(_End(of, by, latest=False, ignore_nulls=ignore_nulls), where)


def last(
    of: str | Column,
    *,
    by: str | Column | None = None,
    ignore_nulls: bool = False,
    where: str | Column | None = None,
) -> Aggregation:
    """The value of the row with the greatest event time, the last one of several; otherwise as `first`."""
    return over(_End(of, by, latest=True, ignore_nulls=ignore_nulls), where)


def collect(
    of: str | Column,
    limit: int,
    *,
    by: str | Column | None = None,
    keep: Literal["first", "last"] = "first",
    where: str | Column | None = None,
) -> Aggregation:
    """The values that aren't null, in the order of event time, then as `first` and `last` go: an ARRAY.

    Of a table's rows, which may leave, all values of a group are kept, and those of the same time go by value.

    Args:
        of: what is wanted of each row.
        limit: the most that are kept.
        by: a column of times (or whole numbers) to go by; by default the stream's `event_time`.
        keep: which ones, if there are more: the first or the last.
        where: as of `count`.

    Raises:
        ProgramError: no limit, or no such `keep`.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ProgramError(f"collect({label(of)}, limit={limit!r}): the limit is a whole number, 1 or more")
    if keep not in ("first", "last"):
        raise ProgramError(f'collect({label(of)}, keep={keep!r}): keep the "first" or the "last"')
    return over(_Collect(of, limit, by, latest=keep == "last"), where)


def _timed(aggregation: _A, what: str, rows: DataFrame, event_time: str | None) -> _A:
    by = event_time if aggregation.by is None else aggregation.by
    if by is None:
        raise ProgramError(
            f"{what}({label(aggregation.of)}) goes by event time, and the stream has none here: "
            f'say event_time="…" where the stream is made, or {what}(…, by="…")'
        )
    found = type_of(rows, by)
    unit: Unit
    if isinstance(found, IntegralType):
        unit = "number"
    elif isinstance(found, (TimestampType, TimestampNTZType, DateType)):
        unit = "micros"
    else:
        raise ProgramError(
            f"{what}({label(aggregation.of)}, by={label(by)}): {label(by)} is {found.simpleString().upper()}; "
            f"it must be a TIMESTAMP, a DATE or a whole number"
        )
    return replace(aggregation, by=by, unit=unit)


def _entry(at: Column, offset: Column, value: Column) -> Column:
    return F.struct(at.alias("at"), offset.alias("offset"), value.alias("value"))


def _moment(aggregation: _End | _Collect) -> Column:
    by = column(_by(aggregation))
    return by.cast("bigint") if aggregation.unit == "number" else F.unix_micros(by.cast("timestamp"))


def _by(aggregation: _End | _Collect) -> str | Column:
    if aggregation.by is None or aggregation.unit is None:
        raise TypeError("an aggregate by event time must be bound to rows before it is computed")
    return aggregation.by
