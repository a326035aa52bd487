"""The stages that look up state: they add the store's values of the same keys to partials."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from kohort.client.config import ClientConfig
from kohort.spark.epoch import EpochStatistics
from kohort.spark.jobs.arrow_encoding import read_objects
from kohort.spark.jobs.batches import one_batch
from kohort.spark.jobs.drop_reasons import NO_KEY
from kohort.spark.jobs.stages.context import (
    READING,
    Stage,
    StageContext,
    splits_of,
    stage_of,
)
from kohort.spark.jobs.stages.fetched_records import fetch_records, note_times
from kohort.spark.jobs.stages.late_partials import drop_late_partials, in_windows
from kohort.spark.jobs.stages.read_times import ReadTimes
from kohort.spark.jobs.stages.stream_time import StreamTimes
from kohort.spark.program.internal_columns import KEY, PARTITION, RECORDS, TIMESTAMP


@dataclass(frozen=True)
class StateLookup:
    """A store of partials, and until when its windows take them.

    Attributes:
        state: the state columns, in encoded types.
        closed_after_ms: how long after a window's start partials of other tasks come too late; None: never.
    """

    store: str
    state: pa.Schema
    closed_after_ms: int | None = None

    @property
    def schema(self) -> pa.Schema:
        """Of what the stages give: partials, and prior values as partials of 0 records without a time."""
        internal = [(PARTITION, pa.int32()), (KEY, pa.string()), (TIMESTAMP, pa.int64()), (RECORDS, pa.int64())]
        state = [(state_column(number), field.type) for number, field in enumerate(self.state)]
        return pa.schema([pa.field(name, kind) for name, kind in (*internal, *state)])

    def states(self, values: pa.Array) -> pa.StructArray:
        """The states in values of the store, of which none is null.

        Raises:
            StoredValueError: one isn't a value of this store.
        """
        schema = pa.schema([pa.field("state", pa.struct(list(self.state)))])
        return read_objects(values, schema, f"store {self.store}").column(0)


def state_column(number: int) -> str:
    """What a state column is called in stages: by its number, since Spark's stages can't have dots in names."""
    return f"_state{number}"


def read_partials_stage(context: StageContext, servers: ClientConfig, state_lookup: StateLookup) -> Stage:
    """A stage that reads partials of whole partitions, and adds the prior values of their keys."""
    return stage_of(
        lambda batches: (
            batch for split in splits_of(batches) for batch in _read(context, split, servers, state_lookup)
        )
    )


def state_lookup_stage(context: StageContext, state_lookup: StateLookup) -> Stage:
    """A stage that adds prior values to partials, of which each key has one.

    Those without a partition, and those that no window takes, are dropped.
    """
    return stage_of(partial(_add, context, state_lookup))


def _read(
    context: StageContext, split: int, servers: ClientConfig, state_lookup: StateLookup
) -> Iterator[pa.RecordBatch]:
    # No partition is divided: the prior value of a key must be added once.
    split_input = context.request_input(split, whole_partitions=True)
    statistics, times = EpochStatistics(), ReadTimes()
    partials = []
    schema = pa.schema([pa.field("records", pa.int64()), pa.field("state", pa.struct(list(state_lookup.state)))])
    for fetched in times.fetching(fetch_records(split_input, servers, statistics)):
        note_times(statistics, fetched.partitions, fetched.times)
        with times.decoding():
            records, states = read_objects(fetched.values, schema, f"topic {fetched.topic}").columns
            keys = fetched.keys.cast(pa.string())
            partials.append(_batch(state_lookup, fetched.partitions, keys, fetched.times, records, states))
    if partials:
        batch = one_batch(pa.Table.from_batches(partials))
        if state_lookup.closed_after_ms is not None:
            clock = StreamTimes(split_input.stream_times)
            batch = drop_late_partials(batch, state_lookup.store, state_lookup.closed_after_ms, clock, statistics)
        if batch.num_rows:
            yield batch
            keys = pa.table(batch.select([PARTITION, KEY])).group_by([PARTITION, KEY]).aggregate([]).combine_chunks()
            yield from prior_values(context, state_lookup, keys.column(PARTITION), keys.column(KEY))
    if split_input.ranges:
        statistics.reads.append(times.read(split_input.ranges, statistics))
    context.report(split_input.run, split, READING, statistics)


def _add(
    context: StageContext, state_lookup: StateLookup, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    run, statistics = context.run, EpochStatistics()
    for given in batches:
        batch = taken(given.cast(state_lookup.schema), statistics)
        if batch.num_rows:
            yield batch
            yield from prior_values(context, state_lookup, batch.column(PARTITION), batch.column(KEY))
    context.report_left_out(run, statistics)


def taken(partials: pa.RecordBatch, statistics: EpochStatistics) -> pa.RecordBatch:
    """The partials that belong to a task, and that a window takes; the rows of others are counted."""
    belongs = partials.column(PARTITION).is_valid()
    statistics.drop(NO_KEY, pc.sum(partials.column(RECORDS).filter(pc.invert(belongs))).as_py() or 0)
    partials = partials.filter(belongs)
    return partials.filter(in_windows(partials.column(KEY), partials.column(RECORDS), statistics))


def prior_values(
    context: StageContext, state_lookup: StateLookup, partitions: pa.Array, keys: pa.Array
) -> Iterator[pa.RecordBatch]:
    """Prior values of keys, for those that have one."""
    if isinstance(keys, pa.ChunkedArray):
        partitions, keys = partitions.combine_chunks(), keys.combine_chunks()
    values = context.rpc.lookup(state_lookup.store, partitions, keys)
    found = values.is_valid()
    values = values.filter(found)
    if not len(values):
        return
    states = state_lookup.states(values)
    count = len(values)
    none = pa.nulls(count, pa.int64())
    zeros = pa.repeat(pa.scalar(0, pa.int64()), count)
    yield _batch(state_lookup, partitions.filter(found), keys.filter(found), none, zeros, states)


def _batch(
    state_lookup: StateLookup,
    partitions: pa.Array,
    keys: pa.Array,
    times: pa.Array,
    records: pa.Array,
    states: pa.Array,
) -> pa.RecordBatch:
    columns = [partitions, keys, times, records, *states.flatten()]
    return pa.RecordBatch.from_arrays(columns, schema=state_lookup.schema)
