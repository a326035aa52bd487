"""The stages that read: a topic's rows, a table's records, repartitioned rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.client.config import ClientConfig
from kohort.spark.epoch import EpochStatistics
from kohort.spark.formats.derived_times import DerivedTime
from kohort.spark.formats.times import TimeFormats
from kohort.spark.jobs.arrow_encoding import read_objects
from kohort.spark.jobs.batches import one_batch
from kohort.spark.jobs.drop_reasons import MISPLACED, NO_KEY, NO_VALUE, UNREADABLE
from kohort.spark.jobs.stages.context import READING, Stage, StageContext, splits_of, stage_of
from kohort.spark.jobs.stages.fetched_records import FetchedRecords, OnError, fetch_records, note_dead, note_times
from kohort.spark.jobs.stages.partition_check import PartitionCheck, has_key, misplaced
from kohort.spark.jobs.stages.read_times import ReadTimes
from kohort.spark.jobs.stages.stream_time import StreamTimes
from kohort.spark.program.internal_columns import HEADERS, OFFSET, PARTITION, STREAM_TIME, TIMESTAMP, TOPIC, VALUELESS

if TYPE_CHECKING:
    from kohort.spark.formats.csv_format import CsvFields
    from kohort.spark.formats.registry_formats import RegistryReading
    from kohort.spark.program.record_keys import KeyReading

TOMBSTONE = "_tombstone"
"""STRING: a table's record without a value has its key here; all others null."""

_REPORTED: Final = {"fail": slice(1), "dead": slice(None), "drop": slice(0)}
"""Which of some bad records are reported with their content, by `on_error`."""


@dataclass(frozen=True)
class RowsReading:
    """How rows are read.

    Attributes:
        schema: of the columns to read, as Spark's JSON; for "encoded", of encoded types.
        format: as of a source, or "encoded" for repartitioned rows; see `kohort.spark.jobs.column_encoding`.
        event_time: the column whose largest values are reported; None for the record's timestamp.
        on_error: whether unreadable records end the job, are counted, or are reported with their content.
        internal_columns: those that are wanted of `_partition`, `_time`, `_stream_time` (which takes
            `whole_partitions`) and `_offset`, in this order.
        table: whether records without a value are rows too, with their keys in `_tombstone`.
        key: a table's columns that its records' keys hold as JSON: of records without a value they come from there.
            () if the key is the text of one column.
        times: how JSON has times; None for ISO 8601 in UTC.
        derived: the columns of `schema` that aren't in the values.
        whole_partitions: whether all of a partition is read in one split.
        partition_check: which partition each record belongs to, if anything goes by that: misplaced ones are bad.
        null_partitions: whether rows of records without a key, which may lie in any partition, have no `_partition`.
        tombstones: whether a stream's records without a value are rows of nulls, but for what is in their keys. A
            table's delete.
        keyless: whether records without a key are taken.
        headers, topics: whether `_headers` and `_topic`, which aren't in the values, are in `schema`.
        registry: how values are read that have the id of a registered schema.
        csv: what is in a record of CSV.
        keys: how those columns of `schema` are read that are in the records' keys.
        valueless: whether `_valueless`, which isn't in the values, is in `schema`.
        null_keys: whether, with `null_partitions`, rows whose columns of the key are null have one all the same.
        topic: that alone is read, where an epoch reads several; "" for all.
        number: which of these it is: each counts what it reads.
    """

    servers: ClientConfig
    schema: str
    format: str
    avro_schema: str | None
    event_time: str | None
    on_error: OnError
    internal_columns: tuple[str, ...]
    table: bool
    whole_partitions: bool = False
    key: tuple[str, ...] = ()
    times: TimeFormats | None = None
    derived: tuple[DerivedTime, ...] = ()
    partition_check: PartitionCheck | None = None
    null_partitions: bool = False
    tombstones: bool = True
    keyless: bool = True
    headers: bool = False
    topics: bool = False
    registry: RegistryReading | None = None
    csv: CsvFields | None = None
    keys: KeyReading | None = None
    valueless: bool = False
    null_keys: bool = False
    topic: str = ""
    number: int = 0


def read_rows_stage(context: StageContext, reading: RowsReading) -> Stage:
    """A stage that reads its split of the epoch's input: the columns, then the internal ones."""
    return stage_of(lambda batches: (batch for split in splits_of(batches) for batch in _read(context, split, reading)))


def _read(context: StageContext, split: int, reading: RowsReading) -> Iterator[pa.RecordBatch]:
    split_input = context.request_input(split, whole_partitions=reading.whole_partitions, topic=reading.topic)
    statistics, clock, times = EpochStatistics(), StreamTimes(split_input.stream_times), ReadTimes()
    for fetched in times.fetching(fetch_records(split_input, reading.servers, statistics, reading.on_error)):
        with times.decoding():
            batch = _ahead(_decode(fetched, reading, statistics, clock, split_input.partitions), split_input.ahead)
        if batch.num_rows:
            yield batch
        if statistics.dead.num_rows and reading.on_error == "fail":
            break
    if split_input.ranges:
        statistics.reads.append(times.read(split_input.ranges, statistics))
    context.report(split_input.run, reading.number * context.splits + split, READING, statistics)


def _ahead(batch: pa.RecordBatch, ahead: Mapping[int, int]) -> pa.RecordBatch:
    """Rows with `_offset` in the order that an epoch's topics have together (`splits.ahead_of`)."""
    at = batch.schema.get_field_index(OFFSET)
    if not any(ahead.values()) or at < 0:
        return batch
    found = sorted(ahead)
    numbers = pc.index_in(batch.column(PARTITION), pa.array(found, pa.int32()))
    added = pa.array([ahead[each] for each in found], pa.int64()).take(pc.fill_null(numbers, 0))
    return batch.set_column(at, OFFSET, pc.add(batch.column(OFFSET), added))


def _decode(
    fetched: FetchedRecords, reading: RowsReading, statistics: EpochStatistics, clock: StreamTimes, partitions: int
) -> pa.RecordBatch:
    deletes = None
    if not reading.keyless:
        fetched = _drop_without(fetched, "key", NO_KEY, statistics)
    values = fetched.values
    if reading.table and values.null_count:
        empty = values.is_null()
        deletes = _drop_without(fetched.filter(empty), "key", NO_KEY, statistics)
        fetched = fetched.filter(pc.invert(empty))
    elif not reading.tombstones:
        fetched = _drop_without(fetched, "value", NO_VALUE, statistics)
    columns, fetched = _decode_values(fetched, reading, statistics)
    columns, fetched, keyed = _drop_misplaced(columns, fetched, reading, statistics, partitions)
    times = fetched.times
    event_times = times if reading.event_time is None else _millis(columns[reading.event_time])
    in_order = STREAM_TIME in reading.internal_columns and deletes is not None
    if keyed is not None:  # what lies in a partition by chance doesn't say how far that one is
        event_times = pc.if_else(keyed, event_times, None)
    note_times(statistics, fetched.partitions, event_times)
    if PARTITION in reading.internal_columns:
        nulls = reading.null_partitions and keyed is not None
        belong = _belong(columns, keyed, reading) if nulls else None
        columns[PARTITION] = pc.if_else(belong, fetched.partitions, None) if nulls else fetched.partitions
    if TIMESTAMP in reading.internal_columns:
        columns[TIMESTAMP] = times
    if STREAM_TIME in reading.internal_columns:
        columns[STREAM_TIME] = event_times if in_order else clock.advance(fetched.partitions, event_times)
    if OFFSET in reading.internal_columns:
        columns[OFFSET] = fetched.offsets
    if reading.table:
        columns[TOMBSTONE] = pa.nulls(len(times), pa.string())
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    if deletes is None:
        return batch
    deletes, tombstones = _tombstones(deletes, reading, statistics, partitions)
    offsets = pa.concat_arrays([fetched.offsets, deletes.offsets])
    both = pa.table(pa.Table.from_batches([batch, tombstones.cast(batch.schema)]))
    order = pc.sort_indices(pa.table({"offset": offsets}), sort_keys=[("offset", "ascending")])
    batch = one_batch(both.take(order))
    if not in_order:
        return batch
    at = batch.schema.get_field_index(STREAM_TIME)
    return batch.set_column(at, STREAM_TIME, clock.advance(batch.column(PARTITION), batch.column(STREAM_TIME)))


def _belong(columns: Mapping[str, pa.Array], keyed: pa.Array, reading: RowsReading) -> pa.Array:
    """Which rows have a partition: those that are known to lie where they belong."""
    if not reading.null_keys or reading.partition_check is None:
        return keyed
    for name in reading.partition_check.key:
        keyed = pc.or_(keyed, columns[name].is_null())
    return keyed


def _drop_misplaced(
    columns: dict[str, pa.Array],
    fetched: FetchedRecords,
    reading: RowsReading,
    statistics: EpochStatistics,
    partitions: int,
) -> tuple[dict[str, pa.Array], FetchedRecords, pa.Array | None]:
    """The columns and records without misplaced ones, and which of them have a key; None if nothing goes by that."""
    check = reading.partition_check
    if check is None:
        return columns, fetched, None
    keyed = has_key(fetched, check.partitioner)
    in_keys = reading.keys is not None and set(check.key) <= set(reading.keys.columns)
    if not reading.table and not in_keys:  # a record without a value has no columns that belong anywhere
        keyed = pc.and_(keyed, fetched.values.is_valid())
    if not partitions:
        return columns, fetched, keyed
    reported = _REPORTED[reading.on_error]
    rows, errors = misplaced(check, columns, fetched, keyed, partitions, reported)
    if len(rows):
        statistics.drop(MISPLACED, len(rows))
        note_dead(statistics, fetched, rows[reported].tolist(), errors)
        mask = np.ones(len(keyed), np.bool_)
        mask[rows] = False
        good = pa.array(mask)
        columns = {name: column.filter(good) for name, column in columns.items()}
        fetched, keyed = fetched.filter(good), keyed.filter(good)
    return columns, fetched, keyed


def _decode_values(
    fetched: FetchedRecords, reading: RowsReading, statistics: EpochStatistics
) -> tuple[dict[str, pa.Array], FetchedRecords]:
    """The decoded columns, and the records without those that couldn't be read."""
    if reading.format == "encoded":
        batch = read_objects(fetched.values, _arrow_schema(reading.schema), f"topic {fetched.topic}")
        return dict(zip(batch.schema.names, batch.columns, strict=True)), fetched
    asked = ((HEADERS, reading.headers), (TOPIC, reading.topics), (VALUELESS, reading.valueless))
    shown = [name for name, is_asked in asked if is_asked]
    of_keys = () if reading.keys is None else reading.keys.columns
    added = (*(each.name for each in reading.derived), *shown, *of_keys)
    schema = _without(reading.schema, added)
    decoder = _decoder(reading.format, schema, reading.avro_schema, reading.times, reading.registry, reading.csv)
    decoded = decoder.decode(fetched.values)
    if decoded.errors:
        statistics.drop(UNREADABLE, len(decoded.errors))
        reported = decoded.errors[_REPORTED[reading.on_error]]
        note_dead(statistics, fetched, [row for row, _ in reported], [text for _, text in reported])
    if decoded.good is not None:
        fetched = fetched.take(decoded.good)
    batch = decoded.columns
    if batch.schema != _arrow_schema(schema):
        batch = batch.cast(_arrow_schema(schema))
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for each in reading.derived:
        columns[each.name] = each.of(columns[each.column] if each.function else fetched.times)
    if reading.headers:
        columns[HEADERS] = fetched.records.column("headers").cast(_arrow_schema(reading.schema).field(HEADERS).type)
    if reading.topics:
        columns[TOPIC] = pa.repeat(fetched.topic, len(fetched.partitions)).cast(pa.string())
    if reading.valueless:
        columns[VALUELESS] = fetched.values.is_null()
    if reading.keys is not None:
        columns, fetched = _with_keys(columns, fetched, reading, reading.keys, statistics)
    return {name: columns[name] for name in _arrow_schema(reading.schema).names}, fetched


def _with_keys(
    columns: dict[str, pa.Array], fetched: FetchedRecords, reading: RowsReading, said: KeyReading,
    statistics: EpochStatistics,
) -> tuple[dict[str, pa.Array], FetchedRecords]:  # fmt: skip
    """The columns with those of the keys, and the records without those whose keys couldn't be read."""
    decoded = _decoder(said.format, said.schema, said.avro_schema, None, said.registry, None).decode(fetched.keys)
    if decoded.errors:
        statistics.drop(UNREADABLE, len(decoded.errors))
        reported = decoded.errors[_REPORTED[reading.on_error]]
        note_dead(statistics, fetched, [row for row, _ in reported], [f"its key: {text}" for _, text in reported])
    if decoded.good is not None:
        columns = {name: column.take(decoded.good) for name, column in columns.items()}
        fetched = fetched.take(decoded.good)
    batch = decoded.columns.cast(_arrow_schema(said.schema))
    return columns | dict(zip(batch.schema.names, batch.columns, strict=True)), fetched


def _tombstones(
    deletes: FetchedRecords, reading: RowsReading, statistics: EpochStatistics, partitions: int
) -> tuple[FetchedRecords, pa.RecordBatch]:
    """Records that delete, as rows: without those whose keys aren't a table's, or are misplaced."""
    schema = _arrow_schema(reading.schema)
    key: dict[str, pa.Array] = {}
    if reading.key:
        # A key's JSON may have been written with blanks, or with the columns in another order.
        keys = _decoder("json", _only_columns(reading.schema, reading.key), None, reading.times, None, None)
        decoded = keys.decode(deletes.keys)
        statistics.drop(UNREADABLE, len(decoded.errors))
        if decoded.good is not None:
            deletes = deletes.take(decoded.good)
        key = {name: decoded.columns.column(name).cast(schema.field(name).type) for name in reading.key}
    elif reading.partition_check is not None:
        key = {reading.partition_check.key[0]: _key_text(deletes)}
    key, deletes, _ = _drop_misplaced(key, deletes, reading, statistics, partitions)
    count = len(deletes.partitions)
    recorded = {each.name: each.of(deletes.times) for each in reading.derived if not each.function}
    there = (key if reading.key else {}) | recorded
    columns = {field.name: there.get(field.name, pa.nulls(count, field.type)) for field in schema}
    if reading.event_time is None:
        times = deletes.times
    elif reading.event_time in recorded:
        times = _millis(recorded[reading.event_time])
    else:
        times = pa.nulls(count, pa.int64())
    internal = {PARTITION: deletes.partitions, TIMESTAMP: deletes.times, STREAM_TIME: times, OFFSET: deletes.offsets}
    columns |= {name: internal[name] for name in reading.internal_columns}
    columns[TOMBSTONE] = _key_text(deletes)
    return deletes, pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _key_text(fetched: FetchedRecords) -> pa.Array:
    return fetched.keys.cast(pa.string(), safe=False)


def _drop_without(fetched: FetchedRecords, column: str, reason: str, statistics: EpochStatistics) -> FetchedRecords:
    """The records that have a key, or a value; the others are counted."""
    found = fetched.records.column(column)
    statistics.drop(reason, found.null_count)
    return fetched.filter(found.is_valid()) if found.null_count else fetched


def _millis(times: pa.Array) -> pa.Array:
    """Timestamps, or their encoded type, as ms since 1970, rounded down."""
    if pa.types.is_integer(times.type):
        times = times.cast(pa.timestamp("us", "UTC"))
    elif times.type.tz is None:
        times = times.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    return pc.floor_temporal(times, unit="millisecond").cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())


@lru_cache(maxsize=64)
def _arrow_schema(schema: str) -> pa.Schema:
    return arrow_schema(schema)


@lru_cache(maxsize=64)
def _decoder(
    format: str,  # noqa: A002
    schema: str,
    avro_schema: str | None,
    times: TimeFormats | None,
    registry: RegistryReading | None,
    csv: CsvFields | None,
) -> Any:
    from kohort.spark.formats import decoder

    return decoder(format, spark_schema(schema), avro_schema, times, registry, csv)


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
    import json

    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(schema))


def arrow_schema(schema: str) -> pa.Schema:
    """The Arrow schema that Spark wants for a schema of Spark's JSON."""
    from kohort.spark import internals

    return internals.arrow_schema(spark_schema(schema))
