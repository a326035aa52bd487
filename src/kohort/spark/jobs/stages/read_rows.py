"""The stages that read: a topic's rows, a table's records, repartitioned rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.client.config import ClientConfig
from kohort.spark.formats.derived_times import DerivedTime
from kohort.spark.formats.times import TimeFormats
from kohort.spark.jobs.arrow_encoding import read_objects
from kohort.spark.jobs.batches import one_batch
from kohort.spark.jobs.epoch import MISPLACED, NO_KEY, NO_VALUE, UNREADABLE, EpochStatistics
from kohort.spark.jobs.stages.common import (
    OFFSET,
    PARTITION,
    READING,
    STREAM_TIME,
    TIMESTAMP,
    Chunk,
    Place,
    note_dead,
    note_times,
    read_chunks,
    settled,
    splits_of,
)
from kohort.spark.jobs.stages.partition_check import Placing, keyed, misplaced
from kohort.spark.jobs.stages.stream_time import StreamTimes

Stage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

TOMBSTONE = "_tombstone"
"""STRING: a table's record without a value has its key here; all others null."""

_TOLD: Final = {"fail": slice(1), "dead": slice(None), "drop": slice(0)}
"""Which of a chunk's bad records are told of, by `on_error`."""


@dataclass(frozen=True)
class RowsReading:
    """How rows are read.

    Attributes:
        schema: of the columns to read, as Spark's JSON; for "wire", of wire types.
        format: as of a source, or "wire" for repartitioned rows.
        event_time: the column whose largest values are reported; None for the record's timestamp.
        on_error: whether unreadable records end the job, are counted, or are reported with their content.
        own: which columns of Kohort's own are wanted: `_partition`, `_time`, `_stream_time` (which takes `whole`) and
            `_offset`, in this order. Of a table only the first two.
        table: whether records without a value are rows too, with their keys in `_tombstone`.
        key: a table's columns that its records' keys hold as JSON: of records without a value they come from there.
            () if the key is the text of one column.
        times: how JSON has times; None for ISO 8601 in UTC.
        derived: the columns of `schema` that aren't in the values.
        whole: whether all of a partition is read in one split.
        placing: where the records belong, if anything goes by that: misplaced ones are bad.
        placeless: whether rows of records that don't say where they belong have no `_partition`.
        tombstones: whether a stream's records without a value are rows of nulls. A table's delete.
        keyless: whether a table takes records without a key.
    """

    servers: ClientConfig
    schema: str
    format: str
    avro_schema: str | None
    event_time: str | None
    on_error: Literal["fail", "drop", "dead"]
    own: tuple[str, ...]
    table: bool
    whole: bool = False
    key: tuple[str, ...] = ()
    times: TimeFormats | None = None
    derived: tuple[DerivedTime, ...] = ()
    placing: Placing | None = None
    placeless: bool = False
    tombstones: bool = True
    keyless: bool = True


def rows_stage(place: Place, reading: RowsReading) -> Stage:
    """A stage that reads its split of the lane's work: the columns, then `_partition`, and what else is wanted."""

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return settled(batch for split in splits_of(batches) for batch in _read(place, split, reading))

    return stage


def _read(place: Place, split: int, reading: RowsReading) -> Iterator[pa.RecordBatch]:
    task = place.line.request_input(place.lane, split, place.splits, whole_partitions=reading.whole)
    read, clock = EpochStatistics(), StreamTimes(task.stream_times)
    for chunk in read_chunks(task, reading.servers, read):
        batch = _decode(chunk, reading, read, clock, task.partitions)
        if batch.num_rows:
            yield batch
        if read.dead.num_rows and reading.on_error == "fail":
            break
    place.line.report(place.lane, task.run, place.branch, split, READING, read)


def _decode(
    chunk: Chunk, reading: RowsReading, read: EpochStatistics, clock: StreamTimes, partitions: int
) -> pa.RecordBatch:
    gone = None
    if reading.table and not reading.keyless:
        chunk = _only_with(chunk, "key", NO_KEY, read)
    values = chunk.records.column("value")
    if reading.table and values.null_count:
        empty = values.is_null()
        gone = _only_with(_only(chunk, empty), "key", NO_KEY, read)
        chunk = _only(chunk, pc.invert(empty))
    elif not reading.tombstones:
        chunk = _only_with(chunk, "value", NO_VALUE, read)
    columns, kept = _columns(chunk, chunk.records.column("value"), reading, read)
    columns, kept, known = _placed(columns, kept, reading, read, partitions)
    times = kept.times
    moments = times if reading.event_time is None else _millis(columns[reading.event_time])
    if known is not None:  # what lies in a partition by chance doesn't say how far that one is
        moments = pc.if_else(known, moments, None)
    note_times(read, kept.partitions, moments)
    if PARTITION in reading.own:
        placeless = reading.placeless and known is not None
        columns[PARTITION] = pc.if_else(known, kept.partitions, None) if placeless else kept.partitions
    if TIMESTAMP in reading.own:
        columns[TIMESTAMP] = times
    if STREAM_TIME in reading.own:
        columns[STREAM_TIME] = clock.advance(kept.partitions, moments)
    if OFFSET in reading.own:
        columns[OFFSET] = kept.records.column("offset")
    if reading.table:
        columns[TOMBSTONE] = pa.nulls(len(times), pa.string())
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    if gone is None:
        return batch
    gone, tombstones = _tombstones(gone, reading, read, partitions)
    offsets = pa.concat_arrays([kept.records.column("offset"), gone.records.column("offset")])
    both = pa.table(pa.Table.from_batches([batch, tombstones.cast(batch.schema)]))
    order = pc.sort_indices(pa.table({"offset": offsets}), sort_keys=[("offset", "ascending")])
    return one_batch(both.take(order))


def _placed(
    columns: dict[str, pa.Array], chunk: Chunk, reading: RowsReading, read: EpochStatistics, partitions: int
) -> tuple[dict[str, pa.Array], Chunk, pa.Array | None]:
    """The columns and records without misplaced ones, and which of them have a place; None if nothing goes by that."""
    placing = reading.placing
    if placing is None:
        return columns, chunk, None
    known = keyed(chunk, placing.partitioner)
    if not reading.table:  # a record that is kept without a value has no columns that belong anywhere
        known = pc.and_(known, chunk.records.column("value").is_valid())
    if not partitions:
        return columns, chunk, known
    told = _TOLD[reading.on_error]
    rows, errors = misplaced(placing, columns, chunk, known, partitions, told)
    if len(rows):
        read.drop(MISPLACED, len(rows))
        note_dead(read, chunk, rows[told].tolist(), errors)
        mask = np.ones(len(known), np.bool_)
        mask[rows] = False
        good = pa.array(mask)
        columns = {name: column.filter(good) for name, column in columns.items()}
        chunk, known = _only(chunk, good), known.filter(good)
    return columns, chunk, known


def _columns(
    chunk: Chunk, values: pa.Array, reading: RowsReading, read: EpochStatistics
) -> tuple[dict[str, pa.Array], Chunk]:
    """The decoded columns, and the chunk without records that couldn't be read."""
    if reading.format == "wire":
        batch = read_objects(values, _arrow_schema(reading.schema), f"topic {chunk.topic}")
        return dict(zip(batch.schema.names, batch.columns, strict=True)), chunk
    schema = _without(reading.schema, tuple(each.name for each in reading.derived))
    decoded = _decoder(reading.format, schema, reading.avro_schema, reading.times).decode(values)
    if decoded.errors:
        told = _TOLD[reading.on_error]
        read.drop(UNREADABLE, len(decoded.errors))
        note_dead(read, chunk, [row for row, _ in decoded.errors][told], [text for _, text in decoded.errors][told])
    if decoded.good is not None:
        chunk = Chunk(chunk.topic, chunk.records.take(decoded.good), chunk.partitions.take(decoded.good))
    batch = decoded.columns
    if batch.schema != _arrow_schema(schema):
        batch = batch.cast(_arrow_schema(schema))
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for each in reading.derived:
        columns[each.name] = each.of(columns[each.column] if each.function else chunk.times)
    return {name: columns[name] for name in _arrow_schema(reading.schema).names}, chunk


def _tombstones(
    gone: Chunk, reading: RowsReading, read: EpochStatistics, partitions: int
) -> tuple[Chunk, pa.RecordBatch]:
    """Rows that delete, and their records: without those whose keys aren't a table's, or lie elsewhere."""
    schema = _arrow_schema(reading.schema)
    known: dict[str, pa.Array] = {}
    if reading.key:
        # Whoever wrote the key may have put blanks into the JSON, or the columns into another order.
        keys = _decoder("json", _only_columns(reading.schema, reading.key), None, reading.times)
        decoded = keys.decode(gone.records.column("key"))
        read.drop(UNREADABLE, len(decoded.errors))
        if decoded.good is not None:
            gone = Chunk(gone.topic, gone.records.take(decoded.good), gone.partitions.take(decoded.good))
        known = {name: decoded.columns.column(name).cast(schema.field(name).type) for name in reading.key}
    elif reading.placing is not None:
        known = {reading.placing.key[0]: _key_text(gone)}
    known, gone, _ = _placed(known, gone, reading, read, partitions)
    count = len(gone.partitions)
    columns = {
        field.name: known[field.name] if reading.key and field.name in known else pa.nulls(count, field.type)
        for field in schema
    }
    own = {PARTITION: gone.partitions, TIMESTAMP: gone.times}
    columns |= {name: own[name] for name in reading.own}
    columns[TOMBSTONE] = _key_text(gone)
    return gone, pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _key_text(chunk: Chunk) -> pa.Array:
    return chunk.records.column("key").cast(pa.string(), safe=False)


def _only_with(chunk: Chunk, column: str, reason: str, read: EpochStatistics) -> Chunk:
    """The records that have a key, or a value; the others are counted."""
    there = chunk.records.column(column)
    read.drop(reason, there.null_count)
    return _only(chunk, there.is_valid()) if there.null_count else chunk


def _only(chunk: Chunk, mask: pa.Array) -> Chunk:
    return Chunk(chunk.topic, chunk.records.filter(mask), chunk.partitions.filter(mask))


def _millis(times: pa.Array) -> pa.Array:
    """Timestamps, or their wire type, as ms since 1970, rounded down."""
    if pa.types.is_integer(times.type):
        times = times.cast(pa.timestamp("us", "UTC"))
    elif times.type.tz is None:
        times = times.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    return pc.floor_temporal(times, unit="millisecond").cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())


@lru_cache(maxsize=64)
def _arrow_schema(schema: str) -> pa.Schema:
    return arrow_schema(schema)


@lru_cache(maxsize=64)
def _decoder(format: str, schema: str, avro_schema: str | None, times: TimeFormats | None) -> Any:  # noqa: A002
    from kohort.spark.formats import decoder

    return decoder(format, spark_schema(schema), avro_schema, times)


@lru_cache(maxsize=64)
def _only_columns(schema: str, names: tuple[str, ...]) -> str:
    """Some columns of a schema of Spark's JSON."""
    import json

    fields = json.loads(schema)["fields"]
    return json.dumps({"type": "struct", "fields": [field for field in fields if field["name"] in names]})


@lru_cache(maxsize=64)
def _without(schema: str, names: tuple[str, ...]) -> str:
    """A schema of Spark's JSON without some columns."""
    return _only_columns(schema, tuple(name for name in spark_schema(schema).names if name not in names))


def spark_schema(schema: str) -> Any:
    """A schema of Spark's JSON."""
    import json

    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(schema))


def arrow_schema(schema: str) -> pa.Schema:
    """The Arrow schema that Spark wants for a schema of Spark's JSON."""
    from kohort.spark import internals

    return internals.arrow_schema(spark_schema(schema))
