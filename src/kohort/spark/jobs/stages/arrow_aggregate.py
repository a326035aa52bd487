"""The stage that calls an aggregation function of the user's, over rows and prior state of many keys at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.arrow_encoding import read_objects, unwire
from kohort.spark.jobs.epoch import NO_KEY, EpochStatistics
from kohort.spark.jobs.errors import AggregationError
from kohort.spark.jobs.stages.common import (
    KEY,
    MERGING,
    PARTITION,
    RECORDS,
    TIMESTAMP,
    Place,
    in_windows,
    settled,
    task_number,
)
from kohort.spark.jobs.stages.read_rows import Stage
from kohort.spark.jobs.stages.state_lookup import StateLookup

WINDOW = "window"


@dataclass(frozen=True)
class ArrowAggregating:
    """An Arrow aggregation.

    Attributes:
        name: of the aggregate.
        function: the user's.
        rows: the columns that it is given.
        keys: the key columns, among them.
        state: the state columns, in their own types.
        priors: the store.
    """

    name: str
    function: Callable[[Any, Any], Any]
    rows: pa.Schema
    keys: tuple[str, ...]
    state: pa.Schema
    priors: StateLookup

    @property
    def schema(self) -> pa.Schema:
        """Of what the stage gives: one row for each touched key."""
        own = [pa.field(PARTITION, pa.int32()), pa.field(TIMESTAMP, pa.int64()), pa.field(RECORDS, pa.int64())]
        return pa.schema([*own, *(self.rows.field(name) for name in self.keys), *self.state])


def arrow_aggregate_stage(place: Place, aggregating: ArrowAggregating) -> Stage:
    """A stage over `_partition`, `_key`, `_time`, then the columns, in order. A partition is all in one task.

    Rows without a partition, and those that no window takes, are dropped.
    """

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return settled(_run(place, aggregating, batches))

    return stage


def _run(place: Place, what: ArrowAggregating, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    task = place.line.request_input(place.lane, 0, 1)
    read = EpochStatistics()
    given = [batch for batch in batches if batch.num_rows]
    if given:
        rows = pa.Table.from_batches(given).combine_chunks()
        rows = rows.rename_columns([PARTITION, KEY, TIMESTAMP, *what.rows.names])
        placed = rows.column(PARTITION).is_valid()
        read.drop(NO_KEY, len(placed) - pc.sum(placed).as_py())
        rows = rows.filter(placed).combine_chunks()
        ones = pa.array(np.ones(rows.num_rows, np.int64))
        rows = rows.filter(in_windows(rows.column(KEY).combine_chunks(), ones, read))
        for partition in pc.unique(rows.column(PARTITION)).to_pylist():
            mine = rows.filter(pc.equal(rows.column(PARTITION), partition)).combine_chunks()
            yield from aggregate(place, what, partition, mine)
    if read.late or read.dropped:
        place.line.report(place.lane, task.run, place.branch, task_number(), MERGING, read)


def aggregate(place: Place, what: ArrowAggregating, partition: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """What the function makes of one task's rows.

    Raises:
        AggregationError: it gave back something else than the key and state columns of each touched key.
    """
    keys = rows.column(KEY).combine_chunks().dictionary_encode()
    codes = keys.indices.to_numpy(zero_copy_only=False)
    _, first = np.unique(codes, return_index=True)
    touched = rows.select(list(what.keys)).take(pa.array(first))
    values = place.line.lookup(what.priors.store, pa.array([partition] * len(first), pa.int32()), keys.dictionary)
    there = values.is_valid()
    schema = pa.schema([pa.field("state", pa.struct(list(what.priors.state)))])
    states = read_objects(values.filter(there), schema, f"store {what.priors.store}").column(0).flatten()
    known = touched.filter(there)
    state = [unwire(column, field.type) for column, field in zip(states, what.state, strict=True)]
    prior_schema = pa.schema([*(what.rows.field(name) for name in what.keys), *what.state])
    columns = [column.combine_chunks() for column in known.columns]
    prior = pa.Table.from_arrays([*columns, *state], names=prior_schema.names).cast(prior_schema)
    result = what.function(rows.select(what.rows.names).cast(what.rows), prior)
    result = _checked(result, what, prior_schema, len(first))
    time = pc.max(rows.column(TIMESTAMP))
    count = result.num_rows
    own = [
        pa.array([partition] * count, pa.int32()),
        pa.repeat(time, count) if time.is_valid else pa.nulls(count, pa.int64()),
        pa.repeat(pa.scalar(rows.num_rows, pa.int64()), count),
    ]
    columns = [column.combine_chunks() for column in result.columns]
    yield pa.RecordBatch.from_arrays([*own, *columns], schema=what.schema)


def _checked(result: object, what: ArrowAggregating, schema: pa.Schema, touched: int) -> pa.Table:
    if isinstance(result, pa.RecordBatch):
        result = pa.Table.from_batches([result])
    if not isinstance(result, pa.Table):
        raise AggregationError(
            f"the function of aggregate {what.name!r} must return a pyarrow.Table, not {type(result).__name__}"
        )
    missing = [name for name in schema.names if name not in result.column_names]
    if missing:
        raise AggregationError(
            f"the function of aggregate {what.name!r} must return the columns {', '.join(schema.names)}: "
            f"{', '.join(missing)} not among {', '.join(result.column_names)}"
        )
    if result.num_rows != touched:
        raise AggregationError(
            f"the function of aggregate {what.name!r} returned {result.num_rows} rows for {touched} keys in its rows: "
            "it must return one row for each key, and none for others"
        )
    try:
        return result.select(schema.names).cast(schema)
    except pa.ArrowException as error:
        raise AggregationError(f"the function of aggregate {what.name!r} returned other types: {error}") from None
