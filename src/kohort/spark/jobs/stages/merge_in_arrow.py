"""The stage that merges partials at once without Spark's grouping; see `merge` and `state_merge`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from types import ModuleType

import pyarrow as pa
import pyarrow.compute as pc

from kohort.client.column_codec import load_columns
from kohort.spark.epoch import EpochStatistics
from kohort.spark.jobs.arrow_key_encoding import key_objects, key_texts
from kohort.spark.jobs.stages.context import Stage, StageContext, stage_of
from kohort.spark.jobs.stages.late_partials import in_windows
from kohort.spark.jobs.stages.merge import in_time, merging_partitions
from kohort.spark.jobs.stages.state_merge import (
    Gather,
    StateMerge,
    gathered,
    keyed,
    merged_records,
    partial_records,
)
from kohort.spark.program.internal_columns import KEY, PARTITION, RECORDS


@dataclass(frozen=True)
class PartialRoute:
    """What the key of a partial's record is made of, by which it is partitioned.

    Attributes:
        places: the numbers of the group's columns, in order.
        names: what they are called.
        as_text: whether one alone is its text; else a JSON object, as several are.
        plain_decimals: as of `key_texts`.
    """

    places: tuple[int, ...]
    names: tuple[str, ...]
    as_text: bool
    plain_decimals: bool

    def of(self, group: list[pa.Array]) -> pa.Array:
        """The routes (STRING) of partials, by their groups' columns."""
        columns = [group[place] for place in self.places]
        if self.as_text:
            return key_texts(self.names, columns, plain_decimals=self.plain_decimals)
        return key_objects(self.names, columns)


def merge_in_arrow_stage(context: StageContext, merge: StateMerge, route: PartialRoute, gather: Gather | None) -> Stage:
    """A stage over `_time`, `_records`, what `_key` is made of, and the state columns, in this order, or over what
    `gather` makes partials of.

    It gives records of the store for the partials of the mergers' partitions, and partials of each other partition p
    with the partition -1 - p, as they are written to the topic. Those that no window takes are dropped, and those that
    come late.
    """
    return stage_of(partial(_run, context, merge, route, gather))


def _run(
    context: StageContext,
    merge: StateMerge,
    route: PartialRoute,
    gather: Gather | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    code = load_columns()  # the partitioner's among it, while there are no partials yet
    epoch, statistics = context.request_input(0, whole_partitions=True), EpochStatistics()
    mergers = epoch.mergers[context.branch]
    assert merge.key is not None
    begin = 2 + merge.key.windowed
    for given in gathered(gather, _once_loaded(code, batches)):
        partitions = merging_partitions(route.of(given.columns[begin : begin + len(merge.key.group)]), mergers)
        placed = [partitions, *given.columns]
        partials = keyed(merge.key, pa.RecordBatch.from_arrays(placed, names=[PARTITION, *given.schema.names]))
        partials = partials.filter(in_windows(partials.column(KEY), partials.column(RECORDS), statistics))
        here = pc.greater_equal(partials.column(PARTITION), 0)
        if (others := partials.filter(pc.invert(here))).num_rows:
            yield from partial_records(merge, others)
        yield from merged_records(context, merge, in_time(partials.filter(here), merge.lookup, mergers, statistics))
    context.report_left_out(epoch.run, statistics)


def _once_loaded(code: Future[ModuleType], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        code.exception()  # waits: two threads that have numba load at once may fail
        yield batch
