"""The stage that joins a table: keys are looked up in its store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.stages.common import KEY, PARTITION, Place, settled
from kohort.spark.jobs.stages.rows import Stage
from kohort.spark.jobs.wire_text import read_objects


@dataclass(frozen=True)
class Joining:
    """A table, and what of it is added.

    Attributes:
        store: its name.
        columns: the table's columns that are wanted, in wire types; they get `prefix` before their names.
        inner: whether rows without a match go.
        is_global: whether the store has all partitions.
    """

    store: str
    columns: pa.Schema
    prefix: str
    inner: bool
    is_global: bool


def join_stage(place: Place, joining: Joining) -> Stage:
    """A stage over rows with `_key` (STRING, the table's key) that gives them, without it, with the table's columns."""

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return settled(join(place, joining, batch) for batch in batches if batch.num_rows)

    return stage


def join(place: Place, joining: Joining, batch: pa.RecordBatch) -> pa.RecordBatch:
    """`batch` with the table's columns."""
    keys = batch.column(KEY).dictionary_encode()
    codes = pc.fill_null(keys.indices, len(keys.dictionary)).to_numpy(zero_copy_only=False).astype(np.int64)
    per_partition = len(keys.dictionary) + 1  # the last one stands for null, which no table has
    if joining.is_global:
        first = 0
        partitions = None
    else:
        numbers = batch.column(PARTITION).to_numpy(zero_copy_only=False).astype(np.int64)
        first = int(numbers.min())
        codes = (numbers - first) * per_partition + codes
    asked, places = np.unique(codes, return_inverse=True)
    wanted = keys.dictionary.take(pa.array(asked % per_partition, mask=asked % per_partition == per_partition - 1))
    if not joining.is_global:
        partitions = pa.array(asked // per_partition + first, pa.int32())
    values = _values(place, joining, partitions, wanted)
    rows = pa.array(places.reshape(-1))
    there = values.is_valid().take(rows)
    found = _objects(values, joining)
    columns = [column.take(rows) for column in found.columns]
    names = [joining.prefix + name for name in joining.columns.names]
    kept = batch.select([name for name in batch.schema.names if name != KEY])
    joined = pa.RecordBatch.from_arrays([*kept.columns, *columns], names=[*kept.schema.names, *names])
    return joined.filter(there) if joining.inner else joined


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
