"""Groups rows in Arrow, and folds what each group has into state columns: what Spark's grouping would make of them.

Spark keeps a sketch of each group as an object of its heap, and writes it out for each shuffle. Here all of them are
made and merged by a compiled loop.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.errors import AggregationError
from kohort.spark.jobs.kll_sketches import merged as merged_sketches
from kohort.spark.jobs.kll_sketches import sketches
from kohort.spark.jobs.stages.context import Stage, stage_of
from kohort.spark.jobs.stages.state_lookup import state_column
from kohort.spark.program.aggregates.columnwise import Fold, Sketch
from kohort.spark.program.internal_columns import RECORDS, TIMESTAMP

_LARGEST: Final = 2**63 - 1
_ROWS_AT_ONCE: Final = 500_000
_PARTIALS_AT_ONCE: Final = 16_384
"""Spark holds a batch, and with it sketches of so many groups, off its heap until the last row of it is read."""
_FOLDS: Final = {Fold.SUM: "sum", Fold.MIN: "min", Fold.MAX: "max"}


@dataclass(frozen=True)
class StateColumn:
    """A state column, as rows are folded into it.

    Attributes:
        of: the number of what a row has for it; None: the row itself.
        kind: its own type.
    """

    fold: Fold | Sketch
    of: int | None
    kind: pa.DataType


@dataclass(frozen=True)
class RowGroups:
    """How rows are grouped.

    *Rows* have `keys` columns that make a group, `_time`, and what the state columns are of. *Partials* have the same
    keys, `_time`, the largest; `_records`, how many rows; and the state columns.

    Attributes:
        what: the aggregate, for errors.
        checked: whether whole numbers that overflow are an error, as in Spark's ANSI mode.
    """

    what: str
    keys: int
    columns: tuple[StateColumn, ...]
    checked: bool

    def of_rows(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        """The partials of rows, one a group; None without rows. It takes time by the number of rows, and memory by that
        of groups.

        Raises:
            AggregationError: a sum is too large for its type.
        """
        partials = [self._of_rows(rows) for rows in _tables(batches)]
        return partials[0] if len(partials) == 1 else self.of_partials(iter(partials))

    def of_partials(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        """One partial a group, of any number of them; None without any.

        Raises:
            AggregationError: a sum is too large for its type.
        """
        given = [batch for batch in batches if batch.num_rows]
        return self._of_partials(pa.Table.from_batches(given)) if given else None

    def _of_rows(self, rows: pa.Table) -> pa.RecordBatch:
        columns = _columns(rows)
        groups = _Groups(columns[: self.keys])
        times, inputs = columns[self.keys], columns[self.keys + 1 :]
        state = [self._folded(each, groups, None if each.of is None else inputs[each.of]) for each in self.columns]
        return self._partials(rows.column_names, groups, times, groups.sizes, state)

    def _of_partials(self, partials: pa.Table) -> pa.RecordBatch:
        columns = _columns(partials)
        groups = _Groups(columns[: self.keys])
        times, records, *state = columns[self.keys :]
        if groups.count < partials.num_rows:
            state = [self._merged(each, groups, column) for each, column in zip(self.columns, state, strict=True)]
            records = groups.folded(records, "sum")
        return self._partials(partials.column_names, groups, times, records, state)

    def _partials(
        self, given: Sequence[str], groups: _Groups, times: pa.Array, records: pa.Array, state: Sequence[pa.Array]
    ) -> pa.RecordBatch:
        """`given`: the names of the columns that were given."""
        names = [*given[: self.keys], TIMESTAMP, RECORDS]
        names += [state_column(number) for number in range(len(self.columns))]
        return pa.RecordBatch.from_arrays([*groups.keys, groups.folded(times, "max"), records, *state], names=names)

    def _folded(self, column: StateColumn, groups: _Groups, of: pa.Array | None) -> pa.Array:
        if of is None:
            return groups.sizes
        match column.fold:
            case Sketch(k, whole):
                values = of.cast(pa.int64() if whole else pa.float64(), safe=False)
                return sketches(values, groups.numbers, groups.count, k, random_seed())
            case Fold.COUNT:
                return groups.folded(of, "count")
            case Fold.SUM:
                return self._sum(groups, of.cast(column.kind, safe=False))
            case _:
                return _extreme(groups, of, column.fold)

    def _merged(self, column: StateColumn, groups: _Groups, state: pa.Array) -> pa.Array:
        match column.fold:
            case Sketch(k, whole):
                return merged_sketches(state, groups.numbers, groups.count, k, whole, random_seed())
            case Fold.COUNT | Fold.SUM:
                return self._sum(groups, state)
            case _:
                return _extreme(groups, state, column.fold)

    def _sum(self, groups: _Groups, values: pa.Array) -> pa.Array:
        if self.checked and pa.types.is_integer(values.type) and groups.overflow(values):
            raise AggregationError(f"aggregate {self.what!r}: a sum is too large for its type")
        return groups.folded(values, "sum")


class _Groups:
    """The groups of rows, numbered by their first rows.

    Attributes:
        numbers: of each row's group.
        count: of groups.
        keys: what makes each group, column by column.
        sizes: how many rows each has.
    """

    def __init__(self, keys: Sequence[pa.Array]) -> None:
        numbers, count = np.zeros(len(keys[0]), np.int64), 1
        for key in keys:
            encoded = key.dictionary_encode(null_encoding="encode")
            both = numbers * len(encoded.dictionary) + encoded.indices.to_numpy()
            found = pa.array(both).dictionary_encode()
            numbers, count = found.indices.to_numpy().astype(np.int64), len(found.dictionary)
        first = np.zeros(count, np.int64)
        first[numbers[::-1]] = np.arange(len(numbers))[::-1]  # what is written last counts
        self.numbers: npt.NDArray[np.int64] = numbers
        self.count = count if len(numbers) else 0
        self.keys = [key.take(pa.array(first[: self.count])) for key in keys]
        self.sizes = pa.array(np.bincount(numbers, minlength=self.count))

    def folded(self, values: pa.Array, function: str) -> pa.Array:
        """The values of each group, folded by a function of Arrow's."""
        table = pa.table({"group": self.numbers, "values": values})
        made = table.group_by("group", use_threads=False).aggregate([("values", function)])
        # Arrow, too, numbers groups by their first rows.
        return made.column(f"values_{function}").combine_chunks()

    def overflow(self, values: pa.Array) -> bool:
        """Whether a sum is larger than 64 bits hold."""
        ends = pc.min_max(values).as_py()
        if ends["min"] is None or max(-ends["min"], ends["max"]) * len(values) <= _LARGEST:
            return False
        sums: dict[int, int] = {}
        for group, value in zip(self.numbers.tolist(), values.to_pylist(), strict=True):
            sums[group] = sums.get(group, 0) + (value or 0)
        return any(not -_LARGEST <= each + 1 <= _LARGEST + 1 for each in sums.values())


def group_rows_stage(groups: RowGroups) -> Stage:
    """A stage over a split's rows that gives their partials."""
    return stage_of(partial(_run, groups))


def _run(groups: RowGroups, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if (partials := groups.of_rows(batches)) is not None:
        for start in range(0, partials.num_rows, _PARTIALS_AT_ONCE):
            yield partials.slice(start, _PARTIALS_AT_ONCE)


def _tables(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows, so many at once that memory holds them: a row may be in many windows."""
    given: list[pa.RecordBatch] = []
    for batch in batches:
        given.append(batch)
        if sum(each.num_rows for each in given) >= _ROWS_AT_ONCE:
            yield pa.Table.from_batches(given)
            given = []
    if any(each.num_rows for each in given):
        yield pa.Table.from_batches(given)


def _columns(table: pa.Table) -> list[Any]:
    return [_one(column) for column in table.columns]


def _one(column: pa.ChunkedArray) -> pa.Array:
    made = column.combine_chunks()
    return pa.concat_arrays(made.chunks) if isinstance(made, pa.ChunkedArray) else made


def _extreme(groups: _Groups, values: pa.Array, fold: Fold) -> pa.Array:
    if not pa.types.is_floating(values.type) or not pc.any(nan := pc.fill_null(pc.is_nan(values), False)).as_py():
        return groups.folded(values, _FOLDS[fold])
    # In Spark NaN is the largest; Arrow passes over it.
    numbers = groups.folded(pc.if_else(nan, None, values), _FOLDS[fold])
    has_nan = pc.greater(groups.folded(nan.cast(pa.int64()), "sum"), 0)
    takes_nan = has_nan if fold is Fold.MAX else pc.and_(has_nan, numbers.is_null())
    return pc.if_else(takes_nan, pa.scalar(float("nan"), values.type), numbers)


def random_seed() -> int:
    """For the choices of sketches that are full, which are to be independent of each other."""
    return random.getrandbits(63)
