"""The stages that read: a topic's rows, a table's records, repartitioned rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from kohort.client.config import ClientConfig
from kohort.spark.jobs.batches import one_batch
from kohort.spark.jobs.stages.common import (
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
from kohort.spark.jobs.stages.stream_time import StreamTimes
from kohort.spark.jobs.wire_text import read_objects
from kohort.spark.jobs.work import NO_KEY, UNREADABLE, Read

Stage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

TOMBSTONE = "_tombstone"
"""STRING: a table's record without a value has its key here; all others null."""


@dataclass(frozen=True)
class RowsReading:
    """How rows are read.

    Attributes:
        schema: of the columns to read, as Spark's JSON; for "wire", of wire types.
        format: as of a source, or "wire" for repartitioned rows.
        event_time: the column whose largest values are reported; None for the record's timestamp.
        on_error: whether unreadable records end the job, are counted, or are reported with their content.
        timestamps: whether `_timestamp` is wanted.
        table: whether records without a value are rows too, with their keys in `_tombstone`.
        key: a table's columns that its records' keys hold as JSON: of records without a value they come from there.
            () if the key is the text of one column.
        whole: whether all of a partition is read in one split.
        stream_times: whether `_stream_time` is wanted, which takes `whole`.
    """

    servers: ClientConfig
    schema: str
    format: str
    avro_schema: str | None
    event_time: str | None
    on_error: Literal["fail", "drop", "dead"]
    timestamps: bool
    table: bool
    whole: bool = False
    key: tuple[str, ...] = ()
    stream_times: bool = False


def rows_stage(place: Place, reading: RowsReading) -> Stage:
    """A stage that reads its split of the lane's work: the columns, then `_partition`, and what else is wanted."""

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return settled(batch for split in splits_of(batches) for batch in _read(place, split, reading))

    return stage


def _read(place: Place, split: int, reading: RowsReading) -> Iterator[pa.RecordBatch]:
    task = place.line.work(place.lane, split, place.splits, whole=reading.whole)
    read, clock = Read(), StreamTimes(task.stream_times)
    for chunk in read_chunks(task, reading.servers, read):
        batch = _decode(chunk, reading, read, clock)
        if batch.num_rows:
            yield batch
        if read.dead.num_rows and reading.on_error == "fail":
            break
    place.line.report(place.lane, task.run, place.branch, split, READING, read)


def _decode(chunk: Chunk, reading: RowsReading, read: Read, clock: StreamTimes) -> pa.RecordBatch:
    values = chunk.records.column("value")
    gone = None
    if reading.table and values.null_count:
        empty = values.is_null()
        gone = _only(chunk, empty)
        keyed = gone.records.column("key").is_valid()
        read.drop(NO_KEY, len(keyed) - keyed.true_count)
        gone = _only(gone, keyed)
        chunk = _only(chunk, pc.invert(empty))
        values = chunk.records.column("value")
    columns, kept = _columns(chunk, values, reading, read)
    partitions, times = kept.partitions, kept.times
    moments = times if reading.event_time is None else _millis(columns[reading.event_time])
    note_times(read, partitions, moments)
    columns[PARTITION] = partitions
    if reading.timestamps:
        columns[TIMESTAMP] = times
    if reading.stream_times:
        columns[STREAM_TIME] = clock.advance(partitions, moments)
    if reading.table:
        columns[TOMBSTONE] = pa.nulls(len(partitions), pa.string())
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    if gone is None:
        return batch
    gone, tombstones = _tombstones(gone, reading, read)
    offsets = pa.concat_arrays([kept.records.column("offset"), gone.records.column("offset")])
    both = pa.table(pa.Table.from_batches([batch, tombstones.cast(batch.schema)]))
    order = pc.sort_indices(pa.table({"offset": offsets}), sort_keys=[("offset", "ascending")])
    return one_batch(both.take(order))


def _columns(chunk: Chunk, values: pa.Array, reading: RowsReading, read: Read) -> tuple[dict[str, pa.Array], Chunk]:
    """The decoded columns, and the chunk without records that couldn't be read."""
    if reading.format == "wire":
        batch = read_objects(values, _arrow_schema(reading.schema), f"topic {chunk.topic}")
        return dict(zip(batch.schema.names, batch.columns, strict=True)), chunk
    decoded = _decoder(reading.format, reading.schema, reading.avro_schema).decode(values)
    if decoded.errors:
        rows = [row for row, _ in decoded.errors]
        read.drop(UNREADABLE, len(rows))
        if reading.on_error != "drop":
            some = slice(0, 1 if reading.on_error == "fail" else None)
            note_dead(read, chunk, rows[some], [text for _, text in decoded.errors][some])
    if decoded.good is not None:
        chunk = Chunk(chunk.topic, chunk.records.take(decoded.good), chunk.partitions.take(decoded.good))
    batch = decoded.columns
    if batch.schema != _arrow_schema(reading.schema):
        batch = batch.cast(_arrow_schema(reading.schema))
    return dict(zip(batch.schema.names, batch.columns, strict=True)), chunk


def _tombstones(gone: Chunk, reading: RowsReading, read: Read) -> tuple[Chunk, pa.RecordBatch]:
    """Rows that delete, and their records: without those whose keys aren't a table's."""
    known: dict[str, pa.Array] = {}
    if reading.key:
        # Whoever wrote the key may have put blanks into the JSON, or the columns into another order.
        decoded = _decoder("json", _only_columns(reading.schema, reading.key), None).decode(gone.records.column("key"))
        read.drop(UNREADABLE, len(decoded.errors))
        if decoded.good is not None:
            gone = Chunk(gone.topic, gone.records.take(decoded.good), gone.partitions.take(decoded.good))
        known = dict(zip(decoded.columns.schema.names, decoded.columns.columns, strict=True))
    count = len(gone.partitions)
    columns = {
        field.name: known[field.name].cast(field.type) if field.name in known else pa.nulls(count, field.type)
        for field in _arrow_schema(reading.schema)
    }
    columns[PARTITION] = gone.partitions
    if reading.timestamps:
        columns[TIMESTAMP] = gone.times
    columns[TOMBSTONE] = gone.records.column("key").cast(pa.string(), safe=False)
    return gone, pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


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
def _decoder(format: str, schema: str, avro_schema: str | None) -> Any:  # noqa: A002  # as it is called there
    from kohort.spark.formats import decoder

    return decoder(format, spark_schema(schema), avro_schema)


@lru_cache(maxsize=64)
def _only_columns(schema: str, names: tuple[str, ...]) -> str:
    """Some columns of a schema of Spark's JSON."""
    import json

    fields = json.loads(schema)["fields"]
    return json.dumps({"type": "struct", "fields": [field for field in fields if field["name"] in names]})


def spark_schema(schema: str) -> Any:
    """A schema of Spark's JSON."""
    import json

    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(schema))


def arrow_schema(schema: str) -> pa.Schema:
    """The Arrow schema that Spark wants for a schema of Spark's JSON."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(spark_schema(schema), timezone="UTC")
