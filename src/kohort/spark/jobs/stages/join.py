"""The stage that joins a table: keys are looked up in its store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.epoch import EpochStatistics
from kohort.spark.jobs.arrow_encoding import read_objects
from kohort.spark.jobs.drop_reasons import NO_KEY
from kohort.spark.jobs.stages.context import JOINING, Stage, StageContext, stage_of, task_number
from kohort.spark.program.internal_columns import KEY, PARTITION


@dataclass(frozen=True)
class TableJoin:
    """A table, and which of its columns are added.

    Attributes:
        columns: the table's columns that are wanted, in encoded types; they get `prefix` before their names.
        inner: whether rows without a match go.
        is_global: whether the store has all partitions.
        number: which of its branch's joins it is.
    """

    store: str
    columns: pa.Schema
    prefix: str
    inner: bool
    is_global: bool
    number: int = 0


def join_stage(context: StageContext, table_join: TableJoin) -> Stage:
    """A stage over rows with `_key` (STRING, the table's key) that gives them, without it, with the table's columns.

    Rows without a partition have no match in a table of partitions; those that an inner join leaves out for that are
    counted.
    """
    return stage_of(partial(_run, context, table_join))


def _run(context: StageContext, table_join: TableJoin, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    statistics = EpochStatistics()
    for batch in batches:
        if batch.num_rows:
            yield join(context, table_join, batch, statistics)
    if statistics.dropped:
        context.report(context.run, task_number(), f"{JOINING} {table_join.number}", statistics)


def join(
    context: StageContext, table_join: TableJoin, batch: pa.RecordBatch, statistics: EpochStatistics
) -> pa.RecordBatch:
    keys = batch.column(KEY)
    partitions = None
    if not table_join.is_global:
        partitions = batch.column(PARTITION)
        if partitions.null_count:
            if table_join.inner:
                statistics.drop(NO_KEY, partitions.null_count)
            keys = pc.if_else(partitions.is_valid(), keys, None)
            partitions = pc.fill_null(partitions, 0)
    values, numbers = _look_up(context, table_join, keys.dictionary_encode(), partitions)
    rows = pa.array(numbers)
    matched = values.is_valid().take(rows)
    columns = [column.take(rows) for column in _objects(values, table_join).columns]
    names = [table_join.prefix + name for name in table_join.columns.names]
    kept = batch.select([name for name in batch.schema.names if name != KEY])
    joined = pa.RecordBatch.from_arrays([*kept.columns, *columns], names=[*kept.schema.names, *names])
    return joined.filter(matched) if table_join.inner else joined


def _look_up(
    context: StageContext, table_join: TableJoin, keys: pa.DictionaryArray, partitions: pa.Array | None
) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The table's value for each key of each partition that occurs, and which one is each row's."""
    codes = pc.fill_null(keys.indices, len(keys.dictionary)).to_numpy(zero_copy_only=False).astype(np.int64)
    per_partition = len(keys.dictionary) + 1  # the last one stands for null, which no table has
    first = 0
    if partitions is not None and len(partitions):
        numbers = partitions.to_numpy(zero_copy_only=False).astype(np.int64)
        first = int(numbers.min())
        codes = (numbers - first) * per_partition + codes
    distinct, rows = np.unique(codes, return_inverse=True)
    wanted = keys.dictionary.take(
        pa.array(distinct % per_partition, mask=distinct % per_partition == per_partition - 1)
    )
    where = None if partitions is None else pa.array(distinct // per_partition + first, pa.int32())
    return _values(context, table_join, where, wanted), rows.reshape(-1)


def _values(context: StageContext, table_join: TableJoin, partitions: pa.Array | None, keys: pa.Array) -> pa.Array:
    """The table's value for each key; null for a null key."""
    present = keys.is_valid()
    some = keys.filter(present)
    where = None if partitions is None else partitions.filter(present)
    found = context.rpc.lookup(table_join.store, where, some) if len(some) else pa.array([], pa.binary())
    if not keys.null_count:
        return found
    slots = np.cumsum(present.to_numpy(zero_copy_only=False)) - 1
    return found.take(pa.array(slots, mask=~present.to_numpy(zero_copy_only=False)))


def _objects(values: pa.Array, table_join: TableJoin) -> pa.RecordBatch:
    """The wanted columns of the values; nulls where there is none."""
    return read_objects(pc.fill_null(values, b"{}"), table_join.columns, f"table {table_join.store}")
