"""Rows to Avro data, row by row: for outputs of moderate size."""

from __future__ import annotations

import io
import json

import fastavro
import pyarrow as pa
from pyspark.sql import types as spark

from kohort.spark.formats.arrow_types import arrow_schema
from kohort.spark.formats.avro_schema import parse, spark_schema
from kohort.spark.formats.interfaces import FormatError


class AvroEncoder:
    """Writes a row as one record, in Avro's binary encoding without any header.

    Args:
        avro_schema: what to write with; by default, what Spark's `to_avro` writes with.

    Raises:
        FormatError: no schema, or one with other fields than the columns.
    """

    def __init__(self, schema: spark.StructType, avro_schema: str | None = None) -> None:
        self._schema = arrow_schema(schema)
        self._avro = parse(json.dumps(spark_schema(schema)) if avro_schema is None else avro_schema)
        fields = [each["name"] for each in self._avro["fields"] if "default" not in each]
        lacking = [name for name in fields if name not in self._schema.names]
        if lacking:
            raise FormatError(f"the Avro schema has fields that the columns lack: {', '.join(lacking)}")

    def encode(self, table: pa.Table | pa.RecordBatch) -> pa.Array:
        missing = [name for name in self._schema.names if name not in table.schema.names]
        if missing:
            raise ValueError(f"there's no column {', '.join(missing)}, but {', '.join(table.schema.names) or 'none'}")
        values = []
        for number, row in enumerate(table.select(self._schema.names).to_pylist()):
            out = io.BytesIO()
            for name, value in row.items():
                if isinstance(value, list) and value and isinstance(value[0], tuple):
                    row[name] = dict(value)
            try:
                fastavro.schemaless_writer(out, self._avro, row)
            except Exception as error:
                raise ValueError(f"row {number} can't be written as Avro: {error}") from error
            values.append(out.getvalue())
        return pa.array(values, pa.binary())
