"""What an application wrote to a topic, as rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kohort.spark.letter_headers import PREFIX
from kohort.spark.program.compiled import Program, ToTopic
from kohort.spark.testing.session import without_warnings_of_pandas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Read = Callable[[bytes], Any]
"""Reads a value as the columns of a row."""

BY_COLUMN: Final = ""
"""Stands for the topics that a column names."""


class OutputRows(list[dict[str, Any]]):
    """Rows of a topic, in the order in which they were written: a list of dicts, equal to one.

    A record without a value is a row of its key alone: {"key": b"…"}.

    Attributes:
        records: the same as records: offset, timestamp, key, value, headers, partition.
    """

    def __init__(self, rows: Iterable[dict[str, Any]], records: pa.Table, spark: SparkSession) -> None:
        super().__init__(rows)
        self.records = records
        self._spark = spark

    def to_arrow(self) -> pa.Table:
        """The rows as a table; columns have the types that follow from the values."""
        names = dict.fromkeys(name for row in self for name in row)
        return pa.table({name: pa.array([row.get(name) for row in self]) for name in names})

    def to_df(self) -> DataFrame:
        """The rows as Spark's DataFrame."""
        with without_warnings_of_pandas():
            return self._spark.createDataFrame(self.to_arrow())


def output_rows(records: pa.Table, read: Read, spark: SparkSession) -> OutputRows:
    """Records of a topic as rows."""
    keys, values = records["key"].to_pylist(), records["value"].to_pylist()
    rows = [{"key": key} if value is None else read(value) for key, value in zip(keys, values, strict=True)]
    return OutputRows(rows, records, spark)


def dead_letters(records: pa.Table, spark: SparkSession) -> OutputRows:
    """Dead letters as rows: their values as they are, what is wrong with them, and where they came from."""
    rows = []
    for row in records.select(["key", "value", "headers"]).to_pylist():
        said = {each["key"].removeprefix(PREFIX): (each["value"] or b"").decode() for each in row["headers"]}
        rows.append(
            {
                "key": row["key"],
                "value": row["value"],
                "error": said.get("message"),
                "topic": said.get("topic"),
                "partition": int(said.get("partition", -1)),
                "offset": int(said.get("offset", -1)),
            }
        )
    return OutputRows(rows, records, spark)


def readers_of(program: Program) -> dict[str, Read]:
    """How the values of each topic are read that the program writes rows to; the last way, where there are several.

    Those of topics that a column names are at `BY_COLUMN`.
    """
    return {output.topic: reader_of(output) for output in program.outputs}


def reader_of(output: ToTopic) -> Read:
    """How the values of a topic are read that rows are written to."""
    match output.format:
        case "json":
            return json.loads
        case "string":
            return lambda value: {output.columns[0]: value.decode()}
        case "avro" if output.avro_schema is not None and output.registry is None:
            return _avro_reader(output.avro_schema)
    return lambda value: {"value": value}


def _avro_reader(schema: str) -> Read:
    import io

    import fastavro

    from kohort.spark.formats.avro_schema import parse

    parsed = parse(schema)
    return lambda value: fastavro.schemaless_reader(io.BytesIO(value), parsed, None)
