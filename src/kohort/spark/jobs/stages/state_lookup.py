"""The stages that bring partials together with what the store has of their keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kohort.client.config import ClientConfig
from kohort.spark.jobs.arrow_encoding import read_objects
from kohort.spark.jobs.batches import one_batch
from kohort.spark.jobs.epoch import NO_KEY, EpochStatistics
from kohort.spark.jobs.errors import StoredValueError
from kohort.spark.jobs.stages.common import (
    KEY,
    MERGING,
    PARTITION,
    READING,
    RECORDS,
    TIMESTAMP,
    Place,
    in_windows,
    note_times,
    read_chunks,
    settled,
    splits_of,
    task_number,
    window_starts,
)
from kohort.spark.jobs.stages.read_rows import Stage
from kohort.spark.jobs.stages.stream_time import StreamTimes


@dataclass(frozen=True)
class StateLookup:
    """A store of partials, and until when its windows take them.

    Attributes:
        store: its name.
        state: the state columns, in wire types.
        closed_after_ms: how long after a window's start partials of other tasks come too late; None: never.
    """

    store: str
    state: pa.Schema
    closed_after_ms: int | None = None

    @property
    def schema(self) -> pa.Schema:
        """Of what the stages give: partials, and prior values as partials of 0 records without a time."""
        own = [(PARTITION, pa.int32()), (KEY, pa.string()), (TIMESTAMP, pa.int64()), (RECORDS, pa.int64())]
        state = [(state_column(number), field.type) for number, field in enumerate(self.state)]
        return pa.schema([pa.field(name, kind) for name, kind in (*own, *state)])


def state_column(number: int) -> str:
    """What a state column is called in stages: by its number, since Spark's stages can't have dots in names."""
    return f"_state{number}"


def partials_stage(place: Place, servers: ClientConfig, priors: StateLookup) -> Stage:
    """A stage that reads partials of whole partitions, and adds the prior values of their keys."""

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return settled(batch for split in splits_of(batches) for batch in _read(place, split, servers, priors))

    return stage


def priors_stage(place: Place, priors: StateLookup) -> Stage:
    """A stage that adds prior values to partials, of which each key has one.

    Those without a partition, and those that no window takes, are dropped.
    """

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return settled(_add(place, priors, batches))

    return stage


def _read(place: Place, split: int, servers: ClientConfig, priors: StateLookup) -> Iterator[pa.RecordBatch]:
    # No partition is divided: the prior value of a key must be added once.
    task = place.line.request_input(place.lane, split, place.splits, whole_partitions=True)
    read = EpochStatistics()
    partials = []
    for chunk in read_chunks(task, servers, read):
        note_times(read, chunk.partitions, chunk.times)
        what = f"topic {chunk.topic}"
        schema = pa.schema([pa.field("records", pa.int64()), pa.field("state", pa.struct(list(priors.state)))])
        values = read_objects(chunk.records.column("value"), schema, what)
        keys = chunk.records.column("key").cast(pa.string())
        partials.append(_batch(priors, chunk.partitions, keys, chunk.times, values.column(0), values.column(1)))
    if partials:
        batch = one_batch(pa.Table.from_batches(partials))
        batch = _drop_late(batch, priors, StreamTimes(task.stream_times), read)
        if batch.num_rows:
            yield batch
            keys = pa.table(batch.select([PARTITION, KEY])).group_by([PARTITION, KEY]).aggregate([]).combine_chunks()
            yield from _found(place, priors, keys.column(PARTITION), keys.column(KEY))
    place.line.report(place.lane, task.run, place.branch, split, READING, read)


def _add(place: Place, priors: StateLookup, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    task = place.line.request_input(place.lane, 0, 1)
    read = EpochStatistics()
    for given in batches:
        batch = _placed(given.cast(priors.schema), read)
        batch = batch.filter(in_windows(batch.column(KEY), batch.column(RECORDS), read))
        if batch.num_rows:
            yield batch
            yield from _found(place, priors, batch.column(PARTITION), batch.column(KEY))
    if read.late or read.dropped:
        place.line.report(place.lane, task.run, place.branch, task_number(), MERGING, read)


def _placed(batch: pa.RecordBatch, read: EpochStatistics) -> pa.RecordBatch:
    """The partials that belong to a task."""
    placed = batch.column(PARTITION).is_valid()
    read.drop(NO_KEY, pc.sum(batch.column(RECORDS).filter(pc.invert(placed))).as_py() or 0)
    return batch.filter(placed)


def _drop_late(batch: pa.RecordBatch, priors: StateLookup, clock: StreamTimes, read: EpochStatistics) -> pa.RecordBatch:
    """The partials that come before their window is closed here, in the order in which they were sent.

    None of their rows came late to the task that they are from, but that one may be behind others. With just one there
    is nothing to drop: it took a partial's rows before a record from beyond the window's end and grace, so it sends the
    partial before any that could close the window: in an earlier epoch, or before it in the same one (`in_order`).
    """
    if priors.closed_after_ms is None:
        return batch
    try:
        starts = window_starts(batch.column(KEY))
    except pa.ArrowInvalid as error:
        raise StoredValueError(f"a key for store {priors.store} has no window: {error}") from None
    now = clock.advance(batch.column(PARTITION), batch.column(TIMESTAMP))
    kept = pc.fill_null(pc.greater(pc.add(starts, priors.closed_after_ms), now), True)
    read.late += pc.sum(batch.column(RECORDS).filter(pc.invert(kept))).as_py() or 0
    return batch.filter(kept)


def _found(place: Place, priors: StateLookup, partitions: pa.Array, keys: pa.Array) -> Iterator[pa.RecordBatch]:
    """Prior values of keys, for those that have one."""
    if isinstance(keys, pa.ChunkedArray):
        partitions, keys = partitions.combine_chunks(), keys.combine_chunks()
    values = place.line.lookup(priors.store, partitions, keys)
    there = values.is_valid()
    values = values.filter(there)
    if not len(values):
        return
    schema = pa.schema([pa.field("state", pa.struct(list(priors.state)))])
    states = read_objects(values, schema, f"store {priors.store}").column(0)
    count = len(values)
    none = pa.nulls(count, pa.int64())
    zeros = pa.repeat(pa.scalar(0, pa.int64()), count)
    yield _batch(priors, partitions.filter(there), keys.filter(there), none, zeros, states)


def _batch(
    priors: StateLookup, partitions: pa.Array, keys: pa.Array, times: pa.Array, records: pa.Array, states: pa.Array
) -> pa.RecordBatch:
    columns = [partitions, keys, times, records, *states.flatten()]
    return pa.RecordBatch.from_arrays(columns, schema=priors.schema)
