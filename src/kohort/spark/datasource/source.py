"""The data source, as Spark calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kohort.spark.datasource.options import ReadOptions, WriteOptions
from kohort.spark.datasource.stream_options import StreamOptions, without_stream_options

if TYPE_CHECKING:
    from kohort.spark.datasource.reader import TopicReader
    from kohort.spark.datasource.stream_reader import TopicStreamReader
    from kohort.spark.datasource.writer import TopicWriter


class KohortDataSource(DataSource):
    """Reads ranges of Kafka topics, and writes to topics.

        spark.read.format("kohort").option("servers", "localhost:9092").option("topic", "flights").load()
        spark.readStream.format("kohort").option("servers", "localhost:9092").option("topic", "flights").load()
        df.write.format("kohort").option("servers", "localhost:9092").option("topic", "out").mode("append").save()

    Options and columns are those of Spark's own Kafka connector where it has them; see `ReadOptions`,
    `StreamOptions`, `WriteOptions`.
    """

    @classmethod
    def name(cls) -> str:
        """The name in `format(…)`."""
        return "kohort"

    def schema(self) -> StructType:
        """The columns of reads: key, value, topic, partition, offset, timestamp, timestampType, and maybe headers."""
        fields = [
            StructField("key", BinaryType()),
            StructField("value", BinaryType()),
            StructField("topic", StringType()),
            StructField("partition", IntegerType()),
            StructField("offset", LongType()),
            StructField("timestamp", TimestampType()),
            StructField("timestampType", IntegerType()),
        ]
        if ReadOptions.of(without_stream_options(self.options)).headers:
            header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
            fields.append(StructField("headers", ArrayType(header)))
        return StructType(fields)

    def reader(self, schema: StructType) -> TopicReader:
        """Returns the reader.

        Raises:
            ValueError: options are invalid, or a schema is given.
        """
        from kohort.spark.datasource.reader import TopicReader

        self._check(schema)
        return TopicReader(ReadOptions.of(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> TopicWriter:
        """Returns the writer.

        Raises:
            ValueError: options or columns are invalid, or mode("overwrite"): a topic's records can't be replaced.
        """
        from kohort.spark.datasource.writer import TopicWriter

        if overwrite:
            raise ValueError('records can only be added to a topic: use .mode("append")')
        return TopicWriter(WriteOptions.of(self.options), schema)

    def streamReader(self, schema: StructType) -> TopicStreamReader:  # noqa: N802  # as PySpark calls it
        """Returns the reader of a stream. Raises as `reader`."""
        from kohort.spark.datasource.stream_reader import TopicStreamReader

        self._check(schema)
        return TopicStreamReader(StreamOptions.of(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: N802
        """Raises ValueError, which says what to use instead."""
        raise ValueError(
            'there is no writeStream for format("kohort"): write each batch with .foreachBatch and '
            'df.write.format("kohort"), or make it an application, kohort.spark.StreamsApp, with stream.to(…)'
        )

    def _check(self, schema: StructType) -> None:
        if schema != self.schema():
            raise ValueError("the columns of a topic are fixed: leave out .schema(…), and select from what is there")
