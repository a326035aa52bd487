"""The stage that merges partials at once: it adds the store's values to those of the epoch's mergers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from kohort.client.column_codec import load_columns
from kohort.protocol.records.partitioner import partitions_of
from kohort.spark.epoch import EpochStatistics, Mergers
from kohort.spark.jobs.stages.context import Stage, StageContext, stage_of
from kohort.spark.jobs.stages.late_partials import drop_late_partials, in_windows
from kohort.spark.jobs.stages.state_lookup import StateLookup, prior_values
from kohort.spark.jobs.stages.stream_time import StreamTimes
from kohort.spark.program.internal_columns import KEY, PARTITION, RECORDS, TIMESTAMP

ROUTE: Final = "_route"
_BEFORE_ALL: Final = pa.scalar(-(2**63), pa.int64())


def merge_stage(context: StageContext, state_lookup: StateLookup) -> Stage:
    """A stage over partials, of which each key has one, with `_route` instead of `_partition`.

    It gives partials and prior values (`StateLookup.schema`) of the mergers' partitions, and for each other partition p
    its partials, with the partition -1 - p. Those that no window takes are dropped, and those that come late.
    """
    return stage_of(partial(_merge, context, state_lookup))


def _merge(
    context: StageContext, state_lookup: StateLookup, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    code = load_columns()  # the partitioner's among it, while there are no partials yet
    epoch, statistics = context.request_input(0, whole_partitions=True), EpochStatistics()
    mergers = epoch.mergers[context.branch]
    for given in batches:
        code.exception()  # waits: two threads that have numba load at once may fail
        partials = given.filter(in_windows(given.column(KEY), given.column(RECORDS), statistics))
        if not partials.num_rows:
            continue
        batch = _placed(partials, state_lookup, mergers)
        here = pc.greater_equal(batch.column(PARTITION), 0)
        if (others := batch.filter(pc.invert(here))).num_rows:
            yield others
        mine = in_time(batch.filter(here), state_lookup, mergers, statistics)
        if mine.num_rows:
            yield mine
            yield from prior_values(context, state_lookup, mine.column(PARTITION), mine.column(KEY))
    context.report_left_out(epoch.run, statistics)


def _placed(partials: pa.RecordBatch, state_lookup: StateLookup, mergers: Mergers) -> pa.RecordBatch:
    """With the partitions that the routes lead to."""
    partitions = merging_partitions(partials.column(ROUTE), mergers)
    columns = [partitions, *(partials.column(name) for name in partials.schema.names if name != ROUTE)]
    arrays = [column.cast(field.type) for column, field in zip(columns, state_lookup.schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=state_lookup.schema)


def merging_partitions(routes: pa.Array, mergers: Mergers) -> pa.Array:
    """The partitions that routes (STRING) lead to: p of the mergers', -1 - p of others."""
    assert not routes.null_count, "every group has a route"
    partitions = pa.array(partitions_of(pa.chunked_array([routes.cast(pa.binary())]), mergers.partitions), pa.int32())
    is_here = pc.is_in(partitions, value_set=pa.array(sorted(mergers.stream_times), pa.int32()))
    return pc.if_else(is_here, partitions, pc.cast(pc.subtract(-1, partitions), pa.int32()))


def in_time(
    partials: pa.RecordBatch, state_lookup: StateLookup, mergers: Mergers, statistics: EpochStatistics
) -> pa.RecordBatch:
    """Those that come before their window is closed, in the order in which the topic would have them: by their times.

    So none makes another late, and it doesn't matter which of them a split has.
    """
    if state_lookup.closed_after_ms is None or not partials.num_rows:
        return partials
    known = {partition: time for partition, time in mergers.stream_times.items() if time is not None}
    return drop_late_partials(
        by_time(partials), state_lookup.store, state_lookup.closed_after_ms, StreamTimes(known), statistics
    )


def by_time(partials: pa.RecordBatch) -> pa.RecordBatch:
    """Those without a time first."""
    times = pc.fill_null(partials.column(TIMESTAMP), _BEFORE_ALL)  # pyarrow has several ways to put nulls first
    return partials.take(pc.sort_indices(times))
