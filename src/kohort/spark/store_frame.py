"""A store as a DataFrame: the last value of each key of its changelog, in the types of the program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from kohort.spark.datasource.options import EARLIEST, LATEST, Bound, ReadOptions
from kohort.spark.datasource.planning import divide_ranges, plan_ranges
from kohort.spark.datasource.reader import RangeInputPartition, read_partition
from kohort.spark.errors import ProgramError
from kohort.spark.jobs.column_encoding import decoded_column, encoded_schema, nullable
from kohort.spark.program.compiled import AggregateSpec, Program, TableStore
from kohort.spark.reading import Range, RangeReader

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from kohort.client.config import ClientConfig

_SCHEMA = T.StructType(
    [
        T.StructField("key", T.BinaryType()),
        T.StructField("value", T.BinaryType()),
        T.StructField("topic", T.StringType()),
        T.StructField("partition", T.IntegerType()),
        T.StructField("offset", T.LongType()),
        T.StructField("timestamp", T.TimestampType()),
        T.StructField("timestampType", T.IntegerType()),
    ]
)
_WINDOW = "window"


class StoreFrame:
    """A store of an application. `StreamsApp.store` makes it.

    Args:
        compile_program: compiles the program that has the store.
        servers: where its changelog is.
        name: the store's.
    """

    def __init__(self, compile_program: Callable[[SparkSession], Program], servers: ClientConfig, name: str) -> None:
        self._compile, self._servers, self._name = compile_program, servers, name

    def read(self, spark: SparkSession) -> DataFrame:
        """What the store has now: an aggregate's window, grouped columns and results; a table's columns.

        It is read from the changelog, as far as that is committed when this is called, by executors; so it doesn't
        matter whether the application runs. Windows that have been forgotten aren't in it.

        Raises:
            ProgramError: the program has no such store, or it is a global table.
            KafkaError: there is no changelog: the application never ran.
        """
        store = _store(self._compile(spark), self._name)
        changelog = store.changelog
        assert changelog is not None
        rows = _last_of_each_key(self._records(spark, changelog))
        return _aggregate(rows, store) if isinstance(store, AggregateSpec) else _table(rows, store)

    def _records(self, spark: SparkSession, topic: str) -> DataFrame:
        options = ReadOptions(
            config=self._servers, topics=(topic,), pattern=None, assigned=None, start=Bound(offset=EARLIEST),
            end=Bound(offset=LATEST), min_partitions=1, max_records=None, headers=False, committed=True,
            fail_on_data_loss=True,
        )  # fmt: skip
        reader = RangeReader(self._servers)
        try:
            ranges = divide_ranges(plan_ranges(reader, options), spark.sparkContext.defaultParallelism, None)
        finally:
            reader.close()
        if not ranges:
            return spark.createDataFrame([], _SCHEMA)
        splits = spark.range(0, len(ranges), 1, len(ranges))
        return splits.mapInArrow(partial(_read, ranges, options), _SCHEMA)


def _read(ranges: Sequence[Range], options: ReadOptions, splits: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for split in splits:
        for number in split.column(0).to_pylist():
            yield from read_partition(RangeInputPartition(ranges[number]), options, _SCHEMA)


def _store(program: Program, name: str) -> AggregateSpec | TableStore:
    if name in {table.name for table in program.globals}:
        raise ProgramError(
            f"store({name!r}): a global table has no changelog: read its topic, as by spark.read.format('kohort')"
        )
    stores: dict[str, AggregateSpec | TableStore] = {}
    for each in program.subtopologies:
        stores |= {table.name: table for table in each.tables} | {spec.name: spec for spec in each.aggregates}
    if name not in stores:
        raise ProgramError(
            f"store({name!r}): of aggregates and tables there are {', '.join(sorted(stores)) or 'none'}. What "
            f"functions, joins of streams, repetitions and ranks keep is theirs alone"
        )
    return stores[name]


def _last_of_each_key(records: DataFrame) -> DataFrame:
    last = records.groupBy("partition", "key").agg(F.max_by("value", "offset").alias("value"))
    return last.where("value is not null").select(F.col("key").cast("string"), F.col("value").cast("string"))


def _aggregate(rows: DataFrame, spec: AggregateSpec) -> DataFrame:
    window = [T.StructField(_WINDOW, T.TimestampType())] if spec.window is not None else []
    key = T.StructType([*window, *(T.StructField(name, kind) for name, kind in spec.group)])
    value = T.StructType([T.StructField(name, nullable(kind)) for name, kind in spec.output_columns])
    parsed = rows.select(F.from_json("key", key).alias("key"), F.from_json("value", value).alias("value"))
    return parsed.select(
        *[F.col("key").getField(name).alias(name) for name in key.names],
        *[F.col("value").getField(name).alias(name) for name in value.names],
    )


def _table(rows: DataFrame, table: TableStore) -> DataFrame:
    fields = [(field.name, field.dataType) for field in table.source.schema.fields]
    parsed = rows.select(F.from_json("value", encoded_schema(tuple(fields))).alias("value"))
    return parsed.select(*[decoded_column(F.col("value").getField(name), kind).alias(name) for name, kind in fields])
