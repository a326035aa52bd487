"""The stage that calls an aggregation function of the user's, over rows and prior state of many keys at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.epoch import EpochStatistics
from kohort.spark.jobs.arrow_encoding import decoded_array
from kohort.spark.jobs.drop_reasons import NO_KEY
from kohort.spark.jobs.errors import AggregationError
from kohort.spark.jobs.function_results import typed, written_in
from kohort.spark.jobs.stages.context import Stage, StageContext, stage_of
from kohort.spark.jobs.stages.late_partials import in_windows
from kohort.spark.jobs.stages.state_lookup import StateLookup
from kohort.spark.program.internal_columns import KEY, PARTITION, RECORDS, TIMESTAMP

WINDOW = "window"


@dataclass(frozen=True)
class ArrowAggregate:
    """An Arrow aggregation.

    Attributes:
        rows: the columns that it is given.
        keys: the key columns, among them.
        state: the state columns, in their own types.
    """

    name: str
    function: Callable[[Any, Any], Any]
    rows: pa.Schema
    keys: tuple[str, ...]
    state: pa.Schema
    state_lookup: StateLookup

    @property
    def schema(self) -> pa.Schema:
        """Of what the stage gives: one row for each touched key."""
        internal = [
            pa.field(PARTITION, pa.int32()),
            pa.field(TIMESTAMP, pa.int64()),
            pa.field(RECORDS, pa.int64()),
        ]
        return pa.schema([*internal, *(self.rows.field(name) for name in self.keys), *self.state])


def arrow_aggregate_stage(context: StageContext, spec: ArrowAggregate) -> Stage:
    """A stage over `_partition`, `_key`, `_time`, then the columns, in order. A partition is all in one task.

    Rows without a partition, and those that no window takes, are dropped.
    """
    return stage_of(partial(_run, context, spec))


def _run(context: StageContext, spec: ArrowAggregate, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    run, statistics = context.run, EpochStatistics()
    given = [batch for batch in batches if batch.num_rows]
    if given:
        rows = pa.Table.from_batches(given).combine_chunks()
        rows = rows.rename_columns([PARTITION, KEY, TIMESTAMP, *spec.rows.names])
        belongs = rows.column(PARTITION).is_valid()
        statistics.drop(NO_KEY, len(belongs) - pc.sum(belongs).as_py())
        rows = rows.filter(belongs).combine_chunks()
        ones = pa.array(np.ones(rows.num_rows, np.int64))
        rows = rows.filter(in_windows(rows.column(KEY).combine_chunks(), ones, statistics))
        for partition in pc.unique(rows.column(PARTITION)).to_pylist():
            mine = rows.filter(pc.equal(rows.column(PARTITION), partition)).combine_chunks()
            yield from aggregate(context, spec, partition, mine)
    context.report_left_out(run, statistics)


def aggregate(context: StageContext, spec: ArrowAggregate, partition: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """What the function makes of one task's rows.

    Raises:
        AggregationError: it gave back something else than the key and state columns of each touched key.
    """
    keys = rows.column(KEY).combine_chunks().dictionary_encode()
    codes = keys.indices.to_numpy(zero_copy_only=False)
    _, first = np.unique(codes, return_index=True)
    touched = rows.select(list(spec.keys)).take(pa.array(first))
    values = context.rpc.lookup(
        spec.state_lookup.store, pa.array([partition] * len(first), pa.int32()), keys.dictionary
    )
    found = values.is_valid()
    states = spec.state_lookup.states(values.filter(found)).flatten()
    keys_before = touched.filter(found)
    state = [decoded_array(column, field.type) for column, field in zip(states, spec.state, strict=True)]
    prior_schema = pa.schema([*(spec.rows.field(name) for name in spec.keys), *spec.state])
    columns = [column.combine_chunks() for column in keys_before.columns]
    prior = pa.Table.from_arrays([*columns, *state], names=prior_schema.names).cast(prior_schema)
    result = spec.function(rows.select(spec.rows.names).cast(spec.rows), prior)
    try:
        result = _checked(result, spec, prior_schema, len(first))
    except AggregationError as error:
        raise AggregationError(f"{error}{written_in(spec.function)}") from None
    time = pc.max(rows.column(TIMESTAMP))
    count = result.num_rows
    internal = [
        pa.array([partition] * count, pa.int32()),
        pa.repeat(time, count) if time.is_valid else pa.nulls(count, pa.int64()),
        pa.repeat(pa.scalar(rows.num_rows, pa.int64()), count),
    ]
    columns = [column.combine_chunks() for column in result.columns]
    yield pa.RecordBatch.from_arrays([*internal, *columns], schema=spec.schema)


def _checked(result: object, spec: ArrowAggregate, schema: pa.Schema, touched: int) -> pa.Table:
    if isinstance(result, pa.RecordBatch):
        result = pa.Table.from_batches([result])
    if not isinstance(result, pa.Table):
        raise AggregationError(
            f"the function of aggregate {spec.name!r} must return a pyarrow.Table, not {type(result).__name__}"
        )
    missing = [name for name in schema.names if name not in result.column_names]
    if missing:
        raise AggregationError(
            f"the function of aggregate {spec.name!r} must return the columns {', '.join(schema.names)}: "
            f"{', '.join(missing)} not among {', '.join(result.column_names)}"
        )
    if result.num_rows != touched:
        raise AggregationError(
            f"the function of aggregate {spec.name!r} returned {result.num_rows} rows for {touched} keys in its rows: "
            "it must return one row for each key, and none for others"
        )
    try:
        return typed(result, schema)
    except TypeError as error:
        raise AggregationError(f"the function of aggregate {spec.name!r} returned other types: {error}") from None
