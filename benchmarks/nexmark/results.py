"""Results of a query: gathered from their topic, and compared with what a batch gives."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from benchmarks.pipeline.watcher import DELETED

_ROW = "__row"
_SHOWN = 5
"""Differences that are told."""


class Gathered:
    """The results of a query so far.

    Attributes:
        expected: what a batch gives.
        keys: columns of which a result is replaced by a later one with the same values; none: all rows count.
        clock: that of them over which the other columns' sums are compared; None: rows are.
        until: a column and a time (ms since 1970), from which on results by it aren't asked for.
    """

    def __init__(
        self,
        expected: pa.Table,
        keys: Sequence[str],
        clock: str | None = None,
        until: tuple[str, int] | None = None,
    ) -> None:
        self.expected = expected.cast(
            pa.schema([pa.field(each.name, _nullable(each.type)) for each in expected.schema])
        )
        self.keys, self.clock, self.until = list(keys), clock, until
        self._parts: list[pa.Table] = []

    @property
    def rows(self) -> int:
        """How many there are, those that were replaced included."""
        return sum(part.num_rows for part in self._parts)

    def take(self, values: Sequence[bytes]) -> None:
        """Take results, JSON, in the order in which they were read; those that are `DELETED` are no more.

        Raises:
            pyarrow.ArrowInvalid: a column isn't of the type that the batch's is.
        """
        read = pa.json.read_json(
            io.BytesIO(b"\n".join(values)),
            pa.json.ReadOptions(use_threads=False, block_size=64 * 1024 * 1024),
            pa.json.ParseOptions(
                explicit_schema=self.expected.schema.append(pa.field(DELETED, pa.bool_())),
                unexpected_field_behavior="ignore",
            ),
        )
        if self.until is not None:
            column, ms = self.until
            read = read.filter(pc.less(read[column], pa.scalar(ms, pa.timestamp("ms", "UTC")).cast(read[column].type)))
        self._parts.append(read)

    def differences(self) -> list[str]:
        """Where these aren't what the batch gives."""
        if not self._parts:
            return [f"there are no results, not {self.expected.num_rows:,}"] if self.expected.num_rows else []
        given, expected = self._latest(), self._sorted(self.expected)
        if given.num_rows != expected.num_rows:
            return [f"{given.num_rows:,} results, not {expected.num_rows:,}"]
        differs = np.zeros(expected.num_rows, bool)
        for name in expected.column_names:
            differs |= ~_equal(given[name].combine_chunks(), expected[name].combine_chunks())
        places = np.flatnonzero(differs)
        shown = [f"{_text(given, place)}, not {_text(expected, place)}" for place in places[:_SHOWN]]
        return shown + [f"and {len(places) - _SHOWN:,} more"] * (len(places) > _SHOWN)

    def _latest(self) -> pa.Table:
        self._parts = [pa.concat_tables(self._parts)]
        if not self.keys:
            return self._sorted(self._parts[0].drop_columns([DELETED]))
        (all_rows,) = self._parts
        numbered = all_rows.append_column(_ROW, pa.array(np.arange(all_rows.num_rows)))
        last = numbered.select([*self.keys, _ROW]).group_by(self.keys).aggregate([(_ROW, "max")])
        self._parts = [all_rows.take(last[f"{_ROW}_max"])]
        there = self._parts[0].filter(self._parts[0][DELETED].is_null())
        return self._sorted(there.drop_columns([DELETED]))

    def _sorted(self, table: pa.Table) -> pa.Table:
        keys = [name for name in self.keys if name != self.clock]
        if self.clock is not None:
            table = _summed(table, keys, self.clock)
        return table.sort_by([(name, "ascending") for name in keys or table.column_names])


def _summed(table: pa.Table, keys: list[str], over: str) -> pa.Table:
    """The sums of the other columns over one of them, by the keys."""
    added = [name for name in table.column_names if name not in (*keys, over)]
    sums = table.group_by(keys).aggregate([(name, "sum") for name in added])
    return sums.rename_columns([*keys, *added])


def _nullable(given: pa.DataType) -> pa.DataType:
    """The type without saying that something in it is never null, which JSON doesn't know."""
    if pa.types.is_struct(given):
        return pa.struct([pa.field(each.name, _nullable(each.type)) for each in given])
    return pa.list_(_nullable(given.value_type)) if pa.types.is_list(given) else given


def _equal(given: pa.Array, expected: pa.Array) -> npt.NDArray[np.bool_]:
    """Where columns are equal; floating-point numbers to twelve digits."""
    if pa.types.is_floating(expected.type):
        left, right = (column.to_numpy(zero_copy_only=False) for column in (given, expected))
        return np.isclose(left, right, rtol=1e-12, atol=0, equal_nan=True)
    if given.equals(expected):
        return np.ones(len(expected), bool)
    return np.array([one == other for one, other in zip(given.to_pylist(), expected.to_pylist(), strict=True)], bool)


def _text(table: pa.Table, place: int) -> str:
    return str(table.slice(place, 1).to_pylist()[0])
