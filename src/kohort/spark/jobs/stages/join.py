"""The stage that joins a table: keys are looked up in its store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.arrow_encoding import read_objects
from kohort.spark.jobs.epoch import NO_KEY, EpochStatistics
from kohort.spark.jobs.stages.common import JOINING, KEY, PARTITION, Place, settled, task_number
from kohort.spark.jobs.stages.read_rows import Stage


@dataclass(frozen=True)
class Joining:
    """A table, and what of it is added.

    Attributes:
        store: its name.
        columns: the table's columns that are wanted, in wire types; they get `prefix` before their names.
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


def join_stage(place: Place, joining: Joining) -> Stage:
    """A stage over rows with `_key` (STRING, the table's key) that gives them, without it, with the table's columns.

    Rows without a partition have no match in a table of partitions; those that an inner join leaves out for that are
    counted.
    """

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return settled(_run(place, joining, batches))

    return stage


def _run(place: Place, joining: Joining, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    read = EpochStatistics()
    for batch in batches:
        if batch.num_rows:
            yield join(place, joining, batch, read)
    if read.dropped:
        task = place.line.request_input(place.lane, 0, 1)
        place.line.report(place.lane, task.run, place.branch, task_number(), f"{JOINING} {joining.number}", read)


def join(place: Place, joining: Joining, batch: pa.RecordBatch, read: EpochStatistics) -> pa.RecordBatch:
    """`batch` with the table's columns."""
    keys = batch.column(KEY)
    partitions = None
    if not joining.is_global:
        partitions = batch.column(PARTITION)
        if partitions.null_count:
            if joining.inner:
                read.drop(NO_KEY, partitions.null_count)
            keys = pc.if_else(partitions.is_valid(), keys, None)
            partitions = pc.fill_null(partitions, 0)
    values, places = _found(place, joining, keys.dictionary_encode(), partitions)
    rows = pa.array(places)
    there = values.is_valid().take(rows)
    columns = [column.take(rows) for column in _objects(values, joining).columns]
    names = [joining.prefix + name for name in joining.columns.names]
    kept = batch.select([name for name in batch.schema.names if name != KEY])
    joined = pa.RecordBatch.from_arrays([*kept.columns, *columns], names=[*kept.schema.names, *names])
    return joined.filter(there) if joining.inner else joined


def _found(
    place: Place, joining: Joining, keys: pa.DictionaryArray, partitions: pa.Array | None
) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The table's value for each key of each partition that occurs, and which one is each row's."""
    codes = pc.fill_null(keys.indices, len(keys.dictionary)).to_numpy(zero_copy_only=False).astype(np.int64)
    per_partition = len(keys.dictionary) + 1  # the last one stands for null, which no table has
    first = 0
    if partitions is not None and len(partitions):
        numbers = partitions.to_numpy(zero_copy_only=False).astype(np.int64)
        first = int(numbers.min())
        codes = (numbers - first) * per_partition + codes
    asked, places = np.unique(codes, return_inverse=True)
    wanted = keys.dictionary.take(pa.array(asked % per_partition, mask=asked % per_partition == per_partition - 1))
    where = None if partitions is None else pa.array(asked // per_partition + first, pa.int32())
    return _values(place, joining, where, wanted), places.reshape(-1)


def _values(place: Place, joining: Joining, partitions: pa.Array | None, keys: pa.Array) -> pa.Array:
    """The table's value for each key; null for a null key."""
    present = keys.is_valid()
    some = keys.filter(present)
    where = None if partitions is None else partitions.filter(present)
    found = place.line.lookup(joining.store, where, some) if len(some) else pa.array([], pa.binary())
    if not keys.null_count:
        return found
    slots = np.cumsum(present.to_numpy(zero_copy_only=False)) - 1
    return found.take(pa.array(slots, mask=~present.to_numpy(zero_copy_only=False)))


def _objects(values: pa.Array, joining: Joining) -> pa.RecordBatch:
    """The wanted columns of the values; nulls where there is none."""
    return read_objects(pc.fill_null(values, b"{}"), joining.columns, f"table {joining.store}")
