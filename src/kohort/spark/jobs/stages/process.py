"""The stage that runs a processor: rows in, rows out, and what it writes to its stores beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.epoch import EpochStatistics
from kohort.spark.executor_rpc.client import RpcAddress, SplitInput
from kohort.spark.executor_rpc.messages import STORE_WRITES
from kohort.spark.jobs.arrow_key_encoding import group_keys
from kohort.spark.jobs.batches import one_batch
from kohort.spark.jobs.drop_reasons import NO_KEY
from kohort.spark.jobs.errors import ProcessorError
from kohort.spark.jobs.processors.interface import Made, Processor, Rows, TaskState
from kohort.spark.jobs.processors.states import State
from kohort.spark.jobs.stages.context import PROCESSING, Stage, StageContext, numbered, stage_of, task_number
from kohort.spark.jobs.stages.stream_time import StreamTimes, possible
from kohort.spark.jobs.stages.task_rows import OF_THE_TASK
from kohort.spark.program.internal_columns import OFFSET, PARTITION, STREAM_TIME, TIMESTAMP
from kohort.spark.runs import runs_of

GIVEN: Final = (PARTITION, TIMESTAMP, STREAM_TIME, OFFSET)
"""The columns of Kohort's own that rows have before the user's; `_time` is the event time."""


@dataclass(frozen=True)
class StageState:
    """A store of the processor: as in `State`."""

    name: str
    store: str
    columns: pa.Schema
    map_key: pa.Schema
    bucket_ms: int


@dataclass(frozen=True)
class ProcessStage:
    """A processor, the columns of the rows that it is given, and gives, and its stores.

    Attributes:
        shared: whether several branches go on from it: it runs once in an epoch, and the driver has what it made.
        in_place: whether its rows are of two topics that were read by themselves: stream time is that of all rows
            together.
    """

    name: str
    processor: Processor
    group: tuple[str, ...]
    rows: pa.Schema
    output: pa.Schema
    states: tuple[StageState, ...]
    shared: bool = False
    in_place: bool = False

    @property
    def given(self) -> pa.Schema:
        """The columns that it gives, after `GIVEN`."""
        own = [pa.field(name, pa.int32() if name == PARTITION else pa.int64()) for name in GIVEN]
        return pa.schema([*own, *(pa.field(numbered(at), each.type) for at, each in enumerate(self.output))])


def process_stage(context: StageContext, spec: ProcessStage) -> Stage:
    """A stage over `GIVEN`, then the columns. A partition is all in one task; it gives the same, with its own columns.

    Rows without a partition are dropped.
    """
    return stage_of(partial(_run, context, spec))


def _run(context: StageContext, spec: ProcessStage, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    epoch, statistics = context.rpc.request_input(context.subtopology, 0, 1), EpochStatistics()
    given = [batch for batch in batches if batch.num_rows]
    writes: dict[str, list[pa.RecordBatch]] = {state.store: [] for state in spec.states}
    made: dict[int, pa.RecordBatch] = {}
    if given:
        rows = one_batch(pa.Table.from_batches(given))
        belongs = rows.column(0).is_valid()
        statistics.drop(NO_KEY, len(belongs) - belongs.true_count)
        rows = rows.filter(belongs)
        for partition, mine in _by_partition(rows):
            kept = None
            if spec.shared:
                kept = context.rpc.kept(context.subtopology, epoch.run, spec.name, partition, spec.given)
            if kept is None:
                kept = _processed(context.rpc, spec, partition, mine, epoch, writes, statistics)
                made[partition] = kept
            yield kept
    split = task_number()
    for store, written in writes.items():
        if written:
            table = pa.Table.from_batches(written, STORE_WRITES)
            context.rpc.write(context.subtopology, epoch.run, context.branch, split, store, table)
    if statistics.late or statistics.dropped:
        context.report(epoch.run, split, f"{PROCESSING} {spec.name}", statistics)
    if spec.shared:
        # Last: who finds it can count on the writes that go with it.
        for partition, batch in made.items():
            context.rpc.keep(context.subtopology, epoch.run, spec.name, partition, batch)


def _by_partition(rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Each task's rows, in the order of their offsets; those of a record stay in theirs.

    Those of `task_rows` are taken out.
    """
    partitions = rows.column(0).to_numpy(zero_copy_only=False)
    offsets = pc.fill_null(rows.column(3), 0).to_numpy(zero_copy_only=False)
    order, runs = runs_of(partitions)
    for partition, start, end in runs:
        mine = order[start:end]
        mine = mine[np.argsort(offsets[mine], kind="stable")]
        mine = mine[offsets[mine] != OF_THE_TASK]
        yield partition, rows.take(pa.array(mine))


def _processed(
    rpc: RpcAddress,
    spec: ProcessStage,
    partition: int,
    batch: pa.RecordBatch,
    epoch: SplitInput,
    writes: dict[str, list[pa.RecordBatch]],
    statistics: EpochStatistics,
) -> pa.RecordBatch:
    """What the processor makes of a task's rows."""
    _, times, stream_times, offsets, *columns = batch.columns
    table = pa.Table.from_arrays(columns, names=spec.rows.names).cast(spec.rows)
    group = [table[name].combine_chunks() for name in spec.group]
    read = epoch.stream_times.get(partition)
    if spec.in_place:
        clock = StreamTimes({} if read is None else {partition: read})
        stream_times = clock.advance(batch.column(0), stream_times)
    rows = Rows(table, group_keys(spec.group, group), possible(times), stream_times, offsets)
    latest = pc.max(stream_times).as_py()
    now = read if latest is None else latest if read is None else max(latest, read)
    states = {
        state.name: State(
            state.store, state.columns, _Access(rpc, state.store, partition, writes[state.store]), state.map_key,
            state.bucket_ms,
        )
        for state in spec.states
    }  # fmt: skip
    task = TaskState(partition, now, states, epoch.positions.get(partition, 0), epoch.now)
    made = spec.processor.process(rows, task)
    statistics.late += made.late
    for reason, count in made.dropped:
        statistics.drop(reason, count)
    return _given(spec, made, partition, now, rows)


def _given(spec: ProcessStage, made: Made, partition: int, now: int | None, rows: Rows) -> pa.RecordBatch:
    count = made.rows.num_rows
    of = made.of.cast(pa.int64())
    times = pc.coalesce(rows.times.take(of) if made.times is None else made.times, pa.scalar(now, pa.int64()))
    read_at = rows.stream_times.take(of) if made.stream_times is None else made.stream_times
    stream_times = pc.coalesce(read_at, pa.scalar(now, pa.int64()))
    last = pc.max(rows.offsets).cast(pa.int64())
    offsets = pc.coalesce(rows.offsets.take(of) if made.offsets is None else made.offsets, last)
    internal = [pa.repeat(pa.scalar(partition, pa.int32()), count), times, stream_times, offsets]
    try:
        columns = made.rows.select(spec.output.names).cast(spec.output).columns
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise ProcessorError(f"processor {spec.name!r} gave other columns than it said: {error}") from None
    return pa.RecordBatch.from_arrays([*internal, *(each.combine_chunks() for each in columns)], schema=spec.given)


class _Access:
    """A store of one task, in the driver. What is written is kept until the stage ends."""

    def __init__(self, rpc: RpcAddress, store: str, partition: int, writes: list[pa.RecordBatch]) -> None:
        self._rpc, self._store, self._partition, self._writes = rpc, store, partition, writes

    def lookup(self, keys: pa.Array) -> pa.Array:
        partitions = pa.repeat(pa.scalar(self._partition, pa.int32()), len(keys))
        return self._rpc.lookup(self._store, partitions, keys)

    def scan(
        self,
        starts: pa.Array,
        ends: pa.Array,
        most_bytes: int | None = None,
        neighbours_from: pa.Array | None = None,
        neighbours_to: pa.Array | None = None,
    ) -> tuple[pa.Array, pa.Array, pa.Array]:
        if not len(starts):
            return pa.array([], pa.int32()), pa.array([], pa.binary()), pa.array([], pa.binary())
        scanned = self._rpc.scan(self._store, self._partition, starts, ends, most_bytes, neighbours_from, neighbours_to)
        rows = one_batch(scanned)
        return rows.column(0), rows.column(1), rows.column(2)

    def write(self, keys: pa.Array, values: pa.Array) -> None:
        if len(keys):
            partitions = pa.repeat(pa.scalar(self._partition, pa.int32()), len(keys))
            times = pa.nulls(len(keys), pa.int64())
            columns = [partitions, keys.cast(pa.binary()), values.cast(pa.binary()), times]
            self._writes.append(pa.RecordBatch.from_arrays(columns, schema=STORE_WRITES))
